#!/usr/bin/env python3
"""check_histories.py GMD DATA TESTS - pages of recorded histories have what the pickles have, event by event, and the
findings of gmd diagnose; whatever texts are in them; and a damaged file makes no page."""
import gzip
import json
import os
import pickle
import sys
import tempfile

from pages import Page, run

GMD, DATA = sys.argv[1:3]
KINDS = {"alloc": 0, "free_requested": 1, "free_completed": 2, "segment_alloc": 3, "segment_free": 4,
         "segment_map": 5, "segment_unmap": 6, "oom": 7}


def frames_of(page, h, stack):
    """The innermost first, as in a pickle."""
    frames = []
    while stack:
        frame = h["k.frame"][stack - 1]
        frames.append((page.json["strings"][h["f.file"][frame]], h["f.line"][frame],
                       page.json["strings"][h["f.name"][frame]]))
        stack = h["k.parent"][stack - 1]
    return frames


def check_event(page, meta, h, event, number):
    block = h["e.block"][number] - 1
    base = int(meta["address_base"])
    assert h["e.kind"][number] == KINDS.get(event["action"], 8), event
    if event["action"] in ("segment_alloc", "segment_map"):
        segment = h["e.segment"][number] - 1
        assert h["s.alloc"][segment] == number
        assert h["s.address"][segment] + base <= event["addr"] + event["size"]
    if event["action"] == "alloc":
        assert h["b.alloc"][block] == number
        assert h["b.address"][block] + base == event["addr"]
        assert h["b.requested"][block] == event["size"]
        recorded = [(f["filename"], f["line"], f["name"]) for f in event.get("frames", [])]
        assert frames_of(page, h, h["b.stack"][block]) == recorded
    elif event["action"] == "free_requested":
        assert h["b.alloc"][block] + h["b.asked"][block] == number
    elif event["action"] == "free_completed":
        assert h["b.alloc"][block] + h["b.free"][block] == number


def peak_of(h):
    """Allocated bytes, by walking over the blocks as a page does."""
    change = [0] * (len(h["e.kind"]) + 1)
    for i, born in enumerate(h["b.alloc"]):
        change[born] += h["b.size"][i]
        if h["b.asked"][i]:
            change[born + h["b.asked"][i]] -= h["b.size"][i]
    now = most = at = 0
    for event, delta in enumerate(change):
        now += delta
        if now > most:
            most, at = now, event
    return most, at


def check_ooms(meta, h, events):
    """Each has its size, and what is known of the first like it."""
    refused = [(i + 1, event["size"]) for i, event in enumerate(events) if event["action"] == "oom"]
    assert list(zip(h["o.event"], h["o.bytes"])) == refused
    for number, oom in enumerate(meta["ooms"]):
        same = [at for at, (_, item) in enumerate(zip(refused, h["o.item"])) if item == number + 1]
        assert refused[same[0]] == (oom["event"], oom["bytes"]), "the first is the one that is described"
        assert {refused[at][1] for at in same} == {oom["bytes"]} and len(same) == oom["repeats"] + 1


def check_history(work, name):
    path = os.path.join(DATA, "histories", name + ".pickle.gz")
    to, told = os.path.join(work, "page.html"), os.path.join(work, "told.json")
    with gzip.open(path) as file:
        snapshot = pickle.load(file)
    run(GMD, "diagnose", "--quiet", path, "--json", told, expected=(0, 1))
    with open(told, encoding="utf-8") as file:
        diagnosis = json.load(file)
    run(GMD, "report", path, "-o", to, expected=(1 if diagnosis["findings"] else 0,))
    page = Page(to)
    for number, meta in enumerate(page.json["histories"]):
        h = page.history(number)
        events = snapshot["device_traces"][meta["device"]]
        assert len(h["e.kind"]) == len(events) + 1 == meta["events"]
        for i, event in enumerate(events):
            check_event(page, meta, h, event, i + 1)
        living = [i for i, given in enumerate(h["s.free"]) if not given]
        assert sum(h["s.size"][i] for i in living) == sum(
            s["total_size"] for s in snapshot["segments"] if s["device"] == meta["device"])
        assert peak_of(h) == (meta["peak"]["allocated"], meta["peak"]["event"])
        check_ooms(meta, h, events)
    first = page.json["histories"][0]
    assert first["peak"]["allocated"] == diagnosis["peak"]["allocated"]
    if len(page.json["histories"]) == 1:
        assert first["peak"]["event"] - 1 == diagnosis["peak"]["event"]
    else:
        h = page.history(0)
        assert h["e.number"][first["peak"]["event"]] == diagnosis["peak"]["event"]
    assert len(first["iterations"]) == diagnosis["iterations"]["count"]
    found = [f for f in page.json["findings"] if f["kind"] == "diagnosis"]
    assert [f["class"] for f in found] == [f["class"] for f in diagnosis["findings"]]
    check_evidence(page)
    print("%s: %d histories as recorded" % (name, len(page.json["histories"])))


