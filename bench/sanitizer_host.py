#!/usr/bin/env python3
"""What an allocation and its free take of the host with the sanitizer for PyTorch programs, by part; without a GPU.

    sanitizer_host.py [--build build/release] [--depth 25] [--tiers "cheap full"] [--seconds 1] [--results FILE]

The requests come from this Python, from a stack of --depth frames, of which the innermost differ; the device is the
simulated one, whose calls are not those of a GPU's driver, and kernels are counted, not run. Nanoseconds for a pair of an
allocation and a free, the best of many series. "The whole" is a pair of 4 KiB, or the mean of a step of --blocks blocks of
many sizes that are freed in the other order. The parts are measured by themselves.
"""

import argparse
import ctypes
import os
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LEAVES = 64
FRESH = 8  # frames that are new for each series
PAIRS = 2  # of a series, from one stack
PARTS = (("stack", "both stacks"), ("lookup", "by its address"), ("index", "by any address in it"),
         ("capture", "whether it is captured"), ("fill", "what is filled"), ("ready", "quarantine, ready blocks"),
         ("order", "happens-before"))


def load(build, hooks):
    folder = os.path.join(build, "lib", "gmd")
    for name in ("sim/libcudart.so.13", "libgmd_allocator.so"):
        ctypes.CDLL(os.path.join(folder, name), ctypes.RTLD_GLOBAL)
    hooks = ctypes.CDLL(hooks or os.path.join(folder, "libgmd_torch_hooks.so"))
    bench = ctypes.CDLL(os.path.join(build, "lib", "libbench_sanitizer.so"))
    bench.bench_open.restype = ctypes.c_char_p
    for name in ("pairs", "step", "stacks", "lookup", "index", "order", "capture", "fill", "ready", "launches", "late_pair"):
        getattr(bench, f"bench_{name}").restype = ctypes.c_uint64
    hooks.gmd_torch_allow_python(1)
    return hooks, bench


def leaves():
    """Functions that call what they are given from different lines, through frames of their own, as a program's layers
    do: Python keeps an object for a frame once it was asked for."""
    space, lines = {}, []
    for i in range(LEAVES):
        lines.append(f"def inner_{i}_0(call): return call()")
        lines += [f"def inner_{i}_{n}(call): return inner_{i}_{n - 1}(call)" for n in range(1, FRESH)]
    exec(compile("\n".join(lines), "leaves.py", "exec"), space)
    return [space[f"inner_{i}_{FRESH - 1}"] for i in range(LEAVES)]


def from_depth(depth, call):
    """`call` with so many frames of Python; the one that calls it, and that one's caller, are among them."""
    return call() if depth <= 1 else from_depth(depth - 1, call)


def frames_now():
    frame, count = sys._getframe(1), 0
    while frame:
        frame, count = frame.f_back, count + 1
    return count


