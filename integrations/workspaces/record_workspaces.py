#!/usr/bin/env python3
"""Records the workspaces that cuDNN takes on this machine, as a table for `gmd run --workspaces FILE`.

    record_workspaces.py --out TABLE SCRIPT [ARGUMENT...]     of the calls that a training script makes
    record_workspaces.py --out TABLE --shapes LIST            of the calls in a list
    record_workspaces.py --out LIST --list-only SCRIPT ...    only lists the calls of a script

SCRIPT is run as `python3 SCRIPT ARGUMENT...` would run it; a few iterations are enough. While it runs,
only the shapes of its convolutions and RNNs are noted. Afterwards each different call is made on its own, in
processes of their own, and the memory that it takes beside its results is its workspace. This file needs
PyTorch 2.1 or later and the standard library; docs/workspaces.md describes the table.
"""

import argparse
import collections
import contextlib
import dataclasses
import gc
import os
import runpy
import subprocess
import sys
import tempfile
import time
import traceback

VERSION_LINE = "gmd-workspaces 1"
CONV, RNN = "conv", "rnn"
RNN_KINDS = ("rnn_relu", "rnn_tanh", "lstm", "gru")  # by the number that torch has for them
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
CACHE_KEPT = 1 << 30
DTYPES = ("float32", "float64", "float16", "bfloat16")


class Refused(Exception):
    """What a user has to mend."""


