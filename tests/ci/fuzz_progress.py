#!/usr/bin/env python3
"""fuzz_progress.py SOURCE - what ci/fuzz shows of its build on a terminal, and where it fails: with a cmake that only
prints as Ninja does."""
import os
import pty
import shutil
import stat
import subprocess
import sys
import tempfile

CMAKE = """#!/bin/sh
case $1 in --build) printf '[1/2] Building C object a.o\\n[2/2] Linking\\n'; {end} ;; esac
"""


def drain(descriptor):
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # the other side is closed
            part = b""
        if not part:
            return b"".join(parts).decode()
        parts.append(part)


def fuzz(source, folder, end):
    """What it shows, and its exit status."""
    tools = os.path.join(folder, "tools")
    os.makedirs(tools, exist_ok=True)
    cmake = os.path.join(tools, "cmake")
    with open(cmake, "w", encoding="utf-8") as file:
        file.write(CMAKE.format(end=end))
    os.chmod(cmake, os.stat(cmake).st_mode | stat.S_IXUSR)
    master, slave = pty.openpty()
    with subprocess.Popen([os.path.join(source, "ci", "fuzz"), "trace", "--time", "1"], stdin=subprocess.DEVNULL,
                          stdout=slave, stderr=slave,
                          env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}) as process:
        os.close(slave)
        shown = drain(master)
        status = process.wait(60)
    os.close(master)
    return shown, status


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source")
        for each in ("ci", "fuzz/targets"):
            shutil.copytree(os.path.join(sys.argv[1], each), os.path.join(source, each))
        shown, status = fuzz(source, folder, "echo 'error: no such type'; exit 1")
        if "building build/fuzz [1/2]" not in shown or "building build/fuzz [2/2]" not in shown:
            wrong.append(f"its build shows no progress: {shown!r}")
        if status != 3 or "no such type" not in shown or "building fuzz_trace in build/fuzz failed" not in shown:
            wrong.append(f"a build that fails is not told: status {status}, {shown!r}")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
