"""bench/sanitizer_cost.py without a GPU: its reckoning with processes that take what they are told to, and its own
process with stand-ins for PyTorch and gmd_torch."""

import contextlib
import io
import json
import os
import sys
import tempfile
import textwrap
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import sanitizer_cost  # pylint: disable=wrong-import-position

WORKER = """
import json, sys
tier, model = sys.argv[2], sys.argv[4]
taken = {"": 0.02, "cheap": 0.03 if model == "gpt" else 0.04, "full": 0.3, "unmap": 0.9}[tier]
for line in sys.stdin:
    what, _, count = line.strip().partition(" ")
    print(f"{tier or 'none'} {line.strip()}", file=open(LOG, "a"))
    if what == "steps":
        print(json.dumps({"seconds": taken, "reserved": 3 << 30}), flush=True)
    elif what == "pairs":
        print(json.dumps({"pairs": [1.25, 2.5]}), flush=True)
    else:
        print(json.dumps({"gpu": "a GPU", "torch": "2.11", "python": "3.11"}), flush=True)
print(json.dumps({"findings": int(tier == FOUND)}), flush=True)
"""


class Reckoning(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.log, self.results = (os.path.join(self.folder.name, name) for name in ("log", "results.md"))
        self.addCleanup(self.folder.cleanup)

    def run_cost(self, *arguments, found="nothing", source=WORKER):
        program = os.path.join(self.folder.name, "worker.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"LOG, FOUND = {self.log!r}, {found!r}\n" + source)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = sanitizer_cost.main(["--worker-program", program, "--results", self.results, "--turns", "2",
                                          *arguments])
        return status, said.getvalue()

    def logged(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_one_call_has_both_models_and_all_tiers_in_the_table_of_the_manual(self):
        self.run_cost("--tiers", "cheap full unmap")
        with open(self.results, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(textwrap.dedent("""\
            | | GPT | | reserved | ResNet-50 | | reserved |
            | --- | --- | --- | --- | --- | --- | --- |
            | without it | 20.0 ms | | 3.0 GiB | 20.0 ms | | 3.0 GiB |
            | `cheap` | 30.0 ms | 1.50 | 3.0 GiB | 40.0 ms | 2.00 | 3.0 GiB |
            | `full` | 300.0 ms | 15.0 | 3.0 GiB | 300.0 ms | 15.0 | 3.0 GiB |
            | `unmap` | 900.0 ms | 45.0 | 3.0 GiB | 900.0 ms | 45.0 | 3.0 GiB |
            """), text)
        self.assertIn("| `cheap` | 1.2 us | 2.5 us | ", text)
        self.assertIn("- machine: a GPU, torch 2.11, Python 3.11, ", text)

    def test_the_default_has_each_tier(self):
        self.assertEqual(sanitizer_cost.parsed([]).tiers.split(), ["cheap", "full", "unmap,unmap:1MiB", "unmap"])
        self.assertEqual(sanitizer_cost.parsed([]).models, "gpt,resnet50")

    def test_cheap_beyond_the_limit_is_a_failure(self):
        self.assertEqual(self.run_cost("--tiers", "cheap", "--models", "gpt")[0], 0)
        status, said = self.run_cost("--tiers", "cheap")
        self.assertEqual(status, 1)
        self.assertIn("resnet50: `cheap` costs 2.00 times the step, more than 1.5", said)

    def test_a_finding_is_a_failure(self):
        status, said = self.run_cost("--tiers", "full", "--models", "gpt", found="full")
        self.assertEqual(status, 1)
        self.assertIn("gpt: `full` found 1", said)

    def test_a_turn_has_the_steps_that_fit_into_its_time(self):
        self.run_cost("--tiers", "full unmap", "--models", "gpt", "--turn-seconds", "0.6", "--block", "25")
        turns = [line for line in self.logged() if "steps" in line][6:]  # after warming up, and a try
        self.assertEqual(turns, ["unmap steps 1", "full steps 2", "none steps 25",
                                 "none steps 25", "full steps 2", "unmap steps 1"])

    def test_a_process_that_dies_is_named(self):
        with self.assertRaisesRegex(SystemExit, "the process of '' ended with 3"):
            self.run_cost("--models", "gpt", source="import sys\nsys.exit(3)")


class Tensor:
    def backward(self):
        pass

    def detach(self):
        return 0.5


class Worker(unittest.TestCase):
    """The process itself, whose steps and requests are seen by stand-ins."""

    def run_worker(self, tier, lines):
        seen = []
        torch = types.ModuleType("torch")
        torch.__version__ = "2.11"
        torch.uint8 = torch.bfloat16 = None
        torch.empty = lambda size, **_: seen.append(size)
        torch.manual_seed = lambda _: None
        torch.autocast = lambda *_: contextlib.nullcontext()
        torch.cuda = types.SimpleNamespace(synchronize=lambda: None, max_memory_reserved=lambda: 7,
                                           get_device_name=lambda: "a GPU")
        torch.backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(benchmark=False))
        hooks = types.SimpleNamespace(gmd_torch_allow_python=lambda on: seen.append(("python", on)))
        gmd_torch = types.ModuleType("gmd_torch")
        gmd_torch._state = types.SimpleNamespace(hooks=hooks)
        gmd_torch.install = lambda **options: seen.append(options["sanitize"])
        gmd_torch.check = lambda: 4
        optimizer = types.SimpleNamespace(zero_grad=lambda **_: None, step=lambda: seen.append("step"))
        models = types.ModuleType("train_compare")
        models.MODELS = {"gpt": lambda torch, seed: (None, optimizer, lambda step: Tensor())}
        stands = {"torch": torch, "gmd_torch": gmd_torch, "train_compare": models}
        kept = {name: sys.modules.get(name) for name in stands}
        path = list(sys.path)
        sys.modules.update(stands)
        out = io.StringIO()
        try:
            sanitizer_cost.worker(sanitizer_cost.parsed(["--worker", tier, "--models", "gpt"]), lines, out)
        finally:
            sys.path[:] = path
            for name, module in kept.items():
                sys.modules.pop(name)
                if module:
                    sys.modules[name] = module
        return seen, [json.loads(line) for line in out.getvalue().splitlines()]

    def test_it_trains_the_steps_that_it_is_told_to(self):
        seen, answers = self.run_worker("cheap", ["steps 3\n", "machine\n"])
        self.assertEqual(seen, ["cheap", "step", "step", "step"])
        self.assertEqual((answers[0]["loss"], answers[0]["reserved"]), (0.5, 7))
        self.assertEqual((answers[1]["gpu"], answers[1]["torch"]), ("a GPU", "2.11"))
        self.assertEqual(answers[2], {"findings": 4})

    def test_without_a_tier_nothing_is_watched(self):
        seen, answers = self.run_worker("", [])
        self.assertEqual((seen, answers), ([False], [{"findings": 0}]))

    def test_a_tier_may_take_no_stacks(self):
        self.assertEqual(self.run_worker("stackless:cheap", [])[0], ["cheap", ("python", 0)])

    def test_pairs_are_of_both_sizes(self):
        seen, answers = self.run_worker("cheap", ["pairs\n"])
        self.assertEqual(len(answers[0]["pairs"]), 2)
        self.assertEqual({size: seen.count(size) for size in (4096, 1 << 20)}, {4096: 13000, 1 << 20: 13000})


if __name__ == "__main__":
    unittest.main()
