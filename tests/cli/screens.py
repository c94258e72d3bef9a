#!/usr/bin/env python3
"""screens.py GMD PLANTED HISTORY RECORDINGS - what the commands show fits terminals of 60, 80 and 140 columns, help too:
what is wider is a command or a line to copy, or the path of a file. RECORDINGS: of tests/diagnosis."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

COMMANDS = ("run", "replay", "fuzz", "minimize", "gate", "diagnose", "advise", "diff", "report", "bench")
JOBS = ("004", "006", "020", "066")  # long names of files and functions, an out-of-memory, findings with callers
TO_COPY = re.compile(r"^ *(replay|case|for --known|again|accept|PYTORCH_CUDA_ALLOC_CONF)\b")


def shown(command, columns, folder):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", "GMD_PLANT": "overlap", "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=slave, stderr=subprocess.DEVNULL) as process:
        os.close(slave)
        parts = []
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            parts.append(part)
        process.wait()
    os.close(master)
    return b"".join(parts).decode("utf-8").replace("\r\n", "\n").split("\n")


def main():
    gmd, planted, history, recordings = (os.path.abspath(each) for each in sys.argv[1:])
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(planted, os.path.join(folder, "libmine.so"))
        with open(os.path.join(folder, "case.gmd"), "w", encoding="utf-8") as file:
            file.write("gmd-trace 1\ncapacity 1GiB\nalloc a 1000 s1\nalloc b 1000 s1\nalloc c 1000 s1\nfree a\n")
        os.symlink(history, os.path.join(folder, "job.pickle.gz"))
        for job in JOBS:
            os.symlink(os.path.join(recordings, f"job_{job}.pickle.gz"), os.path.join(folder, f"{job}.gz"))
        commands = (["gate", "--allocator", "./libmine.so", "--quick", "--only", "cases", "--verbose"],
                  ["fuzz", "--allocator", "./libmine.so", "--seed", "1", "--runs", "50", "--verbose"],
                  ["run", "hidden_state", "leak=true,false", "iterations=3"],
                  ["run", "hidden_state", "iterations=3", "--placement", "seeds 2"],
                  ["run", "case.gmd", "--allocator", "./libmine.so"],
                  ["run", "case.gmd", "--allocator", "./libmine.so", "--sweep", "--verbose"],
                  ["run", "--list-oracles"],
                  ["run", "--list", "lora"],
                  ["replay", "--check", "job.pickle.gz"],
                  ["replay", "job.pickle.gz", "--limit", "100MiB"],
                  ["run", "hidden_state", "iterations=3", "--inspect"],
                  ["run", "gpt", "iterations=2", "--inspect"],
                  ["run", "hidden_state", "iterations=3", "--repeat", "3"],
                  ["diagnose", "job.pickle.gz"],
                  *(["diagnose", f"{job}.gz"] for job in JOBS),
                  ["diagnose", *(f"{job}.gz" for job in JOBS)],
                  ["diff", f"{JOBS[0]}.gz", f"{JOBS[1]}.gz"],
                  ["advise", "job.pickle.gz"],
                  ["--help"],
                  ["run", "--list"],
                  *([command, "--help"] for command in COMMANDS))
        for command in commands:
            for columns in (60, 80, 140):
                lines = shown([gmd, *command], columns, folder)
                if len(lines) < 4:
                    wrong.append(f"gmd {' '.join(command)}: hardly anything is shown: {lines}")
                wrong += [f"gmd {' '.join(command)}: wider than {columns} columns: {line}" for line in lines
                          if len(line) > columns and not TO_COPY.match(line)]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
