#!/usr/bin/env python3
"""PyTorch's own tests of CUDA memory, with its allocator and with gmd's beside it.

    torch_own_tests.py --pytorch-tests DIR [--library PATH] [--left FILE] [--out FOLDER] [TEST...]

DIR is the root of PyTorch's source tree (it has test/test_cuda.py); torch.testing._internal is the installed
PyTorch's. Each test runs with either allocator: in a process that others ran in before it, and if it fails
there, first in a process of its own, which then counts. A test that crashes or hangs costs its process only.

A TEST is a part of a name (test_cuda.py::TestCuda::test_graph). FILE has the tests that pass with PyTorch's
allocator only, each with its reason: "NAME: reason".

Exit status 0: what passes with PyTorch's passes with gmd's, but for those in FILE; 1: not so, or one of FILE passes
by now; 77: there is no PyTorch here, or no GPU.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import side_by_side

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ("test_cuda.py", "inductor/test_cudagraph_trees.py", "test_cuda_trace.py", "test_cuda_sanitizer.py",
         "test_cuda_multigpu.py", "test_cuda_expandable_segments.py")
ALLOCATORS = ("native", "gmd")


# --- processes --------------------------------------------------------------------------------------------------


class _Seen:
    """What a process has told of its tests."""

    def __init__(self):
        self.begun, self.ended, self.none_starts = [], {}, None

    def note(self, message):
        if "began" in message:
            self.begun.append(message["began"])
        elif "ended" in message:
            self.ended[message["ended"]] = message
        elif "none_starts" in message:
            self.none_starts = (message["none_starts"], message["said"])


class Server:
    """One with an allocator; see own_tests_server.py."""

    def __init__(self, allocator, options, folder):
        self.path = os.path.join(folder, allocator)
        self.process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "own_tests_server.py"), self.path],
                                        stdin=subprocess.PIPE, env=environment(allocator, options))

    def wait(self):
        while not os.path.exists(self.path):
            if self.process.poll() is not None:
                raise SystemExit("the server of PyTorch's tests has ended")
            time.sleep(0.1)

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(self.path)
                return connection
            except (BlockingIOError, ConnectionRefusedError):  # many at the same time
                time.sleep(0.05)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def environment(allocator, options):
    changed = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1", PYTHONUNBUFFERED="1")
    if allocator == "gmd":
        paths = [os.path.join(HERE, "installed_first"), options.helper]
        changed["PYTHONPATH"] = os.pathsep.join(paths + [p for p in [os.environ.get("PYTHONPATH")] if p])
        if options.library:
            changed["GMD_ALLOCATOR"] = os.path.abspath(options.library)
    return changed


class Runner:
    def __init__(self, options, servers):
        self.options, self.servers, self.began = options, servers, time.monotonic()
        self.lock = threading.Lock()
        self.outcomes = collections.defaultdict(dict)  # by test, by allocator
        self.loading = []  # seconds from the fork until a file's tests can begin
        self.log = open(os.path.join(options.out, "outcomes.jsonl"), "a", encoding="utf-8")

    def keep(self, file, name, allocator, outcome, said="", seconds=0.0):
        with self.lock:
            self.outcomes[f"{file}::{name}"][allocator] = {"outcome": outcome, "said": said, "seconds": seconds}
            self.log.write(json.dumps({"test": f"{file}::{name}", "allocator": allocator, "outcome": outcome,
                                       "said": said, "seconds": seconds}) + "\n")
            self.log.flush()

    def process(self, file, allocator, wanted, on_line):
        """Runs one process; on_line(message) until its end. Gives what it wrote, and why it ended ("": as it should)."""
        with tempfile.TemporaryDirectory(prefix="torch-own-", ignore_cleanup_errors=True) as folder:
            output = os.path.join(folder, "output")
            request = {"root": self.options.pytorch_tests, "file": file, "names": wanted, "folder": folder,
                       "output": output}
            with self.servers[allocator].connect() as connection:
                connection.sendall(json.dumps(request).encode() + b"\n")
                why = self.listen(connection, on_line)
            with open(output, "a+b") as written:
                written.seek(max(0, written.seek(0, os.SEEK_END) - 3000))
                return written.read().decode(errors="replace"), why

    def listen(self, connection, on_line):
        data, pid, limit = b"", None, self.options.timeout + 60  # the file's own imports may take their time
        why = ""
        while not why:
            if not select.select([connection], [], [], limit)[0]:
                why = f"no end after {limit} s"
                break
            piece = connection.recv(65536)
            if not piece:
                why = "the process ended"
            data += piece
            *lines, data = data.split(b"\n")
            for message in map(json.loads, lines):
                pid = message.get("pid", pid)
                on_line(message)
                if message.get("loaded"):
                    self.loading.append(message["at"])
                limit = self.options.timeout if "began" in message or "ended" in message else limit
                if message.get("done"):
                    _end_group(pid)
                    return ""
        _end_group(pid)
        return why

    def names(self, file):
        found = []
        output, why = self.process(file, "native", None, lambda message: found.extend(message.get("names", ())))
        if why:
            self.keep(file, "(its list of tests)", "gmd", "crash", f"{output}\n{why}")
        return found

    def chunk(self, file, allocator, names):
        """Each of the tests gets its outcome."""
        left = list(names)
        while left:
            seen = _Seen()
            output, why = self.process(file, allocator, left, seen.note)
            if not seen.begun:
                outcome, said = seen.none_starts or ("crash", f"{why or 'there is no such test'}\n{output}")
                for name in left:
                    self.keep(file, name, allocator, outcome, said)
                return
            again = []
            for name in seen.begun:
                end = seen.ended.get(name, {"outcome": "crash", "said": f"{why}\n{output}", "seconds": 0})
                if end["outcome"] in ("fail", "crash") and name != seen.begun[0]:
                    again.append(name)
                else:
                    self.keep(file, name, allocator, end["outcome"], end["said"], end["seconds"])
            left = again + [name for name in left if name not in seen.begun]

    def run(self):
        options = self.options
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            files = [file for file in options.file or FILES if os.path.exists(os.path.join(options.pytorch_tests, "test", file))]
            listed = dict(zip(files, pool.map(self.names, files)))
            wanted = {file: [n for n in listed[file] if _is_wanted(f"{file}::{n}", options.test)] for file in files}
            self.tell(f"{sum(map(len, wanted.values()))} tests are listed")
            self.run_all(pool, wanted, options.allocators)
            if options.quick:
                self.tell("all have run with gmd's allocator")
                self.run_all(pool, {file: [n for n in names if not self.has_passed(file, n)]
                                    for file, names in wanted.items()}, ["native"])
        self.tell("all have run")
        self.settle()
        self.tell("those that failed have run again")

    def run_all(self, pool, names_of, allocators):
        chunk = self.options.chunk
        work = [(file, allocator, names[at:at + chunk]) for file, names in names_of.items()
                for at in range(0, len(names), chunk) for allocator in allocators]
        list(pool.map(lambda each: self.chunk(*each), work))

    def has_passed(self, file, name):
        return self.outcomes[f"{file}::{name}"].get("gmd", {}).get("outcome") == "pass"

    def tell(self, what):
        loading = f" ({len(self.loading)} processes, {max(self.loading):.0f} s at most to load)" if self.loading else ""
        print(f"{time.monotonic() - self.began:.0f} s: {what}{loading}", file=sys.stderr, flush=True)

    def settle(self):
        """Tests share the device's memory with others beside them: what failed runs again with few beside it."""
        again = [(name, allocator) for name, outcomes in self.outcomes.items()
                 for allocator in outcomes if self.is_worth_it(outcomes, allocator)]
        with concurrent.futures.ThreadPoolExecutor(min(self.options.jobs, 3)) as pool:
            list(pool.map(lambda each: self.chunk(each[0].partition("::")[0], each[1],
                                                  [each[0].partition("::")[2]]), again))

    def is_worth_it(self, outcomes, allocator):
        mine = outcomes[allocator]
        others = {by["outcome"] for name, by in outcomes.items() if name != allocator}
        is_kept = allocator == "native" and self.options.natives
        return mine["outcome"] in ("fail", "crash") and not is_kept and (
            others == {"pass"} or "out of memory" in mine["said"].lower())


