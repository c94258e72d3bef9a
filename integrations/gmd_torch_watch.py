"""Out of memory that explains itself, and leaks seen while a program trains: with gmd's allocator inside
PyTorch (gmd_torch.install) or beside PyTorch's own, which is only looked at.

    import gmd_torch_watch
    gmd_torch_watch.watch()          # once, before training

One file; it needs PyTorch, and for the causes of an out-of-memory the program gmd. docs/pytorch.md.
"""

import atexit
import collections
import json
import os
import shutil
import subprocess
import sys
import time
import warnings

__all__ = ["LeakWarning", "Leak", "explain_snapshot", "watch"]

_MIB = 1 << 20
_TIME_FOR_DIAGNOSIS_S = 60
_EVENTS = 200_000


class LeakWarning(UserWarning):
    """Each iteration holds more memory than the one before it."""


Leak = collections.namedtuple("Leak", "bytes_per_iteration iterations allocated lines")
Leak.__doc__ = """What watch() found: growth, since how many iterations, allocated bytes now, and who holds it:
(file, line, function, bytes per iteration), the most first."""


# --- out of memory ------------------------------------------------------------------------------


def _program(near):
    """The program gmd: GMD_PROGRAM, that of the library's installation, or the PATH's; None."""
    if os.environ.get("GMD_PROGRAM"):
        return os.environ["GMD_PROGRAM"]
    folders = [os.path.join(os.path.dirname(near), "..", "..", "bin")] if near else []
    here = os.path.dirname(os.path.abspath(__file__))
    folders += [os.path.join(here, "..", "..", "bin"), os.path.join(here, "..", "build", "release", "bin")]
    for folder in folders:
        path = os.path.normpath(os.path.join(folder, "gmd"))
        if os.access(path, os.X_OK):
            return path
    return shutil.which("gmd")


def _size(count):
    for unit, bytes_of in (("GiB", 1 << 30), ("MiB", _MIB), ("KiB", 1 << 10)):
        if abs(count) >= bytes_of:
            return f"{count / bytes_of:.2f} {unit}"
    return f"{count} B"


def _place(of):
    return f"{of['file']}:{of['line']} in {of['function']}" if of["file"] else "no recorded line"


_NOT_SERVED = {  # gmd diagnose: why a free part did not serve
    "cached": "in whole segments", "split": "beside blocks in use", "other_pool": "in the other pool",
    "other_stream": "of other streams", "pending": "waiting for other streams", "too_small": "in parts too small",
}


def _lines_of(oom, findings):
    """What gmd diagnose says of an out-of-memory, in five lines."""
    held = [f"{_size(h['bytes'])} by {_place(h)}" for h in oom["holders"][:3]]
    free = [f"{_size(count)} {_NOT_SERVED.get(why, why)}" for why, count in oom["free"].items() if count]
    leaks = [f"{f['class']} at {_place(f['where'][0])}" for f in findings if f.get("where")]
    leaks = leaks[:2] if oom["cause"] == "leak" else []
    largest, beside = oom.get("largest_servable"), oom.get("beside_pytorch")
    return [
        f"Asked for by {_place(oom)}: {_size(oom['requested'])}, "
        f"with {_size(oom['allocated'])} allocated of {_size(oom['reserved'])} reserved" +
        (f"; {_size(beside)} are held beside PyTorch (driver, libraries, other processes)" if beside else ""),
        "Held: " + (", ".join(held) or "nothing"),
        "Cached, and why it did not serve: " + (", ".join(free) or "nothing was"),
        f"Cause: {oom['cause']}" + (f" ({', '.join(leaks)})" if leaks else "") +
        (f"; a request of {_size(largest)} would have been served" if largest else ""),
        f"Change: {oom['change']}" if oom.get("change") else "Change: none that is known would have let it pass",
    ]


