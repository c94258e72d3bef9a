"""Interrupts gmd at random moments and checks that nothing is lost, half written or left behind.

    interrupt.py GMD TESTS TRACES HISTORY [--count N] [--seed S] [--first N]

Each of the N trials draws a command, a signal, whom it is sent to (gmd or a process of its own) and
when, all from the seed; `--first` goes on from a trial of that number, to repeat one that failed.
TESTS is the folder of the test libraries, TRACES tests/data/traces, HISTORY a recorded snapshot.

What must hold of every trial:
- the exit status is one that docs/command-line.md names for what happened;
- every file at a final name is whole: it parses;
- no temporary file is left, unless gmd itself was killed (SIGKILL);
- no process of it is left, whoever was killed;
- the store can be read and added to afterwards.
"""
import argparse
import collections
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ENDING = ("INT", "TERM", "HUP")  # gmd ends in good order
TWICE = "INT twice"
SIGNALS = ENDING + (TWICE, "KILL", "STOP")
CHILD_SIGNALS = ("INT", "TERM", "HUP", "KILL", "STOP")
PATIENCE = 240  # seconds; a trial takes two or three, on a busy machine some ten times that
REQUEST_SECONDS = 2  # --timeout: how long a stopped process of the allocator is waited for

PASS, FINDING, USAGE, FAILURE = 0, 1, 2, 3


