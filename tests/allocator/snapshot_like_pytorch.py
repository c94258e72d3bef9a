#!/usr/bin/env python3
"""snapshot_like_pytorch.py OWN RECORDED...: the allocator's own snapshot has the structure of
snapshots that torch 2.11 wrote, key by key and type by type, in a pickle that pytorch.org/memory_viz
reads."""
import gzip
import pickle
import pickletools
import sys

# What unpickle() of torch/utils/viz/MemoryViz.js knows.
KNOWN_TO_THE_PAGE = set(
    "PROTO APPEND APPENDS LIST TUPLE NEWFALSE NEWTRUE NONE BINGET BININT BININT1 BININT2 EMPTY_DICT "
    "EMPTY_LIST FRAME LONG1 LONG_BINGET MARK MEMOIZE BINPUT LONG_BINPUT SETITEMS SETITEM DICT "
    "SHORT_BINUNICODE BINUNICODE STOP EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 BINFLOAT".split())


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return file.read()


def form(record):
    return {key: type(value).__name__ for key, value in record.items()}


def forms(snapshot):
    """Every kind of record there is, and its forms: keys and the types of their values."""
    found = {}

    def add(kind, record):
        fixed = form(record)
        fixed.pop("frames", None)  # of events: only where stacks were kept
        found.setdefault(kind, set()).add(tuple(sorted(fixed.items())))

    add("snapshot", snapshot)
    add("settings", snapshot["allocator_settings"])
    add("roundup", snapshot["allocator_settings"]["roundup_power2_divisions"])
    for segment in snapshot["segments"]:
        add("segment", segment)
        add("pool id", {i: n for i, n in enumerate(segment["segment_pool_id"])})
        for block in segment["blocks"]:
            add("block " + block["state"], block)
            for frame in block["frames"]:
                add("frame", frame)
    for events in snapshot["device_traces"]:
        for event in events:
            add("event " + event["action"], event)
            for frame in event.get("frames", []):
                add("frame", frame)
    return found


def main(own_path, recorded_paths):
    data = read(own_path)
    opcodes = {opcode.name for opcode, _, _ in pickletools.genops(data)}
    own, recorded = forms(pickle.loads(data)), {}
    for path in recorded_paths:
        for kind, its_forms in forms(pickle.loads(read(path))).items():
            recorded.setdefault(kind, set()).update(its_forms)
    wrong = ["opcode %s" % name for name in sorted(opcodes - KNOWN_TO_THE_PAGE)]
    for kind in sorted(own):
        if kind in recorded and not own[kind] <= recorded[kind]:
            wrong.append("%s: %s, recorded: %s" % (kind, own[kind], recorded[kind]))
    compared = sorted(set(own) & set(recorded))
    print("compared: %s" % ", ".join(compared))
    print("not recorded: %s" % ", ".join(sorted(set(own) - set(recorded))))
    print("\n".join(wrong) or "alike")
    return 1 if wrong or "event alloc" not in compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