def explain_snapshot(path, near=None, capacity=None):
    """Five lines on the last out-of-memory that the snapshot recorded; fewer: why there are none. capacity: the
    device's bytes, from which it follows what others hold."""
    program = _program(near)
    if not program:
        return ["Why: the program gmd, which says so, was not found (GMD_PROGRAM names it)"]
    try:
        done = subprocess.run([program, "diagnose", path, "--json", "-",
                               *(["--capacity", str(capacity)] if capacity else [])],
                              capture_output=True, text=True, timeout=_TIME_FOR_DIAGNOSIS_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"Why: gmd diagnose {path} did not answer: {error}"]
    if done.returncode not in (0, 1):
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return [f"Why: not told ({said}); record a history (gmd_torch.record_memory_history) before it happens"]
    report = json.loads(done.stdout)
    if not report.get("ooms"):
        return ["Why: the history, which would say so, was not recorded (gmd_torch.record_memory_history)"]
    return _lines_of(report["ooms"][-1], report["findings"])


def _new_path(prefix):
    rank = os.environ.get("RANK", "")
    rank = f"-rank{rank}" if rank.isdigit() else ""
    return f"{os.path.abspath(prefix)}{rank}-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}-%d.pickle"


def _device_bytes(torch, device, told):
    """All of the device's memory: an observer is told the limit instead where the process has one."""
    try:
        return max(told, torch.cuda.mem_get_info(device)[1])
    except Exception:  # pylint: disable=broad-except # any reason will do
        return None


def _observe_refusals(torch, prefix, limit):
    """PyTorch's own allocator: each of the first refusals leaves a snapshot, and says why on standard error."""
    written = []

    def observer(device, _allocated, total, free):
        if len(written) >= limit:
            return
        try:
            path = _new_path(prefix) % (len(written) + 1)
            written.append(path)
            torch.cuda.memory._dump_snapshot(path)
            lines = [f"gmd: CUDA out of memory on GPU {device}, {_size(free)} of {_size(total)} free; the snapshot is "
                     f"{path}", *explain_snapshot(path, capacity=_device_bytes(torch, device, total))]
            print("\n  ".join(lines), file=sys.stderr, flush=True)
        except Exception as error:  # pylint: disable=broad-except # nothing may be raised into the allocator
            print(f"gmd: out of memory could not be explained: {error!r}", file=sys.stderr)

    torch._C._cuda_attach_out_of_memory_observer(observer)


# --- the two allocators -------------------------------------------------------------------------


class _Native:
    """PyTorch's own, looked at."""

    def __init__(self, torch, device):
        self.torch, self.device = torch, device

    def allocated(self):
        return self.torch._C._cuda_memoryStats(self.device)["allocated_bytes"]["all"]["current"]

    def is_recording(self):
        return self.torch._C._cuda_isHistoryEnabled()

    def record(self):
        self.torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=_EVENTS)

    def stop(self):
        self.torch.cuda.memory._record_memory_history(enabled=None)

    def snapshot(self):
        return self.torch.cuda.memory._snapshot()


class _Gmd(_Native):
    """gmd's, inside PyTorch."""

    def __init__(self, torch, device, gmd_torch):
        super().__init__(torch, device)
        self.gmd_torch = gmd_torch

    def allocated(self):
        return self.gmd_torch._allocated_bytes(self.device)

    def record(self):
        self.gmd_torch.record_memory_history(_EVENTS, "state")

    def stop(self):
        self.gmd_torch.record_memory_history(0)


def _allocator(torch, device):
    gmd_torch = sys.modules.get("gmd_torch")
    if gmd_torch is not None and gmd_torch.installed():
        return _Gmd(torch, device, gmd_torch)
    return _Native(torch, device)


# --- leaks --------------------------------------------------------------------------------------


def _line_of(frames):
    """The program's own innermost line."""
    for frame in frames:
        name = frame["filename"]
        if frame["line"] and not name.startswith("<") and "/torch/" not in name and "gmd_torch" not in name:
            return name, frame["line"], frame["name"]
    return ("", 0, "no line of the program")


def _kept_since(snapshot, device, begin_us, end_us):
    """Bytes by line of blocks that were allocated in that time and are still there."""
    born = {}
    for event in snapshot["device_traces"][device]:
        if event["action"] == "alloc":
            born[event["addr"]] = event["time_us"]
    kept = collections.Counter()
    for segment in snapshot["segments"]:
        if segment["device"] != device:
            continue
        for block in segment["blocks"]:
            if block["state"] == "active_allocated" and begin_us <= born.get(block["address"], -1) < end_us:
                kept[_line_of(block.get("frames", []))] += block["size"]
    return kept


