#!/usr/bin/env python3
"""check_results.py GMD DATA TESTS - pages of runs, campaigns, a gate, benchmarks, advice and diffs have what the JSON of
the same command has; a violation points to its blocks and has its case."""
import json
import os
import shutil
import sys
import tempfile

from pages import Page, run

GMD, DATA, TESTS = sys.argv[1:4]
CASES = os.path.join(DATA, "..", "faulty", "cases")
EARLY = [os.path.join(CASES, "rmm510.gmd"), "--allocator", os.path.join(TESTS, "libstream_wait_pool.so")]
PLANTED = dict(os.environ, GMD_DEFECT="rmm510")


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def table(page, name):
    found = [t for t in page.json["tables"] if t["id"].rsplit("-", 1)[0] == name]
    assert len(found) == 1, "%d tables %s" % (len(found), name)
    assert all(len(row) == len(found[0]["columns"]) for row in found[0]["rows"])
    return found[0]["rows"]


def check_violation(work):
    to, result = os.path.join(work, "run.html"), os.path.join(work, "run.json")
    run(GMD, "run", *EARLY, "--quiet", "--cases", os.path.join(work, "cases"), "--html", to, "--json", result,
        expected=(1,), env=PLANTED)
    page, told = Page(to), read_json(result)
    for finding, violation in zip(page.json["findings"], told["violations"]):
        assert finding["title"].endswith(" (%s)" % violation["oracle"]), finding["title"]
        assert finding["detail"][0] == "%s says: %s." % (violation["oracle"], violation["message"])
    first = page.json["findings"][0]
    assert first["title"] == "A new owner need not wait for the earlier one's work (stream_order)"
    assert first["detail"][1] == "In rmm510.gmd, at request 4 of 0 to 4."
    assert first["class"] == "stream_order.reused_early"
    with open(first["case_path"], encoding="utf-8") as file:
        assert first["case"] == file.read()
    h, evidence = page.history(0), first["evidence"][0]
    new, old = evidence["blocks"]
    assert h["b.alloc"][new] == evidence["event"], "the request's own block"
    assert h["b.address"][new] == h["b.address"][old], "who had its memory before"
    assert h["b.stream"][new] != h["b.stream"][old]
    number = told["violations"][0]["request"]
    assert h["e.request"][evidence["event"]] == number, "the event is of the violation's request"
    marks = [m for m in page.json["histories"][0]["marks"] if m["kind"] == "violation"]
    assert (evidence["event"], "stream_order") in [(m["event"], m["label"]) for m in marks]
    print("a violation has its blocks and its case")


TWO_DEVICES = """gmd-trace 1
devices 2
alloc a 1MiB s1
alloc b 1MiB s1 device 1
free b
"""


def check_violation_without_block(work):
    """Memory of device 0 leaks. The last request, on device 1, has a block, which the leak is not about."""
    case, to = os.path.join(work, "two_devices.gmd"), os.path.join(work, "two_devices.html")
    with open(case, "w", encoding="utf-8") as file:
        file.write(TWO_DEVICES)
    run(GMD, "run", case, "--allocator", os.path.join(TESTS, "libplanted.so"), "--quiet", "--cases", "none", "--html", to,
        expected=(1,), env=dict(os.environ, GMD_PLANT="leak"))
    page = Page(to)
    finding = page.json["findings"][0]
    assert finding["detail"][0].startswith("leak says: device 0: "), finding["detail"]
    histories = page.json["histories"]
    assert [histories[e["history"]]["device"] for e in finding["evidence"]] == [0, 0]
    assert [e["blocks"] for e in finding["evidence"]] == [[], []]
    assert [e["label"] for e in finding["evidence"]][0] == "The moment of the request"
    event = finding["evidence"][0]["event"]
    assert [(m["event"], m["label"]) for m in histories[0]["marks"]] == [(event, "leak")] and not histories[1]["marks"]
    print("a violation without a block leads to its device, and to no block")


