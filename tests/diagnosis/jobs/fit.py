#!/usr/bin/env python3
"""Whether a job that ran out of memory does what `gmd advise` said: python fit.py GMD OUT

Each job of pressure.py is recorded without a limit; the limit is then set between what it needs under PyTorch's
defaults and under the best settings. It runs again under it, out of memory as a rule, and that snapshot is all that
`gmd advise` sees. The job runs a last time under the line that it printed. OUT/fit.json has what was said and what
happened, OUT/fit.tar.gz the snapshots. What one run needs is done in a process of its own: python fit.py --run
JOB CAP_MIB FILE (0: no limit). python fit.py --table OUT/fit.json: the table of docs/results/advice.md.
"""
import json
import os
import subprocess
import sys
import tarfile
import tempfile

JOBS = ("sentences", "curriculum", "photographs", "conversations", "graphs", "ensemble")
PAGES = 2 << 20


def run_job(name, cap_mib, file):
    import torch

    import pressure
    import record
    from job import Run, collector_asleep

    record.torch, record.collector_asleep = torch, collector_asleep  # as its own main() has them
    recorder = record.Recorder({"oom"}, file)
    run = Run(recorder, False)
    run._measure = lambda: run.iterations.append(None)  # the peak is that of the whole run
    torch.manual_seed(0)
    torch.cuda.init()
    if cap_mib:
        run.cap(cap_mib)
    error = record.execute(getattr(pressure, name), run, recorder)
    stats = torch.cuda.memory_stats()
    if not recorder.at_snapshot:
        torch.cuda.memory._dump_snapshot(file)
    print(json.dumps({"error": error, "iterations": len(run.iterations), "retries": stats["num_alloc_retries"],
                      "ooms": stats["num_ooms"], "peak_reserved": stats["reserved_bytes.all.peak"],
                      "peak_allocated": stats["allocated_bytes.all.peak"]}))


def run(name, cap_mib, file, conf=""):
    done = subprocess.run([sys.executable, __file__, "--run", name, str(cap_mib), file], check=False, timeout=200,
                          env=dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} under {cap_mib} MiB and '{conf}' ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def advise(gmd, file, *options):
    done = subprocess.run([gmd, "advise", file, "--json", "-", "--quiet", *options], check=False,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)



def try_job(gmd, name, out):
    whole = os.path.join(out, f"{name}.whole.pickle")
    failed = os.path.join(out, f"{name}.failed.pickle")
    mended = os.path.join(out, f"{name}.mended.pickle")
    result = {"job": name, "unlimited": run(name, 0, whole)}
    first = advise(gmd, whole, "--capacity", "64GiB")
    best, default = first["settings"][0], next(s for s in first["settings"] if s["recorded"])
    result["needs"] = {"best": best["smallest_capacity"], "default": default["smallest_capacity"]}
    limit = (best["smallest_capacity"] + default["smallest_capacity"]) // 2 // PAGES * PAGES
    cap_mib = limit >> 20
    result["limit"] = limit
    result["before"] = run(name, cap_mib, failed)
    advice = advise(gmd, failed, "--limit", str(limit))
    conf = advice["settings"][0]["conf"]
    result["advice"] = advice["settings"][0]
    result["after"] = run(name, cap_mib, mended, conf)
    # What the recording without a limit predicts for both runs, to the byte.
    for key, setting in (("predicted_before", ""), ("predicted_after", conf)):
        said = advise(gmd, whole, "--limit", str(limit), "--conf", setting)
        result[key] = said["settings"][0]
    return result


def print_table(path):
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    print("| job | limit, MiB | ended before, retries | ended after, retries, said | peak, said |\n"
          "|---|---:|---|---|---|")
    for r in results:
        before, after, said = r["before"], r["after"], r["predicted_after"]
        ends = [f"{'out of memory in ' if run['error'] else ''}{run['iterations']}, {run['retries']}"
                for run in (before, after)]
        print(f"| {r['job']} | {r['limit'] >> 20:,} | {ends[0]} | {ends[1]}, {said['retries']} | "
              f"{after['peak_reserved'] >> 20:,}, {said['peak_reserved'] >> 20:,} |")
    print()
    for r in results:
        print(f"- {r['job']}: `{r['advice']['conf']}`")


def main(gmd, out):
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in JOBS:
            try:
                results.append(try_job(gmd, name, scratch))
            except (RuntimeError, StopIteration, ValueError, subprocess.TimeoutExpired) as error:
                results.append({"job": name, "error": str(error)})
            print(json.dumps(results[-1]), flush=True)
        with open(os.path.join(out, "fit.json"), "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
        with tarfile.open(os.path.join(out, "fit.tar.gz"), "w:gz", compresslevel=3) as tar:
            for file in sorted(os.listdir(scratch)):
                tar.add(os.path.join(scratch, file), file)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "--run":
        run_job(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    elif len(sys.argv) == 3 and sys.argv[1] == "--table":
        print_table(sys.argv[2])
    elif len(sys.argv) == 3:
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)
