#!/usr/bin/env python3
"""What the sanitizer for PyTorch programs costs: the step time of training with each of its tiers, beside training
without it.

    sanitizer_cost.py [--models gpt,resnet50] [--tiers "cheap full unmap,unmap:1MiB unmap"] [--turns 10]
                      [--turn-seconds 0.5] [--most 1.5] [--library PATH] [--results FILE]

Tiers have spaces between them: --tiers "cheap cheap,order:watched full". For each model one
process is kept for each tier and one without, on one GPU. They start together, and then take turns, a block of steps
each: so all see the same clocks. A block has as many steps as fit into --turn-seconds, and one at least. The models are
those of train_compare.py. Needs PyTorch with CUDA, and torchvision for resnet50.

Prints the table of docs/sanitizer.md, and what an allocation and its free take of the host; --results writes it, with
what it was measured on. Exit status 1: `cheap` costs a model more than --most times its step, or a tier found something.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STACKLESS = "stackless:"  # before a tier: it takes no stacks, to see what they cost
PAIR_BYTES = (4096, 1 << 20)
NAMES = {"gpt": "GPT", "resnet50": "ResNet-50"}


# --- one process ------------------------------------------------------------------------------------


def pair_us(torch, size, most=10000, longest=1.0):
    """Microseconds of the host for an allocation and its free: of so many, or as many as fit into `longest` seconds."""
    def request(count):
        for _ in range(count):
            torch.empty(size, dtype=torch.uint8, device="cuda")

    begin = time.perf_counter()
    request(most // 20)
    torch.cuda.synchronize()
    each = (time.perf_counter() - begin) / (most // 20)
    count = max(1, min(most, int(longest / each)))
    request(count // 4)
    torch.cuda.synchronize()
    start = time.perf_counter()
    request(count)
    return (time.perf_counter() - start) / count * 1e6


def steps_of(torch, loss_of, optimizer):
    """A function that trains so many steps and gives what they took."""
    step = 0

    def run(count):
        nonlocal step
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            with torch.autocast("cuda", torch.bfloat16):
                loss = loss_of(step)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / count
        return {"seconds": seconds, "loss": float(loss.detach()), "reserved": torch.cuda.max_memory_reserved()}

    return run


def worker(options, lines, out):
    """Reads 'pairs', 'steps N' and 'machine' line by line, and answers each, and the end, with a line of JSON."""
    sys.path[:0] = [HERE, os.path.join(HERE, "..", "integrations")]
    import torch
    import gmd_torch
    from train_compare import MODELS
    tier = options.worker.removeprefix(STACKLESS)
    gmd_torch.install(library=options.library, sanitize=tier or False)
    if tier != options.worker:
        gmd_torch._state.hooks.gmd_torch_allow_python(0)
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    _model, optimizer, loss_of = MODELS[options.models](torch, 2)
    run = steps_of(torch, loss_of, optimizer)
    for line in lines:
        what, _, count = line.strip().partition(" ")
        if what == "steps":
            answer = run(int(count))
        elif what == "pairs":
            answer = {"pairs": [pair_us(torch, size) for size in PAIR_BYTES]}
        else:
            answer = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "python": sys.version.split()[0]}
        print(json.dumps(answer), file=out, flush=True)
    print(json.dumps({"findings": gmd_torch.check() if tier else 0}), file=out, flush=True)


# --- all of them ------------------------------------------------------------------------------------


class Process:
    def __init__(self, options, model, tier):
        command = [sys.executable, options.worker_program or os.path.abspath(__file__), "--worker", tier,
                   "--models", model]
        if options.library:
            command += ["--library", options.library]
        self.tier, self.seconds, self.last, self.pairs, self.count = tier, [], {}, [], 1
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"sanitizer_cost: the process of '{self.tier}' ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, line):
        self.tell(line)
        return self.answer()

    def turn(self):
        self.last = self.ask(f"steps {self.count}")
        self.seconds.append(self.last["seconds"])

    def end(self):
        self.process.stdin.close()
        findings = self.answer()["findings"]
        self.process.wait()
        self.process.stdout.close()
        return findings


def measure(options, model):
    """What each tier takes of a model: a list, of which the first is without a tier."""
    processes = [Process(options, model, tier) for tier in ["", *options.tiers.split()]]
    for process in processes:  # all start at once: kernels are loaded, and algorithms chosen
        process.tell(f"steps {options.warmup}")
    for process in processes:
        process.answer()
    for process in processes:
        seconds = process.ask("steps 2")["seconds"]
        process.count = max(1, min(options.block, round(options.turn_seconds / seconds)))
    for turn in range(options.turns):
        for process in processes if turn % 2 else reversed(processes):
            process.turn()
    machine = processes[0].ask("machine")
    rows = []
    for process in processes:
        ratios = [mine / plain for mine, plain in zip(process.seconds, processes[0].seconds)]
        rows.append({"tier": process.tier, "ms": 1000 * statistics.median(process.seconds),
                     "ratio": statistics.median(ratios), "reserved": process.last["reserved"],
                     "steps": options.turns * process.count, "pairs": process.ask("pairs")["pairs"]})
    for process, row in zip(processes, rows):
        row["findings"] = process.end()
    return rows, machine


def name_of(tier):
    return f"`{tier}`" if tier else "without it"


def table(models, results):
    """The table of docs/sanitizer.md."""
    heads = [text for model in models for text in (NAMES.get(model, model), "", "reserved")]
    lines = ["| | " + " | ".join(heads) + " |", "|" + " --- |" * (1 + len(heads))]
    for rows in zip(*(results[model] for model in models)):
        cells = [name_of(rows[0]["tier"])]
        for row in rows:
            ratio = f"{row['ratio']:.2f}" if row["ratio"] < 10 else f"{row['ratio']:.1f}"
            cells += [f"{row['ms']:.1f} ms", ratio if row["tier"] else "", f"{row['reserved'] / 2**30:.1f} GiB"]
        lines.append("| " + " | ".join(cells) + " |")
    return [line.replace("|  |", "| |") for line in lines]


def host_table(rows):
    lines = ["| | 4 KiB | 1 MiB | steps | findings |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        pairs = " | ".join(f"{us:.1f} us" for us in row["pairs"])
        lines.append(f"| {name_of(row['tier'])} | {pairs} | {row['steps']} | {row['findings']} |")
    return lines


def commit():
    asked = subprocess.run(["git", "-C", HERE, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True,
                           check=False)
    return asked.stdout.strip() or "unknown"


def judge(options, results):
    """What is not as it should be."""
    wrong = []
    for model, rows in results.items():
        for row in rows:
            if row["tier"] == "cheap" and row["ratio"] > options.most:
                wrong.append(f"{model}: `cheap` costs {row['ratio']:.2f} times the step, more than {options.most}")
            if row["findings"]:
                wrong.append(f"{model}: `{row['tier']}` found {row['findings']}")
    return wrong


def report(options, results, machine):
    lines = ["# What the sanitizer costs", "",
             "- made by: `bench/sanitizer_cost.py --tiers \"" + options.tiers + "\"`",
             f"- date: {datetime.date.today()}", f"- commit: {commit()}",
             f"- machine: {machine['gpu']}, torch {machine['torch']}, Python {machine['python']}, "
             f"{os.cpu_count()} cores", "",
             f"Medians of {options.turns} turns:", "", *table(list(results), results)]
    for model, rows in results.items():
        lines += ["", f"An allocation and its free, of the host; the process that trained {NAMES.get(model, model)}:", "",
                  *host_table(rows)]
    return lines


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="gpt,resnet50")
    parser.add_argument("--tiers", default="cheap full unmap,unmap:1MiB unmap")
    parser.add_argument("--library")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--turn-seconds", type=float, default=0.5)
    parser.add_argument("--block", type=int, default=20, help="steps of a turn, at most")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--most", type=float, default=1.5, help="times the step that `cheap` may take")
    parser.add_argument("--results", help="a file for the report")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--worker-program", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parsed(arguments)
    if options.worker is not None:
        worker(options, sys.stdin, sys.stdout)
        return 0
    results, machine = {}, {}
    for model in options.models.split(","):
        results[model], machine = measure(options, model)
        print("\n".join([*table([model], results), ""]), flush=True)  # should the next model's time be cut short
    lines = report(options, results, machine)
    wrong = judge(options, results)
    print("\n".join([*lines, "", *wrong]), flush=True)
    if options.results:
        with open(options.results, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
