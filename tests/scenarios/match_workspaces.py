#!/usr/bin/env python3
"""match_workspaces.py GMD RECORDING SCENARIO [KEY=VALUE...] - reads the workspaces of cuDNN off a recording of a whole
loop: a snapshot of PyTorch's allocator with all its events, of the loop that the scenario is.

The scenario is run with a table in which each call has a size of its own, so that its requests say which call each
workspace is of. They are then matched with those of the recording by everything else that is asked for and freed.
Prints a line of a table for each call whose recorded workspaces are all of one size, and what became of the others
on standard error.
"""

import collections
import difflib
import gzip
import os
import pickle
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "integrations", "workspaces"))

import list_shapes  # noqa: E402
import record_workspaces  # noqa: E402

RUN = 8  # so many requests around a workspace must agree
SCRATCH, ALLOC, FREE = "s", "a", "f"


def marked_table(path):
    """{size: (call, whether it is the largest of its trials)}; odd, as hardly anything else is."""
    meaning = {}
    with open(path, "w", encoding="utf-8") as out:
        record_workspaces.write_head(out, {"gpu": "none", "cudnn": "none", "torch": "none"})
        for i, call in enumerate(list_shapes.all_calls()):
            size = 3000001 + 4 * i
            meaning[size] = (call, False)
            tried = ""
            if getattr(call, "benchmark", False):
                meaning[size + 2] = (call, True)
                tried = f" tried={size + 2}"
            out.write(f"{call.line()} bytes={size}{tried}\n")
    return meaning


def requests_of(path):
    """(kind, bytes) of each request; what is freed at once is one request."""
    with open(path, "rb") as file:
        data = file.read()
    trace = pickle.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)["device_traces"][0]
    events = [(e["action"][:1], e["size"], e["addr"]) for e in trace if e["action"] in ("alloc", "free_requested")]
    requests, i = [], 0
    while i < len(events):
        kind, size, address = events[i]
        is_scratch = kind == ALLOC and i + 1 < len(events) and events[i + 1][0] == FREE and events[i + 1][2] == address
        requests.append((SCRATCH if is_scratch else kind, size))
        i += 1 + is_scratch
    return requests


def split(requests):
    """The requests that stay for a while, and the scratch memory before each of them."""
    lasting, before = [], [[]]
    for kind, size in requests:
        if kind == SCRATCH:
            before[-1].append(size)
        else:
            lasting.append((kind, size))
            before.append([])
    return lasting, before


def match(ours, recorded, meaning):
    """{(call, tried): how often each size was recorded}"""
    found = collections.defaultdict(collections.Counter)
    (our_base, our_scratch), (base, scratch) = split(ours), split(recorded)
    matcher = difflib.SequenceMatcher(None, our_base, base, autojunk=False)
    for a, b, length in matcher.get_matching_blocks():
        for k in range(1, length if length >= RUN else 0):
            marks, sizes = our_scratch[a + k], scratch[b + k]
            if not marks or any(size not in meaning for size in marks):
                continue
            if len(marks) == 2 and len(sizes) == 1:  # the algorithm that was found needs no workspace
                sizes = [sizes[0], 0]
            sizes = sizes or [0] * len(marks)
            for mark, size in zip(marks, sizes if len(sizes) == len(marks) else [None] * len(marks)):
                found[meaning[mark]][size] += 1
    for tag, a, a_end, b, b_end in matcher.get_opcodes():  # an RNN's lives beside its reserve space
        if tag == "replace" and (a_end - a, b_end - b) == (1, 1) and our_base[a][0] == base[b][0] == ALLOC \
                and our_base[a][1] in meaning:
            found[meaning[our_base[a][1]]][base[b][1]] += 1
    return found


def print_lines(found, asked):
    sizes = {key: next(iter(counts)) for key, counts in found.items() if len(counts) == 1 and None not in counts}
    for key in sorted(asked, key=lambda key: key[0].line()):
        if key not in sizes:
            print(f"# not told: {key[0].line()}: {dict(found.get(key, {})) or 'not matched'}", file=sys.stderr)
    for call, is_tried in sizes:
        if not is_tried:
            tried = sizes.get((call, True))
            print(f"{call.line()} bytes={sizes[call, False]}" + (f" tried={tried}" if tried is not None else ""))
    matched = sum(sum(counts.values()) for counts in found.values())
    print(f"# {matched} of {sum(asked.values())} workspaces matched, {len(sizes)} of {len(asked)} of one size",
          file=sys.stderr)


def main(gmd, recording, *scenario):
    with tempfile.TemporaryDirectory() as folder:
        table, snapshot = (os.path.join(folder, name) for name in ("marked.txt", "run.pickle"))
        meaning = marked_table(table)
        subprocess.run([gmd, "run", *scenario, "--workspaces", table, "--snapshot", snapshot, "--quiet"],
                       stdout=subprocess.DEVNULL, check=False)  # it may pass the scenario's bound
        ours = requests_of(snapshot)
    asked = collections.Counter(meaning[size] for kind, size in ours if kind != FREE and size in meaning)
    print_lines(match(ours, requests_of(recording), meaning), asked)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
