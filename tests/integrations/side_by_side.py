"""Checks on a real GPU: each runs in a process of its own with PyTorch's allocator and in one with gmd's, and
both must tell the same. A check is a function (torch, out, is_gmd) that gives what JSON can hold; its attributes:
conf: the settings that it wants; installs: more arguments of gmd_torch.install(); runs_alone: nothing may run
beside it."""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def find_helper():
    """gmd_torch.py: beside the checks, or where it is in the repository."""
    sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "integrations")]


def run_one(options, checks):
    import torch
    check = checks[options.check[0]]
    if options.worker == "gmd":
        import gmd_torch
        gmd_torch.install(options.conf, library=options.library,
                          **{"dump_on_oom": False, **getattr(check, "installs", lambda out: {})(options.out)})
    answer = check(torch, options.out, options.worker == "gmd")
    print("ANSWER " + json.dumps(answer), flush=True)
    return 0


def answer_of(options, check, allocator):
    conf = getattr(check, "conf", options.conf)
    command = [sys.executable, os.path.abspath(sys.argv[0]), check.__name__, "--worker", allocator, "--out",
               options.out, "--conf", conf]
    if options.library:
        command += ["--library", options.library]
    environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf)
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return {"ended": "after 120 s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    if done.returncode != 0 or not lines:
        return {"ended": done.returncode, "said": (done.stdout + done.stderr)[-1500:]}
    return json.loads(lines[-1][len("ANSWER "):])


def own(**figures):
    """Part of an answer that may differ, and is shown."""
    return {"own": figures}


def differences(native, ours, where=""):
    """What is not equal; memory that is reserved may be less."""
    if where == ".own":
        return []
    if isinstance(native, dict) and isinstance(ours, dict):
        return [d for k in native for d in differences(native[k], ours.get(k), f"{where}.{k}")]
    if where == ".reserved" and isinstance(native, int) and ours <= native:
        return []
    return [] if native == ours else [f"{where[1:]}: {native} with PyTorch's, {ours} with gmd's"]


def has_gpu():
    """Asked in a process of its own: this one starts others."""
    probe = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False).returncode == 0


def main(doc, checks, afterwards=None):
    """Gives the exit status: 0 all as it should be; 1 not; 77 there is no PyTorch here, or no GPU."""
    checks = {check.__name__: check for check in checks}
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("check", nargs="*", help=", ".join(checks))
    parser.add_argument("--library", help="libgmd_allocator.so; else as gmd_torch.install finds it")
    parser.add_argument("--conf", default="", help="allocator settings, for both")
    parser.add_argument("--out", default=".", help="folder for snapshots")
    parser.add_argument("--jobs", type=int, default=1, help="so many checks at the same time")
    parser.add_argument("--worker", choices=("native", "gmd"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    find_helper()
    if options.worker:
        return run_one(options, checks)
    if not has_gpu():
        print("skipped, this python3 has no PyTorch with a GPU")
        return 77
    failed = count_failed(options, [checks[name] for name in options.check or checks])
    if afterwards:
        failed += not afterwards(options)
    return 1 if failed else 0


def count_failed(options, checks):
    beside = [check for check in checks if not getattr(check, "runs_alone", False)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        answers = pool.map(lambda check: (check, *both_answers(options, check)), beside)
        failed = sum(not compare(*each) for each in answers)
    alone = [check for check in checks if getattr(check, "runs_alone", False)]
    return failed + sum(not compare(check, *both_answers(options, check)) for check in alone)


def both_answers(options, check):
    return [answer_of(options, check, allocator) for allocator in ("native", "gmd")]


def compare(check, native, ours):
    found = differences(native, ours)
    if "ended" in native or "ended" in ours:
        found = [f"native {native}"] * ("ended" in native) + [f"gmd {ours}"] * ("ended" in ours)
    print(f"{'FAIL' if found else 'ok  '} {check.__name__}: {json.dumps(ours)[:300]}", flush=True)
    for line in found[:12]:
        print(f"     {line}")
    for name, answer in (("PyTorch's", native), ("gmd's", ours)):
        if "own" in answer:
            print(f"     {name}: {json.dumps(answer['own'])}")
    return not found
