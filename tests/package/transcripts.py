#!/usr/bin/env python3
"""transcripts.py PREFIX PAGE... [--write] [--before PREFIX] [--clone] - what pages of the manual show of sessions is what the
commands print.

A session is a block fenced with ```text whose lines begin with "$ ": these are run, each by a shell, in a folder of the
page's own that is empty but for the files that <!-- file: SOURCE as NAME --> names; the installation PREFIX is ~/gmd.
What they print is compared with the lines below them: white space, times, rates and numbers of requests may differ.
Sentences are wrapped as on a terminal of 80 columns. --write puts it into the page instead, with the time that it took:
a line that begins with "Measured " says how long it was from the first command to <!-- first answer -->, and to the end.

"before$ " in place of "$ ": a command of the gmd that --before names, run with --write only.
"clone$ ": a command on the way from a clone to the installation, run with --write --clone only; what it took is said
below it. $GMD_SOURCES is the repository that is cloned, and no compiler's cache helps.
"""
import datetime
import difflib
import fcntl
import os
import pty
import re
import resource
import secrets
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COLUMNS = 80
LIMIT_S = 240
CLONE_LIMIT_S = 3600
NOW, BEFORE, CLONE = PROMPTS = ("$ ", "before$ ", "clone$ ")


# --- commands -------------------------------------------------------------------------------------


def drain(descriptor):
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # the other side is closed
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