class Bench:
    def __init__(self, options, hooks, bench):
        self.options, self.hooks, self.bench = options, hooks, bench
        self.leaves = leaves()

    def best(self, call, pairs):
        """Nanoseconds of a pair: the mean of all leaves' best, at the wanted depth."""
        def series():
            best, end = [float("inf")] * LEAVES, time.perf_counter() + self.options.seconds
            while time.perf_counter() < end:
                for i, leaf in enumerate(self.leaves):
                    best[i] = min(best[i], leaf(call))
            return sum(best) / (LEAVES * pairs)
        # Further frames: series, those of a leaf, and `call`.
        return from_depth(self.options.depth - frames_now() - 2 - FRESH, series)

    def sizes(self):
        made = [512 << (i * 7 % 16) for i in range(self.options.blocks)]
        return (ctypes.c_size_t * len(made))(*made)

    def whole(self, tier, keep):
        """(a pair of 4 KiB, the mean of a step, kernels of a pair in the step)"""
        bench, sizes = self.bench, self.sizes()
        bench.bench_take_stacks_by(keep)
        problem = bench.bench_open(tier.encode())
        if problem:
            raise SystemExit(f"sanitizer_host: {problem.decode()}")
        if keep is self.text_keeper():
            bench.bench_take_text(self.hooks.gmd_torch_python_stack)
        pair = self.best(lambda: bench.bench_pairs(ctypes.c_size_t(4096), PAIRS), PAIRS)
        step = self.best(lambda: bench.bench_step(sizes, len(sizes)), len(sizes))
        before = bench.bench_launches()
        for _ in range(200):
            bench.bench_step(sizes, len(sizes))
        kernels = (bench.bench_launches() - before) / (200 * len(sizes))
        stacks = self.best(lambda: bench.bench_stacks(PAIRS), PAIRS)
        fill = self.best(lambda: bench.bench_fill(PAIRS), PAIRS)
        bench.bench_close()
        return {"pair": pair, "step": step, "kernels": kernels, "stack": stacks, "fill": fill}

    def beside_python(self, tier, keep):
        """Microseconds of a pair, the median, while another thread runs Python."""
        goes_on = [True]

        def work():
            while goes_on[0]:
                pass
        thread = threading.Thread(target=work)
        self.bench.bench_take_stacks_by(keep)
        self.bench.bench_open(tier.encode())
        if keep is self.text_keeper():
            self.bench.bench_take_text(self.hooks.gmd_torch_python_stack)
        thread.start()
        median = statistics.median(self.bench.bench_late_pair(ctypes.c_size_t(4096)) for _ in range(51)) / 1000
        goes_on[0] = False
        thread.join()
        self.bench.bench_close()
        return median

    def text_keeper(self):
        return self.bench.bench_keep_text

    def part(self, name):
        call = getattr(self.bench, f"bench_{name}")
        return min(call(500) for _ in range(500)) / 500  # short, so that some are not interrupted


def check_depth(bench, hooks):
    """The stack that is taken has as many frames as was said."""
    seen = []
    text = ctypes.create_string_buffer(1 << 16)

    def take():
        length = hooks.gmd_torch_stack_text(hooks.gmd_torch_keep_stack(), text, ctypes.c_size_t(1 << 16))
        seen.append(text.raw[:length].count(b"\n"))
        return 1
    bench.best(take, 1)
    if set(seen) != {bench.options.depth}:
        raise SystemExit(f"sanitizer_host: stacks of {set(seen)} frames instead of {bench.options.depth}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build", "release"))
    parser.add_argument("--hooks", help="libgmd_torch_hooks.so of another build")
    parser.add_argument("--depth", type=int, default=25)
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--tiers", default="cheap full")
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    options = parser.parse_args()
    hooks, library = load(os.path.abspath(options.build), options.hooks)
    bench = Bench(options, hooks, library)
    has_stacks = hasattr(hooks, "gmd_torch_keep_stack")
    if has_stacks:
        check_depth(bench, hooks)
    lines = [f"Python {sys.version.split()[0]}, {options.depth} frames; ns for an allocation and its free", "",
             "| | 4 KiB | a step's mean | kernels | of it both stacks |", "| --- | --- | --- | --- | --- |"]
    none = ctypes.c_void_p()
    rows = [("without it", "", none)]
    for tier in options.tiers.split():
        keep = hooks.gmd_torch_keep_stack if has_stacks else bench.text_keeper()  # as earlier builds did
        rows += [(f"`{tier}`", tier, keep), (f"`{tier}`, no stacks", tier, none)]
    for name, tier, keep in rows:
        seen = bench.whole(tier, keep)
        lines.append(f"| {name} | {seen['pair']:.0f} | {seen['step']:.0f} | {seen['kernels']:.2f} | "
                     f"{seen['stack']:.0f} |")
        fill = seen["fill"]
    lines += ["", "While another thread runs Python, the median of a pair of 4 KiB:"]
    lines += [f"{name}: {bench.beside_python(tier, keep):.1f} us" for name, tier, keep in rows if tier]
    library.bench_open(b"cheap")
    parts = {name: bench.part(name) for name, _ in PARTS if name not in ("stack", "fill")}
    parts["fill"] = fill
    library.bench_close()
    lines += ["", "| part | |", "| --- | --- |"]
    lines += [f"| {text} | {parts[name]:.0f} |" for name, text in PARTS if name in parts]
    how = "read where they lie" if has_stacks and hooks.gmd_torch_reads_frames() else "asked of Python"
    lines += ["", f"(frames are {how})"]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
