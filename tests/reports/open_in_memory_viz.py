#!/usr/bin/env python3
"""open_in_memory_viz.py MEMORY_VIZ FILE... - every command of PyTorch's torch/cuda/_memory_viz.py, which is at the path
MEMORY_VIZ, on each memory snapshot: those that draw call nothing from the network, for what they would draw is looked
at instead. Says what each gave; a command that fails, or leaves out what is in the file, is reported and counts."""
import contextlib
import gzip
import importlib.util
import io
import pickle
import sys
import traceback


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return pickle.load(file)


def kept(flamegraph_lines, *_):
    return flamegraph_lines


def bytes_in(flamegraph_lines):
    return sum(int(line.rsplit(" ", 1)[1]) for line in flamegraph_lines.splitlines())


def commands(viz, snapshot):
    """For each command: its name, what it gave, and whether that is what it must be."""
    reserved = sum(s["total_size"] for s in snapshot["segments"])
    events = sum(map(len, snapshot["device_traces"]))

    stats = viz.segsum(snapshot)
    yield "stats", stats, "segments: %d\n" % len(snapshot["segments"]) in stats
    trace = viz.trace(snapshot)
    yield "trace", trace, not events or trace.count(" entries\n") == sum(1 for t in snapshot["device_traces"] if t)
    for command in viz.segments, viz.memory:
        lines = command(snapshot, format_flamegraph=kept)
        yield command.__name__, lines, bytes_in(lines) == reserved
    with contextlib.redirect_stdout(io.StringIO()) as said:
        lines = viz.compare([], snapshot["segments"], format_flamegraph=kept)
    yield "compare", said.getvalue() + lines, bytes_in(lines) == reserved
    for name, page in (("trace_plot", viz.trace_plot(snapshot)),
                       ("trace_plot --segments", viz.trace_plot(snapshot, plot_segments=True)),
                       ("segment_plot", viz.segment_plot(snapshot))):
        yield name, page, len(page) > events


def main(viz_path, paths):
    spec = importlib.util.spec_from_file_location("gmd_memory_viz", viz_path)
    viz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(viz)
    failed = 0
    for path in paths:
        try:
            for name, given, is_right in commands(viz, read(path)):
                print("%s: %s: %s, %d characters" % (path, name, "ok" if is_right else "WRONG", len(given)))
                failed += not is_right
        except Exception:
            traceback.print_exc(file=sys.stdout)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