def run_on_terminal(command, folder, environment, limit_s):
    """What it prints on a terminal, errors last, and its exit status."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=slave, stderr=errors) as process:
            os.close(slave)
            shown = drain(master)
            status = process.wait(limit_s)
        os.close(master)
        errors.seek(0)
        shown += errors.read()
    return shown.decode("utf-8", "replace").replace("\r\n", "\n"), status


class Session:
    """A home with the installation as ~/gmd, and the folder ~/work in it."""

    def __init__(self, prefix, before):
        name = "gmd" + secrets.token_hex(8)  # without "_", which Markdown escapes
        self.home = os.path.join(os.path.realpath(tempfile.gettempdir()), name)
        self.work = os.path.join(self.home, "work")
        os.makedirs(self.work, mode=0o700)
        os.symlink(os.path.abspath(prefix), os.path.join(self.home, "gmd"))
        self.prefix, self.before = os.path.abspath(prefix), before and os.path.abspath(before)
        self.seconds = 0.0

    def environment(self, prefix):
        of_others = ("GMD_", "CMAKE_PREFIX", "PKG_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(of_others)}
        kept.pop("COLUMNS", None)
        return {**kept, "HOME": self.home, "PATH": f"{prefix}/bin:{os.environ['PATH']}", "NO_COLOR": "1",
                "LC_ALL": "C.UTF-8", "TERM": "xterm"}

    def environment_of_clone(self):
        kept = {name: value for name, value in self.environment(self.prefix).items()
                if not name.endswith("_COMPILER_LAUNCHER")}
        return {**kept, "CCACHE_DISABLE": "1", "GMD_SOURCES": SOURCES}

    def run_from_clone(self, command):
        """What it printed, and what it took."""
        before, start = processor_seconds(), time.monotonic()
        shown, status = run_on_terminal(command, self.home, self.environment_of_clone(), CLONE_LIMIT_S)
        took = (f"[{time.monotonic() - start:.0f} s, of the processor {processor_seconds() - before:.0f} s"
                + (f", exit status {status}]" if status else "]"))
        return self.comparable_lines(shown) + [took]

    def run(self, prompt, command):
        prefix = os.path.join(self.home, "gmd") if prompt == NOW else self.before
        start = time.monotonic()
        shown, status = run_on_terminal(command, self.work, self.environment(prefix), LIMIT_S)
        self.seconds += time.monotonic() - start
        return self.comparable_lines(shown) + ([f"[exit status {status}]"] if status else [])

    def comparable_lines(self, shown):
        for folder in (self.prefix, self.before or self.prefix):
            shown = shown.replace(folder + "/", "~/gmd/")
        shown = re.sub(r"\x1b\[[0-9;]*m", "", shown.replace(self.home, "~")).expandtabs()
        shown = re.sub(r"[^\n]*\r", "", re.sub(r"\x1b\[K", "", shown))  # lines that were written over
        return [line.rstrip() for line in shown.rstrip().split("\n")] if shown.strip() else []


# --- pages ----------------------------------------------------------------------------------------


# Where a machine is so slow that a command takes a minute, it says each minute how far it is.
PROGRESS = re.compile(r"\d+ s, \d+ found, .*")
PARTS = r"(first|cases|scenarios|faults|random|exhaustive|rounds|memory|speed)"


def comparable(lines):
    """Without what differs from run to run, and without the numbers of requests, which change with any scenario."""
    of_this_ctest = ("Internal ctest changing", "Test project")
    kept = [line for line in lines if not line.startswith(of_this_ctest) and not PROGRESS.fullmatch(line)]
    text = " ".join(" ".join(kept).split())
    text = re.sub(r"\.{3,}", "...", text)
    text = re.sub(r"\(?[\d,.]+ (requests|inputs)/s\)?", "RATE", text)
    text = re.sub(r"\b[\d.]+ ?(ms|seconds|second|sec|s|min)\b", "TIME", text)
    text = re.sub(r"\b[\d,]+ requests in", "N requests in", text)
    # The gate's table: part, verdict, items, runs, requests, findings, skipped, seconds; in Markdown without the items.
    text = re.sub(rf"\b{PARTS} (pass|fail|not run) (\d+) [\d,]+ [\d,]+ (\d+) (\d+) [\d.]+", r"\1 \2 \3 \4 \5", text)
    return re.sub(rf"\| {PARTS} \| ([^|]*) \| \d+ \| \d+ \| (\d+) \| (\d+) \| [\d.]+ \|", r"\1 \2 \3 \4", text)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return found[1] if found else "unknown processor"


def measured(first, all_s):
    """How long it took, and where; folded as the manual is."""
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return (f"Measured on {today}, {os.cpu_count()} cores of {processor()}:\n"
            f"the first answer is there after {first:.2f} s, and all commands take {all_s:.2f} s.").split("\n")


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def prompt_of(line):
    return next((prompt for prompt in PROMPTS if line.startswith(prompt)), None)


class Page:
    def __init__(self, path, session, writes, clones):
        self.path, self.session, self.writes, self.clones = path, session, writes, clones
        self.first_answer = None
        self.wrong, self.out = [], []

    def note_comment(self, line):
        given = re.fullmatch(r"<!-- file: (\S+) as (\S+) -->", line)
        if given:
            shutil.copyfile(os.path.join(SOURCES, given[1]), os.path.join(self.session.work, given[2]))
        if line == "<!-- first answer -->":
            self.first_answer = self.session.seconds

    def take_command(self, number, prompt, line, shown):
        self.out.append(line)
        is_asked = {NOW: True, BEFORE: self.writes and self.session.before, CLONE: self.writes and self.clones}
        if not is_asked[prompt]:
            self.out += shown
            return
        run = self.session.run_from_clone if prompt == CLONE else lambda text: self.session.run(prompt, text)
        printed = run(line[len(prompt):])
        self.out += printed
        if not self.writes and comparable(shown) != comparable(printed):
            differences = difflib.unified_diff(shown, printed, "the page", "gmd", n=0, lineterm="")
            self.wrong.append("\n".join([f"{self.path}:{number}: {line[len(prompt):]}", *differences, ""]))

    def take_block(self, lines, at):
        """The session that begins at line number `at`; gives the number of the line after it."""
        while lines[at] != "```":
            prompt = prompt_of(lines[at])
            end = at + 1
            while prompt and lines[end] != "```" and not prompt_of(lines[end]):
                end += 1
            if prompt:
                self.take_command(at + 1, prompt, lines[at], lines[at + 1:end])
            else:
                self.out.append(lines[at])
            at = end
        return at

    def read(self):
        with open(self.path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        at = 0
        while at < len(lines):
            self.note_comment(lines[at])
            self.out.append(lines[at])
            at += 1
            if lines[at - 1] == "```text":
                at = self.take_block(lines, at)

    def write(self):
        start = next((i for i, line in enumerate(self.out) if line.startswith("Measured ")), None)
        if start is not None:
            end = self.out.index("", start)
            self.out[start:end] = measured(self.first_answer or 0.0, self.session.seconds)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.out))


def main():
    arguments = sys.argv[1:]
    before = None
    if "--before" in arguments:
        at = arguments.index("--before")
        before = arguments[at + 1]
        del arguments[at:at + 2]
    writes = "--write" in arguments
    clones = "--clone" in arguments
    prefix, *paths = [each for each in arguments if each not in ("--write", "--clone")]
    wrong = []
    for path in paths:
        page = Page(path, Session(prefix, before), writes, clones)
        try:
            page.read()
        finally:
            shutil.rmtree(page.session.home)
        if writes:
            page.write()
        wrong += page.wrong
    print("\n".join(wrong), end="")
    sys.exit(1 if wrong or not paths else 0)


if __name__ == "__main__":
    main()
