#!/usr/bin/env python3
"""Reading a memory snapshot: gmd beside CPython's pickle.load, _memory_viz.py and mosaic, on the same files.

    load_compare.py [--bin build/release/bin] [--memory-viz FILE] [--mosaic DIR] [--rounds 5] SNAPSHOT...

SNAPSHOT: .pickle or .pickle.gz; packed ones are unpacked first, into a temporary folder, so that gzip is in no
figure. In each round each reader runs once, in a process of its own. Figures are medians of CPU time (user and
system, which Linux tells apart by samples only): other work on the machine disturbs it least. A ratio is the
median of the rounds' ratios to pickle.load.

    load      gmd_snapshot_parse by itself (bench_load), and pickle.load by itself
    diagnose  the whole process `gmd diagnose FILE`
    others    the whole process: _memory_viz.py trace_plot (of PyTorch: torch/cuda/_memory_viz.py), and mosaic's
              analysis of the peak (github.com/facebookresearch/mosaic). "-": it does not read the file.

Memory is the most that the process had, as a multiple of the unpacked file; "-" where the file is so small that
Python itself would be most of it. Prints a Markdown table.
"""

import argparse
import gzip
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

PICKLE_LOAD = """
import pickle, resource, sys, time
with open(sys.argv[1], 'rb') as f:
    before = time.process_time()
    pickle.load(f)
    print(time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""

SMALL_FILE = 50e6  # bytes

MOSAIC = """
import logging, sys
sys.path.insert(0, sys.argv[2])
logging.disable(logging.CRITICAL)
from mosaic.libmosaic.analyzer.memory_snapshot import MemorySnapshot
snapshot = MemorySnapshot(sys.argv[1])
snapshot.load_memory_snapshot()
snapshot.analyze_memory_snapshot('memory_peak')
"""


def whole_process(command):
    """CPU seconds and bytes of a process; None where it fails. gmd's status 1 is a finding."""
    with open(os.devnull, 'w') as nowhere:
        child = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    allowed = (0, 1) if os.path.basename(command[0]) == 'gmd' else (0,)
    return (used.ru_utime + used.ru_stime, used.ru_maxrss * 1024) if child.returncode in allowed else None


def printed(command, fields):
    """CPU seconds and bytes that a process prints, at these places of its line."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    words = done.stdout.split()
    return float(words[fields[0]]), int(words[fields[1]])


def readers(options, path):
    gmd = os.path.join(options.bin, 'gmd')
    found = {
        'pickle.load': lambda: printed([sys.executable, '-c', PICKLE_LOAD, path], (0, 1)),
        'gmd, load': lambda: printed([os.path.join(options.bin, 'bench_load'), path], (2, 3)),
        'gmd diagnose': lambda: whole_process([gmd, 'diagnose', path]),
    }
    if options.memory_viz:
        page = path + '.html'
        found['_memory_viz trace_plot'] = lambda: whole_process(
            [sys.executable, options.memory_viz, 'trace_plot', path, '-o', page])
    if options.mosaic:
        found['mosaic, peak'] = lambda: whole_process([sys.executable, '-c', MOSAIC, path, options.mosaic])
    return found


def measure(options, path):
    """For each reader its seconds and bytes in each round."""
    seen = {}
    for _ in range(options.rounds):
        for name, run in readers(options, path).items():
            seen.setdefault(name, []).append(run())
    return seen


def row(name, rounds, reference, size):
    if None in rounds:
        return f'| {name} | - | - | - | - |'
    seconds = statistics.median(used for used, _ in rounds)
    ratio = statistics.median(used / base for (used, _), (base, _) in zip(rounds, reference))
    memory = '-' if size < SMALL_FILE else f'{max(held for _, held in rounds) / size:.1f}'
    return f'| {name} | {seconds:.3f} s | {seconds * 1e9 / size:.2f} | {ratio:.2f} | {memory} |'


def report(options, path, label):
    size = os.path.getsize(path)
    seen = measure(options, path)
    print(f'\n{label}, {size / 1e6:.1f} MB unpacked:\n')
    print('| reader | CPU time | ms per MB | beside pickle.load | memory / file |')
    print('| --- | ---: | ---: | ---: | ---: |')
    for name, rounds in seen.items():
        print(row(name, rounds, seen['pickle.load'], size), flush=True)


def unpacked(path, folder):
    if not path.endswith('.gz'):
        return path
    plain = os.path.join(folder, os.path.basename(path)[:-len('.gz')])
    with gzip.open(path, 'rb') as packed, open(plain, 'wb') as out:
        shutil.copyfileobj(packed, out)
    return plain


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', default='build/release/bin')
    parser.add_argument('--memory-viz', metavar='FILE')
    parser.add_argument('--mosaic', metavar='DIR')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('snapshots', nargs='+', metavar='SNAPSHOT')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for path in options.snapshots:
            report(options, unpacked(path, folder), os.path.basename(path))


if __name__ == '__main__':
    main()
