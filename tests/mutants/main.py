"""main.py - ci/mutants: mutation testing of the reference allocator (docs/mutation-testing.md)."""

import argparse
import hashlib
import json
import os
import queue
import shlex
import sys
import threading
import time

import judges
import mutants
import report
from workshop import BuildFailure, Job, Workshop

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def parse(arguments):
    p = argparse.ArgumentParser(
        prog="ci/mutants", description="Makes mutants of allocator/, lets the recorded histories, the gate "
        "and the unit tests judge each, and tells which survive. See docs/mutation-testing.md.")
    p.add_argument("-n", "--sample", type=int, default=300, help="how many (300); 0: all")
    p.add_argument("--seed", type=int, default=1, help="of the choice of the sample (1)")
    p.add_argument("-j", "--jobs", type=int, default=1, help="so many at a time (1)")
    p.add_argument("--file", action="append", help="of this file of allocator/ only; can be repeated")
    p.add_argument("--operator", action="append", help="of this operator only; can be repeated")
    p.add_argument("--only", action="append", help="the mutant of this name only; can be repeated")
    p.add_argument("--again", choices=("survivors", "all"),
                   help="judge these again that a run before has judged")
    p.add_argument("--list", action="store_true", help="list the mutants with their diffs, and judge none")
    p.add_argument("--out", default=os.path.join(ROOT, "build", "mutants"),
                   help="the scratch folder (build/mutants)")
    p.add_argument("--build", default=os.path.join(ROOT, "build", "release"),
                   help="the build whose flags and gmd are used (build/release)")
    p.add_argument("--minutes", type=float, default=0, help="start no further mutant after that; a later "
                   "run goes on where this one stopped")
    p.add_argument("--patience", type=float, default=1, help="judges may take so many times as long: for a busy "
                   "machine, or a build with all assertions (1)")
    p.add_argument("--trust-equivalents", action="store_true", help="count those of equivalent.txt without judging "
                   "them, who take the longest")
    p.add_argument("--check-options", action="store_true", help="end here if they can be meant")
    p.add_argument("--json", help="the results as JSON into this file; -: to standard output, alone")
    p.add_argument("--results", help="the table as a page of Markdown into this file (docs/results/mutants.md)")
    return p.parse_args(arguments)


def read_equivalents():
    """NAME, then the reason, a line each; a line that begins with # is a comment."""
    result = {}
    with open(os.path.join(HERE, "equivalent.txt"), encoding="utf-8") as stream:
        for line in stream:
            name, _, reason = line.strip().partition(" ")
            if name and not name.startswith("#"):
                if not reason.strip():
                    raise SystemExit("equivalent.txt: %s has no reason" % name)
                result[name] = reason.strip()
    return result


