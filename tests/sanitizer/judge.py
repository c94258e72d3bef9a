#!/usr/bin/env python3
"""The jury of the sanitizer for PyTorch programs: runs the programs here without it and with it, and says what it
found, which guilty lines it named, and whom it accused wrongly.

    judge.py [--programs FOLDER] [--out FOLDER] [--jobs N] [--seed N] [--half open|held|all]
             [--no-plain] [--only REGEX] [--again] [--timeout S] [--sanitizer LABEL=COMMAND]... [--alarm REGEX]

COMMAND runs a program whose path and arguments are added, as "python3 -m gmd_torch --sanitize"; several are several
columns of the table, and a defect counts as found if one of them found it. Without any, only the programs themselves
are judged: that a defect does not end its program, that mended twins and healthy programs give right results.

A program is accused if its output has a line that matches --alarm. A defect is found if its program is accused, and
its lines are named if the report has, for the block's allocation and its free, each where the program marks one, the
file and line of one of the marks; the line of the use is told apart, for it can be known only where the sanitizer sees
launches. The report is the output, or, where COMMAND has {report}, the lines of JSON in the file that stands for it:
there each stack must be in its place (block.allocated, block.freed; any other for the use).

Exit status 0: all found with their lines, nobody accused, all programs run as they should; 1: not.
"""

import argparse
import concurrent.futures
import json
import os
import random
import re
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROLES = ("alloc", "free", "use")
REQUIRED = ("alloc", "free")
LONGEST = ("healthy_compile", "healthy_resnet")  # these start first
ALARM = r"^==gmd sanitizer== \d+:"