def _end_group(pid):
    try:
        if pid:
            os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _is_wanted(name, parts):
    return not parts or any(part in name for part in parts)


# --- what is told -----------------------------------------------------------------------------------------------


def read_left(path):
    """{test: reason} of a file with lines "NAME: reason"; # begins a comment."""
    left = {}
    if path:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                line = line.split("#", 1)[0].strip()
                if line:
                    name, colon, reason = line.partition(": ")
                    if not colon or not reason.strip():
                        raise SystemExit(f"{path}:{number}: a test, a colon and its reason are expected")
                    left[name] = reason.strip()
    return left


def table(outcomes):
    rows = ["| file | tests | pass with PyTorch's | of these with gmd's |", "| :-- | --: | --: | --: |"]
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for name, by in outcomes.items():
        count = counts[name.partition("::")[0]]
        is_native, is_ours = (by.get(a, {}).get("outcome") == "pass" for a in ALLOCATORS)
        for i, counted in enumerate((True, is_native, is_native and is_ours)):
            count[i] += counted
    for file in FILES:
        if file in counts:
            rows.append("| `{}` | {} | {} | {} |".format(file, *counts[file]))
    rows.append("| all | {} | {} | {} |".format(*(sum(c) for c in zip(*counts.values())) if counts else (0, 0, 0)))
    return rows