# --- calls ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Conv:
    """A convolution as cuDNN sees it; pairs are height, width. A Conv1d is an image one line high, a
    transposed convolution the way back of another one."""

    direction: str
    dtype: str
    input: tuple
    weight: tuple
    stride: tuple = (1, 1)
    padding: tuple = (0, 0)
    dilation: tuple = (1, 1)
    groups: int = 1
    layout: str = "contiguous"
    benchmark: bool = False

    DIRECTIONS = ("forward", "backward_data", "backward_weight")

    def line(self):
        by = lambda numbers: "x".join(map(str, numbers))
        return (f"conv {self.direction} dtype={self.dtype} in={by(self.input)} weight={by(self.weight)} "
                f"stride={by(self.stride)} padding={by(self.padding)} dilation={by(self.dilation)} "
                f"groups={self.groups} layout={self.layout} benchmark={_switch(self.benchmark)}")

    def output(self):
        """The shape of the result of the forward direction."""
        sides = [(self.input[2 + i] + 2 * self.padding[i] - self.dilation[i] * (self.weight[2 + i] - 1) - 1)
                 // self.stride[i] + 1 for i in (0, 1)]
        return (self.input[0], self.weight[0], *sides)


@dataclasses.dataclass(frozen=True)
class Rnn:
    """All layers and steps of an RNN; the batch is what its longest step has."""

    direction: str
    dtype: str
    kind: str
    batch: int
    length: int
    features: int
    hidden: int
    layers: int = 1
    directions: int = 1
    packed: bool = False
    training: bool = True

    DIRECTIONS = ("forward", "backward")

    def line(self):
        return (f"rnn {self.direction} dtype={self.dtype} kind={self.kind} batch={self.batch} "
                f"length={self.length} features={self.features} hidden={self.hidden} layers={self.layers} "
                f"directions={self.directions} packed={_switch(self.packed)} training={_switch(self.training)}")


def _switch(value):
    return "on" if value else "off"


def _unswitch(text):
    if text not in ("on", "off"):
        raise ValueError(f"expected on or off, found '{text}'")
    return text == "on"


def _by(text):
    return tuple(int(part) for part in text.split("x"))


_CONV_FIELDS = {"dtype": ("dtype", str), "in": ("input", _by), "weight": ("weight", _by), "stride": ("stride", _by),
                "padding": ("padding", _by), "dilation": ("dilation", _by), "groups": ("groups", int),
                "layout": ("layout", str), "benchmark": ("benchmark", _unswitch)}
_RNN_FIELDS = {"dtype": ("dtype", str), "kind": ("kind", str), "batch": ("batch", int), "length": ("length", int),
               "features": ("features", int), "hidden": ("hidden", int), "layers": ("layers", int),
               "directions": ("directions", int), "packed": ("packed", _unswitch), "training": ("training", _unswitch)}


def parse_call(line):
    """A line of a list: the call, and whether it is held. What a table says beside that is left out."""
    words = line.split("#")[0].split()
    kinds = {CONV: (Conv, _CONV_FIELDS), RNN: (Rnn, _RNN_FIELDS)}
    if len(words) < 2 or words[0] not in kinds:
        raise ValueError("expected conv or rnn and a direction")
    kind, fields = kinds[words[0]]
    if words[1] not in kind.DIRECTIONS:
        raise ValueError(f"expected {' or '.join(kind.DIRECTIONS)}, found '{words[1]}'")
    values, held = {"direction": words[1]}, False
    for word in words[2:]:
        key, _, text = word.partition("=")
        if word == "held":
            held = True
        elif key in fields:
            name, read = fields[key]
            values[name] = read(text)
        elif key not in ("bytes", "tried", "reserve"):
            raise ValueError(f"'{word}' is no field of {words[0]}")
    try:
        return kind(**values), held
    except TypeError as error:
        raise ValueError(str(error).split("__init__() ")[-1]) from None


def read_list(path):
    """The calls of a list or table in its order, each once: {call: held}."""
    calls = {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            words = line.split("#")[0].split()
            if not words or words[0] not in (CONV, RNN):
                if words and words[0] not in ("gmd-workspaces", "gpu", "cudnn", "torch"):
                    raise Refused(f"{path}:{number}: expected conv or rnn, found '{words[0]}'")
                continue
            try:
                call, held = parse_call(line)
            except ValueError as error:
                raise Refused(f"{path}:{number}: {error}") from None
            calls.setdefault(call, held)
    return calls


def with_directions(call):
    """The call in each of its directions; only what trains has a way back."""
    trains = getattr(call, "training", True)
    return [dataclasses.replace(call, direction=d) for d in (call.DIRECTIONS if trains else call.DIRECTIONS[:1])]


# --- what a script calls --------------------------------------------------------------------------


def _dtype(tensor):
    return str(tensor.dtype).replace("torch.", "")


def _layout(torch, tensors):
    return ("channels_last" if any(t.dim() == 4 and not t.is_contiguous()
                                   and t.is_contiguous(memory_format=torch.channels_last) for t in tensors)
            else "contiguous")


class Collector:
    """Turns operations of torch that may reach cuDNN into calls; `left_out` counts the others by reason."""

    def __init__(self, torch, device="cuda"):
        self.torch, self.device = torch, device
        self.calls, self.left_out = {}, collections.Counter()

    def add(self, call):
        self.calls.setdefault(call, False)

    def note(self, name, args, result):
        """After the operation `name`, with all its arguments by position."""
        reader = {"aten::convolution": self._convolution, "aten::convolution_backward": self._convolution_backward,
                  "aten::_cudnn_rnn": self._rnn, "aten::_cudnn_rnn_backward": self._rnn_backward}.get(name)
        if reader:
            reader(args, result)

    def _convolution(self, args, result):
        x, weight, _, stride, padding, dilation, transposed, _, groups = args[:9]
        self._add_conv("forward", x, weight, result.shape, stride, padding, dilation, transposed, groups)

    def _convolution_backward(self, args, _):
        grad, x, weight, _, stride, padding, dilation, transposed, _, groups, mask = args[:11]
        for direction, wanted in zip(("backward_data", "backward_weight"), mask):
            if wanted:
                self._add_conv(direction, x, weight, grad.shape, stride, padding, dilation, transposed, groups)

    def _add_conv(self, direction, x, weight, out, stride, padding, dilation, transposed, groups):
        if x.device.type != self.device:
            return
        if x.dim() not in (3, 4):
            self.left_out["convolutions in three dimensions"] += 1
            return
        if _dtype(x) not in DTYPES:
            self.left_out[f"convolutions of {_dtype(x)}"] += 1
            return
        source = tuple(x.shape)
        if transposed:
            source = tuple(out)
            direction = {"forward": "backward_data", "backward_data": "forward"}.get(direction, direction)
        pair = lambda values, filler: ((filler,) if x.dim() == 3 else ()) + (tuple(values) * 2)[:x.dim() - 2]
        image = lambda shape: tuple(shape) if x.dim() == 4 else (*shape[:2], 1, *shape[2:])
        self.add(Conv(direction, _dtype(x), image(source), image(weight.shape), pair(stride, 1), pair(padding, 0),
                      pair(dilation, 1), int(groups), _layout(self.torch, (x, weight)),
                      self.torch.backends.cudnn.benchmark))

    def _rnn(self, args, _):
        self._add_rnn("forward", args[0], args[4], *args[6:15])

    def _rnn_backward(self, args, _):
        self._add_rnn("backward", args[0], args[4], *args[10:19])

    def _add_rnn(self, direction, x, hx, mode, hidden, projection, layers, batch_first, dropout, training, both,
                 batch_sizes):
        if x.device.type != self.device:
            return
        if projection:
            self.left_out["RNNs with projections"] += 1
            return
        if len(set(batch_sizes)) > 1:
            self.left_out["RNNs over sequences of different lengths"] += 1
            return
        packed = len(batch_sizes) > 0
        first, second = (0, 0) if packed else tuple(x.shape[:2])
        batch, length = (batch_sizes[0], len(batch_sizes)) if packed else \
            (first, second) if batch_first else (second, first)
        self.add(Rnn(direction, _dtype(x), RNN_KINDS[mode], int(batch), int(length), int(x.shape[-1]), int(hidden),
                     int(layers), 2 if both else 1, packed, bool(training)))

    def watching(self):
        """A context in which everything that torch does is noted, its backward passes included."""
        from torch.utils._python_dispatch import TorchDispatchMode
        collector = self

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                kwargs = kwargs or {}
                name = func._schema.name
                if name not in NOTED and is_made_of_others(func):  # in inference mode they come undivided
                    with self:
                        return func._op_dk(composite, *args, **kwargs)
                result = func(*args, **kwargs)
                if name in NOTED:
                    given = [kwargs.get(a.name, a.default_value) for a in func._schema.arguments[len(args):]]
                    collector.note(name, (*args, *given), result)
                return result

        composite, known = self.torch._C.DispatchKey.CompositeImplicitAutograd, {}

        def is_made_of_others(func):
            if func not in known:
                known[func] = self.torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
            return known[func]

        return Watch()


NOTED = {"aten::convolution", "aten::convolution_backward", "aten::_cudnn_rnn", "aten::_cudnn_rnn_backward"}


def collect(script, arguments, device):
    """Runs the script; its calls, and whether it came to its end."""
    import torch
    collector = Collector(torch, device)
    before = sys.argv, sys.path[:]
    sys.argv, sys.path[0] = [script, *arguments], os.path.dirname(os.path.abspath(script))
    ended = True
    try:
        with collector.watching():
            runpy.run_path(script, run_name="__main__")
    except SystemExit as stop:
        ended = stop.code in (None, 0)
    except Exception:  # whatever the script raises: the calls until then are worth having
        traceback.print_exc()
        ended = False
    finally:
        sys.argv, sys.path[:] = before
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    return collector, ended


# --- measuring ------------------------------------------------------------------------------------


class Gpu:
    """Makes single calls and reads what torch's allocator was asked for meanwhile, in bytes as asked."""

    def __init__(self):
        try:
            import torch
        except ImportError:
            raise Refused("PyTorch is not installed for this Python") from None
        if not torch.cuda.is_available():
            raise Refused("torch finds no GPU here; --list-only --device cpu lists the calls without one")
        if "requested_bytes.all.peak" not in torch.cuda.memory_stats():
            torch.empty(1, device="cuda")
        if "requested_bytes.all.peak" not in torch.cuda.memory_stats():
            raise Refused(f"torch {torch.__version__} does not count requested bytes: 2.1 or later is needed")
        self.torch = torch

    def head(self):
        return {"gpu": self.torch.cuda.get_device_name(), "cudnn": str(self.torch.backends.cudnn.version()),
                "torch": self.torch.__version__}

    def beside(self, function):
        """The bytes that `function` takes at its peak beside what it returns."""
        cuda = self.torch.cuda
        cuda.synchronize()
        cuda.reset_peak_memory_stats()
        before = cuda.memory_stats()["requested_bytes.all.current"]
        result = function()
        cuda.synchronize()
        peak = cuda.memory_stats()["requested_bytes.all.peak"]
        kept = sum(t.numel() * t.element_size() for t in result if t is not None)
        return peak - before - kept

    def measure(self, call):
        """The fields of its line: bytes, and tried or reserve."""
        with self.torch.no_grad():
            fields = self._conv(call) if isinstance(call, Conv) else self._rnn(call)
        if self.torch.cuda.memory_reserved() > CACHE_KEPT:  # other processes need memory, too
            self.torch.cuda.empty_cache()
        return fields

    def _empty(self, shape, dtype):
        return self.torch.empty(shape, dtype=getattr(self.torch, dtype), device="cuda")

    def _conv(self, call):
        torch = self.torch
        torch.backends.cudnn.benchmark = call.benchmark
        x, weight, grad = (self._empty(s, call.dtype) for s in (call.input, call.weight, call.output()))
        if call.layout == "channels_last":
            x, weight, grad = (t.to(memory_format=torch.channels_last) for t in (x, weight, grad))
        numbers = (call.stride, call.padding, call.dilation, False, (0, 0), call.groups)
        backend = str(torch._C._select_conv_backend(x, weight, None, *numbers))
        if "Cudnn" not in backend and "Depthwise" not in backend:
            raise Refused(f"torch takes {backend.split('.')[-1]} for it, not cuDNN")
        mask = [call.direction == "backward_data", call.direction == "backward_weight", False]

        def make():
            if call.direction == "forward":
                return [torch.ops.aten.convolution(x, weight, None, *numbers)]
            return torch.ops.aten.convolution_backward(grad, x, weight, None, *numbers, mask)

        first = self.beside(make)
        second = self.beside(make)
        return {"bytes": second, "tried": first} if call.benchmark else {"bytes": second}

    def _rnn_arguments(self, call):
        """What _cudnn_rnn takes, from the input on: with all weights in one buffer, as torch keeps them."""
        torch, mode = self.torch, RNN_KINDS.index(call.kind)
        rows, weights = GATES[call.kind] * call.hidden, []
        for layer in range(call.layers):
            columns = call.features if layer == 0 else call.hidden * call.directions
            for _ in range(call.directions):
                shapes = ((rows, columns), (rows, call.hidden), (rows,), (rows,))
                weights += [self._empty(s, call.dtype) for s in shapes]
        both = call.directions == 2
        buffer = torch._cudnn_rnn_flatten_weight(weights, 4, call.features, mode, call.hidden, 0, call.layers, False, both)
        state = lambda: self._empty((call.layers * call.directions, call.batch, call.hidden), call.dtype)
        sizes = [call.batch] * call.length if call.packed else []
        shape = (call.batch * call.length,) if call.packed else (call.length, call.batch)
        x = self._empty((*shape, call.features), call.dtype)
        given = (x, weights, 4, buffer, state(), state() if call.kind == "lstm" else None)
        return given, (mode, call.hidden, 0, call.layers, False, 0.0, call.training, both, sizes, None)

    def _rnn(self, call):
        aten, (given, options) = self.torch.ops.aten, self._rnn_arguments(call)
        forward = lambda: aten._cudnn_rnn(*given, *options)[:4]  # the fifth is the buffer that was given
        forward()
        taken = self.beside(forward)
        y, h, c, reserve = forward()
        if call.direction == "forward":
            return {"bytes": taken, "reserve": reserve.numel()} if call.training else {"bytes": taken}
        lstm = call.kind == "lstm"
        grads = [self.torch.empty_like(t) for t in (y, h)] + [self.torch.empty_like(c) if lstm else None]

        def backward():
            dx, dh, dc, weights = aten._cudnn_rnn_backward(*given, y, *grads, *options, reserve,
                                                           [True, True, lstm, True])
            base = weights[0]._base if weights[0]._base is not None else given[3]
            return [dx, dh, dc if lstm else None, base]

        backward()
        return {"bytes": self.beside(backward)}


def record(calls, measurer, out, deadline=None):
    """Writes a line for each call as soon as it is measured; the reasons of those that could not be."""
    failures = []
    for call, held in calls.items():
        if deadline is not None and time.monotonic() > deadline:
            failures.append((call, "the time was over"))
            continue
        try:
            fields = measurer.measure(call)
            if min(fields.values()) < 0:
                raise Refused(f"its results are views of older memory: {fields}")
        except Exception as error:  # out of memory, or what cuDNN does not do
            failures.append((call, str(error).strip().split("\n")[0][:120]))
            with contextlib.suppress(Exception):
                measurer.torch.cuda.empty_cache()
            continue
        out.write(" ".join([call.line(), *(f"{k}={v}" for k, v in fields.items()), *["held"] * held]) + "\n")
        out.flush()
    return failures


# --- processes ------------------------------------------------------------------------------------


def write_head(out, head):
    out.write(VERSION_LINE + "\n" + "".join(f"{name} {head[name]}\n" for name in ("gpu", "cudnn", "torch")))


def write_list(path, calls):
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(call.line() + (" held" if held else "") + "\n" for call, held in calls.items())


def work(options):
    """A process of its own, with its own cuDNN, which has tried nothing yet."""
    gpu = Gpu()
    gpu.torch.backends.cudnn.deterministic = options.deterministic
    gpu.torch.backends.cudnn.allow_tf32 = not options.no_tf32
    deadline = time.monotonic() + options.seconds if options.seconds else None
    with open(options.out, "w", encoding="utf-8") as out:
        write_head(out, gpu.head())
        for call, reason in record(read_list(options.shapes), gpu, out, deadline):
            out.write(f"# not recorded: {call.line()}: {reason}\n")
    return 0


def share_out(calls, jobs):
    """Each process gets every so many-th call, so that all have small and large ones."""
    items = list(calls.items())
    return [dict(items[i::jobs]) for i in range(jobs) if items[i::jobs]]


def merge(out_path, parts, calls, comments):
    """One table, in the order of `calls`, from what the processes wrote; how many calls it lacks."""
    head, lines, excuses = None, {}, {}
    for part in parts:
        with open(part, encoding="utf-8") as text:
            part_lines = text.read().splitlines()
        head = head or (part_lines[:4] if len(part_lines) >= 4 else None)
        for line in part_lines[4:]:
            if line.startswith("# not recorded: "):
                call, reason = line[len("# not recorded: "):].split(": ", 1)
                excuses[call] = reason
            elif " bytes=" in line:
                lines[parse_call(line)[0]] = line
    if head is None:
        raise Refused("no process recorded anything; their messages are above")
    missing = [call for call in calls if call not in lines]
    with open(out_path, "w", encoding="utf-8") as out:
        out.write("\n".join(head) + "\n" + "".join(f"# {comment}\n" for comment in comments))
        out.writelines(lines[call] + "\n" for call in calls if call in lines)
        for call in missing:
            out.write(f"# not recorded: {call.line()}: {excuses.get(call.line(), 'its process ended early')}\n")
    return len(missing)


def record_in_processes(calls, options, comments):
    """Trials take what memory there is, so that they are made first and by one process."""
    started = time.monotonic()
    trials = {call: held for call, held in calls.items() if getattr(call, "benchmark", False)}
    others = {call: held for call, held in calls.items() if call not in trials}
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for group in (share_out(trials, 1), share_out(others, options.jobs)):
            left = options.seconds and max(1, options.seconds - round(time.monotonic() - started))
            parts += measure_all(group, folder, len(parts), left, options)
        return merge(options.out, parts, calls, comments)


def measure_all(shares, folder, first, seconds, options):
    """A process for each share, at the same time; the files that they wrote."""
    parts, running = [], []
    for i, share in enumerate(shares, first):
        shapes, part = os.path.join(folder, f"{i}.list"), os.path.join(folder, f"{i}.table")
        write_list(shapes, share)
        open(part, "w").close()
        parts.append(part)
        command = [sys.executable, os.path.abspath(__file__), "--worker", "--shapes", shapes, "--out", part,
                   "--seconds", str(seconds)]
        command += ["--deterministic"] * options.deterministic + ["--no-tf32"] * options.no_tf32
        running.append(subprocess.Popen(command))
    for process in running:
        try:  # a call that hangs must not cost what the others recorded
            process.wait(timeout=seconds + 60 if seconds else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return parts


def whole_number(text):
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def parse(arguments):
    parser = argparse.ArgumentParser(prog="record_workspaces.py", description=__doc__.split("\n")[0],
                                     epilog="docs/workspaces.md has the rest.")
    parser.add_argument("--out", required=True, metavar="TABLE", help="the file to write")
    parser.add_argument("--shapes", metavar="LIST", help="record the calls of this list, or of another table")
    parser.add_argument("--list-only", action="store_true", help="write the list of calls; nothing is measured")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="with --list-only: note the calls on this device (cuda)")
    parser.add_argument("--jobs", type=whole_number, default=1, metavar="N", help="processes that measure (1)")
    parser.add_argument("--seconds", type=whole_number, default=0, metavar="N",
                        help="leave out what is not measured after so long (0: nothing)")
    parser.add_argument("--deterministic", action="store_true", help="with --shapes: as cudnn.deterministic = True")
    parser.add_argument("--no-tf32", action="store_true", help="with --shapes: as cudnn.allow_tf32 = False")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("script", nargs="?", help="the Python program whose calls are recorded")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args(arguments)
    if (options.shapes is None) == (options.script is None):
        parser.error("expected a script or --shapes LIST, one of the two")
    if options.device == "cpu" and not options.list_only:
        parser.error("--device cpu goes with --list-only: cuDNN is on GPUs only")
    if options.jobs < 1:
        parser.error("--jobs: expected 1 or more")
    return options


def run(options):
    if options.worker:
        return work(options)
    ended, left_out = True, {}
    if options.script:
        if not os.path.isfile(options.script):
            raise Refused(f"{options.script}: there is no such file")
        collector, ended = collect(options.script, options.arguments, options.device)
        calls, left_out = collector.calls, collector.left_out
        flags = collector.torch.backends.cudnn
        options.deterministic, options.no_tf32 = flags.deterministic, not flags.allow_tf32
    else:
        calls = read_list(options.shapes)
    for reason, count in left_out.items():
        print(f"record_workspaces.py: left out: {count} {reason}", file=sys.stderr)
    if not calls:
        raise Refused("there are no convolutions and no RNNs of cuDNN to record")
    if options.list_only:
        write_list(options.out, calls)
        print(f"{options.out}: {len(calls)} calls")
        return 0 if ended else 1
    comments = [f"cudnn.deterministic={_switch(options.deterministic)}, "
                f"cudnn.allow_tf32={_switch(not options.no_tf32)}"]
    missing = record_in_processes(calls, options, comments)
    print(f"{options.out}: {len(calls) - missing} calls recorded, {missing} not")
    return 0 if ended and not missing else 1


def main(arguments):
    try:
        return run(parse(arguments))
    except (Refused, OSError) as error:
        print(f"record_workspaces.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
