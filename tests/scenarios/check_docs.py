#!/usr/bin/env python3
"""check_docs.py GMD DOCS: the figures of scenarios that the manual quotes are those that GMD gives.

Held to it are the tables of scenarios.md and the outputs that are shown below "$ gmd ..." or after the
script that they are of. In an output "..." stands for what is left out. With --write the tables are
corrected in place."""
import json
import os
import re
import subprocess
import sys
import tempfile

MIB = 1 << 20
ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) (allocated|reserved) \| ([\d, ()to]+) \|(?: ([\d, ()to]+) \|)?$")
PLACEMENTS = 8


def play(gmd, arguments, folder="."):
    done = subprocess.run([gmd, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"gmd {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout if "--json" in arguments else done.stdout + done.stderr


def read(folder, page):
    with open(os.path.join(folder, page), encoding="utf-8") as file:
        return file.read()


# --- tables ---------------------------------------------------------------------------------------


def peak_of(bound):
    """The peak with rising addresses, and in brackets the range of the placements where it is one."""
    rising, least, most = (f"{round(bound[key] / MIB):,}" for key in ("rising", "min", "max"))
    return rising if least == most else f"{rising} ({least} to {most})"


def figures(gmd):
    """{scenario: [bound, figure, peak of the first variant, peak of the second]}, as the tables have them."""
    table = {}
    output = play(gmd, ["run", "all", "leak=true,false", "--placement", f"seeds {PLACEMENTS}", "--cases", "none",
                        "--json", "-"])
    for group in json.loads(output)["placements"]:
        bound = group["bounds"][0]
        row = table.setdefault(group["name"], [f"{round(bound['bytes'] / MIB):,}", bound["figure"]])
        row.append(peak_of(bound))
    return table


def check_tables(text, table):
    """The text with the figures that are right, and what was wrong with it."""
    wrong, seen, lines = [], set(), text.split("\n")
    for at, line in enumerate(lines):
        match = ROW.match(line)
        if not match or match[1] not in table:
            continue
        seen.add(match[1])
        written, given = [each for each in match.groups()[1:] if each], table[match[1]]
        if written != given:
            wrong.append(f"scenarios.md:{at + 1}: {match[1]}: {' '.join(written)}; gmd says {' '.join(given)}")
            lines[at] = f"{line[:match.start(2)]}{given[0]} {given[1]} | {' | '.join(given[2:])} |"
    wrong += [f"scenarios.md: no row for {name}" for name in sorted(set(table) - seen)]
    return "\n".join(lines), wrong


# --- outputs --------------------------------------------------------------------------------------


def after(text, mark, fenced):
    """(number, text) of the lines of the first block after the line that ends with `mark`."""
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if line.endswith(mark)) + 1
    while not lines[at].strip() or lines[at] == "```":
        at += 1
    while lines[at] != "```" if fenced else lines[at].startswith("    "):
        if lines[at].strip():
            yield at + 1, lines[at]
        at += 1


def pattern(line):
    """What matches the line, however it is aligned."""
    return r"\s+".join(".*".join(re.escape(part) for part in word.split("...")) for word in line.split())


def check_output(page, text, mark, output, fenced=False):
    squeezed = [" ".join(line.split()) for line in output.split("\n")]
    return [
        f"{page}:{number}: gmd does not print: {line.strip()}"
        for number, line in after(text, mark, fenced)
        if line.strip() != "..." and not any(re.fullmatch(pattern(line), each) for each in squeezed)
    ]


def script_of(text):
    return next(each for each in re.findall(r"```lua\n(.*?)```", text, re.S) if 'name = "mine"' in each)


def check_outputs(gmd, docs):
    wrong = []
    pages = {page: read(docs, page) for page in ("scenarios.md", "find-a-leak.md", "looking-inside.md", "seq2seq.md")}

    def check(page, mark, output, fenced=False):
        wrong.extend(check_output(page, pages[page], mark, output, fenced))

    command = "    $ gmd run first_iteration_peak --smallest-limit"
    check("scenarios.md", command, play(gmd, ["run", "first_iteration_peak", "--smallest-limit"]))
    check("seq2seq.md", "H200, in MiB:",
          play(gmd, ["run", "seq2seq"]))
    known = play(gmd, ["run", "hidden_state", "leak=true,false", "iterations=20"])
    check("find-a-leak.md", "in `reserved` and not in `allocated`.", known, True)
    check("looking-inside.md", "    $ gmd run closure_cycle --retention",
          play(gmd, ["run", "closure_cycle", "--retention"]))
    with tempfile.TemporaryDirectory() as folder:
        for page, marks in (
            ("find-a-leak.md", ["what it keeps alive:"]),
            ("looking-inside.md", ["## Memory by line", "## Tensors", "## Who holds it", "## Memory by category"]),
        ):
            with open(os.path.join(folder, "mine.lua"), "w", encoding="utf-8") as file:
                file.write(script_of(pages["find-a-leak.md" if page == "find-a-leak.md" else "scenarios.md"]))
            output = play(gmd, ["run", "./mine.lua", "--inspect"], folder)
            for mark in marks:
                check(page, mark, output, page == "find-a-leak.md")
    return wrong


def main():
    arguments = [each for each in sys.argv[1:] if each != "--write"]
    gmd, docs = os.path.abspath(arguments[0]), arguments[1]
    text, wrong = check_tables(read(docs, "scenarios.md"), figures(gmd))
    if "--write" in sys.argv:
        with open(os.path.join(docs, "scenarios.md"), "w", encoding="utf-8") as file:
            file.write(text)
    wrong += check_outputs(gmd, docs)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