def check_evidence(page):
    """What a finding points to is there; a line's blocks are of the line, or have none."""
    for finding in page.json["findings"]:
        assert finding["evidence"], finding
        for e in finding["evidence"]:
            h = page.history(e["history"])
            assert 0 <= e["event"] < len(h["e.kind"])
            for block in e.get("blocks", []):
                assert h["b.alloc"][block] <= e["event"]
                assert h["b.line"][block] in (0, e["line_number"] + 1)
            if "line" in e:
                file = page.json["strings"][h["l.file"][e["line_number"]]]
                assert e["line"] == "%s:%d" % (file, h["l.line"][e["line_number"]])


def sum_of_span(h, span):
    """Bytes allocated less those freed from its first event to its last."""
    total = 0
    for alloc, length, size in zip(h["b.alloc"], h["b.free"], h["b.size"]):
        total += size if max(span[0], 1) <= alloc <= span[1] else 0
        total -= size if length and span[0] <= alloc + length <= span[1] else 0
    return total


def check_counted(work, name):
    """The blocks of a leak's line are those that the finding counts, and its span ends before the job gives them back."""
    to = os.path.join(work, "counted.html")
    run(GMD, "report", os.path.join(DATA, "histories", name + ".pickle.gz"), "-o", to, expected=(1,))
    page = Page(to)
    finding = page.json["findings"][0]
    line, span = finding["evidence"][:2]
    h = page.history(line["history"])
    assert sum(h["b.size"][block] for block in line["blocks"]) == finding["bytes"], name
    assert " in %d blocks" % len(line["blocks"]) in line["label"], line["label"]
    assert span["span"][1] == span["event"] < len(h["e.kind"]) - 1
    assert sum_of_span(h, span["span"]) >= 0, name
    print("%s: the evidence is what the finding counts" % name)


HOSTILE = ["</script><script>alert(1)</script>", "<!--", "\"'&<>", "\u202edirection", "tab\tline\nend\x01\x7f",
           "x" * (1 << 20), "<!-- gmd:data -->", "\u2028\u2029"]


def snapshot_with(texts):
    frames = [{"filename": t, "line": 7, "name": t} for t in texts]
    block = {"address": 4096, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": frames}
    segment = {"device": 0, "address": 4096, "total_size": 2097152, "allocated_size": 512, "active_size": 512,
               "requested_size": 500, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": [],
               "blocks": [block, {"address": 4608, "size": 2096640, "requested_size": 0, "state": "inactive",
                                  "frames": []}]}
    events = [{"action": "segment_alloc", "addr": 4096, "size": 2097152, "stream": 0, "time_us": 1, "frames": frames},
              {"action": "alloc", "addr": 4096, "size": 500, "stream": 0, "time_us": 2, "frames": frames}]
    marks = [{"name": t, "stage": "START", "device": 0, "time_us": 1} for t in texts]
    return {"segments": [segment], "device_traces": [events], "external_annotations": marks,
            "allocator_settings": {}}


def check_hostile_texts(work):
    counts = []
    for texts in (["tame"], HOSTILE):
        path, to = os.path.join(work, "hostile.pickle"), os.path.join(work, "hostile.html")
        with open(path, "wb") as file:
            pickle.dump(snapshot_with(texts), file, protocol=4)
        run(GMD, "report", path, "-o", to, expected=(0,))
        page = Page(to)
        h = page.history(0)
        assert frames_of(page, h, h["b.stack"][0]) == [(t, 7, t) for t in texts]
        assert [m["label"] for m in page.json["histories"][0]["marks"]] == texts
        counts.append(page.html.count("<"))
    assert counts[0] == counts[1], "a text added an element"
    print("hostile texts are texts")


def check_damaged(work):
    source = os.path.join(DATA, "histories", "cross_stream.pickle.gz")
    path, to = os.path.join(work, "damaged.pickle"), os.path.join(work, "kept.html")
    with gzip.open(source) as file:
        whole = file.read()
    with open(path, "wb") as file:
        file.write(whole[: len(whole) // 2])
    said = run(GMD, "report", path, "-o", to, expected=(2,))
    assert "damaged.pickle" in said, said
    assert not os.path.exists(to)
    with open(to, "w", encoding="utf-8") as file:
        file.write("of yesterday")
    run(GMD, "report", source, path, "-o", to, expected=(2,))
    with open(to, encoding="utf-8") as file:
        assert file.read() == "of yesterday"
    assert not [name for name in os.listdir(work) if name.startswith("kept.html.")], "a part was left"
    print("a damaged file makes no page")


with tempfile.TemporaryDirectory() as folder:
    for each in "resnet50_leak cross_stream raw_mixed_expand two_devices left_free_1.2 limit_and_empty_cache gpt_frames".split():
        check_history(folder, each)
    for each in "eval_leak hidden_leak simple_cycle_leak resnet50_leak".split():
        check_counted(folder, each)
    check_hostile_texts(folder)
    check_damaged(folder)