class Trial:
    """One command that is interrupted, in a folder of its own."""

    def __init__(self, options, number, store):
        self.options, self.number, self.store = options, number, store
        self.random = random.Random(f"{options.seed}/{number}")
        self.mark = f"gmd-trial-{os.getpid()}-{number}"
        self.problems = []
        self.kind = self.random.choice(sorted(COMMANDS))
        self.command = COMMANDS[self.kind](self) + ["--timeout", str(REQUEST_SECONDS)]
        defects = ("leak",) if self.kind == "minimize" else ("", "", "leak", "overlap")
        self.plant = self.random.choice(defects)
        self.delay = 10 ** self.random.uniform(-2.3, 0.2)  # 5 ms to 1.6 s; most commands begin fast
        self.to_child = self.random.random() < 0.4
        self.signal = self.random.choice(CHILD_SIGNALS if self.to_child else SIGNALS)

    def describe(self):
        whom = "a child" if self.to_child else "gmd"
        return f"trial {self.number}: {self.kind}, {self.signal} to {whom} after {self.delay:.2f} s"

    def problem(self, text):
        self.problems.append(text)

    # --- the run ------------------------------------------------------------------------------

    def run(self):
        self.folder = tempfile.mkdtemp(prefix="gmd-trial-")
        environment = dict(os.environ, GMD_TRIAL=self.mark, GMD_PLANT=self.plant, TMPDIR=self.folder)
        with open(os.path.join(self.folder, "said"), "wb") as said:
            self.process = subprocess.Popen([self.options.gmd] + self.command, cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                            env=environment, start_new_session=True)
            time.sleep(self.delay)
            self.ended_before = self.process.poll() is not None
            self.interrupt()
            self.status = self.wait()
        self.check()
        shutil.rmtree(self.folder)

    def interrupt(self):
        target = self.process.pid
        if self.to_child:
            children = [pid for pid in self.processes() if pid != self.process.pid]
            target = self.random.choice(children) if children else None
        if target is None or self.ended_before:
            self.signal = None
            return
        if self.signal == TWICE:
            self.send(target, "INT")
            time.sleep(0.4)
            self.send(target, "INT")
        elif self.signal == "STOP":
            self.send(target, "STOP")
            time.sleep(self.random.uniform(0, 1))
            self.signal = self.random.choice(("CONT", "KILL"))
            self.send(target, "CONT")
            if self.signal == "KILL":
                self.send(target, "KILL")
        else:
            self.send(target, self.signal)

    @staticmethod
    def send(target, name):
        try:
            os.kill(target, getattr(signal, "SIG" + name))
        except ProcessLookupError:
            pass

    def wait(self):
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.problem(f"did not end within {PATIENCE} s")
            for pid in self.processes():
                self.send(pid, "KILL")
            return self.process.wait()

    def processes(self):
        """All processes of the trial: they have its mark in their environment."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as environment:
                    is_own = f"GMD_TRIAL={self.mark}".encode() in environment.read().split(b"\0")
                with open(f"/proc/{name}/stat", "rb") as stat:
                    is_alive = stat.read().rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")
            except (OSError, IndexError):
                continue
            if is_own and is_alive:
                found.append(int(name))
        return sorted(found)

    # --- what must hold -----------------------------------------------------------------------

    def check(self):
        self.check_status()
        self.check_processes()
        for folder, _, names in os.walk(self.folder):
            for name in names:
                self.check_file(os.path.join(folder, name))
        self.check_store()

    def allowed(self):
        """The exit statuses that the documentation names; negative: died of the signal."""
        own = {PASS, FINDING}
        if self.signal is None or self.signal == "CONT":
            return own
        if self.to_child:  # a crash, in the allocator's name; or gmd's own process is gone. The case
            # that minimize begins with may show that crash instead of its defect.
            return own | ({USAGE} if self.kind == "minimize" else set())
        if self.signal == "KILL":
            return own | {-signal.SIGKILL}
        if self.signal == TWICE:
            return own | {FAILURE, 130, -signal.SIGINT}
        return own | {FAILURE, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP}

    def check_status(self):
        allowed = self.allowed()
        if self.status not in allowed:
            self.problem(f"exit status {self.status}, expected one of {sorted(allowed)}")
        if self.signal in ENDING + (TWICE,) and not self.to_child and self.status < 0:
            # Before the command line is read: there is nothing to be told yet.
            if self.delay > 0.2:
                self.problem(f"died of the signal after {self.delay:.2f} s")

    def check_processes(self):
        end = time.monotonic() + 5
        while self.processes() and time.monotonic() < end:
            time.sleep(0.02)
        for pid in self.processes():
            self.problem(f"process {pid} is left")
            self.send(pid, "KILL")

    def check_file(self, path):
        name = os.path.basename(path)
        was_killed = self.signal == "KILL"
        if ".part-" in name or ".probe-" in name or name.startswith("."):
            if not was_killed:
                self.problem(f"{name} is left")
            return
        try:
            PARSERS.get(os.path.splitext(name)[1], lambda *_: None)(self, path)
        except Exception as error:  # whatever a parser says
            self.problem(f"{name} is not whole: {error}")

    def parse_json(self, path):
        with open(path, encoding="utf-8") as text:
            result = json.load(text)
        if self.status == FAILURE and not self.to_child and result["verdict"] != "interrupted":
            self.problem(f"verdict {result['verdict']} with exit status {self.status}")
        if result["verdict"] == "interrupted" and self.status not in (FAILURE, 130):
            self.problem(f"exit status {self.status} of an interrupted run")

    def parse_xml(self, path):
        xml.etree.ElementTree.parse(path)

    def parse_case(self, path):
        done = subprocess.run([self.options.gmd, "report", path, "-o", path + ".check.c"],
                              capture_output=True, text=True)
        if done.returncode not in (0, 2) or "expected" in done.stderr and "gmd:" in done.stderr:
            raise ValueError(done.stderr)
        with open(path, encoding="utf-8") as text:
            if not text.readline().startswith("gmd-trace 1"):
                raise ValueError("no header")

    def parse_openmetrics(self, path):
        with open(path, encoding="utf-8") as text:
            if not text.read().endswith("# EOF\n"):
                raise ValueError("no # EOF at its end")

    def check_store(self):
        if not os.path.exists(self.store):
            return
        done = subprocess.run([self.options.gmd, "report", "--history", self.store],
                              capture_output=True, text=True)
        if done.returncode:
            self.problem(f"the store cannot be read: {done.stderr.strip()}")
        database = sqlite3.connect(self.store)
        found = database.execute("PRAGMA integrity_check").fetchone()[0]
        database.close()
        if found != "ok":
            self.problem(f"the store is damaged: {found}")

    # --- commands -----------------------------------------------------------------------------

    def library(self):
        return os.path.join(self.options.tests, "libplanted.so")

    def reports(self):
        return ["--json", "r.json", "--junit", "r.xml", "--openmetrics", "r.om", "--sarif", "r.sarif",
                "--store", self.store]

    def run_scenarios(self):
        return ["run", "all", "iterations=10", "--allocator", self.library()] + self.reports()

    def run_sweep(self):
        return ["run", os.path.join(self.options.traces, "basic.gmd"), "--sweep",
                "--allocator", self.library()] + self.reports()

    def replay(self):
        how = self.random.choice(("--check", "--smallest-limit"))
        return ["replay", self.options.history, how] + self.reports()

    def fuzz(self):
        return ["fuzz", "--time", "2", "--seed", str(self.number), "--allocator", self.library(),
                "--out", "cases", "--corpus", "corpus"] + self.reports()

    def fuzz_jobs(self):
        return self.fuzz() + ["--jobs", "3"]

    def exhaustive(self):
        return ["fuzz", "--exhaustive", "4", "--time", "2", "--allocator", self.library(),
                "--out", "cases"] + self.reports()

    def gate(self):
        return ["gate", "--quick", "--only", self.random.choice(("cases", "scenarios", "random")),
                "--allocator", self.library(), "--out", "cases"] + self.reports()

    def minimize(self):
        self.plant_case()
        return ["minimize", self.case, "--allocator", self.library(), "-o", "min.gmd"]

    def plant_case(self):
        """A case of many requests, of which two show the defect."""
        self.case = os.path.join(self.options.work, "long.gmd")
        if not os.path.exists(self.case):
            with open(self.case, "w", encoding="utf-8") as out:
                out.write("gmd-trace 1\n")
                for i in range(400):
                    out.write(f"alloc b{i} {512 * (i % 40 + 1)} s{i % 3}\n")
                for i in range(400):
                    out.write(f"free b{i}\n")


COMMANDS = {"run": Trial.run_scenarios, "sweep": Trial.run_sweep, "replay": Trial.replay,
            "fuzz": Trial.fuzz, "fuzz --jobs": Trial.fuzz_jobs, "gate": Trial.gate,
            "exhaustive": Trial.exhaustive, "minimize": Trial.minimize}
PARSERS = {".json": Trial.parse_json, ".sarif": lambda t, p: json.load(open(p, encoding="utf-8")),
           ".xml": Trial.parse_xml, ".om": Trial.parse_openmetrics, ".gmd": Trial.parse_case}


def main():
    parser = argparse.ArgumentParser()
    for name in ("gmd", "tests", "traces", "history"):
        parser.add_argument(name)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    options.work = tempfile.mkdtemp(prefix="gmd-trials-")
    store = os.path.join(options.work, "runs.db")
    statuses = collections.Counter()
    failed = 0
    for number in range(options.first, options.first + options.count):
        trial = Trial(options, number, store)
        what = trial.describe()
        trial.run()
        statuses[("child " if trial.to_child else "") + str(trial.signal), trial.status] += 1
        for text in trial.problems:
            print(f"{what}: {text}", flush=True)
        failed += bool(trial.problems)
    shutil.rmtree(options.work)
    for (name, status), times in sorted(statuses.items()):
        print(f"{name}: exit status {status}: {times}")
    print(f"{options.count} interruptions, seed {options.seed}: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
