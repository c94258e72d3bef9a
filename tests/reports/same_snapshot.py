#!/usr/bin/env python3
"""same_snapshot.py RECORDED OWN: both memory snapshots hold the same events of each device, in the same
order, each with its frames, and the same segments, blocks and annotations. Left out is what a replay cannot have:
times within a request, and how much of the device was free when a request was refused. Pages that are mapped or unmapped one after the other are one
range, and frees that are completed one after the other have no order: PyTorch's is that of a hash table."""
import gzip
import pickle
import sys

SEGMENT = ("device address total_size allocated_size active_size requested_size stream segment_type segment_pool_id "
           "is_expandable").split()
BLOCK = "address size requested_size state".split()


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return pickle.load(file)


def events(trace):
    found = []
    for e in trace:
        place = 0 if e["action"] == "oom" else e["addr"]
        last = found[-1] if found else None
        origin = [[(f["filename"], f["line"], f["name"]) for f in e.get("frames", [])], e.get("user_metadata", ""),
                  e.get("compile_context", "N/A")]
        if (e["action"] in ("segment_map", "segment_unmap") and last and last[0] == e["action"]
                and last[1] + last[2] == place and last[3] == e["stream"]):
            last[2] += e["size"]
        else:
            found.append([e["action"], place, e["size"], e["stream"], origin])
    at = 0
    while at < len(found):
        end = at
        while end < len(found) and found[end][0] == "free_completed":
            end += 1
        found[at:end] = sorted(found[at:end])
        at = end + 1
    return found


def segments(snapshot):
    return sorted(([s[key] for key in SEGMENT], [[b[key] for key in BLOCK] for b in s["blocks"]])
                  for s in snapshot["segments"])


def annotations(snapshot):
    return [[a[key] for key in ("stage", "name", "device", "time_us")] for a in snapshot.get("external_annotations", [])]


def difference(what, recorded, own):
    for i, (a, b) in enumerate(zip(recorded, own)):
        if a != b:
            return "%s %d: recorded %s, own %s" % (what, i, a, b)
    if len(recorded) != len(own):
        return "%d %ss recorded, %d own" % (len(recorded), what, len(own))
    return None


def main(recorded_path, own_path):
    recorded, own = read(recorded_path), read(own_path)
    found = []
    for device, trace in enumerate(recorded["device_traces"]):
        own_trace = own["device_traces"][device] if device < len(own["device_traces"]) else []
        found.append(difference("event of device %d" % device, events(trace), events(own_trace)))
    found.append(difference("segment", segments(recorded), segments(own)))
    found.append(difference("annotation", annotations(recorded), annotations(own)))
    if recorded["allocator_settings"] != own["allocator_settings"]:
        found.append("settings: recorded %s, own %s" % (recorded["allocator_settings"], own["allocator_settings"]))
    found = [text for text in found if text]
    print("\n".join(found) or "%d events, %d segments alike" % (
        sum(map(len, recorded["device_traces"])), len(recorded["segments"])))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