def check_again(work):
    """The page of the JSON of a run: the same findings and tables; the events are not in it."""
    to = os.path.join(work, "again.html")
    run(GMD, "report", os.path.join(work, "run.json"), "-o", to, expected=(1,))
    page, first = Page(to), Page(os.path.join(work, "run.html"))
    for f in first.json["findings"]:
        f["evidence"] = []
    for f in page.json["findings"]:
        why = f["detail"].pop()
        assert why.startswith("The views do not show its blocks: a JSON result has no history"), why
    assert page.json["findings"] == first.json["findings"]
    assert page.json["tables"] == first.json["tables"]
    assert not page.json["histories"]
    print("a JSON result makes the same page without histories")


def check_foreign_case(work):
    """Whose result it is may name any file as a case: what is no trace does not come into a page."""
    secret, path = os.path.join(work, "secret"), os.path.join(work, "foreign.json")
    with open(secret, "w", encoding="utf-8") as file:
        file.write("the secret of this machine\n")
    told = read_json(os.path.join(work, "run.json"))
    for violation in told["violations"] + told["scenarios"][0]["violations"]:
        violation["case"] = secret
    with open(path, "w", encoding="utf-8") as file:
        json.dump(told, file)
    run(GMD, "report", path, "-o", os.path.join(work, "foreign.html"), expected=(1,))
    assert Page(os.path.join(work, "foreign.html")).json["findings"][0]["case"] is None
    print("a file that is no case stays where it is")


def check_oracles(page, runs):
    """Each has what it looked at and what it took, of all runs together."""
    rows = {row[0]: row for row in table(page, "oracles")}
    assert list(rows) == [oracle["name"] for oracle in runs[0]["oracles"]]
    seconds = sum(run["seconds"] for run in runs)
    for name, row in rows.items():
        told = [oracle for run in runs for oracle in run["oracles"] if oracle["name"] == name]
        asked = sum(oracle.get("asked", 0) for oracle in told)
        assert row[2:6] == [sum(o["verdict"] == v for o in told) for v in ("pass", "fail", "skipped")] + [0]
        assert row[6] == (asked or None), name
        if asked:
            took = sum(oracle["seconds"] for oracle in told)
            assert abs(row[7] - took * 1e9) <= 1 and abs(row[8] - took * 1e9 / asked) <= 1, name
            assert abs(row[9] - took / seconds) < 1e-9, name
    assert rows["overlap"][6] > 0 and rows["overlap"][7] > 0


def check_runs(work):
    to, result = os.path.join(work, "runs.html"), os.path.join(work, "runs.json")
    run(GMD, "run", "hidden_state", "leak=true,false", "--quiet", "--html", to, "--json", result, expected=(0,))
    page, told = Page(to), read_json(result)
    assert len(page.json["histories"]) == 2
    phases = [[p["allocated"], p["max_allocated"], p["reserved"], p["max_reserved"]]
              for s in told["scenarios"] for p in s["phases"]]
    assert [row[2:] for row in table(page, "phases")] == phases
    assert [row[3] for row in table(page, "runs")] == [s["requests"] for s in told["scenarios"]]
    peaks = [s["stats"]["allocated_bytes_peak"] for s in told["scenarios"]]
    assert [h["peak"]["allocated"] for h in page.json["histories"]] == peaks
    h = page.history(0)
    assert all(h["b.line"]), "each block has the line of the script that asked for it"
    check_oracles(page, told["scenarios"])
    print("runs have their phases, peaks, oracles and histories")


def check_costs_of_many(page, told):
    """Sums over many runs: how many moments each looked at, and what they took, but no share of the time."""
    columns = next(t for t in page.json["tables"] if t["title"] == "Oracles")["columns"]
    assert [c["name"] for c in columns[2:]] == ["Verdict", "Violations", "Moments seen", "Time", "Time per moment",
                                                "Why skipped"]
    rows = {row[0]: row for row in table(page, "oracles")}
    for oracle in told:
        assert rows[oracle["name"]][4] == oracle.get("asked"), oracle
        assert rows[oracle["name"]][2] == oracle["verdict"], oracle
    assert rows["alignment"][4] > 0 and sum(row[5] or 0 for row in rows.values()) > 0


