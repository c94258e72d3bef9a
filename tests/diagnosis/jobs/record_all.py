#!/usr/bin/env python3
"""Records all jobs of table.py, several processes at a time: python record_all.py OUT [JOB...]

A job that fails or hangs is logged with the end of what it printed, and the others go on. OUT/jobs.tar.gz has
what came of them, OUT/log.txt the outcome of each.
"""
import concurrent.futures
import os
import subprocess
import sys
import tarfile
import tempfile
import time

from table import recordings

TIMEOUT = 60
DEADLINE = 360  # seconds after which no recording is begun
WORKERS = 14


def record(recording, folder, deadline):
    """One line for the log."""
    begin = time.time()
    if begin > deadline:
        return f"{recording.job}.{recording.variant} {recording.mode}: no time left"
    command = [sys.executable, "record.py", *recording, folder]
    environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    try:
        done = subprocess.run(command, env=environment, timeout=TIMEOUT, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        outcome = "ok" if done.returncode == 0 else f"failed ({done.returncode})\n{done.stdout[-1500:]}"
    except subprocess.TimeoutExpired:
        outcome = f"no end after {TIMEOUT} s"
    return f"{recording.job}.{recording.variant} {recording.mode} {time.time() - begin:.1f} s: {outcome}"


def main():
    out, *names = sys.argv[1:]
    deadline = time.time() + DEADLINE
    chosen = [r for r in recordings() if not names or r.job in names or f"{r.job}.{r.variant}" in names]
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(out, "log.txt"), "w", encoding="utf-8") as log:
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for line in pool.map(lambda recording: record(recording, folder, deadline), chosen):
                print(line, file=log, flush=True)
                if not line.endswith(": ok"):
                    print(line, flush=True)
        with tarfile.open(os.path.join(out, "jobs.tar.gz"), "w:gz", compresslevel=1) as tar:
            for file in sorted(os.listdir(folder)):
                tar.add(os.path.join(folder, file), file)
        print(f"{len(chosen)} recordings wanted, {len(os.listdir(folder)) // 2} there")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
