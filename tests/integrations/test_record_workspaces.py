#!/usr/bin/env python3
"""integrations/workspaces without a GPU: lists and tables as text, what is taken from torch's operations (where there
is a torch), and what becomes of calls that cannot be measured. GMD_WORKSPACE_ERRORS names the program that reads a
table as gmd does."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "integrations", "workspaces")
sys.path.insert(0, FOLDER)

import list_shapes  # noqa: E402
import record_workspaces as rw  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

HEAD = {"gpu": "NVIDIA H100", "cudnn": "91002", "torch": "2.11.0"}
CONV = rw.Conv("forward", "float32", (8, 64, 56, 56), (128, 64, 3, 3), padding=(1, 1))
LSTM = rw.Rnn("forward", "float16", "lstm", 4, 7, 64, 128, layers=2)


class FakeGpu:
    """Every call takes 1,000 bytes but those of a batch of 13, for which there is no memory."""

    def measure(self, call):
        if isinstance(call, rw.Conv) and call.input[0] == 13:
            raise RuntimeError("CUDA out of memory.\nTried to allocate 20 GiB")
        fields = {"bytes": 1000}
        if isinstance(call, rw.Conv) and call.benchmark:
            fields["tried"] = 5000
        if isinstance(call, rw.Rnn) and call.training and call.direction == "forward":
            fields["reserve"] = 300
        return fields


def table_of(calls, measurer=None, deadline=None):
    out = io.StringIO()
    rw.write_head(out, HEAD)
    return out, rw.record(calls, measurer or FakeGpu(), out, deadline)


class Lists(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".list") as file:
            file.write(text)
            file.flush()
            return rw.read_list(file.name)

    def test_a_call_is_read_as_it_is_written(self):
        for call in (CONV, LSTM):
            self.assertEqual(rw.parse_call(call.line()), (call, False))
            self.assertEqual(rw.parse_call(call.line() + " held"), (call, True))

    def test_a_table_is_a_list_too(self):
        out, _ = table_of({CONV: False, LSTM: True})
        self.assertEqual(self.read(out.getvalue()), {CONV: False, LSTM: True})

    def test_each_call_stands_once(self):
        self.assertEqual(len(self.read(CONV.line() + "\n# again\n" + CONV.line() + "\n")), 1)

    def test_bad_lines_are_refused_with_their_number(self):
        for bad, message in ((CONV.line().replace("56x56", "56xA"), "invalid literal"),
                             (CONV.line() + " colour=red", "'colour=red' is no field of conv"),
                             ("conv sideways", "expected forward or backward_data or backward_weight"),
                             ("conv forward dtype=float32", "missing 2 required positional arguments"),
                             ("pool forward", "expected conv or rnn, found 'pool'"),
                             (CONV.line().replace("benchmark=off", "benchmark=no"), "expected on or off")):
            with self.assertRaisesRegex(rw.Refused, f":2: .*{message}"):
                self.read("# a list\n" + bad + "\n")

    def test_our_list_has_every_call_once_and_half_of_the_random_ones_held(self):
        calls = list_shapes.all_calls()
        drawn = list_shapes.random_calls(200, 80)
        held = sum(drawn.values())
        self.assertGreater(held, len(drawn) * 0.4)
        self.assertLess(held, len(drawn) * 0.6)
        self.assertGreater(len(calls), 2000)
        self.assertIn(rw.Conv("forward", "float32", (32, 3, 224, 224), (64, 3, 7, 7), (2, 2), (3, 3)), calls)

    def test_our_list_is_the_same_each_time(self):
        self.assertEqual(list(list_shapes.all_calls().items()), list(list_shapes.all_calls().items()))


class Tables(unittest.TestCase):
    def test_a_call_that_cannot_be_measured_is_told_and_left_out(self):
        huge = rw.Conv("forward", "float32", (13, 64, 56, 56), (128, 64, 3, 3))
        out, failures = table_of({huge: False, CONV: False})
        self.assertEqual(failures, [(huge, "CUDA out of memory.")])
        self.assertEqual(out.getvalue().splitlines()[4:], [CONV.line() + " bytes=1000"])

    def test_when_the_time_is_over_the_rest_is_left_out(self):
        out, failures = table_of({CONV: False}, deadline=0)
        self.assertEqual(failures, [(CONV, "the time was over")])

    def test_what_processes_wrote_becomes_one_table_in_the_order_of_the_list(self):
        calls = {call: False for call in rw.with_directions(CONV) + rw.with_directions(LSTM)}
        with tempfile.TemporaryDirectory() as folder:
            parts = []
            for i, share in enumerate(rw.share_out(calls, 2)):
                parts.append(os.path.join(folder, str(i)))
                with open(parts[-1], "w", encoding="utf-8") as part:
                    part.write(table_of(share)[0].getvalue())
            with open(parts[1], encoding="utf-8") as part:
                cut = part.read().rsplit("\n", 2)[0]  # this process died before its last line
            with open(parts[1], "w", encoding="utf-8") as part:
                part.write(cut + "\n")
            out = os.path.join(folder, "out")
            self.assertEqual(rw.merge(out, parts, calls, ["a comment"]), 1)
            with open(out, encoding="utf-8") as text:
                lines = text.read().splitlines()
        self.assertEqual([rw.parse_call(line)[0] for line in lines[5:9]],
                         [c for c in calls if c != list(calls)[3]])
        self.assertEqual(lines[9], f"# not recorded: {list(calls)[3].line()}: its process ended early")

    @unittest.skipUnless("GMD_WORKSPACE_ERRORS" in os.environ, "no program that reads tables")
    def test_gmd_reads_the_table_of_our_list(self):
        calls = list_shapes.all_calls()
        with tempfile.NamedTemporaryFile("w", suffix=".table") as file:
            file.write(table_of(calls)[0].getvalue())
            file.flush()
            done = subprocess.run([os.environ["GMD_WORKSPACE_ERRORS"], file.name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for model in ("conv_forward", "conv_backward", "rnn", "rnn_narrow"):
            for half in ("held", "others"):
                self.assertIn(f"{model} {half} ", done.stdout)


class FakeTensor:
    def __init__(self, *shape, dtype="torch.float32", device="cuda"):
        self.shape, self.dtype, self.device = shape, dtype, SimpleNamespace(type=device)

    def dim(self):
        return len(self.shape)

    def is_contiguous(self, memory_format=None):
        return memory_format is None


class RnnOperations(unittest.TestCase):
    """cuDNN's RNNs are operations of GPUs only: their arguments, without torch."""

    def collected(self, x, batch_first=False, batch_sizes=(), projection=0, name="aten::_cudnn_rnn"):
        collector = rw.Collector(None)
        hx = FakeTensor(2, 4, 128)
        rest = [2, 128, projection, 2, batch_first, 0.0, True, False, list(batch_sizes), None]
        between = [None] * 4 if name.endswith("backward") else []
        collector.note(name, [x, [], 4, None, hx, hx, *between, *rest, None, None], None)
        return collector

    def test_the_length_comes_first_or_the_batch_does(self):
        expected = [rw.Rnn("forward", "float32", "lstm", 4, 7, 64, 128, layers=2)]
        self.assertEqual(list(self.collected(FakeTensor(7, 4, 64)).calls), expected)
        self.assertEqual(list(self.collected(FakeTensor(4, 7, 64), batch_first=True).calls), expected)

    def test_the_way_back_has_its_own_line(self):
        collector = self.collected(FakeTensor(7, 4, 64), name="aten::_cudnn_rnn_backward")
        self.assertEqual([call.direction for call in collector.calls], ["backward"])

    def test_packed_sequences_of_one_length_are_one_call(self):
        collector = self.collected(FakeTensor(28, 64), batch_sizes=[4] * 7)
        self.assertEqual(list(collector.calls), [rw.Rnn("forward", "float32", "lstm", 4, 7, 64, 128, layers=2, packed=True)])

    def test_what_a_table_cannot_say_is_counted(self):
        self.assertIn("RNNs over sequences of different lengths",
                      self.collected(FakeTensor(7, 64), batch_sizes=[4, 3]).left_out)
        self.assertIn("RNNs with projections", self.collected(FakeTensor(7, 4, 64), projection=9).left_out)


