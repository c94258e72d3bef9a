#!/usr/bin/env python3
"""Records leaking jobs as they are and with what `gmd diagnose` advised: python record_mended.py OUT

OUT/mended.tar.gz has JOB.leak and JOB.mended of each job of advice.py (record.py says what they are).
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

from advice import MENDED

WORKERS = 6
HERE = os.path.dirname(os.path.abspath(__file__))


def copy_of_jobs(folder, mended):
    """The jobs' sources, one of them mended."""
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = os.path.join(folder, mended.module + ".py")
    with open(path, encoding="utf-8") as source:
        text = source.read()
    for old, new in mended.edits:
        if text.count(old) != 1:
            raise ValueError(f"{mended.module}.{mended.job}: the text to mend is there {text.count(old)} times: {old}")
        text = text.replace(old, new)
    with open(path, "w", encoding="utf-8") as source:
        source.write(text)


def record(where, mended, mode, out):
    environment = dict(os.environ, GMD_JOB_STEPS=str(mended.steps), OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    done = subprocess.run([sys.executable, "record.py", mended.module, mended.job, "leak", mode, out], cwd=where,
                          env=environment, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    return "ok" if done.returncode == 0 else f"failed\n{done.stdout[-1200:]}"


def record_both(mended, scratch, out):
    lines = []
    # A job that ends out of memory is dumped there; mended it runs to its end.
    modes = {"leak": "oom" if mended.mode == "oom" else "-", "mended": "-" if mended.mode == "oom" else mended.mode}
    for variant, mode in modes.items():
        folder = os.path.join(scratch, f"{mended.job}.{variant}")
        copy_of_jobs(folder, mended if variant == "mended" else mended._replace(edits=()))
        made = os.path.join(scratch, f"{mended.job}.{variant}.out")
        os.makedirs(made)
        lines.append(f"{mended.job} {variant}: {record(folder, mended, mode, made)}")
        for file in os.listdir(made):
            ending = file.split(".", 2)[2]
            shutil.move(os.path.join(made, file), os.path.join(out, f"{mended.job}.{variant}.{ending}"))
    return "\n".join(lines)


def main(out):
    with tempfile.TemporaryDirectory() as scratch:
        results = os.path.join(scratch, "results")
        os.makedirs(results)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for line in pool.map(lambda mended: record_both(mended, scratch, results), MENDED):
                print(line, flush=True)
        with tarfile.open(os.path.join(out, "mended.tar.gz"), "w:gz", compresslevel=1) as tar:
            for file in sorted(os.listdir(results)):
                tar.add(os.path.join(results, file), file)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
