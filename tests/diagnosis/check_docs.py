#!/usr/bin/env python3
"""check_docs.py [--write] GMD PAGE FOLDER...: the outputs that a page shows are those that GMD gives.

An output follows its command, "    $ gmd diagnose job.pickle.gz", in one indented block; a line "    ..." stands for
lines that are left out. The files are those of the folders, by name. With --write outputs that have no such line
are corrected in place."""
import os
import shlex
import subprocess
import sys
import tempfile

INDENT = "    "
COMMAND = INDENT + "$ gmd "
LEFT_OUT = "..."


def blocks(lines):
    """(first, end) of the outputs, without blank lines behind them; the command is the line before the first."""
    for at, line in enumerate(lines):
        if line.startswith(COMMAND):
            end = last = at + 1
            while end < len(lines) and (lines[end].startswith(INDENT) or not lines[end].strip()):
                if lines[end].startswith(COMMAND):
                    break
                end += 1
                last = end if lines[end - 1].strip() else last
            yield at + 1, last


def parts(shown):
    """The lines between those that stand for others, as lists."""
    found = [[]]
    for line in shown:
        if line == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line)
    return found


def find(part, output, start):
    """Where the lines of the part begin in the output; -1: nowhere."""
    for at in range(start, len(output) - len(part) + 1):
        if output[at : at + len(part)] == part:
            return at
    return -1


def differs(shown, output):
    """The first line that gmd does not print there; None: it prints all."""
    at, all_parts = 0, parts(shown)
    for number, part in enumerate(all_parts):
        is_last = number == len(all_parts) - 1
        start = max(at, len(output) - len(part)) if is_last and number and part else at
        found = find(part, output, start) if number else (0 if output[: len(part)] == part else -1)
        if found < 0:
            return next((line for line in part if line not in output), part[0])
        at = found + len(part)
    return None if all_parts[-1] == [] or at == len(output) else output[at]


def play(gmd, command, folder):
    arguments = shlex.split(command.split("#")[0])[2:]
    done = subprocess.run([gmd, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(f"{command.strip()}: exit status {done.returncode}\n{done.stderr}")
    return [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")]


def gather(folders, into):
    for folder in folders:
        for name in os.listdir(folder):
            if name.endswith(".pickle.gz"):
                os.symlink(os.path.join(os.path.abspath(folder), name), os.path.join(into, name))


def check(gmd, page, folder, lines):
    """What is wrong, and the lines as they ought to be."""
    wrong, right, count = [], list(lines), 0
    for first, end in reversed(list(blocks(lines))):
        shown = [line[len(INDENT) :].rstrip() for line in lines[first:end]]
        output = play(gmd, lines[first - 1], folder)
        difference = differs(shown, output)
        count += 1
        if difference is not None:
            wrong.append(f"{page}:{first}: gmd does not print: {difference}")
        if LEFT_OUT not in shown:
            right[first:end] = [(INDENT + line).rstrip() for line in output]
    if count == 0:
        wrong.append(f"{page}: no line begins with '{COMMAND.strip()}'")
    return wrong, right


def main():
    arguments = [each for each in sys.argv[1:] if each != "--write"]
    gmd, page, folders = os.path.abspath(arguments[0]), arguments[1], arguments[2:]
    with open(page, encoding="utf-8") as file:
        lines = file.read().split("\n")
    with tempfile.TemporaryDirectory() as folder:
        gather(folders, folder)
        wrong, right = check(gmd, page, folder, lines)
    if "--write" in sys.argv:
        with open(page, "w", encoding="utf-8") as file:
            file.write("\n".join(right))
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