def check_gate(work):
    to, result = os.path.join(work, "gate.html"), os.path.join(work, "gate.json")
    run(GMD, "gate", "--quick", "--only", "cases/general/rmm868", "--out", "none", "--quiet", "--html", to, "--json",
        result, expected=(0,))
    page, told = Page(to), read_json(result)
    assert page.json["inputs"][0]["kind"] == "gate"
    assert [row[0] for row in table(page, "parts")] == [p["name"] for p in told["gate"]["parts"]]
    items = [i["name"] for p in told["gate"]["parts"] for i in p["items"]]
    assert [row[1] for row in table(page, "items") if row[2] != "skipped"] == items
    check_costs_of_many(page, told["gate"]["oracles"])
    print("a gate has its parts, items and what its oracles cost")


def check_campaign(work):
    to, result = os.path.join(work, "fuzz.html"), os.path.join(work, "fuzz.json")
    run(GMD, "fuzz", "--runs", "300", "--out", "none", "--quiet", "--html", to, "--json", result, expected=(0,))
    page, told = Page(to), read_json(result)
    assert (page.json["inputs"][0]["name"], page.json["inputs"][0]["kind"]) == ("fuzz of reference", "campaign")
    assert table(page, "runs")[0][3] == told["requests"]
    rows = table(page, "campaign")
    assert rows[-1][2] == told["requests"], "the last row is the end"
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(rows, rows[1:]))
    for at, key in enumerate(("sequences", "requests", "features", "corpus", "findings")):
        assert [row[at + 1] for row in rows] == [moment[key] for moment in told["course"]]
    covered = table(page, "coverage")
    assert covered == [[c["what"], c["seen"]] for c in told["coverage"]]
    assert sum(row[1] for row in covered) == told["course"][-1]["features"] > 0
    check_costs_of_many(page, told["scenarios"][0]["oracles"])
    print("a campaign has its course and its coverage")


def check_exhaustive(work):
    to, result = os.path.join(work, "all.html"), os.path.join(work, "all.json")
    run(GMD, "fuzz", "--exhaustive", "2", "--out", "none", "--quiet", "--html", to, "--json", result, expected=(0,))
    page, told = Page(to), read_json(result)
    covered = dict(table(page, "coverage"))
    assert covered == {c["what"]: c["seen"] for c in told["coverage"]}
    assert covered["Different states of the allocator"] == told["course"][-1]["features"] > 0
    assert table(page, "campaign")[-1][1] == covered["Runs: each sequence under each schedule"]
    print("an exhaustive search has its states")


def check_tables(work):
    """What other commands write: each row of the JSON is one of the page."""
    history = os.path.join(DATA, "histories", "resnet50_leak.pickle.gz")
    fixed = os.path.join(DATA, "histories", "resnet50_fixed.pickle.gz")
    for name, rows, key, command in (
            ("bench", "results", "ns_per_op", ["bench", "--filter", "pair_512B", "--seconds", "0.01"]),
            ("advise", "settings", "peak_reserved", ["advise", history, "--conf", "expandable_segments:True"]),
            ("diff", "lines", "before", ["diff", history, fixed])):
        to, again, result = (os.path.join(work, name + end) for end in (".html", "-again.html", ".json"))
        run(GMD, *command, "--quiet", "--html", to, "--json", result, expected=(0, 1))
        run(GMD, "report", result, "-o", again, expected=(0, 1))
        told = read_json(result)[rows]
        for path in (to, again):
            shown = table(Page(path), rows)
            assert len(shown) == len(told) > 0
            assert all(made[key] in row for made, row in zip(told, shown))
    assert len(Page(os.path.join(work, "diff.html")).json["histories"]) == 2
    advised = Page(os.path.join(work, "advise.html"))
    assert [h["name"] for h in advised.json["histories"]] == [os.path.basename(history)]
    assert advised.json["findings"][0]["class"] == "gradient_accumulation" and advised.json["findings"][0]["evidence"]
    print("benchmarks, advice and diffs have their rows")


