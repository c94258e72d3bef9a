#!/usr/bin/env python3
"""How many of the labelled recordings `gmd diagnose` reads right: score.py GMD FOLDER [--least-right PERCENT]
[--accused-at-most N] [--results FILE]

FOLDER has NAME.pickle.gz and its label, NAME.json (recordings/README.md). The class of the first finding counts;
and, where the class is right and the stacks have it, whether the first line named is one of the label's. Labels that
may be disputed are counted apart, and do not decide. Exit status
1: fewer are right than that, or more healthy jobs are accused. Only totals are printed for a folder named held:
whoever writes rules is not to learn which are wrong.
"""
import argparse
import collections
import glob
import json
import os
import subprocess
import sys

CLASSES = ("gradient_accumulation", "retained_graph", "hidden_state", "eval_graph", "reference_cycle",
           "checkpoint_cache", "fragmentation", "cached_not_released", "cross_stream_pending", "true_capacity",
           "healthy")


def diagnose(gmd, file):
    done = subprocess.run([gmd, "diagnose", file, "--json", "-", "--quiet"], stdout=subprocess.PIPE, check=False)
    if done.returncode > 1:
        raise SystemExit(f"{file}: gmd diagnose ended with {done.returncode}")
    return json.loads(done.stdout)["findings"]


def names_the_line(finding, label):
    """None: there is no line to name."""
    if label["class"] == "healthy" or not label["guilty_in_stacks"]:
        return None
    lines = {(place["file"], place["line"]) for place in label["guilty"] + label["cause"]}
    return any((os.path.basename(place["file"]), place["line"]) in lines for place in finding["where"][:1])


class Score:
    def __init__(self):
        self.confusion = collections.Counter()  # (the label's class, the one that is said)
        self.wrong = []
        self.lines = collections.Counter()
        self.contested = collections.Counter()  # whether the label's class is said

    def add(self, name, label, findings):
        said = findings[0]["class"] if findings else "healthy"
        if label["contested"]:
            self.contested[said == label["class"]] += 1
            return
        self.confusion[label["class"], said] += 1
        if said != label["class"]:
            self.wrong.append(f"{name}: {label['class']}, said {said}")
            return
        named = names_the_line(findings[0], label) if findings else None
        self.lines[named] += 1
        if named is False:
            self.wrong.append(f"{name}: {label['class']}, at another line")

    def total(self):
        return sum(self.confusion.values())

    def right(self):
        return sum(count for (label, said), count in self.confusion.items() if label == said)

    def accused(self):
        return sum(count for (label, said), count in self.confusion.items() if label == "healthy" != said)

    def table(self):
        rows = ["| label | right | said instead |", "|---|---:|---|"]
        for label in CLASSES:
            of_label = {said: n for (wanted, said), n in self.confusion.items() if wanted == label}
            others = ", ".join(f"`{said}` {n}" for said, n in sorted(of_label.items()) if said != label)
            if of_label:
                rows.append(f"| `{label}` | {of_label.get(label, 0)} of {sum(of_label.values())} | {others} |")
        return "\n".join(rows)

    def summary(self):
        healthy = sum(n for (label, _), n in self.confusion.items() if label == "healthy")
        return (f"class right: {self.right()} of {self.total()}; healthy jobs accused: {self.accused()} of {healthy}; "
                f"first line right, where there is one: {self.lines[True]} of {self.lines[True] + self.lines[False]}; "
                f"of labels that may be disputed: {self.contested[True]} of {self.contested.total()}")


def read(gmd, folder):
    score = Score()
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as file:
            label = json.load(file)
        score.add(os.path.basename(path), label, diagnose(gmd, path.replace(".json", ".pickle.gz")))
    if not score.total():
        raise SystemExit(f"{folder}: no recordings")
    return score


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("gmd")
    p.add_argument("folder")
    p.add_argument("--least-right", type=float, default=95)
    p.add_argument("--accused-at-most", type=int, default=0)
    p.add_argument("--results", help="the table, added to this page of Markdown")
    options = p.parse_args()
    score = read(options.gmd, options.folder)
    half = os.path.basename(os.path.normpath(options.folder))
    text = f"{score.table()}\n\n{score.summary()}"
    print(text)
    if half != "held":
        print("\n".join(score.wrong))
    if options.results:
        with open(options.results, "a", encoding="utf-8") as file:
            file.write(f"## {half}\n\n{text}\n\n")
    return score.right() * 100 < options.least_right * score.total() or score.accused() > options.accused_at_most


if __name__ == "__main__":
    sys.exit(main())
