#!/usr/bin/env python3
"""check_snapshot.py GMD PLANTED BARE DATA - what --snapshot writes, read by Python's own pickle: one function for each
claim. PLANTED: the allocator with planted defects, BARE: one that exports nothing but its two functions; DATA: the
folder tests/data."""
import gzip
import os
import pickle
import subprocess
import sys
import tempfile

GMD, PLANTED, BARE, DATA = sys.argv[1:5]
WORK = tempfile.TemporaryDirectory()
MIB = 1 << 20
CLAIMS = []


def claim(function):
    CLAIMS.append(function)
    return function


def gmd(status, *arguments, plant=""):
    """Runs it; what it said."""
    done = subprocess.run([GMD, *arguments, "--cases", "none"], cwd=WORK.name, env={**os.environ, "GMD_PLANT": plant},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    assert done.returncode == status, "gmd %s: status %d: %s" % (" ".join(arguments), done.returncode, done.stdout)
    return done.stdout


def snapshot(status, *arguments, name="snapshot.pickle", plant=""):
    path = os.path.join(WORK.name, name)
    gmd(status, *arguments, "--quiet", "--snapshot", path, plant=plant)
    with (gzip.open if name.endswith(".gz") else open)(path, "rb") as file:
        return pickle.load(file)


def trace(*lines):
    path = os.path.join(WORK.name, "case.gmd")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(("gmd-trace 1",) + lines) + "\n")
    return path


def actions(shot, device=0):
    return [e["action"] for e in shot["device_traces"][device]]


def frame(record):
    return "%(filename)s:%(line)d:%(name)s" % record["frames"][0]


def blocks(shot):
    return [b for s in shot["segments"] for b in s["blocks"]]


def check_sums(shot):
    for s in shot["segments"]:
        at = s["address"]
        for b in s["blocks"]:
            assert b["address"] == at, (s, b)
            at += b["size"]
        assert at == s["address"] + s["total_size"], s
        assert s["allocated_size"] == sum(b["size"] for b in s["blocks"] if b["state"] == "active_allocated"), s


@claim
def frames_of_a_case_name_its_file_line_and_block():
    shot = snapshot(0, "run", DATA + "/traces/basic.gmd")
    events = {e["action"]: frame(e) for e in reversed(shot["device_traces"][0])}
    assert events["segment_alloc"] == events["alloc"] == "basic.gmd:4:a", events
    assert events["free_requested"] == "basic.gmd:7:a", events
    assert events["oom"] == "basic.gmd:11:c", events


@claim
def frames_of_a_scenario_name_the_line_of_its_script():
    script = os.path.join(WORK.name, "two_lines.lua")
    with open(script, "w", encoding="utf-8") as file:
        file.write('scenario { name = "two_lines", summary = "two tensors" }\n\nkept = zeros { 1024 }\nmore = zeros { 2048 }\n')
    shot = snapshot(0, "run", script)
    lines = [frame(e) for e in shot["device_traces"][0] if e["action"] == "alloc"]
    assert [line.rsplit(":", 2)[:2] for line in lines] == [["two_lines.lua", "3"], ["two_lines.lua", "4"]], lines


@claim
def a_refusal_tells_what_the_device_had_left():
    shot = snapshot(0, "run", trace("capacity 100MiB", "alloc a 30MiB s1", "alloc b 80MiB s1"))
    refusal = shot["device_traces"][0][-1]
    assert refusal["action"] == "oom" and refusal["size"] == 80 * MIB, refusal
    assert refusal["device_free"] == 70 * MIB, refusal


@claim
def what_is_live_at_the_end_is_allocated_in_it():
    shot = snapshot(0, "run", trace("alloc a 5MiB s1", "alloc b 1000 s1", "alloc c 700 s1", "free b"))
    live = {frame(b): (b["size"], b["requested_size"]) for b in blocks(shot) if b["state"] == "active_allocated"}
    assert live == {"case.gmd:2:a": (5 * MIB, 5 * MIB), "case.gmd:4:c": (1024, 700)}, live
    check_sums(shot)


@claim
def a_block_that_waits_for_a_stream_is_pending():
    shot = snapshot(0, "run", trace("alloc a 5MiB s1", "use a s2 100us", "record a s2", "free a"))
    assert actions(shot)[-1] == "free_requested", actions(shot)
    assert [b["state"] for b in blocks(shot) if b["state"] != "inactive"] == ["active_pending_free"]


@claim
def a_block_that_waited_is_completed_in_the_request_that_finds_it_so():
    shot = snapshot(0, "run", trace("alloc a 5MiB s1", "use a s2 100us", "record a s2", "free a", "advance 200us",
                                    "alloc b 30MiB s1"))
    assert actions(shot) == ["segment_alloc", "alloc", "free_requested", "free_completed", "segment_alloc",
                             "alloc"], actions(shot)


@claim
def an_allocator_that_exports_nothing_is_told_from_outside():
    shot = snapshot(0, "run", trace("alloc a 5MiB s1", "alloc b 6MiB s2", "free a"), "--allocator", BARE)
    assert actions(shot).count("alloc") == 2 and "segment_alloc" in actions(shot), actions(shot)
    assert [frame(b) for b in blocks(shot) if b["state"] == "active_allocated"] == ["case.gmd:3:b"]
    check_sums(shot)