def check_summaries(work):
    """What advice and a diff come to stands above their tables, also on the page of the JSON."""
    told = read_json(os.path.join(work, "advise.json"))
    for end in (".html", "-again.html"):
        advised = Page(os.path.join(work, "advise" + end)).json
        needed = told["settings"][0]["smallest_capacity"] / 2**20
        assert advised["inputs"][0]["summary"] == (
            "Best: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which needs %.1f MiB" % needed)
        assert advised["title"].startswith("gmd: advise: ")
        compared = Page(os.path.join(work, "diff" + end)).json
        difference = next(i for i in compared["inputs"] if i["kind"] == "diff")
        assert difference["summary"] == "Allocated at the peak: 454.9 MiB before, 429.0 MiB after (-25.9 MiB)"
    print("advice and diffs say what they come to")


def check_gain(work):
    """Advice for a job that may have other settings says what they need less than its own."""
    rows = [{"conf": "a:1", "recorded": False, "fits": True, "smallest_capacity": 92 << 20},
            {"conf": "", "recorded": True, "fits": True, "smallest_capacity": 100 << 20}]
    for settings, expected in (
            (rows, "Best: PYTORCH_CUDA_ALLOC_CONF=a:1, which needs 92.0 MiB; the recorded settings need 100.0 MiB (-8.0 %)"),
            (rows[::-1], "No setting is better than the recorded ones, PyTorch's defaults, which need 100.0 MiB"),
            ([dict(rows[0], fits=False)], "It does not fit; it would with PYTORCH_CUDA_ALLOC_CONF=a:1, in 92.0 MiB"),
            ([], "No settings were tried")):
        path, to = os.path.join(work, "gain.json"), os.path.join(work, "gain.html")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"command": "advise", "snapshot": "x", "verdict": "pass", "settings": settings}, file)
        run(GMD, "report", path, "-o", to, expected=(0,))
        assert Page(to).json["inputs"][0]["summary"] == expected, Page(to).json["inputs"][0]["summary"]
    print("advice says what its setting gains")


def check_diagnosis(work):
    result, to = os.path.join(work, "diagnosis.json"), os.path.join(work, "diagnosis.html")
    run(GMD, "diagnose", os.path.join(DATA, "histories", "eval_leak.pickle.gz"), "--quiet", "--json", result,
        expected=(1,))
    run(GMD, "report", result, "-o", to, expected=(1,))
    told, found = read_json(result)["findings"], Page(to).json["findings"]
    assert [(f["class"], f["bytes"], f["fix"]) for f in found] == [(f["class"], f["bytes"], f["fix"]) for f in told]
    print("a diagnosis has its findings")


def check_refusals(work):
    """A job whose requests were refused is not healthy, and its page names the limit that refused them: 0.5 GiB."""
    to, result = os.path.join(work, "refused.html"), os.path.join(work, "refused.json")
    history = os.path.join(DATA, "histories", "limit_and_empty_cache.pickle.gz")
    run(GMD, "diagnose", history, "--quiet", "--json", result, expected=(0,))
    run(GMD, "report", result, "-o", to, expected=(0,))
    assert Page(to).json["inputs"][0]["summary"] == "0 findings, 643 requests were refused for lack of memory"
    run(GMD, "report", history, "-o", to, expected=(0,))
    page = Page(to)
    given = page.json["inputs"][0]
    assert given["verdict"] == "out of memory, survived"
    assert "643 requests were refused for lack of memory, which the job survived" in given["summary"]
    ooms = [f for f in page.json["findings"] if f["kind"] == "oom"]
    limits = [d for f in ooms for d in f["detail"] if "memory limit was reached" in d]
    assert len(limits) == len(ooms) > 0
    assert all("at least 512.0 MiB and less than" in d for d in limits), limits
    print("a job whose requests were refused has its limit")


