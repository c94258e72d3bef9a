"""report.py - what a run found: the table of operators and outcomes, the score, and who survived."""

import collections
import datetime
import os
import subprocess
import textwrap

import judges

JUDGES = tuple(judges.ALL)
BLACK_BOX = ("replay", "quick gate", "whole gate")
OUTCOMES = (*JUDGES, "survived", "equivalent")
ASSERTED = "by an assertion"  # of those that a judge killed: an assertion ended the process


def outcome(result, equivalents):
    if result["killed"]:
        return result["killed"]["judge"]
    return "equivalent" if result["name"] in equivalents else "survived"


def summary(results, equivalents):
    """The figures: by operator, by file, and in all."""
    def count(of):
        row = dict.fromkeys((*OUTCOMES, ASSERTED), 0)
        for r in of:
            row[outcome(r, equivalents)] += 1
            row[ASSERTED] += bool(r["killed"] and r["killed"].get("assertion"))
        return dict(row, **scores(row))

    def by(key):
        return {value: count([r for r in results if r[key] == value])
                for value in sorted({r[key] for r in results})}

    return {"all": count(results), "by_operator": by("operator"), "by_file": by("file")}


def scores(row):
    """How many that are not equivalent are told apart by anything, and by what stays outside."""
    killed = sum(row[judge] for judge in JUDGES)
    whole = killed + row["survived"]
    return {"mutants": whole + row["equivalent"], "score": killed / whole if whole else None,
            "black_box_score": sum(row[judge] for judge in BLACK_BOX) / whole if whole else None}


def _percent(share):
    return "-" if share is None else "%.1f %%" % (100 * share)


def _row(name, row):
    cells = [name, row["mutants"], *(row[o] for o in OUTCOMES), row[ASSERTED], _percent(row["score"])]
    return "| " + " | ".join(str(c) for c in cells) + " |"


def table(figures, key, title):
    columns = (*OUTCOMES, ASSERTED)
    lines = ["| %s | mutants | %s | score |" % (title, " | ".join(columns)), "|---|" + "---:|" * (len(columns) + 2)]
    lines += [_row(name, row) for name, row in figures[key].items()]
    return "\n".join(lines + [_row("all", figures["all"])])


def assertions(results):
    """How many mutants each assertion killed, by its place, the most first: [(FILE:LINE, count)]. What an
    assertion says begins with its place."""
    places = collections.Counter(":".join(r["killed"]["assertion"].split(":")[:2]) for r in results
                                 if r["killed"] and r["killed"].get("assertion"))
    return sorted(places.items(), key=lambda place: (-place[1], place[0]))


def assertion_table(results):
    lines = ["| assertion | mutants |", "|---|---:|"]
    return "\n".join(lines + ["| `%s` | %d |" % place for place in assertions(results)])


def survivors(results, equivalents):
    return [r for r in results if outcome(r, equivalents) == "survived"]


def text(results, sorted_out, equivalents, stale):
    figures = summary(results, equivalents)
    parts = [table(figures, "by_operator", "operator"), table(figures, "by_file", "file")]
    if assertions(results):
        parts.append(assertion_table(results))
    left = survivors(results, equivalents)
    for r in left:
        parts.append("survived: %s (allocator/%s:%d:%d)\n%s" %
                     (r["name"], r["file"], r["line"], r["column"], r["diff"].rstrip()))
    parts.append("%d mutants judged; before that %d sorted out that give the same object code and %d that "
                 "do not compile" % (len(results), sorted_out["same"], sorted_out["broken"]))
    for name in stale:
        parts.append("equivalent.txt: %s is killed: its reason is wrong" % name)
    all_of = figures["all"]
    parts.append("mutation score %s: %d survived, %d are equivalent" %
                 (_percent(all_of["score"]), all_of["survived"], all_of["equivalent"]))
    return "\n\n".join(parts)


def _commit():
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False,
                           cwd=os.path.dirname(os.path.abspath(__file__)))
    return asked.stdout.strip() or "unknown"


def page(results, sorted_out, equivalents, command):
    """The tables as a page of docs/results: columns are short, so that a row fits a line."""
    short = {"quick gate": "quick", "unit tests": "unit", "whole gate": "whole", "sanitizers": "san.",
             "equivalent": "equiv.", ASSERTED: "assert."}
    figures = summary(results, equivalents)
    rows = table(figures, "by_operator", "operator")
    for name, instead in short.items():
        rows = rows.replace(" %s |" % name, " %s |" % instead, 1)
    head = ["- made by: `%s`" % command,
            "- date: %s" % datetime.datetime.now(datetime.timezone.utc).date(), "- commit: %s" % _commit(),
            "- machine: %d cores" % (os.cpu_count() or 0)]
    after = ["%d mutants were sorted out that give the same object code, and %d that do not compile." %
             (sorted_out["same"], sorted_out["broken"])]
    after += ["", *("- survived: `%s`" % r["name"] for r in survivors(results, equivalents))]
    parts = ["# Mutation testing of the reference allocator", "\n".join(head), rows,
             "\n".join(line for text in after for line in textwrap.wrap(text, 100, break_long_words=False) or [""])]
    if assertions(results):
        parts.append("What the assertions killed:\n\n" + assertion_table(results))
    return "\n\n".join(part.rstrip() for part in parts) + "\n"
