"""What a job of this folder is, and the loop that measures it.

A job is a function with @job(CLASS): ordinary training or serving code, CLASS as in design.md section 8 or
"healthy". It gets a Run. Where `run.fixed` is set it does what an engineer would do about the problem; a healthy
job has no such variant. Comments say where the truth is:

    # guilty            this line allocates what is held (in a job's function, or "# guilty in NAME" elsewhere)
    # cause             this line is the mistake, where it is another one that allocates nothing
"""
import contextlib
import gc
import inspect
import os

import torch

JOBS = {}


def job(kind, contested=None, fixed_contested=None):
    """Registers the function under its name. `contested` says why the class may be disputed, `fixed_contested` why
    it may be disputed that the fixed variant is healthy."""

    def register(function):
        function.kind = kind
        function.contested = {"leak": contested, "fixed": fixed_contested, "healthy": contested}
        JOBS[function.__name__] = function
        return function

    return register


def marked_lines(function, mark):
    """The lines of the function's file that the mark is on, for this function."""
    file = inspect.getsourcefile(function)
    first = function.__code__.co_firstlineno
    last = first + len(inspect.getsource(function).splitlines())
    found = []
    with open(file, encoding="utf-8") as lines:
        for number, text in enumerate(lines, 1):
            code, _, comment = text.rstrip().partition("  # ")
            own = first <= number < last and comment == mark
            if own or comment == f"{mark} in {function.__name__}":
                found.append({"file": os.path.basename(file), "line": number, "text": code.strip()})
    return found


@contextlib.contextmanager
def collector_asleep():
    """What a measurement allocates does not start the cyclic collector, on which some jobs' memory depends."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Run:
    """One execution of a job: where it runs, what it measures, when its snapshot is taken."""

    def __init__(self, recorder, fixed, device="cuda"):
        self.recorder = recorder
        self.fixed = fixed
        self.device = device
        self.cap_mib = None
        self.iterations = []

    def cap(self, mib):
        """No more than this for PyTorch's allocator, as on a smaller or a shared GPU."""
        self.cap_mib = mib
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((mib << 20) / total)

    def steps(self, count):
        """The numbers of the iterations. The end of each is measured, in the last the snapshot is taken.
        GMD_JOB_STEPS: so many times as many."""
        count *= int(os.environ.get("GMD_JOB_STEPS", "1"))
        for step in range(count):
            self.recorder.iteration_begins(step, last=step == count - 1)
            yield step
            with collector_asleep():
                self._measure()
                if step == count - 1:
                    self.recorder.loop_ended()

    def middle(self):
        """A place inside an iteration where an impatient user takes the snapshot."""
        self.recorder.middle()

    def _measure(self):
        stats = torch.cuda.memory_stats()
        self.iterations.append({
            "allocated": stats["allocated_bytes.all.current"],
            "peak": stats["allocated_bytes.all.peak"],
            "reserved": stats["reserved_bytes.all.current"],
            "pending": stats["active_bytes.all.current"] - stats["allocated_bytes.all.current"],
        })
        torch.cuda.reset_peak_memory_stats()
