#!/usr/bin/env python3
"""check_findings.py GMD DATA TESTS - on pages of a gate and of a campaign each finding points to its blocks in the history
of its case, or says why it cannot."""
import json
import os
import re
import sys
import tempfile

from pages import Page, run

GMD, TESTS = sys.argv[1], sys.argv[3]
PLANTED = os.path.join(TESTS, "libplanted.so")


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check_parties(page, number, name):
    """The finding's case was run once more: its two blocks have the same memory, at the event of its request."""
    finding = page.json["findings"][number]
    for evidence in finding["evidence"]:
        h = page.history(evidence["history"])
        new, old = evidence["blocks"]
        assert h["b.alloc"][new] == evidence["event"], "the request's own block"
        first, second = sorted((old, new), key=lambda block: h["b.address"][block])
        assert h["b.address"][first] + h["b.size"][first] > h["b.address"][second], "they share memory"
        info = page.json["histories"][evidence["history"]]
        assert info["name"] == os.path.basename(finding["case_path"])
        assert (evidence["event"], name) in [(m["event"], m["label"]) for m in info["marks"]]
        assert not info["truncated"]
    assert [e["view"] for e in finding["evidence"]] == ["timeline", "state"]


def check_findings_of_gate(work):
    planted = dict(os.environ, GMD_PLANT="overlap")
    options = ["--quick", "--allocator", PLANTED, "--quiet"]
    to, result, cases = (os.path.join(work, name) for name in ("found.html", "found.json", "found"))
    run(GMD, "gate", *options, "--only", "cases/general/cub329", "--out", cases, "--html", to, "--json", result,
        expected=(1,), env=planted)
    page = Page(to)
    for finding, told in zip(page.json["findings"], read_json(result)["gate"]["findings"]):
        assert finding["title"].endswith(" (%s)" % told["oracle"]), finding["title"]
        assert finding["detail"][0] == "%s says: %s." % (told["oracle"], told["message"])
        where = "at request %d of 0 to %d." % (told["request"], told["case_requests"] - 1)
        assert finding["detail"][2] == "In the minimised case, " + where, finding["detail"]
    rows = next(t for t in page.json["tables"] if t["title"] == "Oracles")["rows"]
    assert [row[2:4] for row in rows if row[0] == "overlap"] == [["fail", 1]]
    assert page.json["findings"][0]["title"] == "Two live blocks share bytes (overlap)"
    assert page.json["findings"][0]["class"] == "overlap.shared"
    check_parties(page, 0, "overlap")
    assert len(page.json["histories"]) == len(page.json["findings"])
    again = os.path.join(work, "found-again.html")
    run(GMD, "report", result, "-o", again, expected=(1,))
    for finding, shown in zip(Page(again).json["findings"], page.json["findings"]):
        assert finding["case"] == shown["case"] and not finding["evidence"]
        assert "a JSON result has no history" in finding["detail"][-1]
    run(GMD, "gate", *options, "--only", "cases/general/cub329", "--out", "none", "--html", to, expected=(1,), env=planted)
    page = Page(to)
    assert "no case was written" in page.json["findings"][0]["detail"][-1] and not page.json["histories"]
    print("a gate's findings have their blocks, or why they have none")


def check_finding_that_ends_the_process(work):
    to = os.path.join(work, "crash.html")
    run(GMD, "gate", "--quick", "--fail-fast", "--only", "cases", "--allocator", PLANTED,
        "--quiet", "--out", os.path.join(work, "crash"), "--html", to, expected=(1,),
        env=dict(os.environ, GMD_PLANT="crash"))
    page = Page(to)
    assert page.json["findings"][0]["class"] == "progress.crash"
    assert page.json["histories"][0]["events"] > 1
    print("a crash has the history of what came before")


def check_findings_of_campaign(work):
    to = os.path.join(work, "campaign.html")
    run(GMD, "fuzz", "--runs", "3000", "--without", "fault,budget", "--quiet", "--allocator",
        PLANTED, "--out", os.path.join(work, "campaign"), "--html", to, expected=(1,),
        env=dict(os.environ, GMD_PLANT="overlap"))
    page = Page(to)
    found = [f["class"] for f in page.json["findings"]]
    check_parties(page, found.index("overlap.shared"), "overlap")
    for finding in page.json["findings"]:
        assert finding["replay"].startswith("gmd run %s --allocator " % finding["case_path"]), finding["replay"]
        assert re.fullmatch(r"Found after [0-9.]+ s, [0-9,]+ times? in all\.", finding["detail"][1]), finding["detail"]
        assert re.fullmatch(r"In the minimised case, at request [0-9]+ of 0 to [0-9]+\."
                            "|In the minimised case, at the end\\.", finding["detail"][2]), finding["detail"]
    print("a campaign's findings have their blocks")


with tempfile.TemporaryDirectory() as folder:
    check_findings_of_gate(folder)
    check_finding_that_ends_the_process(folder)
    check_findings_of_campaign(folder)
