#!/usr/bin/env python3
"""Ten jobs that run out of memory for ten causes: is the cause right in each message?

    judge.py --prefix FOLDER [--out FOLDER] [--jobs N] [JOB...]

FOLDER is an installation of gmd. Prints a table and the messages; exit status 0: each message names the line that
asked, the line that holds the memory where the job marks one, and what the job expects; 1: not.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def read_marks(path):
    """The lines of a job that ask and that hold, and what its message must have."""
    marks = {"asked": [], "held": [], "expect": []}
    with open(path, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            for mark in re.findall(r"# (asked|held)\b", line):
                marks[mark].append(number)
            marks["expect"] += re.findall(r"^# expect: (.*)", line)
    return marks


def run(name, options):
    path = os.path.join(HERE, name + ".py")
    folder = os.path.join(os.path.abspath(options.out), name)
    os.makedirs(folder, exist_ok=True)
    module = os.path.join(os.path.abspath(options.prefix), "share", "gmd")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=200, cwd=folder,
                          env=dict(os.environ, PYTHONPATH=module), check=False)
    return done.stdout + done.stderr


def message_of(output):
    """What the exception says, from its type on; None where there was no out-of-memory."""
    found = re.search(r"^torch\.OutOfMemoryError: (.*)", output, re.M | re.S)
    return found.group(1).strip() if found else None


def faults(name, marks, message):
    if message is None:
        return ["no out-of-memory"]
    found = []
    for mark, opening in (("asked", "Asked for by"), ("held", "Held")):
        lines = "|".join(map(str, marks[mark]))
        if lines and not re.search(rf"{opening}[^\n]*\b{name}\.py:({lines})\b", message):
            found.append(f"the line that {'asked' if mark == 'asked' else 'holds'} is not told")
    return found + [f"not told: {text}" for text in marks["expect"] if not re.search(text, message)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--out", default="oom")
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = options.names or [file[:-3] for file in sorted(os.listdir(HERE))
                              if file.endswith(".py") and file not in ("job.py", "judge.py")]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        outputs = list(pool.map(lambda name: run(name, options), names))
    wrong, rows, texts = 0, [], []
    for name, output in zip(names, outputs):
        message = message_of(output)
        found = faults(name, read_marks(os.path.join(HERE, name + ".py")), message)
        cause = re.search(r"Cause: ([^\n]*)", message or "")
        rows.append(f"| {name} | {cause.group(1) if cause else 'none told'} | {'; '.join(found) or 'as it is'} |")
        texts.append(f"{name}:\n\n" + "\n".join("    " + line for line in (message or output[-2000:]).splitlines()))
        wrong += bool(found)
    print("\n".join(["| job | cause told | judged |", "| --- | --- | --- |", *rows]) + "\n")
    print("\n\n".join(texts))
    print(f"\n{len(names) - wrong} of {len(names)} messages tell what is the case")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
