#!/usr/bin/env python3
"""What became of the bytes that `gmd diagnose` promised: python judge_mended.py GMD FOLDER

FOLDER is the unpacked OUT/mended.tar.gz of record_mended.py. Prints the table of docs/results/advice.md: the finding
of the job as it was, the bytes that it named, how many of them PyTorch's own statistics have no more once the job is
mended, and what the diagnosis says then.
"""
import json
import os
import subprocess
import sys

from advice import MENDED


def diagnose(gmd, file):
    done = subprocess.run([gmd, "diagnose", file, "--json", "-", "--quiet"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)["findings"]


def gone(kind, leak, mended):
    """Bytes, by the statistics after the iterations that both jobs have."""
    pairs = list(zip(leak["iterations"], mended["iterations"]))
    if kind == "cross_stream_pending":
        return max(a["pending"] for a, _ in pairs) - max(b["pending"] for _, b in pairs)
    if kind in ("cached_not_released", "fragmentation"):
        return max((a["reserved"] - a["allocated"]) - (b["reserved"] - b["allocated"]) for a, b in pairs[1:])
    if kind == "reference_cycle":  # the collector comes and goes
        return max(a["allocated"] - b["allocated"] for a, b in pairs)
    return pairs[-1][0]["allocated"] - pairs[-1][1]["allocated"]


def main(gmd, folder):
    print("| job | finding | promised, MiB | gone, MiB | promised / gone | mended |\n|---|---|---:|---:|---:|---|")
    for job in sorted(m.job for m in MENDED):
        files = {v: os.path.join(folder, f"{job}.{v}") for v in ("leak", "mended")}
        labels = {}
        for variant, file in files.items():
            with open(file + ".json", encoding="utf-8") as text:
                labels[variant] = json.load(text)
        first, then = (diagnose(gmd, file + ".pickle.gz") for file in files.values())
        if not first:
            print(f"| {job} | none | | | | |")
            continue
        went = gone(first[0]["class"], labels["leak"], labels["mended"])
        said = ", ".join(f"`{f['class']}` {f['bytes'] / 2**20:,.1f} MiB" for f in then) or "healthy"
        print(f"| {job} | `{first[0]['class']}` | {first[0]['bytes'] / 2**20:,.1f} | {went / 2**20:,.1f} | "
              f"{first[0]['bytes'] / went if went > 0 else 0:.3f} | {said} |")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
