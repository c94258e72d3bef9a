#!/usr/bin/env python3
"""Labels what record_all.py brought back: python place.py FOLDER DESTINATION

FOLDER holds the unpacked jobs.tar.gz. Each recording gets a number that says nothing, drawn with SEED among those of
its table, its JSON the bytes that the mistake holds, and a place: DESTINATION/seen or DESTINATION/held, as table.py
says. DESTINATION/README.md gets its tables anew: all of the seen half, names and modes of the held one.
"""
import gzip
import json
import os
import pickle
import random
import shutil
import statistics
import sys

from table import HELD, TABLES, recordings, rows

SEED = 18
UNUSED = ("fragmentation", "cached_not_released")
BEGIN = "<!-- place.py writes what follows -->\n"


def job_of(label):
    """Its name without that of the module, which may be in a package."""
    return label["job"].rsplit(".", 1)[1]


def figure(kind, iteration):
    """What grows with a mistake of this class, at the end of an iteration."""
    if kind in UNUSED:
        return iteration["reserved"] - iteration["allocated"]
    if kind == "cross_stream_pending":
        return iteration["pending"]
    return iteration["allocated"]


def growth(kind, measured):
    """Bytes that an iteration adds at its end: the median, without the first two iterations if there are enough."""
    bytes_held = [figure(kind, iteration) for iteration in measured[2 if len(measured) > 4 else 0 :]]
    steps = [after - before for before, after in zip(bytes_held, bytes_held[1:])]
    return int(statistics.median(steps)) if steps and kind != "true_capacity" else 0


def held(label, fixed):
    """The bytes that the mistake holds at the snapshot, and what that is."""
    now, measured = label["at_snapshot"], label["iterations"]
    if label["class"] in UNUSED:
        return now["reserved_bytes"] - now["allocated_bytes"], "reserved and not allocated at the snapshot"
    if label["class"] == "cross_stream_pending":
        return now["active_bytes"] - now["allocated_bytes"], "freed, but not reusable at the snapshot"
    if label["class"] == "true_capacity":
        return now["allocated_bytes"], "allocated when the request failed"
    last = min(len(measured), len(fixed["iterations"])) - 1
    mine, other = measured[last], fixed["iterations"][last]
    return mine["allocated"] - other["allocated"], f"allocated after iteration {last}, more than the fixed variant"


def verify(name, label, snapshot):
    """What does not agree between the label and the snapshot."""
    if not {"segments", "device_traces"} <= snapshot.keys():
        return [f"{name}: not a snapshot"]
    total = {"reserved_bytes": 0, "allocated_bytes": 0, "active_bytes": 0}
    for segment in snapshot["segments"]:
        total["reserved_bytes"] += segment["total_size"]
        total["allocated_bytes"] += segment["allocated_size"]
        total["active_bytes"] += segment["active_size"]
    return [f"{name}: {what} is {value}, the label has {label['at_snapshot'][what]}"
            for what, value in total.items() if value != label["at_snapshot"][what]]


def stale(label):
    """The marked lines that are no longer what they were when the job was recorded."""
    found = []
    package = label["job"].split(".")[:-2]
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), *package)
    for place in label["guilty"] + label["cause"]:
        with open(os.path.join(folder, place["file"]), encoding="utf-8") as source:
            lines = source.readlines()
        if len(lines) < place["line"] or not lines[place["line"] - 1].strip().startswith(place["text"]):
            found.append(f"{place['file']}:{place['line']} has changed since {label['job']} was recorded")
    return found


def load(folder):
    """Labels by (job, variant); of the table those jobs whose variants were all recorded."""
    labels, incomplete = {}, set()
    for recording in recordings():
        file = os.path.join(folder, f"{recording.job}.{recording.variant}")
        if not os.path.exists(file + ".json"):
            print(f"{recording.job}.{recording.variant}: not there")
            incomplete.add(recording.job)
            continue
        with open(file + ".json", encoding="utf-8") as text:
            labels[recording.job, recording.variant] = json.load(text)
    return {key: label for key, label in labels.items() if key[0] not in incomplete}


