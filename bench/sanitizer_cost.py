#!/usr/bin/env python3
"""What the sanitizer for PyTorch programs costs: the step time of training with each of its tiers, beside training
without it.

    sanitizer_cost.py [--models gpt,resnet50] [--tiers "cheap full"] [--turns 12] [--block 10] [--library PATH]

Tiers have spaces between them: --tiers "cheap cheap,order:watched full". For each model one
process is kept for each tier and one without, on one GPU, and they take turns, a block of steps each: so all see the
same clocks. The models are those of train_compare.py. Needs PyTorch with CUDA, and torchvision for resnet50.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integrations")]


STACKLESS = "stackless:"  # before a tier: it takes no stacks, to see what they cost
PAIR_BYTES = (4096, 1 << 20)


def pair_us(torch, size, count=10000):
    """Microseconds of the host for an allocation and its free."""
    for _ in range(count // 4):
        torch.empty(size, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        torch.empty(size, dtype=torch.uint8, device="cuda")
    return (time.perf_counter() - start) / count * 1e6


def worker(options):
    """Reads numbers of steps, line by line; answers each with a line of JSON."""
    import torch
    import gmd_torch
    from train_compare import MODELS
    tier = options.worker.removeprefix(STACKLESS)
    gmd_torch.install(library=options.library, sanitize=tier or False)
    if tier != options.worker:
        gmd_torch._state.hooks.gmd_torch_allow_python(0)
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model, optimizer, loss_of = MODELS[options.models](torch, 2)
    step = 0
    print(json.dumps({"pair": {size: pair_us(torch, size) for size in PAIR_BYTES}}), flush=True)
    for line in sys.stdin:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(int(line)):
            with torch.autocast("cuda", torch.bfloat16):
                loss = loss_of(step)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / int(line)
        free, total = torch.cuda.mem_get_info()
        print(json.dumps({"seconds": seconds, "loss": float(loss.detach()), "reserved": torch.cuda.max_memory_reserved(),
                          "device": total - free}), flush=True)
    if gmd_torch._state.sanitizer:
        print(json.dumps({"findings": gmd_torch.check()}), flush=True)


class Process:
    def __init__(self, options, model, tier):
        command = [sys.executable, os.path.abspath(__file__), "--worker", tier, "--models", model]
        if options.library:
            command += ["--library", options.library]
        self.tier, self.seconds, self.last, self.pair = tier, [], {}, {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"sanitizer_cost: the worker of '{self.tier}' ended with {self.process.wait()}")
        return json.loads(line)

    def steps(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        self.last = self.read()
        return self.last["seconds"]

    def end(self):
        self.process.stdin.close()
        findings = self.read()["findings"] if self.tier else 0
        self.process.wait()
        return findings


def measure(options, model):
    processes = [Process(options, model, tier) for tier in ["", *options.tiers.split()]]
    for process in processes:
        process.pair = process.read()["pair"]
    for process in processes:
        process.steps(options.warmup)
    for turn in range(options.turns):
        for process in processes if turn % 2 else reversed(processes):
            process.seconds.append(process.steps(options.block))
    print(f"{model}, {options.turns} turns of {options.block} steps\n\n"
          "| | a step | | reserved | findings | an allocation and a free of 4 KiB, 1 MiB |\n"
          "| --- | --- | --- | --- | --- | --- |", flush=True)
    base = statistics.median(processes[0].seconds)
    for process in processes:
        ratios = [mine / plain for mine, plain in zip(process.seconds, processes[0].seconds)]
        name = f"`{process.tier}`" if process.tier else "without it"
        print(f"| {name} | {1000 * statistics.median(process.seconds):.1f} ms | {statistics.median(ratios):.2f} | "
              f"{process.last['reserved'] / 2**30:.1f} GiB | {process.end()} | "
              f"{', '.join(f'{us:.1f} us' for us in process.pair.values())} |", flush=True)
    print(f"\n(without it {1000 * base:.2f} ms)\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="gpt,resnet50")
    parser.add_argument("--tiers", default="cheap full")
    parser.add_argument("--library")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--block", type=int, default=10, help="steps of a turn")
    parser.add_argument("--warmup", type=int, default=15)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        worker(options)
        return
    for model in options.models.split(","):
        measure(options, model)


if __name__ == "__main__":
    main()