@claim
def what_came_before_a_crash_is_there():
    shot = snapshot(1, "run", DATA + "/traces/basic.gmd", "--allocator", PLANTED, plant="crash")
    assert actions(shot).count("alloc") == 2, actions(shot)
    check_sums(shot)


@claim
def a_run_that_a_violation_ended_is_told_to_there():
    shot = snapshot(1, "run", DATA + "/traces/plain.gmd", "--allocator", PLANTED, plant="wrong_sum")
    assert "alloc" in actions(shot), actions(shot)
    check_sums(shot)


@claim
def each_device_has_its_own_events():
    shot = snapshot(0, "run", trace("devices 2", "alloc a 5MiB s1", "alloc b 6MiB s1 device 1", "alloc c 1MiB s1"))
    assert actions(shot, 0).count("alloc") == 2 and actions(shot, 1).count("alloc") == 1
    assert sorted((s["device"], s["total_size"] // MIB) for s in shot["segments"]) == [(0, 2), (0, 20), (1, 20)]


@claim
def expandable_segments_are_what_is_mapped():
    shot = snapshot(0, "run", trace("conf expandable_segments:True", "alloc a 30MiB s1", "alloc b 30MiB s1"))
    assert actions(shot) == ["segment_map", "alloc"] * 2, actions(shot)
    assert [(s["total_size"], s["is_expandable"]) for s in shot["segments"]] == [(60 * MIB, True)]
    assert shot["allocator_settings"]["expandable_segments"] is True


@claim
def settings_are_those_of_the_run():
    settings = snapshot(0, "run", DATA + "/traces/basic.gmd", "--conf",
                        "max_split_size_mb:128,roundup_power2_divisions:4")["allocator_settings"]
    assert settings["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:128,roundup_power2_divisions:4", settings
    assert settings["max_split_size"] == 128 * MIB, settings
    assert settings["roundup_power2_divisions"]["1024"] == 4, settings


@claim
def the_same_run_gives_the_same_bytes():
    contents = []
    for name in "one.pickle.gz", "two.pickle.gz":
        snapshot(0, "run", "hidden_state", "iterations=2", name=name)
        with open(os.path.join(WORK.name, name), "rb") as file:
            contents.append(file.read())
    assert contents[0] == contents[1]


@claim
def a_name_that_ends_in_gz_is_compressed_and_holds_the_same():
    assert snapshot(0, "run", "hidden_state", "iterations=2", name="packed.pickle.gz") == \
        snapshot(0, "run", "hidden_state", "iterations=2")


@claim
def threads_that_interleave_are_all_there():
    shot = snapshot(0, "run", DATA + "/traces/threads.gmd", "--interleave", "seed 3")
    assert actions(shot).count("alloc") == actions(shot).count("free_requested") > 0, actions(shot)
    check_sums(shot)


@claim
def a_second_run_is_refused():
    said = gmd(2, "run", "hidden_state", "iterations=1,2", "--snapshot", os.path.join(WORK.name, "two.pickle"))
    assert "--snapshot holds one run" in said, said


@claim
def a_run_that_did_not_come_about_leaves_an_empty_snapshot():
    shot = snapshot(2, "run", "no_such_file.gmd")
    assert shot["segments"] == [] and shot["device_traces"] == [], shot


@claim
def a_replay_keeps_what_the_program_noted():
    path = os.path.join(WORK.name, "noted.pickle")
    shot = snapshot(0, "run", trace("alloc a 5MiB s1", "free a"), name="noted.pickle")
    for e in shot["device_traces"][0]:
        e["user_metadata"], e["compile_context"] = "step 7", "0/1"
    shot["external_annotations"] = [{"stage": "START", "name": "Optimizer.step#SGD.step", "device": 0, "time_us": 1}]
    with open(path, "wb") as file:
        pickle.dump(shot, file)
    again = snapshot(0, "replay", path, name="again.pickle")
    assert {(e["user_metadata"], e["compile_context"]) for e in again["device_traces"][0]} == {("step 7", "0/1")}
    assert again["external_annotations"] == shot["external_annotations"], again["external_annotations"]


@claim
def the_events_of_a_replay_have_the_recorded_times():
    path = DATA + "/histories/hidden_leak.pickle.gz"
    with gzip.open(path, "rb") as file:
        recorded = pickle.load(file)
    times = [[e["time_us"] for e in shot["device_traces"][0] if e["action"] == "alloc"]
             for shot in (recorded, snapshot(0, "replay", path))]
    assert times[0] == times[1]


@claim
def the_own_reader_replays_it_exactly():
    snapshot(0, "run", "hidden_state", "iterations=3", name="replayed.pickle")
    said = gmd(0, "replay", "--check", os.path.join(WORK.name, "replayed.pickle"))
    assert "  exact: " in said, said


if __name__ == "__main__":
    failed = 0
    for each in CLAIMS:
        try:
            each()
            print("ok    ", each.__name__)
        except AssertionError as error:
            print("FAILED", each.__name__, error)
            failed += 1
    sys.exit(1 if failed else 0)