def draw():
    """Names and halves by (job, variant)."""
    names, halves = {}, {}
    for table in TABLES:
        order = rows(table)
        random.Random(SEED).shuffle(order)
        for recording in order:
            key = recording.job, recording.variant
            names[key] = f"job_{len(names) + 1:03}"
            halves[key] = "held" if recording.module.startswith(HELD) else "seen"
    return names, halves


def complete(label, name, names, fixed):
    """The label with its name, its other variant, and the bytes."""
    job, variant = job_of(label), label["variant"]
    result = {"name": name, "class": label["class"]}
    result["twin"] = names.get((job, "leak" if variant == "fixed" else "fixed"))
    result["bytes_held"], result["bytes_held_is"], result["bytes_per_iteration"] = 0, None, 0
    if variant == "leak":
        result["bytes_held"], result["bytes_held_is"] = held(label, fixed)
        result["bytes_per_iteration"] = growth(label["class"], label["iterations"])
        result["bytes_per_iteration"] -= growth(label["class"], fixed["iterations"])
    return {**result, **{key: value for key, value in label.items() if key not in result}}


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "| " + " | ".join("---" for _ in headings) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def write_readme(destination, placed):
    file = os.path.join(destination, "README.md")
    with open(file, encoding="utf-8") as text:
        head = text.read().partition(BEGIN)[0]
    seen, kept_back = [], []
    for folder, label, events in sorted(placed, key=lambda item: int(item[1]["name"].removeprefix("job_"))):
        mode = " ".join(label["mode"]) or "-"
        if folder == "held":
            kept_back.append([label["name"], mode, str(events)])
            continue
        job = job_of(label)
        figures = [f"{label[key] / 2**20:.1f}" for key in ("bytes_held", "bytes_per_iteration")]
        seen.append([label["name"], label["class"], job, mode, *figures])
    with open(file, "w", encoding="utf-8") as text:
        text.write(head + BEGIN + "\n## Seen\n\n")
        text.write(table(["name", "class", "job", "mode", "MiB held", "MiB/it."], seen))
        text.write("\n## Held\n\n" + table(["name", "mode", "events"], kept_back))


def lines_in_stacks(snapshot):
    """(file, line) of all frames."""
    holders = [event for trace in snapshot["device_traces"] for event in trace]
    for segment in snapshot["segments"]:
        holders += [segment, *segment["blocks"]]
    frames = [frame for holder in holders for frame in holder.get("frames") or []]
    return {(os.path.basename(frame["filename"]), frame["line"]) for frame in frames}


def place(source, folder, label):
    """Copies the recording and writes its label; its number of events."""
    job = job_of(label)
    file = os.path.join(folder, label["name"])
    shutil.copyfile(os.path.join(source, f"{job}.{label['variant']}.pickle.gz"), file + ".pickle.gz")
    with gzip.open(file + ".pickle.gz") as packed:
        snapshot = pickle.load(packed)
    lines = lines_in_stacks(snapshot)
    label["guilty_in_stacks"] = sum((place["file"], place["line"]) in lines for place in label["guilty"])
    with open(file + ".json", "w", encoding="utf-8") as text:
        json.dump(label, text, indent=1)
        text.write("\n")
    for problem in stale(label) + verify(f"{label['name']} ({job}.{label['variant']})", label, snapshot):
        print(problem)
    return sum(len(trace) for trace in snapshot["device_traces"])


def main():
    source, destination = sys.argv[1:]
    labels = load(source)
    names, halves = draw()
    for folder in ("seen", "held"):
        shutil.rmtree(os.path.join(destination, folder), ignore_errors=True)
        os.makedirs(os.path.join(destination, folder))
    placed = []
    for key, label in labels.items():
        label = complete(label, names[key], names, labels.get((key[0], "fixed")))
        placed.append((halves[key], label, place(source, os.path.join(destination, halves[key]), label)))
    write_readme(destination, placed)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
