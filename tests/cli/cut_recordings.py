#!/usr/bin/env python3
"""cut_recordings.py GMD HISTORIES - what gmd diagnose says of recordings, whole, or without their begin or end."""
import gzip
import json
import os
import pickle
import subprocess
import sys
import tempfile

PERCENT = 100


class Recording:
    """The events of a history from one percentage to another, with the segments of its end."""

    def __init__(self, gmd, history, first, last):
        with gzip.open(history) as file:
            snapshot = pickle.load(file)
        snapshot["device_traces"] = [events[int(len(events) * first / PERCENT) : int(len(events) * last / PERCENT)]
                                     for events in snapshot["device_traces"]]
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "job.pickle"), "wb") as file:
                pickle.dump(snapshot, file)
            command = [gmd, "diagnose", "job.pickle"]
            shown = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            written = subprocess.run([*command, "--json", "-"], cwd=folder, capture_output=True, text=True)
        self.status = shown.returncode
        self.text = " ".join(shown.stdout.split())  # the lines are wrapped
        self.json = json.loads(written.stdout)


def check_lower_bounds(history):
    """A job whose ring of events ran over: the segments tell of the end, and nothing of what was before."""
    whole, late, early = history("hidden_leak", 0, 100), history("hidden_leak", 40, 100), history("resnet50_leak", 0, 50)
    yield "Peak: 863.8 MiB allocated" in whole.text, "a whole recording's peak is exact"
    yield not whole.json["peak"]["lower_bound"] and not whole.json["end"]["lower_bound"], "so it is in JSON"
    yield "Peak: at least 8" in late.text, "the peak of one that begins late is a lower bound"
    yield late.json["peak"]["lower_bound"], "so it is in JSON"
    yield "End: 0 B allocated" in late.text and not late.json["end"]["lower_bound"], "its end is known from the segments"
    yield "the peak and its holders are lower bounds" in late.text, "the text says why"
    yield "End: at least " in early.text and early.json["end"]["lower_bound"], "without its end the end is one, too"


def check_enough(history):
    """No finding in what is too little says nothing."""
    for name, first, last in (("eval_leak", 40, 100), ("simple_cycle_leak", 0, 90), ("resnet50_leak", 0, 50)):
        part = history(name, first, last)
        yield part.status == 0 and not part.json["findings"], f"nothing is found in a part of {name}"
        yield ", nothing found in them: too few to tell a leak" in part.text, f"that is no health of {name}"
        yield "healthy" not in part.text and not part.json["enough"], f"so it is in JSON, of {name}"
    whole, late = history("hidden_fixed", 0, 100), history("hidden_leak", 40, 100)
    yield ", healthy" in whole.text and whole.json["enough"], "a whole job without a leak is healthy"
    yield late.status == 1 and late.json["enough"], "many iterations are enough wherever a recording begins"


def check_one(history):
    """An event, an iteration."""
    one = history("hidden_leak", 0, 0.12)
    yield one.json["events"] == 1 and ": 1 event " in one.text, "one event is no events"


def check_groups(history):
    """Who holds the memory by stack, by age and by stream, in JSON: each has all of it."""
    peak = history("hidden_leak", 0, 100).json["peak"]
    for group in ("stacks", "ages", "streams"):
        yield sum(each["bytes"] for each in peak[group]) == peak["allocated"], f"{group} add up to what is allocated"
    yield peak["stacks"][0]["frames"][0]["file"].endswith("rnn.py"), "a stack begins with its innermost frame"
    yield any((each["iterations"] or 0) > 10 for each in peak["ages"]), "what leaks outlives its iteration"
    yield len(peak["streams"]) == 1, "there is one stream"


CHECKS = (check_lower_bounds, check_enough, check_one, check_groups)


def main():
    gmd, histories = (os.path.abspath(each) for each in sys.argv[1:])

    def history(name, first, last):
        return Recording(gmd, os.path.join(histories, f"{name}.pickle.gz"), first, last)

    wrong = [f"{check.__name__}: {what}" for check in CHECKS for is_right, what in check(history) if not is_right]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