class Journal:
    """What was judged, a line of JSON each: a run that is stopped goes on where it was. A line counts as
    long as its file is the same."""

    def __init__(self, out, again, equivalents):
        self.path = os.path.join(out, "results.jsonl")
        self.lock = threading.Lock()
        self.texts = self._digests()
        self.known = {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as stream:
                for line in stream:
                    entry = json.loads(line)
                    if entry["text"] == self.texts.get(entry["file"]):
                        self.known[entry["name"]] = entry
        if again:
            self.known = {name: e for name, e in self.known.items() if again == "survivors" and
                          (e["killed"] or e["sorted_out"] or name in equivalents)}

    @staticmethod
    def _digests():
        result, folder = {}, os.path.join(ROOT, "allocator")
        for name in os.listdir(folder):
            if name.endswith((".c", ".h")):
                with open(os.path.join(folder, name), "rb") as stream:
                    result[name] = hashlib.sha1(stream.read()).hexdigest()
        return result

    def add(self, entry):
        with self.lock:
            self.known[entry["name"]] = entry
            with open(self.path, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(dict(entry, text=self.texts[entry["file"]])) + "\n")


def unjudged(mutant):
    return {"name": mutant.name, "file": mutant.file, "line": mutant.line, "column": mutant.column,
            "operator": mutant.operator, "diff": mutant.diff(), "killed": None, "sorted_out": None}


def judge(job, mutant):
    """Builds a mutant and lets its judges have it, up to the first that kills."""
    entry = unjudged(mutant)
    started = time.monotonic()
    try:
        if not job.build(mutant):
            entry["sorted_out"] = "same"
    except BuildFailure:
        entry["sorted_out"] = "broken"
    for name in [] if entry["sorted_out"] else judges.for_file(mutant.file):
        killed = judges.ALL[name](job)
        if killed:
            entry["killed"] = dict(killed, judge=name)
            break
    entry["seconds"] = round(time.monotonic() - started, 2)
    return entry


def check_original(job):
    """A judge that kills the allocator as it is tells nothing of mutants."""
    job.build(None)
    for ask in judges.ALL.values():
        killed = ask(job)
        if killed:
            raise SystemExit("ci/mutants: the allocator without a mutation fails: %s" % killed)


class Campaign:
    """Mutants in their order to jobs, until as many as asked for are judged."""

    def __init__(self, options, chosen, journal, shop, trusted):
        self.options, self.journal, self.shop = options, journal, shop
        self.trusted = trusted  # names of those that count without being judged
        self.queue = queue.SimpleQueue()
        for m in chosen:
            self.queue.put(m)
        self.wanted = options.sample or len(chosen)
        self.until = time.monotonic() + options.minutes * 60 if options.minutes else None
        self.lock = threading.Lock()
        self.entries, self.judged, self.started = [], 0, 0
        self.failure = None

    def _next(self):
        """A mutant that is worth a start: those under way may still be sorted out."""
        with self.lock:
            if self.failure or self.judged >= self.wanted:
                return None
            if self.until and time.monotonic() > self.until:
                return None
            try:
                return self.queue.get_nowait()
            except queue.Empty:
                return None

    def _note(self, entry):
        with self.lock:
            if not entry["sorted_out"] and self.judged >= self.wanted:
                return
            self.entries.append(entry)
            if entry["sorted_out"]:
                return
            self.judged += 1
            killed = entry["killed"]
            says = "%s: %s" % (killed["judge"], killed["by"]) if killed else "SURVIVED"
            says += " by an assertion: " + killed["assertion"] if killed and killed.get("assertion") else ""
            print("%d/%d %s %s (%.1f s)" % (self.judged, self.wanted, entry["name"], says,
                                            entry.get("seconds", 0)), file=sys.stderr, flush=True)

    def _work(self, job):
        try:
            while (mutant := self._next()) is not None:
                entry = self.journal.known.get(mutant.name)
                if not entry and mutant.name in self.trusted:
                    entry = unjudged(mutant)
                elif not entry:
                    entry = judge(job, mutant)
                    self.journal.add(entry)
                self._note(entry)
        except Exception as failure:  # of one job: the others end, and it is reported
            self.failure = failure

    def run(self):
        jobs = [Job(self.shop, number) for number in range(self.options.jobs)]
        check_original(jobs[0])
        threads = [threading.Thread(target=self._work, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failure:
            raise self.failure


def choose(options, everything):
    chosen = mutants.in_sampling_order(everything, options.seed)
    chosen = [m for m in chosen if (not options.file or m.file in options.file) and
              (not options.operator or m.operator in options.operator) and
              (not options.only or m.name in options.only)]
    if not chosen:
        raise SystemExit("ci/mutants: no mutant fits")
    return chosen


def print_report(options, entries, equivalents, gone):
    results = sorted((e for e in entries if not e["sorted_out"]), key=lambda e: e["name"])
    sorted_out = {why: sum(e["sorted_out"] == why for e in entries) for why in ("same", "broken")}
    stale = [r["name"] for r in results if r["killed"] and r["name"] in equivalents]
    if options.json != "-":
        print(report.text(results, sorted_out, equivalents, stale))
        for name in gone:
            print("equivalent.txt: %s is no mutant any more" % name)
    if options.json:
        document = {"seed": options.seed, "sorted_out": sorted_out, "summary": report.summary(results, equivalents),
                    "equivalent": {r["name"]: equivalents[r["name"]] for r in results if r["name"] in equivalents},
                    "mutants": results}
        with sys.stdout if options.json == "-" else open(options.json, "w", encoding="utf-8") as stream:
            json.dump(document, stream, indent=1)
    if options.results:
        with open(options.results, "w", encoding="utf-8") as stream:
            stream.write(report.page(results, sorted_out, equivalents, options.command))
    return 1 if stale or report.survivors(results, equivalents) else 0


def main(arguments):
    options = parse(arguments)
    options.command = shlex.join(["ci/mutants", *arguments])
    if options.check_options:
        return 0
    judges.patience = options.patience
    options.out, options.build = os.path.abspath(options.out), os.path.abspath(options.build)
    options.dev_build = os.path.join(ROOT, "build", "dev")
    os.makedirs(options.out, exist_ok=True)
    equivalents = read_equivalents()
    shop = Workshop(ROOT, options.build, options.out,
                    Workshop(ROOT, options.dev_build, os.path.join(options.out, "sanitized")))
    everything = mutants.of_allocator(shop.allocator, shop.sources, shop.ast_arguments)
    chosen = choose(options, everything)
    if options.list:
        for m in chosen[:options.sample or None]:
            print("%s (allocator/%s:%d:%d)\n%s" % (m.name, m.file, m.line, m.column, m.diff()))
        return 0
    print("ci/mutants: %d mutants of allocator/, %d fit; seed %d" %
          (len(everything), len(chosen), options.seed), file=sys.stderr)
    campaign = Campaign(options, chosen, Journal(options.out, options.again, equivalents), shop,
                        equivalents if options.trust_equivalents else {})
    campaign.run()
    names = {m.name for m in everything}
    return print_report(options, campaign.entries, equivalents, [n for n in equivalents if n not in names])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