def check_several(work):
    inputs = [os.path.join(DATA, "histories", n + ".pickle.gz") for n in ("resnet50_leak", "resnet50_fixed")]
    inputs += [os.path.join(work, "bench.json"), os.path.join(work, "run.json"), os.path.join(DATA, "traces", "basic.gmd")]
    to = os.path.join(work, "several.html")
    run(GMD, "report", *inputs, "-o", to, expected=(1,))
    page = Page(to)
    assert [i["kind"] for i in page.json["inputs"]] == ["snapshot", "snapshot", "bench", "run", "run"]
    assert [h["input"] for h in page.json["histories"]] == [0, 1, 4]
    for row in table(page, "difference"):
        assert row[3] == row[2] - row[1]
    print("several inputs are on one page, with their difference by line")


def check_names(work):
    """Inputs of one name are told apart by their folders: recordings, and the runs of traces."""
    data = {"snap.pickle.gz": ("histories", "resnet50_leak.pickle.gz"), "c.gmd": ("traces", "basic.gmd")}
    inputs = []
    for name, source in data.items():
        for rank in ("r0", "r1"):
            os.makedirs(os.path.join(work, rank), exist_ok=True)
            inputs.append(os.path.join(work, rank, name))
            shutil.copy(os.path.join(DATA, *source), inputs[-1])
    to = os.path.join(work, "names.html")
    run(GMD, "report", *inputs, "-o", to, expected=(1,))
    page = Page(to)
    names = ["r0/snap.pickle.gz", "r1/snap.pickle.gz", "r0/c.gmd", "r1/c.gmd"]
    assert [i["name"] for i in page.json["inputs"]] == names
    assert [h["name"] for h in page.json["histories"]] == names
    columns = next(t for t in page.json["tables"] if t["id"].startswith("difference"))["columns"]
    assert [c["name"] for c in columns] == ["Line", *names[:2], "Difference"]
    for command, status in (("diagnose", 1), ("diff", 0)):
        run(GMD, command, *inputs[:2], "--quiet", "--html", to, expected=(status,))
        assert [h["name"] for h in Page(to).json["histories"]] == names[:2]
    print("inputs of one name have their folders")


def check_bad_results(work):
    for text, words in (('{"gmd": "0.1.0", "command": "bench"', "bad.json:1:"),
                        ('{"command": "bench", "allocator": "a", "verdict": "pass", "results": [{"ns_per_op": "x"}]}',
                         'bad.json: results[0]: "ns_per_op": expected a number'),
                        ('{"command": "bench", "allocator": "a", "verdict": "pass", "results": [3]}',
                         "bad.json: results[0]: expected an object"),
                        ('{"command": "advise"}', "bad.json: expected what gmd advise writes"),
                        ('{"command": "unheard-of", "gmd": "9"}', "bad.json: "),
                        ("[]", "bad.json")):
        path, to = os.path.join(work, "bad.json"), os.path.join(work, "bad.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        for inputs in ([path], [path, path]):
            said = run(GMD, "report", *inputs, "-o", to, expected=(2,))
            assert words in said, "%s: %s" % (text, said)
            assert not os.path.exists(to)
    print("a result that is none makes no page")


with tempfile.TemporaryDirectory() as folder:
    check_violation(folder)
    check_violation_without_block(folder)
    check_again(folder)
    check_foreign_case(folder)
    check_runs(folder)
    check_gate(folder)
    check_campaign(folder)
    check_exhaustive(folder)
    check_tables(folder)
    check_summaries(folder)
    check_gain(folder)
    check_diagnosis(folder)
    check_refusals(folder)
    check_several(folder)
    check_names(folder)
    check_bad_results(folder)
