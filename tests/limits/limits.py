#!/usr/bin/env python3
"""limits.py GMD time|memory|bound|page - what reading hostile files may cost.

time: histories with four times the events take less than eight times the processor time.
memory: files of little content take at most a stated multiple of it.
bound: --max-memory ends the reading of a file with a message that names it and the option.
page: the figures of the first two, as docs/results/limits.md has them.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import contents
import histories

EVENTS = 80000
MOST_GROWTH = 8.0  # quadratic time: 16
TOO_SHORT = 0.02  # seconds: nothing grows from there
CONTENT = 4 << 20
SPARE = 32 << 20  # of the program and of what a small file may take
BOUND = 16 << 20


def run(arguments):
    """Exit status, processor seconds and the most memory in bytes of a process, and what it said."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, said


def write(folder, name, make):
    """In a process of its own: what it took would count as the next one's until that is loaded."""
    path = os.path.join(folder, name)
    writer = os.fork()
    if writer == 0:
        with open(path, "wb") as file:
            file.write(make())
        os._exit(0)
    if os.waitpid(writer, 0)[1] != 0:
        raise SystemExit(f"{path}: could not be written")
    return path


def reader_of(gmd, path):
    if path.endswith(".gmd"):
        return [gmd, "run", path, "--cases", "none"]
    if path.endswith(".json"):
        return [gmd, "report", path, "-o", os.path.join(os.path.dirname(path), "out.md")]
    return [gmd, "diagnose", path]


def growth_of(gmd, folder, shape, tries=2):
    """Seconds for EVENTS and for four times as many: the least of some tries, as others run too."""
    seconds = []
    for n in (EVENTS, 4 * EVENTS):
        path = write(folder, f"{shape.__name__}_{n}.pickle", lambda n=n: shape(n))
        seconds.append(min(run([gmd, "replay", "--check", path, "--limit", "8TiB", "--capacity",
                                "16TiB", "--cases", "none"])[1] for _ in range(tries)))
    return seconds


def check_time(gmd, folder):
    rows, failures = [], 0
    for shape in histories.SHAPES:
        few, many = growth_of(gmd, folder, shape)
        rows.append((shape.__name__.replace("_", " "), few, many))
        if many > MOST_GROWTH * max(few, TOO_SHORT):
            print(f"{shape.__name__}: {few:.2f} s for {EVENTS} events, {many:.2f} s for four times "
                  f"as many: expected less than {MOST_GROWTH:.0f} times")
            failures += 1
    return rows, failures


def files(folder):
    for i, (name, (end, content, multiple)) in enumerate(contents.CONTENTS.items()):
        yield name, write(folder, f"{i}{end}", lambda make=content: make(CONTENT)), multiple


def check_memory(gmd, folder):
    rows, failures = [], 0
    for name, path, multiple in files(folder):
        status, seconds, memory, _ = run(reader_of(gmd, path))
        rows.append((name, multiple, memory / CONTENT, seconds))
        if status not in (0, 1, 2) or memory > multiple * CONTENT + SPARE:
            print(f"{name}: exit {status}, {memory >> 20} MiB for {CONTENT >> 20} MiB of content: "
                  f"expected at most {multiple} times as much and {SPARE >> 20} MiB")
            failures += 1
    return rows, failures


def check_bound(gmd, folder):
    failures = 0
    for command, end in (("run", ".gmd"), ("replay", ".gmd"), ("minimize", ".gmd"),
                         ("replay", ".pickle"), ("diagnose", ".pickle"), ("advise", ".pickle"),
                         ("report", ".json")):
        path = write(folder, f"bound{end}", lambda: b"0" * (2 * BOUND))
        output = ["-o", os.path.join(folder, "out.md")] if command in ("report", "minimize") else []
        status, _, _, said = run([gmd, command, path, "--max-memory", str(BOUND), *output])
        if status != 2 or path not in said or "--max-memory" not in said:
            print(f"{command} {path}: exit {status}, expected 2 and a message with the file and "
                  f"--max-memory: {said}")
            failures += 1
    return [], failures


def page(gmd, folder):
    times, _ = check_time(gmd, folder)
    memory, _ = check_memory(gmd, folder)
    lines = ["| history | 80,000 events | 320,000 events | growth |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {name} | {few:.2f} s | {many:.2f} s | {many / few:.1f} |" for name, few, many in times]
    lines += ["", f"| {CONTENT >> 20} MiB of | memory / content | at most | CPU time |",
              "| --- | ---: | ---: | ---: |"]
    lines += [f"| {name} | {taken:.1f} | {most} | {s:.2f} s |" for name, most, taken, s in memory]
    print("\n".join(lines))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gmd")
    parser.add_argument("what", choices=("time", "memory", "bound", "page"))
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if a.what == "page":
            page(a.gmd, folder)
            return 0
        check = {"time": check_time, "memory": check_memory, "bound": check_bound}[a.what]
        _, failures = check(a.gmd, folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