@unittest.skipUnless(torch, "there is no PyTorch")
class Scripts(unittest.TestCase):
    def collected(self, function):
        collector = rw.Collector(torch, "cpu")
        with collector.watching():
            function()
        return list(collector.calls), collector.left_out

    def test_a_training_step_has_three_calls(self):
        first, second = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.Conv2d(8, 4, 1)
        calls, _ = self.collected(lambda: second(first(torch.randn(2, 3, 9, 9))).sum().backward())
        self.assertEqual([(c.direction, c.weight) for c in calls],
                         [("forward", (8, 3, 3, 3)), ("forward", (4, 8, 1, 1)), ("backward_data", (4, 8, 1, 1)),
                          ("backward_weight", (4, 8, 1, 1)), ("backward_weight", (8, 3, 3, 3))])
        self.assertEqual(calls[0], rw.Conv("forward", "float32", (2, 3, 9, 9), (8, 3, 3, 3), (2, 2), (1, 1)))

    def test_inference_mode_is_seen_too(self):
        layer = torch.nn.Conv2d(3, 8, 3)
        with torch.inference_mode():
            calls, _ = self.collected(lambda: layer(torch.randn(2, 3, 9, 9)))
        self.assertEqual(calls, [rw.Conv("forward", "float32", (2, 3, 9, 9), (8, 3, 3, 3))])

    def test_a_conv1d_is_an_image_one_line_high(self):
        calls, _ = self.collected(lambda: torch.nn.Conv1d(3, 8, 3, dilation=2, padding=2)(torch.randn(2, 3, 40)))
        self.assertEqual(calls, [rw.Conv("forward", "float32", (2, 3, 1, 40), (8, 3, 1, 3), (1, 1), (0, 2), (1, 2))])

    def test_a_transposed_convolution_is_the_way_back_of_another(self):
        layer = torch.nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)
        x = torch.randn(2, 8, 5, 5, requires_grad=True)
        calls, _ = self.collected(lambda: layer(x).sum().backward())
        self.assertEqual([c.direction for c in calls], ["backward_data", "forward", "backward_weight"])
        self.assertEqual({c.input for c in calls}, {(2, 3, 10, 10)})
        self.assertEqual({c.output() for c in calls}, {(2, 8, 5, 5)})

    def test_channels_last_and_benchmark_are_noted(self):
        layer = torch.nn.Conv2d(4, 8, 3).to(memory_format=torch.channels_last)
        torch.backends.cudnn.benchmark = True
        self.addCleanup(setattr, torch.backends.cudnn, "benchmark", False)
        calls, _ = self.collected(lambda: layer(torch.randn(2, 4, 9, 9)))
        self.assertEqual((calls[0].layout, calls[0].benchmark), ("channels_last", True))

    def test_convolutions_in_three_dimensions_are_counted(self):
        calls, left_out = self.collected(lambda: torch.nn.Conv3d(1, 2, 3)(torch.randn(1, 1, 5, 5, 5)))
        self.assertEqual((calls, left_out["convolutions in three dimensions"]), ([], 1))

    def run_on(self, script, *options):
        with tempfile.TemporaryDirectory() as folder:
            path, out = os.path.join(folder, "train.py"), os.path.join(folder, "list")
            with open(path, "w", encoding="utf-8") as file:
                file.write(script)
            done = subprocess.run([sys.executable, "-B", os.path.join(FOLDER, "record_workspaces.py"), "--out", out,
                                   *options, path, "5"], capture_output=True, text=True)
            lines = []
            with contextlib.suppress(OSError), open(out, encoding="utf-8") as file:
                lines = file.read().splitlines()
            return done, lines

    def test_the_calls_of_a_script_are_listed_without_a_gpu(self):
        script = "import sys, torch\nif __name__ == '__main__':\n" \
                 "    torch.nn.Conv2d(3, int(sys.argv[1]), 3)(torch.randn(2, 3, 9, 9))\n"
        done, lines = self.run_on(script, "--list-only", "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(lines, [rw.Conv("forward", "float32", (2, 3, 9, 9), (5, 3, 3, 3)).line()])

    def test_a_script_that_fails_leaves_the_calls_until_then(self):
        script = "import torch\ntorch.nn.Conv2d(3, 4, 3)(torch.randn(2, 3, 9, 9))\nraise ValueError('lost')\n"
        done, lines = self.run_on(script, "--list-only", "--device", "cpu")
        self.assertEqual((done.returncode, len(lines)), (1, 1))
        self.assertIn("ValueError: lost", done.stderr)

    def test_without_a_gpu_nothing_is_measured_and_the_message_says_so(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        done, _ = self.run_on("import torch\ntorch.nn.Conv2d(3, 4, 3)(torch.randn(2, 3, 9, 9))\n")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there are no convolutions and no RNNs of cuDNN to record", done.stderr)


class CommandLine(unittest.TestCase):
    def refused(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as errors, self.assertRaises(SystemExit) as stop:
            rw.parse(arguments)
        self.assertEqual(stop.exception.code, 2)
        return errors.getvalue()

    def test_a_script_or_a_list_is_needed(self):
        self.assertIn("expected a script or --shapes LIST", self.refused("--out", "x"))
        self.assertIn("expected a script or --shapes LIST", self.refused("--out", "x", "--shapes", "y", "train.py"))

    def test_a_script_keeps_its_own_options(self):
        options = rw.parse(["--out", "x", "train.py", "--out", "theirs"])
        self.assertEqual((options.out, options.arguments), ("x", ["--out", "theirs"]))

    def test_a_missing_script_is_named(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(rw.main(["--out", "x", "no/such.py"]), 2)
        self.assertIn("no/such.py: there is no such file", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