class Program:
    def __init__(self, path):
        self.path, self.name = os.path.abspath(path), os.path.basename(path)[:-3]
        self.kind = self.name.split("_")[0]
        self.marks = {}  # by role: the lines that may be named
        with open(path, encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                if found := re.search(r"# guilty: ([\w, ]+)", line):
                    for role in found.group(1).split(","):
                        self.marks.setdefault(role.strip(), []).append(number)

    @property
    def is_healthy(self):
        return self.kind == "healthy"

    def twins(self):
        return [("healthy", [])] if self.is_healthy else [("defect", []), ("mended", ["--mended"])]


class Run:
    """One process: a program or its twin, by one command."""

    def __init__(self, program, twin, arguments, label, command):
        self.program, self.twin, self.label = program, twin, label
        self.command = [*command, program.path, *arguments]
        self.output, self.status, self.seconds, self.stacks = "", None, 0.0, None

    def start(self, folder, timeout, is_again):
        """Runs it; is_again: reads what an earlier judgement left of it in the folder."""
        stem = os.path.join(folder, f"{self.label}-{self.program.name}-{self.twin}")
        report = stem + ".jsonl"
        if any("{report}" in word for word in self.command):
            self.command = [word.replace("{report}", report) for word in self.command]
            self.stacks = {role: set() for role in ROLES}
        if is_again:
            self.read(stem + ".log", stem + ".run.json")
        else:
            self.run(stem + ".log", stem + ".run.json", folder, timeout)
        if self.stacks is not None and os.path.exists(report):
            with open(report, encoding="utf-8") as findings:
                for line in findings:
                    collect(json.loads(line), (), self.stacks)

    def read(self, log_path, run_path):
        if os.path.exists(run_path):
            with open(run_path, encoding="utf-8") as kept:
                self.status, self.seconds = json.load(kept)
            with open(log_path, encoding="utf-8", errors="replace") as log:
                self.output = log.read()
        else:
            self.status = "not run"

    def run(self, log_path, run_path, folder, timeout):
        begin = time.monotonic()
        with open(log_path, "w+b") as log:
            try:
                self.status = subprocess.run(self.command, stdout=log, stderr=subprocess.STDOUT, cwd=folder,
                                             timeout=timeout, check=False).returncode
            except subprocess.TimeoutExpired:
                self.status = "timeout"
            log.seek(0)
            self.output = log.read().decode(errors="replace")
        self.seconds = time.monotonic() - begin
        with open(run_path, "w", encoding="utf-8") as kept:
            json.dump([self.status, self.seconds], kept)

    def is_right(self):
        """True, False, or None where the program told nothing: it did not come to its end."""
        told = re.findall(r"^RESULT (\{.*\})$", self.output, re.M)
        return json.loads(told[-1])["right"] if told else None

    def is_accused(self, alarm):
        return bool(re.search(alarm, self.output, re.M))

    def is_named(self, role):
        name, lines = os.path.basename(self.program.path), self.program.marks.get(role, [])
        if self.stacks is not None:
            return any((name, line) in self.stacks[role] for line in lines)
        numbers = "|".join(map(str, lines))
        return bool(lines and re.search(rf"{re.escape(name)}(\"?, line |:)({numbers})\b", self.output))

    def roles(self):
        return [role for role in ROLES if role in self.program.marks]

    def misses(self):
        return [role for role in REQUIRED if role in self.program.marks and not self.is_named(role)]


def collect(value, keys, stacks):
    """Adds the (file, line) of each frame in a finding to the stacks of its role."""
    if isinstance(value, dict):
        for key, inner in value.items():
            collect(inner, (*keys, key), stacks)
    elif isinstance(value, list):
        for inner in value:
            collect(inner, keys, stacks)
    elif isinstance(value, str) and (found := re.match(r"(.*/)?([^/:]+\.py):(\d+)\b", value)):
        role = {("block", "allocated"): "alloc", ("block", "freed"): "free"}.get(keys[:2], "use")
        stacks[role].add((found.group(2), int(found.group(3))))


def halves(programs, seed):
    """The names of the open and of the held half of the defects; reported ones and healthy ones are open."""
    names = sorted(p.name for p in programs if p.kind not in ("healthy", "reported"))
    random.Random(seed).shuffle(names)
    held = set(names[: len(names) // 2])
    return {p.name for p in programs} - held, held


def run_all(programs, commands, options, folder):
    runs = [Run(program, twin, arguments, label, command) for label, command in commands
            for program in programs for twin, arguments in program.twins()]
    runs.sort(key=lambda run: run.program.name not in LONGEST)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda run: run.start(folder, options.timeout, options.again), runs))
    return {(run.label, run.program.name, run.twin): run for run in runs}


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def judge_plain(programs, runs):
    """The table of the programs alone, and what is wrong with them."""
    rows, wrong = [], []
    for program in programs:
        results = {twin: runs["plain", program.name, twin] for twin, _ in program.twins()}
        for twin, run in results.items():
            if run.status != 0 or run.is_right() is None or (twin != "defect" and not run.is_right()):
                wrong.append(f"{program.name} ({twin}): status {run.status}, right: {run.is_right()}")
        said = {True: "right", False: "wrong", None: "did not end"}
        rows.append([program.name, said[results["defect"].is_right()] if "defect" in results else "",
                     said[results.get("mended", results.get("healthy")).is_right()],
                     f"{max(run.seconds for run in results.values()):.0f}"])
    return table(["program", "result with the defect", "result without", "s"], rows), wrong


def judge_verdict(run, alarm):
    """A cell of the table, and whether the defect was found with its lines."""
    if not run.is_accused(alarm):
        return "missed" if run.status == 0 else f"missed (status {run.status})", False
    misses = run.misses()
    named = ", ".join(role for role in run.roles() if run.is_named(role))
    return f"found; {named or 'no line'}" + (f"; not {', '.join(misses)}" if misses else ""), not misses


def judge_sanitizers(programs, runs, labels, alarm):
    rows, wrong = [], []
    found = lined = accused = defects = clean = 0
    for program in programs:
        row, is_found, is_lined, is_accused = [program.name], False, False, False
        for label in labels:
            if not program.is_healthy:
                run = runs[label, program.name, "defect"]
                cell, with_lines = judge_verdict(run, alarm)
                is_found, is_lined = is_found or run.is_accused(alarm), is_lined or with_lines
                row.append(cell)
            else:
                row.append("")
            innocent = runs[label, program.name, "healthy" if program.is_healthy else "mended"]
            row.append("accused" if innocent.is_accused(alarm) else "right" if innocent.is_right()
                       else f"broken (status {innocent.status})")
            is_accused = is_accused or row[-1] != "right"
        defects, clean = defects + (not program.is_healthy), clean + 1
        found, lined, accused = found + is_found, lined + is_lined, accused + is_accused
        if is_accused or not (program.is_healthy or is_lined):
            wrong.append(f"{program.name}: " + "; ".join(cell for cell in row[1:] if cell))
        rows.append(row)
    header = ["program"] + [text for label in labels for text in (f"{label}: defect", f"{label}: innocent")]
    summary = (f"{found} of {defects} defects found, {lined} with the lines of allocation and free; "
               f"{accused} of {clean} mended or healthy programs accused or broken")
    return table(header, rows), summary, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", default=os.path.join(HERE, "programs"))
    parser.add_argument("--out", default="jury", help="folder for the programs' outputs")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=22, help="divides the defects into an open and a held half")
    parser.add_argument("--half", choices=("open", "held", "all"), default="all")
    parser.add_argument("--only", default="", help="regular expression: programs' names")
    parser.add_argument("--again", action="store_true", help="run nothing, judge what is in the folder of --out")
    parser.add_argument("--timeout", type=float, default=150, help="seconds, for each process")
    parser.add_argument("--no-plain", action="store_true", help="not without a sanitizer")
    parser.add_argument("--sanitizer", action="append", default=[], metavar="LABEL=COMMAND")
    parser.add_argument("--alarm", default=ALARM, help="regular expression of a line that accuses")
    options = parser.parse_args()
    programs = [Program(os.path.join(options.programs, name)) for name in sorted(os.listdir(options.programs))
                if name.endswith(".py") and name != "case.py"]
    parts = dict(zip(("open", "held"), halves(programs, options.seed)))
    print(f"seed {options.seed}, half {options.half}\n")
    programs = [p for p in programs if (options.half == "all" or p.name in parts[options.half])
                and re.search(options.only, p.name)]
    folder = os.path.abspath(options.out)
    os.makedirs(folder, exist_ok=True)
    named = [text.partition("=") for text in options.sanitizer]
    commands = [] if options.no_plain else [("plain", [sys.executable])]
    commands += [(label, shlex.split(command)) for label, _, command in named]
    runs = run_all(programs, commands, options, folder)
    wrong = []
    if not options.no_plain:
        text, wrong = judge_plain(programs, runs)
        print(text)
    if named:
        text, summary, missed = judge_sanitizers(programs, runs, [label for label, _, _ in named], options.alarm)
        print(text + "\n" + summary + "\n")
        wrong += missed
    for line in wrong:
        print("not as it should be: " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