def _growth(series, least):
    """Bytes per iteration where the series has risen all through; else 0."""
    series, half = list(series), len(series) // 2
    if series[-1] - series[0] < least or min(series[half:]) <= max(series[:half]):
        return 0
    return (series[-1] - series[0]) // (len(series) - 1)


class Watch:
    """Looks at the allocated bytes after each iteration; where they have risen for `window` of them, stacks are
    recorded for a few iterations, and what these keep is told by line. Recording costs something only then."""

    LOOK = 4  # iterations with stacks: what those before the last one keep was not freed in a whole iteration

    def __init__(self, allocator, window, least_bytes, warm_up, on_leak):
        self.allocator, self.window, self.least, self.on_leak = allocator, window, least_bytes, on_leak
        self.series = collections.deque(maxlen=window)
        self.resting = warm_up  # iterations that are not looked at
        self.marks = None  # when the looked-at iterations ended, in microseconds; None: not looking
        self.own_recording = False
        self.optimizer = None
        self.handle = None
        self.leaks = []  # found so far

    def step(self):
        """An iteration ends. Optimizers of PyTorch call it by themselves."""
        if self.marks is not None:
            self._look()
        elif self.resting:
            self.resting -= 1
        else:
            self.series.append(self.allocator.allocated())
            if len(self.series) == self.window and _growth(self.series, self.least):
                self._begin_look()

    def close(self):
        """No more looking."""
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
        self._stop_recording()
        self.marks = None

    def _after_optimizer(self, optimizer, _args, _kwargs):
        if self.optimizer is None:
            self.optimizer = id(optimizer)
        if self.optimizer == id(optimizer):  # of several, the first counts iterations
            self.step()

    def _begin_look(self):
        self.own_recording = not self.allocator.is_recording()
        if self.own_recording:
            self.allocator.record()
        self.marks = [time.time_ns() // 1000]

    def _look(self):
        self.marks.append(time.time_ns() // 1000)
        if len(self.marks) <= self.LOOK:
            return
        kept = _kept_since(self.allocator.snapshot(), self.allocator.device, self.marks[0], self.marks[-2])
        self._stop_recording()
        self.marks = None
        self._report(kept)
        self.series.clear()
        self.resting = 10 * self.window  # it was said; a new growth is looked at later

    def _stop_recording(self):
        if self.own_recording:
            self.allocator.stop()
        self.own_recording = False

    def _report(self, kept):
        growth = _growth(self.series, self.least)
        lines = [(*place, count // (self.LOOK - 1)) for place, count in kept.most_common(5)]
        leak = Leak(growth, len(self.series), self.series[-1], lines)
        self.leaks.append(leak)
        self.on_leak(leak)


def _warn(leak):
    lines = "".join(f"\n  {_size(count)} each iteration: {file}:{line} in {function}"
                    for file, line, function, count in leak.lines)
    warnings.warn(f"allocated memory grows by {_size(leak.bytes_per_iteration)} each iteration, for "
                  f"{leak.iterations} iterations, to {_size(leak.allocated)}" +
                  (lines or "; no block of an iteration was kept through the next one"), LeakWarning, stacklevel=2)


def watch(device=None, *, window=32, least_bytes=_MIB, warm_up=5, on_leak=None, dump_on_oom="gmd-oom", dump_limit=3):
    """Watches training from now on, and gives the Watch: its close() ends it, its step() is for programs
    without an optimizer of PyTorch.

    window       iterations for which allocated memory must have risen
    least_bytes  by this much at least
    warm_up      iterations at the start that are not looked at
    on_leak      called with a Leak; None: a LeakWarning
    dump_on_oom  PyTorch's own allocator: where a refused request writes its snapshot; False: nowhere
    dump_limit   how many do so
    """
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook
    device = torch.cuda.current_device() if device is None else torch.device(device).index or 0
    allocator = _allocator(torch, device)
    if dump_on_oom and not isinstance(allocator, _Gmd):
        _observe_refusals(torch, dump_on_oom, dump_limit)
    made = Watch(allocator, window, least_bytes, warm_up, on_leak or _warn)
    made.handle = register_optimizer_step_post_hook(made._after_optimizer)
    atexit.register(made.close)
    return made
