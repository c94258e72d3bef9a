#!/usr/bin/env python3
"""score_scenarios.py GMD SOURCE: how often `gmd diagnose` is right about histories whose truth is known.

Each case is a scenario of gmd with parameters and a seed, drawn by its number. `gmd run --snapshot` makes
its history; what is wrong with it follows from the scenario's variant and from figures of the run that the
diagnosis does not see: whether the scenario's bound was passed, what the phases held, what the same requests
need with expandable segments. Cases with even numbers are those that rules may be written on. The odd ones
are held: only their sums are told.

SOURCE is gmd's source folder. --half written|held|both, --count N cases of each family and half, --families
NAME,..., --show tells of each case that is wrong (not of held ones), --results FILE writes the page,
--least N: exit status 1 if fewer than N in 100 classes are right, or if a healthy case is accused."""
import argparse
import collections
import concurrent.futures
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import textwrap

MIB = 1 << 20

INTRODUCTION = """Each case is a scenario with parameters and a seed, all drawn. What is wrong in it follows
from its variant and from figures of its run that the diagnosis does not see: its bound, its phases, what the
same requests need with expandable segments. Rules were written while looking at the written half; of the held
half nobody has looked at a case. A line is right if it is one that allocates what is held, or what does not
fit. As a checkpoint's cache, `retained_graph` is right as well, and as kept metrics `eval_graph`: the frames of
a scenario are its own lines, and tell neither."""
HALVES = ("written", "held")


class Kept(Exception):
    """The case's history cannot show what its label says; the text says why."""


# --- what a run says of itself --------------------------------------------------------------------


def passes_bound(run, play):
    """A leaking variant that stays within its own bound is too short or too small to leak."""
    if run["bounds"][0]["held"]:
        raise Kept("the run holds its bound: it is too short or too small to leak")


def matters(run, play):
    """What is wrong must be a part of the peak that somebody would look for."""
    peak, mended = (each["stats"]["allocated_bytes_peak"] for each in (run, play(["leak=false"])))
    if (peak - mended) * 100 < 15 * peak:
        raise Kept("the mistake is less than 15 % of the peak")


def grows_long(run, play):
    """A habit is told from what is made once by three rises after the first two steps, and before the last."""
    ends = [phase["allocated"] for phase in run["phases"]][1:-1]
    rises = [b - a for a, b in zip(ends, ends[1:]) if b > a]
    if sum(each * 4 > max(rises) for each in rises) < 3:
        raise Kept("fewer than three rises between the second step and the last: a habit cannot be told")


def leaks(run, play):
    grows_long(run, play)
    matters(run, play)