def judge(outcomes, left):
    """Lines on what is not as it should be."""
    found = []
    for name, by in sorted(outcomes.items()):
        native, ours = (by.get(a, {}).get("outcome") for a in ALLOCATORS)
        if native in ("pass", None) and ours != "pass" and name not in left:
            said = by.get("gmd", {}).get("said", "").strip().splitlines()
            found.append(f"FAIL {name}: {ours}: {said[-1][:200] if said else ''}")
        elif name in left and native == "pass" and ours == "pass":
            found.append(f"FAIL {name}: it passes, and is in the list of those that do not")
    return found


def report(runner, options, left):
    with open(os.path.join(options.out, "outcomes.json"), "w", encoding="utf-8") as file:
        json.dump(runner.outcomes, file, indent=1, sort_keys=True)
    rows = table(runner.outcomes)
    known = [f"- `{name}`: {reason}" for name, reason in left.items()
             if runner.outcomes.get(name, {}).get("native", {}).get("outcome") == "pass"]
    with open(os.path.join(options.out, "summary.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(rows + ["", "Left, and why:", ""] + known) + "\n")
    found = judge(runner.outcomes, left)
    print("\n".join(rows + found))
    return 1 if found else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("test", nargs="*", help="only tests with this in their names")
    parser.add_argument("--pytorch-tests", required=True, help="root of PyTorch's source tree")
    parser.add_argument("--file", action="append", choices=FILES, help="only this file; may be given again")
    parser.add_argument("--library", help="libgmd_allocator.so or its folder; else as gmd_torch.install finds it")
    parser.add_argument("--helper", default=os.path.join(HERE, "..", "..", "integrations"), help=argparse.SUPPRESS)
    parser.add_argument("--left", help="the file of tests that are known not to pass")
    parser.add_argument("--out", default=".", help="folder for outcomes.json and summary.md")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many processes at the same time")
    parser.add_argument("--chunk", type=int, default=8, help="so many tests begin in one process; 1: each is alone")
    parser.add_argument("--timeout", type=float, default=90, help="seconds that a test may take")
    parser.add_argument("--quick", action="store_true",
                        help="with PyTorch's allocator only what does not pass with gmd's")
    parser.add_argument("--natives", help="outcomes.json of an earlier run: PyTorch's allocator is not run again")
    return parser.parse_args()


def main():
    options = parse()
    options.pytorch_tests = os.path.abspath(options.pytorch_tests)
    if not side_by_side.has_gpu():
        print("skipped, this python3 has no PyTorch with a GPU")
        return 77
    left = read_left(options.left)
    os.makedirs(options.out, exist_ok=True)
    options.helper = os.path.abspath(options.helper)
    options.allocators = ALLOCATORS
    with tempfile.TemporaryDirectory(prefix="torch-own-") as folder:
        servers = {allocator: Server(allocator, options, folder) for allocator in ALLOCATORS}
        try:
            return run(options, servers, left)
        finally:
            for server in servers.values():
                server.end()


def run(options, servers, left):
    runner = Runner(options, servers)
    for server in servers.values():
        server.wait()
    runner.tell("PyTorch is imported")
    if options.quick:
        options.allocators = ("gmd",)
    if options.natives:
        options.allocators = ("gmd",)
        with open(options.natives, encoding="utf-8") as file:
            for name, by in json.load(file).items():
                if _is_wanted(name, options.test) and "native" in by:
                    runner.outcomes[name]["native"] = by["native"]
    runner.run()
    return report(runner, options, left)


if __name__ == "__main__":
    sys.exit(main())
