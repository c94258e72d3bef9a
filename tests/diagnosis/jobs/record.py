#!/usr/bin/env python3
"""Records one job: python record.py MODULE JOB VARIANT MODE OUT

VARIANT is leak, fixed or healthy. MODE is options joined by "+", "-" for none; without them the history is
recorded from the start, with Python frames, and dumped in the last iteration while the job's tensors live:

    late ring           recording begins after three iterations; keeps the last 500 events only
    cpp                 C++ frames as well
    noframes alloc      no frames; frames of allocations only
    state segments      no history but the frames of live blocks; neither
    compile             compile contexts as well
    middle after        dumped inside the last iteration; after the job's function returned
    oom observer        dumped where the out-of-memory error is caught; by an observer as it is raised
    annotations         record_function() around the iterations
    metadata            user metadata that names the iteration
    own                 pickle.dump(_snapshot()) with protocol 2 instead of _dump_snapshot()
    expandable          PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True

Writes OUT/JOB.VARIANT.pickle.gz and OUT/JOB.VARIANT.json: what was measured, without a label of bytes, which
place.py derives from both variants.
"""
import gc
import gzip
import importlib
import json
import os
import pickle
import sys
import time

OPTIONS = {"late", "ring", "cpp", "noframes", "alloc", "state", "segments", "middle", "after", "oom", "observer",
           "annotations", "metadata", "own", "expandable", "compile"}
LATE_AT = 3
RING = 500


class Recorder:
    """Starts the recording and takes the snapshot when the mode says so."""

    def __init__(self, options, file):
        self.options = options
        self.file = file
        self.at_snapshot = None
        self.last = False
        self.annotation = None

    def start(self):
        if "segments" in self.options:
            return
        context = "all"
        if "noframes" in self.options:
            context = None
        elif "alloc" in self.options:
            context = "alloc"
        elif "state" in self.options:
            context = "state"
        torch.cuda.memory._record_memory_history(
            "state" if "state" in self.options else "all",
            context=context,
            stacks="all" if "cpp" in self.options else "python",
            max_entries=RING if "ring" in self.options else 100_000,
            compile_context="compile" in self.options,
            global_record_annotations="annotations" in self.options,
        )

    def job_begins(self):
        if "late" not in self.options:
            self.start()
        if "observer" in self.options:
            torch._C._cuda_attach_out_of_memory_observer(lambda *_: self.snapshot())

    def iteration_begins(self, step, last):
        self.last = last
        if "late" in self.options and step == LATE_AT:
            self.start()
        if "metadata" in self.options:
            torch.cuda.memory._set_memory_metadata(f"iteration {step}")
        if "annotations" in self.options:
            self.end_annotation()
            self.annotation = torch.profiler.record_function(f"iteration {step}")
            self.annotation.__enter__()

    def end_annotation(self):
        if self.annotation:
            self.annotation.__exit__(None, None, None)
            self.annotation = None

    def middle(self):
        if self.last and "middle" in self.options:
            self.snapshot()

    def loop_ended(self):
        self.end_annotation()
        if not self.options & {"middle", "after", "oom", "observer"}:
            self.snapshot()

    def snapshot(self):
        if self.at_snapshot:
            return
        stats = torch.cuda.memory_stats()
        wanted = ("allocated_bytes", "active_bytes", "inactive_split_bytes", "reserved_bytes", "requested_bytes")
        self.at_snapshot = {name: stats[f"{name}.all.current"] for name in wanted}
        self.at_snapshot["retries"] = stats["num_alloc_retries"]
        self.at_snapshot["ooms"] = stats["num_ooms"]
        if "own" in self.options:
            with open(self.file, "wb") as out:
                pickle.dump(torch.cuda.memory._snapshot(), out, protocol=2)
        else:
            torch.cuda.memory._dump_snapshot(self.file)


def execute(function, run, recorder):
    """Runs the job; the text of its out-of-memory error, or None."""
    recorder.job_begins()
    try:
        function(run)
    except torch.OutOfMemoryError as error:  # its traceback keeps the tensors of the job's frames
        recorder.end_annotation()
        if "oom" in recorder.options:
            recorder.snapshot()
        return str(error)
    if "after" in recorder.options:
        with collector_asleep():
            recorder.snapshot()
    return None


def collect():
    """The bytes that the cyclic collector frees now that the job has returned."""
    with collector_asleep():
        before = torch.cuda.memory_allocated()
    gc.collect()
    return before - torch.cuda.memory_allocated()


def compress(file):
    with open(file, "rb") as plain, open(file + ".gz", "wb") as out:
        with gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
            packed.write(plain.read())
    os.remove(file)


def describe(function, variant, options, run, recorder):
    leak = variant == "leak"
    properties = torch.cuda.get_device_properties(0)
    return {
        "class": function.kind if leak else "healthy",
        "job": f"{function.__module__}.{function.__name__}",
        "variant": variant,
        "what": " ".join(function.__doc__.split()),
        "contested": function.contested.get(variant),
        "mode": sorted(options),
        "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
        "cap_mib": run.cap_mib,
        "guilty": marked_lines(function, "guilty") if leak else [],
        "cause": marked_lines(function, "cause") if leak else [],
        "iterations": run.iterations,
        "at_snapshot": recorder.at_snapshot,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "device": properties.name,
        "device_bytes": properties.total_memory,
    }


def main():
    module, name, variant, mode, folder = sys.argv[1:]
    options = frozenset(() if mode == "-" else mode.split("+"))
    file = os.path.join(folder, f"{name}.{variant}")
    function = getattr(importlib.import_module(module), name)
    recorder = Recorder(options, file + ".pickle")
    run = Run(recorder, variant == "fixed")
    begin = time.time()
    torch.manual_seed(0)
    torch.cuda.init()
    message = execute(function, run, recorder)
    freed = collect()
    if not recorder.at_snapshot:
        sys.exit(f"{name}.{variant}: the mode {mode} came to no snapshot (out of memory: {message})")
    compress(file + ".pickle")
    label = describe(function, variant, options, run, recorder)
    label["out_of_memory"] = message
    label["freed_by_collector"] = freed
    label["seconds"] = round(time.time() - begin, 2)
    with open(file + ".json", "w", encoding="utf-8") as out:
        json.dump(label, out, indent=1)


if __name__ == "__main__":
    if len(sys.argv) != 6 or set(sys.argv[4].split("+")) - OPTIONS - {"-"}:
        sys.exit(__doc__)
    if "expandable" in sys.argv[4].split("+"):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    os.environ.setdefault("TORCH_SYMBOLIZE_MODE", "dladdr")  # names only, in microseconds

    import torch

    from job import Run, collector_asleep, marked_lines

    main()