def falls_of(run):
    """Where ends of phases have much less than the one before: [phase, bytes left]."""
    ends = [phase["allocated"] for phase in run["phases"]]
    rises = sorted(b - a for a, b in zip(ends, ends[1:]) if b > a)
    least = 1.5 * rises[len(rises) // 2] if rises else 0
    falls = [[i, b] for i, (a, b) in enumerate(zip(ends, ends[1:]), 1) if least and a - b > least]
    return [fall for k, fall in enumerate(falls) if k == 0 or fall[0] - falls[k - 1][0] > 1], least


def is_collected(run, play):
    """What waits for the collector, and is never collected, looks like anything else that is kept; what goes at
    even distances, down to the same level, looks like a program's own gc.collect()."""
    passes_bound(run, play)
    falls, least = falls_of(run)
    if len(falls) < 2:
        raise Kept("the collector ran less than twice: nothing tells a cycle from what is kept")
    gaps = [b[0] - a[0] for a, b in zip(falls, falls[1:])]
    left = [each for _, each in falls]
    if max(gaps) - min(gaps) <= 1 and max(left) - min(left) <= least:
        raise Kept("the collector ran at even distances, down to the same level, as a program's own gc.collect()")


def collects_in_time(run, play):
    """The collector runs by itself when 700 containers were made (CPython 3.12), about."""
    given = dict(each.split("=") for each in play.parameters)
    free_lists = 310 if play.case.family.scenario == "reference_cycle" else 0
    if int(given["interval"]) * (int(given["objects"]) + 20) + free_lists >= 600:
        raise Kept("the collector runs before the program's own gc.collect() does")


def gets_full(run, play):
    """A buffer that is still being filled looks like a leak."""
    given = {key: int(value) for key, value in (each.split("=") for each in play.parameters)}
    if given["room"] + 4 > given["iterations"]:
        raise Kept("the buffer does not get full, or only just")


def fragments(run, play):
    """Whether the same requests need far less in the end where free memory can be put together."""
    whole = play(["--conf", "expandable_segments:True"])
    reserved = run["phases"][-1]["reserved"]
    saved = reserved - whole["phases"][-1]["reserved"]
    if saved * 5 >= reserved and saved >= 192 * MIB:
        return "fragmentation"
    if saved * 20 < reserved or saved < 64 * MIB:
        return "healthy"
    raise Kept("expandable segments save neither much nor little")


def does_not_fit(run, play):
    if not run["stats"]["num_ooms"]:
        raise Kept("the limit was enough")
    conf = ["--conf", "expandable_segments:True"]
    whole = play(conf)
    if whole["stats"]["num_ooms"] and whole["requests"] <= 1.02 * run["requests"]:
        return "true_capacity"
    play.limit = [play.limit[0], str(int(play.limit[1]) * 85 // 100)]
    if not play(conf)["stats"]["num_ooms"]:
        return "fragmentation"
    raise Kept("with expandable segments it comes further, and would not with 15 % less")


def early_truth(run, play):
    """What is idle from the search on, and would not be with an emptied cache."""
    reserved = run["phases"][-1]["reserved"]
    idle = reserved - play(["leak=false"])["phases"][-1]["reserved"]
    if idle >= 320 * MIB and idle * 100 >= reserved * 65:
        return "cached_not_released"
    if idle < 128 * MIB or idle * 100 < reserved * 35:
        return fragments(run, play)
    raise Kept("neither much nor little is idle")


def waits_for_stream(run, play):
    """What is reserved beyond the variant whose frees need not wait."""
    reserved = run["stats"]["reserved_bytes_peak"]
    waiting = reserved - play(["leak=false"])["stats"]["reserved_bytes_peak"]
    if waiting * 4 >= reserved and waiting >= 64 * MIB:
        return "cross_stream_pending"
    raise Kept("less than a quarter of what is reserved waits for a stream")


# --- the families ---------------------------------------------------------------------------------

Family = collections.namedtuple("Family", "scenario klass lines parameters fixed also check limit")


def family(scenario, klass, parameters, lines=(), also=(), check=None, limit=None, **fixed):
    """klass: the truth, or a function of (run, play) that finds it. lines: texts of the guilty lines. also: classes
    that are right as well. limit: percent of the reserved peak, drawn between two, that the run is allowed."""
    return Family(scenario, klass, lines, parameters, fixed, also, check, limit)


def whole(low, high):
    """A whole number between two; its logarithm is drawn evenly."""
    return lambda draw: round(low * (high / low) ** draw.random())


def one_of(*choices):
    return lambda draw: draw.choice(choices)


WIDTHS = one_of(256, 384, 512, 768, 1024, 1536, 2048)
METRICS = {"iterations": whole(5, 50), "batch": whole(64, 2048), "inputs": WIDTHS, "hidden": whole(256, 6144),
           "classes": whole(10, 4000), "validate": whole(64, 2048)}
HIDDEN = {"iterations": whole(5, 60), "batch": whole(8, 128), "length": whole(10, 150), "input": WIDTHS,
          "hidden": WIDTHS, "layers": one_of(1, 2, 3, 4)}
EVALUATION = {"iterations": whole(4, 60), "batch": whole(256, 8192), "layers": whole(3, 40), "features": WIDTHS}
CHECKPOINT = {"iterations": whole(5, 50), "layers": whole(2, 24), "features": WIDTHS, "batch": whole(256, 4096)}
DYNAMIC = {"iterations": whole(6, 60), "batch": whole(256, 4096), "features": WIDTHS, "max_depth": whole(2, 30)}
LOGGING = {"iterations": whole(8, 90), "every": one_of(1, 2, 3, 4, 5), "batch": whole(256, 4096),
           "features": WIDTHS, "layers": whole(2, 20)}
CLOSURE = {"iterations": whole(10, 70), "steps": one_of(1, 2, 3, 5), "batch": whole(64, 1024), "features": WIDTHS,
           "layers": whole(2, 10), "objects": whole(20, 500)}
CYCLE = {"iterations": whole(15, 150), "bytes": whole(4 * MIB, 200 * MIB), "objects": whole(20, 500)}
CYCLE_FIXED = dict(CYCLE, interval=one_of(1, 2, 3, 5, 8, 10))
AWAITABLE = {"iterations": whole(20, 150), "tables": whole(1, 10), "batch": whole(2048, 65536),
             "features": whole(32, 512), "objects": whole(5, 200)}
GRADIENTS = {"iterations": whole(3, 15), "batch": one_of(1, 2, 4, 8, 16), "classes": whole(10, 2000)}
VARIABLE = {"iterations": whole(12, 80), "layers": one_of(2, 3, 4, 6, 8), "features": one_of(256, 512, 768),
            "heads": one_of(4, 8), "hidden": one_of(1024, 2048), "max_batch": whole(16, 160),
            "max_length": whole(50, 300)}
FIRST = {"epochs": one_of(1, 2, 3), "iterations": whole(3, 10), "batch": whole(32, 512), "side": one_of(16, 28, 32)}
LOOP = {"iterations": whole(10, 100), "rows": whole(1024, 65536), "columns": WIDTHS}
BROADCAST = {"iterations": whole(4, 40), "points": whole(128, 2048), "features": whole(16, 256)}
STREAM = {"iterations": whole(6, 50), "synchronize": whole(2, 24), "layers": whole(4, 30), "features": WIDTHS,
          "batch": whole(128, 2048), "bucket": whole(2 * MIB, 60 * MIB)}
DDP = {"iterations": whole(4, 40), "layers": whole(4, 30), "features": WIDTHS, "batch": whole(64, 2048),
       "bucket": one_of(0, 4 * MIB, 60 * MIB)}
SERVING = {"iterations": whole(80, 400), "layers": one_of(2, 4, 8), "heads": one_of(8, 16, 32), "depth": one_of(64, 128),
           "capacity": whole(8192, 65536), "max_prompt": whole(256, 4096), "max_output": whole(64, 512),
           "page": one_of(16, 32, 64, 128)}
PIPELINE = {"iterations": whole(3, 10), "ranks": one_of(2, 4), "stages": one_of(1, 2, 3), "microbatches": one_of(4, 8, 16),
            "layers": one_of(1, 2, 3), "features": WIDTHS, "batch": whole(128, 4096)}
EXPERTS = {"iterations": whole(8, 40), "layers": one_of(2, 3, 4, 6), "experts": one_of(2, 4, 8),
           "features": one_of(256, 512, 1024), "hidden": one_of(1024, 2048), "tokens": whole(512, 8192)}
CHECKPOINTED = {"iterations": whole(3, 15), "layers": whole(2, 16), "features": one_of(256, 512, 768),
                "batch": whole(4, 32), "length": whole(32, 384)}
PRECISION = {"iterations": whole(3, 15), "layers": whole(3, 20), "features": WIDTHS, "batch": whole(1024, 16384)}
RESNET = {"batch": whole(4, 64), "side": one_of(64, 128, 224), "iterations": whole(3, 10),
          "optimizer_name": one_of("sgd", "momentum", "adam"), "accumulate": one_of(1, 2, 4),
          "precision": one_of("bfloat16", "float16"), "set_to_none": one_of("true", "false")}
SEQ2SEQ = {"iterations": whole(3, 8), "batch": whole(10, 80), "length": whole(5, 40), "vocabulary": whole(2000, 30000),
           "features": one_of(128, 256, 500), "hidden": one_of(256, 512, 1000)}
LSTM = {"batch": whole(8, 64), "length": whole(10, 80), "vocabulary": whole(2000, 30000), "features": WIDTHS,
        "hidden": WIDTHS, "layers": one_of(1, 2, 3), "gru": one_of("true", "false"), "iterations": whole(3, 15)}
TRANSFORMER = {"batch": whole(4, 48), "length": whole(16, 256), "features": one_of(256, 512, 768), "layers": whole(2, 12),
               "classes": whole(10, 5000), "gelu": one_of("true", "false"), "clip": one_of("true", "false"),
               "iterations": whole(3, 15)}
GPT = {"length": whole(64, 256), "iterations": whole(3, 10), "accumulate": one_of(1, 2, 4), "vocabulary": whole(5000, 50304),
       "features": one_of(384, 768), "layers": whole(2, 8), "precision": one_of("float16", "bfloat16")}
EARLY = {"iterations": whole(8, 60), "search": one_of(16, 32, 64, 128), "batch": whole(64, 512), "features": WIDTHS,
         "layers": whole(3, 12)}
STORED = {"iterations": whole(5, 40), "batch": whole(32, 1024), "features": one_of(128, 192, 256, 384, 512),
          "layers": one_of(2, 3, 4)}
REPLAY = {"iterations": whole(30, 120), "room": whole(5, 40), "entry": whole(256, 4096), "features": one_of(256, 512, 1024),
          "layers": whole(2, 8), "batch": whole(128, 2048)}
BEST = {"iterations": whole(10, 80), "epoch": whole(2, 12), "accumulate": one_of(1, 2, 4), "batch": whole(64, 2048),
        "features": WIDTHS, "layers": whole(2, 10)}
CURRICULUM = {"iterations": whole(16, 60), "every": whole(4, 12), "longer": whole(8, 64), "batch": whole(4, 32),
              "features": one_of(256, 512), "layers": whole(2, 6)}
FEATURES = {"batches": whole(3, 30), "epochs": one_of(2, 3, 4, 6), "batch": whole(128, 4096), "features": WIDTHS,
            "layers": whole(2, 10)}


FAMILIES = {
    "metrics": family("metrics", "retained_graph", METRICS, check=leaks, also=("eval_graph",),
                      lines=("output = model(", "loss = cross_entropy(output", "cross_entropy(model(")),
    "metrics_fixed": family("metrics", "healthy", METRICS, leak="false"),
    "metrics_limit": family("metrics", "retained_graph", dict(METRICS, iterations=whole(20, 50)), check=grows_long,
                            limit=(60, 90), also=("eval_graph",),
                            lines=("output = model(", "loss = cross_entropy(output", "cross_entropy(model(")),
    "hidden_state": family("hidden_state", "hidden_state", HIDDEN, check=leaks, lines=("= lstm(",)),
    "hidden_state_fixed": family("hidden_state", "healthy", HIDDEN, leak="false"),
    "evaluation": family("evaluation", "eval_graph", EVALUATION, check=matters, lines=("loss = model(",)),
    "evaluation_fixed": family("evaluation", "healthy", EVALUATION, leak="false"),
    "checkpoint_cache": family("checkpoint_cache", "checkpoint_cache", CHECKPOINT, check=leaks,
                               also=("retained_graph",), lines=("x = checkpoint(", "x = randn")),
    "checkpoint_cache_fixed": family("checkpoint_cache", "healthy", CHECKPOINT, leak="false"),
    "dynamic_graph": family("dynamic_graph", "retained_graph", DYNAMIC, check=leaks,
                            lines=("state = relu(", "loss = cross_entropy(")),
    "dynamic_graph_fixed": family("dynamic_graph", "healthy", DYNAMIC, leak="false"),
    "logging_tensors": family("logging_tensors", "retained_graph", LOGGING, check=leaks, lines=("x = relu(",)),
    "logging_tensors_fixed": family("logging_tensors", "healthy", LOGGING, leak="false"),
    "closure_cycle": family("closure_cycle", "reference_cycle", CLOSURE, check=is_collected,
                            lines=("parts[k] = nn.Linear", "trainer.optimizer:step()", "):backward()")),
    "closure_cycle_fixed": family("closure_cycle", "healthy", dict(CLOSURE, interval=one_of(1, 2, 3, 5)), check=collects_in_time, leak="false"),
    "reference_cycle": family("reference_cycle", "reference_cycle", CYCLE, check=is_collected,
                              lines=("a.data =", "b.data =")),
    "reference_cycle_fixed": family("reference_cycle", "healthy", CYCLE_FIXED, check=collects_in_time, leak="false"),
    "awaitable_cycle": family("awaitable_cycle", "reference_cycle", AWAITABLE, check=is_collected,
                              lines=("awaitable.tensor =",)),
    "awaitable_cycle_fixed": family("awaitable_cycle", "healthy", AWAITABLE, leak="false"),
    "gradient_accumulation_fixed": family("gradient_accumulation", "healthy", GRADIENTS, leak="false"),
    "stored_gradients": family("stored_gradients", "gradient_accumulation", STORED, check=leaks, lines=(":clone()",)),
    "stored_gradients_fixed": family("stored_gradients", "healthy", STORED, leak="false"),
    "variable_batch": family("variable_batch", fragments, VARIABLE, lines=("model(randn",)),
    "variable_batch_fixed": family("variable_batch", "healthy", VARIABLE, leak="false"),
    "inference_serving": family("inference_serving", fragments, SERVING, lines=("request.cache",)),
    "inference_serving_fixed": family("inference_serving", "healthy", SERVING, leak="false"),
    "mixture_of_experts": family("mixture_of_experts", fragments, EXPERTS, lines=("results:append", "results[k]:backward")),
    "mixture_of_experts_fixed": family("mixture_of_experts", "healthy", EXPERTS, leak="false"),
    "allocate_in_loop": family("allocate_in_loop", fragments, LOOP, lines=("left = empty", "right = empty", "sums = left")),
    "allocate_in_loop_fixed": family("allocate_in_loop", "healthy", LOOP, leak="false"),
    "early_phase": family("early_phase", early_truth, EARLY, lines=("loss = model(", "loss:backward")),
    "early_phase_fixed": family("early_phase", fragments, EARLY, leak="false",
                                lines=("loss = model(", "loss:backward")),
    "stream_buckets": family("stream_buckets", waits_for_stream, STREAM, lines=("each = empty",)),
    "stream_buckets_fixed": family("stream_buckets", "healthy", STREAM, leak="false"),
    "ddp_buckets": family("ddp_buckets", "healthy", DDP, leak=one_of("true", "false")),
    "first_iteration_peak": family("first_iteration_peak", "healthy", FIRST),
    "broadcast_temporaries": family("broadcast_temporaries", "healthy", BROADCAST, leak=one_of("true", "false")),
    "pipeline": family("pipeline", "healthy", PIPELINE, leak=one_of("true", "false")),
    "gradient_checkpointing": family("gradient_checkpointing", "healthy", CHECKPOINTED, leak=one_of("true", "false")),
    "mixed_precision": family("mixed_precision", "healthy", PRECISION, leak=one_of("true", "false")),
    "resnet50": family("resnet50", "healthy", RESNET),
    "seq2seq": family("seq2seq", "healthy", SEQ2SEQ),
    "lstm": family("lstm", "healthy", LSTM),
    "transformer": family("transformer", "healthy", TRANSFORMER),
    "gpt": family("gpt", "healthy", GPT),
    "replay_buffer": family("replay_buffer", "healthy", REPLAY, check=gets_full),
    "best_so_far": family("best_so_far", "healthy", BEST),
    "curriculum": family("curriculum", fragments, CURRICULUM, lines=("loss = model(", "loss:backward")),
    "feature_cache": family("feature_cache", "healthy", FEATURES),
    "resnet50_limit": family("resnet50", does_not_fit, RESNET, limit=(50, 95)),
    "transformer_limit": family("transformer", does_not_fit, TRANSFORMER, limit=(50, 95)),
    "lstm_limit": family("lstm", does_not_fit, LSTM, limit=(50, 95)),
    "mixed_precision_limit": family("mixed_precision", does_not_fit, PRECISION, limit=(50, 95)),
    "best_so_far_limit": family("best_so_far", does_not_fit, BEST, limit=(50, 95)),
}

# Scenarios whose histories cannot show what is wrong.
LEFT_OUT = {
    "gradient_accumulation": "its snapshot has no annotations: gradients that are never zeroed and those that are "
                             "zeroed in place are the same requests",
}


# --- a case ---------------------------------------------------------------------------------------


class Case:
    def __init__(self, name, number):
        self.name, self.number, self.family = name, number, FAMILIES[name]
        draw = random.Random(f"{name}/{number}")
        drawn = {**self.family.parameters, **self.family.fixed}
        self.parameters = [f"{key}={value(draw) if callable(value) else value}" for key, value in drawn.items()]
        self.share = draw.uniform(*self.family.limit) / 100 if self.family.limit else None

    def __str__(self):
        return f"{self.name}/{self.number}: {self.family.scenario} {' '.join(self.parameters)}"


class Player:
    """Runs gmd for a case, in a folder of its own."""

    def __init__(self, gmd, source, case, folder):
        self.gmd, self.case, self.snapshot = gmd, case, os.path.join(folder, "run.pickle")
        self.parameters, self.limit = case.parameters, []
        own = os.path.join(source, "tests/diagnosis/loops", case.family.scenario + ".lua")
        self.script = own if os.path.exists(own) else os.path.join(source, "scenarios", case.family.scenario + ".lua")
        self.scenario = own if os.path.exists(own) else case.family.scenario

    def __call__(self, options, snapshot=None):
        given = {option.split("=")[0] for option in options}
        parameters = [each for each in self.parameters if each.split("=")[0] not in given]
        command = [self.gmd, "run", self.scenario, *parameters, *options, *self.limit, "--seed", str(self.case.number),
                   "--cases", "none", "--quiet", "--json", "-", "--timeout", "120"]
        done = subprocess.run(command + (["--snapshot", snapshot] if snapshot else []), capture_output=True, text=True)
        if done.returncode > 1 or not done.stdout:
            sys.exit(f"{self.case}: {done.stderr}")
        return json.loads(done.stdout)["scenarios"][0]

    def diagnose(self):
        done = subprocess.run([self.gmd, "diagnose", self.snapshot, "--json", "-", "--quiet"], capture_output=True, text=True)
        if done.returncode > 1:
            sys.exit(f"{self.case}: {done.stderr}")
        return json.loads(done.stdout)

    def guilty_lines(self):
        with open(self.script, encoding="utf-8") as script:
            return {at for at, line in enumerate(script, 1) if any(text in line for text in self.case.family.lines)}


def truth_of(case, play, run):
    """The class that is right."""
    if run["verdict"] != "pass" and not run["stats"]["num_ooms"]:
        raise Kept("the mended variant passes its own bound, which ends the run")
    if case.family.check:
        case.family.check(run, play)
    return case.family.klass(run, play) if callable(case.family.klass) else case.family.klass


Result = collections.namedtuple("Result", "case truth found line_is_right kept said")


def look(gmd, source, case):
    with tempfile.TemporaryDirectory() as folder:
        play = Player(gmd, source, case, folder)
        try:
            if case.share:
                reserved = play([])["stats"]["reserved_bytes_peak"]
                play.limit = ["--limit", str(round(reserved * case.share / (2 * MIB)) * 2 * MIB)]
            run = play([], play.snapshot)
            truth = truth_of(case, play, run)
        except Kept as why:
            return Result(case, None, None, None, str(why), "")
        findings = play.diagnose()["findings"]
        found = findings[0]["class"] if findings else "healthy"
        where = findings[0]["where"] if findings else []
        line = where[0]["line"] if where else 0
        guilty = play.guilty_lines()
        is_right = line in guilty if truth != "healthy" and guilty else None
        said = f"line {line}: {findings[0]['evidence']}" if findings else ""
        return Result(case, truth, found, is_right, None, said)


def is_right(result):
    return result.found == result.truth or (result.truth != "healthy" and result.found in result.case.family.also)


# --- the page -------------------------------------------------------------------------------------


def sums(results):
    scored = [r for r in results if not r.kept]
    lines = [r for r in scored if r.line_is_right is not None]
    healthy = [r for r in scored if r.truth == "healthy"]
    return {
        "cases": len(scored), "right": sum(map(is_right, scored)), "lines": len(lines),
        "lines right": sum(r.line_is_right for r in lines), "healthy": len(healthy),
        "accused": sum(r.found != "healthy" for r in healthy), "kept": len(results) - len(scored),
    }


def sentence(results):
    s = sums(results)
    percent = 100 * s["right"] / s["cases"] if s["cases"] else 0
    return (f"{s['right']} of {s['cases']} classes right ({percent:.1f} %), {s['lines right']} of {s['lines']} lines, "
            f"{s['accused']} of {s['healthy']} healthy accused, {s['kept']} kept out")


def confusion(results):
    scored = [r for r in results if not r.kept]
    counts = collections.Counter((r.truth, r.found) for r in scored)
    text = ["| truth | cases | found |", "| --- | ---: | --- |"]
    for truth in sorted({truth for truth, _ in counts}):
        found = sorted(((n, found) for (row, found), n in counts.items() if row == truth), reverse=True)
        cases = sum(n for n, _ in found)
        text.append(f"| {truth} | {cases} | {', '.join(f'{name} {n}' for n, name in found)} |")
    return text


def by_family(results):
    text = ["| family | cases | right | lines | healthy accused | kept out |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name in FAMILIES:
        own = [r for r in results if r.case.name == name]
        s = sums(own)
        if own:
            lines = f"{s['lines right']} of {s['lines']}" if s["lines"] else ""
            text.append(f"| {name} | {s['cases']} | {s['right']} | {lines} | {s['accused'] or ''} | {s['kept'] or ''} |")
    return text


def item(text):
    return textwrap.wrap("- " + text, 98, subsequent_indent="  ", break_on_hyphens=False)


def head(arguments):
    commit = subprocess.run(["git", "-C", arguments.source, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    made = f"tests/diagnosis/score_scenarios.py GMD . --half {arguments.half} --count {arguments.count}"
    return ["# Diagnoses of scenarios whose truth is known", "", *item(f"made by: `{made} --results FILE`"),
            *item(f"date: {datetime.date.today()}"), *item(f"commit: {commit.stdout.strip()}"), "",
            *textwrap.wrap(INTRODUCTION, 98), ""]


def page(arguments, halves):
    text = head(arguments)
    for half, results in halves.items():
        text += [f"## {half.capitalize()} half", "", sentence(results) + ".", "", *confusion(results), "", *by_family(results), ""]
    reasons = collections.Counter((r.case.family.scenario, r.kept) for results in halves.values() for r in results if r.kept)
    text += ["## Kept out", ""]
    for name, why in LEFT_OUT.items():
        text += item(f"`{name}`: {why}")
    for (name, why), count in sorted(reasons.items()):
        text += item(f"`{name}`, {count}: {why}")
    return text


# --- the whole ------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gmd")
    parser.add_argument("source")
    parser.add_argument("--half", choices=[*HALVES, "both"], default="written")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--families", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--results")
    parser.add_argument("--least", type=float, default=0)
    return parser.parse_args()


def score(arguments, half):
    names = arguments.families.split(",") if arguments.families else list(FAMILIES)
    cases = [Case(name, 2 * i + HALVES.index(half)) for name in names for i in range(arguments.count)]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        return list(pool.map(lambda case: look(arguments.gmd, arguments.source, case), cases))


def main():
    arguments = parse()
    halves = {half: score(arguments, half) for half in (HALVES if arguments.half == "both" else [arguments.half])}
    failed = False
    for half, results in halves.items():
        print(f"{half}: {sentence(results)}")
        if arguments.show and half == "written":
            print("\n".join([*confusion(results), *by_family(results)]))
            print("\n".join(f"{r.case}\n    {r.truth}, found {r.found}; {r.said}" for r in results
                            if not r.kept and (not is_right(r) or r.line_is_right is False)))
            print(collections.Counter((r.case.name, r.kept) for r in results if r.kept))
        s = sums(results)
        failed = failed or s["right"] * 100 < arguments.least * s["cases"] or (arguments.least and s["accused"])
    if arguments.results:
        with open(arguments.results, "w", encoding="utf-8") as out:
            out.write("\n".join(page(arguments, halves)) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
