#!/usr/bin/env python3
"""Compares `gmd run` with recorded twins, and makes the table of errors.

    compare_twins.py GMD TWINS.json[.gz] [--results FILE] [--rows N] [--more-workspaces FILE] [--open-held]
                     [--placement N] [--least SEEN HELD SCENARIOS LATER FOURTH]

A twin's error is that of its worst phase: how far allocated bytes at the end of a phase, their peak and the reserved
bytes at its end are off, as a share of what was recorded (of 1 MiB, where less was). With --placement each program
runs under N more orders of segment addresses, too, and how far a recording lies outside the range of all is told. Some of
the drawn twins are held: only their totals are shown, unless --open-held is given. Exit status 1 if a recording is not of the program that the
catalogue has now, or a script does not run; or if fewer figures are right than --least says (allocated bytes, peaks
and reserved bytes together).
"""
import argparse
import collections
import concurrent.futures
import datetime
import gzip
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import catalogue

FIGURES = {"allocated": "allocated", "peak": "max_allocated", "reserved": "reserved"}
RECORDED = ("label", "allocated", "max_allocated", "reserved", "max_reserved")
BUILTIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scenarios/workspaces/builtin.txt.gz")
LEAST = 1 << 20  # errors are shares of at least this
LIMITS = {"allocated": 0.001, "peak": 0.01, "reserved": 0.01}  # what is counted as right

# `errors` by figure: (share, label of the phase); `outside`: the same of the range that placement explains; `asked`: bytes
# asked for that are off in the worst phase, at its end and at their peak, and the peak's share, where that is known;
# `estimated`: workspaces that no table has; `told`: whether the peaks, and the reserved bytes, of all phases are where the
# run says that they may be, and the width of the widest such range of peaks. `message`: why there are none.
Result = collections.namedtuple("Result", "twin held errors outside asked estimated told message")


def failed(twin, message):
    return Result(twin, catalogue.is_held(twin), None, None, None, 0, None, message)


ASKED = "asked for"


def telling(script):
    """The script, which says after each phase how many bytes are asked for, and their peak."""
    return re.sub(r"^( *)(phase\(.*\))$", rf'\1\2 print("{ASKED}", cuda.requested().bytes, cuda.requested().peak)', script,
                  flags=re.MULTILINE)


def run(options, twin, folder, *more):
    """What gmd says of each run of a twin, and what the script says; no runs and a message where it did not run."""
    arguments = twin.run
    if not arguments:
        path = os.path.join(folder, twin.name + ".lua")
        with open(path, "w", encoding="utf-8") as file:
            file.write(telling(catalogue.script(twin)))
        arguments = [path]
    more += ("--workspaces", options.table) if options.table else ()
    done = subprocess.run([options.gmd, "run", *arguments, *more, "--json", "-", "--cases", "none"],
                          capture_output=True, text=True, check=False)
    if done.returncode == 2 or not done.stdout:
        return None, done.stderr.strip().replace(folder + os.sep, "")
    return json.loads(done.stdout)["scenarios"], done.stderr


def opened(path):
    return (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8")


def joined_table(more, folder):
    """The built-in table and the lines of another one of the same GPU."""
    path = os.path.join(folder, "workspaces.txt")
    with opened(BUILTIN) as builtin, opened(more) as added, open(path, "w", encoding="utf-8") as table:
        table.write(builtin.read())
        table.writelines(line for line in added if line.startswith(("conv ", "rnn ")))
    return path


def worst(phases, runs):
    """By figure, how far the recording lies outside the range of the runs in its worst phase."""
    errors = {}
    for figure, key in FIGURES.items():
        ours = [[run["phases"][k][key] for run in runs] for k in range(len(phases))]
        errors[figure] = max(((max(min(our) - phase[key], phase[key] - max(our), 0) / max(phase[key], LEAST), phase["label"])
                              for our, phase in zip(ours, phases)), key=lambda each: each[0])
    return errors


def asked_for(said, recording):
    """How far the bytes are off that the script asked for; None: it did not say."""
    told = [tuple(map(int, line.split()[2:])) for line in said.splitlines() if line.startswith(ASKED)]
    phases = [phase[5:7] for phase in recording["phases"]]
    if len(told) < len(phases):
        return None
    ends = max(abs(ours[0] - theirs[0]) for ours, theirs in zip(told, phases))
    peaks = [(abs(ours[1] - theirs[1]), theirs[1]) for ours, theirs in zip(told, phases)]
    return ends, max(off for off, _ in peaks), max(off / max(peak, LEAST) for off, peak in peaks)


def within_told(phases, run):
    """Whether the recorded figures are between the least and the most that the run tells of its phases."""
    def inside(figure, phase, ours):
        slack = LIMITS["peak"] * max(phase[figure], LEAST)
        return ours.get("least", ours)[figure] - slack <= phase[figure] <= ours.get("most", ours)[figure] + slack
    pairs = list(zip(phases, run["phases"]))
    width = max((ours["most"]["max_allocated"] - ours["least"]["max_allocated"]) / max(ours["max_allocated"], LEAST)
                if "most" in ours else 0 for _, ours in pairs)
    return (all(inside("max_allocated", *pair) for pair in pairs), all(inside("reserved", *pair) for pair in pairs), width)


def compare(options, twin, recording, folder):
    if recording["program"] != catalogue.fingerprint(twin):
        return failed(twin, "the recording is of another program: record it again")
    runs, said = run(options, twin, folder)
    if not runs:
        return failed(twin, said)
    phases = [dict(zip(RECORDED, phase)) for phase in recording["phases"]]
    if [phase["label"] for phase in phases] != [phase["label"] for phase in runs[0]["phases"]][:len(phases)]:
        return failed(twin, "the phases have other labels")
    errors = outside = worst(phases, runs)
    if options.placement and any(share for share, _ in errors.values()):
        more, _ = run(options, twin, folder, "--placement", f"seeds {options.placement}")
        outside = worst(phases, more) if more else errors
    return Result(twin, catalogue.is_held(twin), errors, outside, asked_for(said, recording),
                  runs[0].get("workspaces", {}).get("estimated", 0), within_told(phases, runs[0]), "")


def compare_all(options, recordings):
    """Results, and the names of twins that PyTorch itself failed at."""
    twins = {twin.name: twin for twin in catalogue.all_twins()}
    unknown = sorted(set(recordings) - set(twins))
    if unknown:
        print("no such twins: " + ", ".join(unknown), file=sys.stderr)
    known = [twins[name] for name in recordings if name in twins and not recordings[name].get("error")]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(lambda twin: compare(options, twin, recordings[twin.name], folder), known))


# --- what is told ---------------------------------------------------------------------------------------------------


def percent(share):
    return "0" if share == 0 else f"{100 * share:.3f} %" if share < 0.01 else f"{100 * share:.1f} %"


def rank(shares, part):
    """The nearest-rank percentile."""
    return sorted(shares)[max(0, math.ceil(part * len(shares)) - 1)]


def row(name, results, of="errors"):
    """A line for each figure."""
    lines = []
    for figure, limit in LIMITS.items():
        shares = [getattr(result, of)[figure][0] for result in results]
        if not shares:
            return []
        within = sum(share <= limit for share in shares)
        lines.append(f"| {name} | {figure} | {percent(rank(shares, 0.5))} | {percent(rank(shares, 0.95))} | "
                     f"{percent(max(shares))} | {within} of {len(results)} within {100 * limit:g} % |")
    return lines


def half(name, results):
    """All of them; where a workspace is estimated, it decides the peak and what is reserved."""
    apart = [("no workspace estimated", [each for each in results if not each.estimated]),
             ("some estimated", [each for each in results if each.estimated])]
    lines = row(name, results)
    for which, some in apart:
        lines += row(f"{name}, {which}", some) if 0 < len(some) < len(results) else []
    return lines


def right(results):
    return sum(result.errors[figure][0] <= limit for result in results for figure, limit in LIMITS.items())


def halves(results):
    """Seen and held of the first round, and the scenarios."""
    drawn = [result for result in results if result.twin.family != "scenarios" and not (
        catalogue.is_later(result.twin) or catalogue.is_last(result.twin) or catalogue.is_fourth(result.twin))]
    return ([result for result in drawn if not result.held], [result for result in drawn if result.held],
            [result for result in results if result.twin.family == "scenarios"])


def later_halves(results):
    """Seen and held of the second round."""
    later = [result for result in results if catalogue.is_later(result.twin)]
    return [result for result in later if not result.held], [result for result in later if result.held]


def last_round(results):
    return [result for result in results if catalogue.is_last(result.twin)]


def fourth_round(results):
    return [result for result in results if catalogue.is_fourth(result.twin)]


def rounds(results, part=row):
    """Lines for the halves of all rounds; the third and the fourth have none."""
    seen, held, _ = halves(results)
    lines = [*part("seen", seen), *part("held", held), *row("both", seen + held)]
    seen, held = later_halves(results)
    return lines + [*part("second round, seen", seen), *part("second round, held", held),
                    *row("second round, both", seen + held), *part("third round", last_round(results)),
                    *part("fourth round", fourth_round(results))]


def by_asked(results):
    """What does not depend on any allocator."""
    rows = []
    for name, some in rounds_of(results):
        known = [each.asked for each in some if each.asked]
        if known:
            rows.append(f"| {name} | {len(known)} | {sum(ends == 0 for ends, _, _ in known)} | {max(ends for ends, _, _ in known)} B | "
                        f"{sum(peak == 0 for _, peak, _ in known)} | {sum(share <= 0.001 for _, _, share in known)} | "
                        f"{percent(max(share for _, _, share in known))} |")
    return ["| twins | of scripts | exact at the end of all phases | worst | peaks exact | within 0.1 % | worst |",
            "| --- |" + " ---: |" * 6, *rows]


def by_told(results):
    """Twins with estimates: whether PyTorch was where the run says that it may be."""
    rows = []
    for name, some in rounds_of(results):
        told = [each.told for each in some if each.estimated]
        if told:
            rows.append(f"| {name} | {len(told)} | {sum(peak for peak, _, _ in told)} | {sum(reserved for _, reserved, _ in told)} | "
                        f"{percent(rank([width for _, _, width in told], 0.5))} | {percent(max(width for _, _, width in told))} |")
    return ["| twins | with estimates | peaks inside | reserved inside | width of peaks, median | worst |",
            "| --- |" + " ---: |" * 5, *rows]


def rounds_of(results):
    seen, held, _ = halves(results)
    return [("first round", seen + held), ("second round", sum(later_halves(results), [])), ("third round", last_round(results)),
            ("fourth round", fourth_round(results))]


def table(first, rows):
    return [f"| {first} | figure | median | 95 % | worst | right |", "| --- | --- |" + " ---: |" * 4, *rows]


def decided(twin):
    """What decides the figures beside the requests, if something does."""
    return next((by for scenario, by in catalogue.DECIDED.items() if twin.name.startswith("scenario_" + scenario)), "")


def detail(result):
    cells = []
    for figure in FIGURES:
        share, label = result.errors[figure]
        cells.append(percent(share) + (f", {label}" if share and figure == "allocated" else ""))
    return f"| `{result.twin.name.removeprefix('scenario_')}` | {' | '.join(cells)} | {result.estimated or ''} | {decided(result.twin)} |"


def details(results):
    """Worst first: by allocated, then by peak, then by reserved."""
    worst = sorted(results, key=lambda result: [-result.errors[figure][0] for figure in FIGURES])
    return ["| twin | allocated, worst phase | peak | reserved | estimated | decided by |",
            "| --- |" + " ---: |" * 4 + " --- |",
            *map(detail, worst)]


def worst_rows(results, count):
    """Those that are worst at one of the figures."""
    chosen = []
    for figure in FIGURES:
        worst = sorted(results, key=lambda result, figure=figure: -result.errors[figure][0])
        chosen += [result for result in worst[:count] if result not in chosen and result.errors[figure][0] > 0]
    return chosen


def by_family(results):
    return [line for name in sorted({result.twin.family for result in results})
            for line in row(name, [each for each in results if each.twin.family == name])]


def by_placement(options, results):
    """What the order of addresses explains."""
    if not options.placement:
        return []
    seen, held, scenarios = halves(results)
    later = [each for half_of in later_halves(results) for each in half_of]
    rows = [line for name, some in (("seen", seen), ("held", held), ("both", seen + held), ("second round", later),
                                    ("third round", last_round(results)), ("fourth round", fourth_round(results)),
                                    ("scenarios that only requests decide", [each for each in scenarios if not decided(each.twin)]))
            if some for line in row(name, some, "outside")]
    return ["## What placement explains", "",
            f"How far a recording lies outside the range of rising addresses and {options.placement} drawn orders",
            "(`gmd run --placement`); with the workspaces of the table above.", "", *table("", rows), ""]


def other_devices(machine, recordings):
    """A line for each device that is not the machine's."""
    counts = collections.Counter(each.get("device", machine.get("device")) for each in recordings.values())
    return [f"- {count} of them on: {device}" for device, count in sorted(counts.items()) if device != machine.get("device")]


def page(options, recorded, results, failures, builtin_only):
    machine = recorded["machine"]
    seen, held, scenarios = halves(results)
    later_seen, later_held = later_halves(results)
    undecided = [result for result in scenarios if not decided(result.twin)]
    lines = ["# Twins: errors of scenarios against PyTorch", "",
             "- made by: `tests/scenarios/twins/compare_twins.py`", f"- date: {datetime.date.today()}",
             f"- recorded on: {machine.get('device')}, torch {machine.get('torch')}, cuDNN {machine.get('cudnn')}, "
             f"Python {machine.get('python')}", *other_devices(machine, recorded["twins"]), "",
             "A twin is a program that PyTorch executed on a GPU and `gmd run` on the simulated device. Its error",
             "is that of its worst phase, as a share of the recorded bytes (of 1 MiB, where less was recorded).",
             "Half of the first and the second round, chosen by their names, were held: not looked at while the",
             "engine was worked on; the third round was looked at once. All of these were opened when the fourth",
             "round was drawn (2026-11-28). That was held as a whole until its figures were written down; then the",
             "errors of all its twins were listed and two of its programs opened, a Conv1d and a LayerNorm, by",
             "which the engine was mended. None is held any more: new programs will have other errors.",
             "docs/scenarios.md has what each round was when it was looked at for the first time.", "",
             "## Drawn twins", ""]
    if builtin_only:
        lines += ["With the table of workspaces that gmd is built with:", "",
                  *table("half", rounds(builtin_only, half)), "",
                  "Where a workspace is estimated, the run says from what to what its figures may be. The recording",
                  "was inside in all phases, or within 1 % of it:", "", *by_told(builtin_only), "",
                  "With the workspaces of their calls recorded, too (`gmd run --unrecorded`, record_workspaces.py):", ""]
    lines += [*table("half", rounds(results, half)), "",
              "## Bytes asked for", "",
              "What the programs ask of their allocator, which placement does not change; with the workspaces of",
              "the last table. The peaks count from where a program resets them.", "", *by_asked(results), "",
              "## By family", "", "The seen half:", "", *table("family", by_family(seen)), "",
              "The held half:", "", *table("family", by_family(held)), "",
              "The second round:", "", *table("family", by_family([*later_seen, *later_held])), "",
              "The third round:", "", *table("family", by_family(last_round(results))), "",
              "The fourth round:", "", *table("family", by_family(fourth_round(results))), "",
              "The worst of those that are open:", "",
              *details(worst_rows([*seen, *held, *later_seen, *later_held, *last_round(results),
                                   *fourth_round(results)], options.rows)), ""]
    if options.open_held:
        lines += ["The fourth round:", "", *details(fourth_round(results)), ""]
    lines += ["## Scenarios with their own parameters", "",
              *table("", [*row("all", scenarios), *row("only requests decide", undecided)]), "", *details(scenarios), ""]
    lines += by_placement(options, results)
    told = [each for each in failures if options.open_held or not each.held]
    if failures:
        lines += [f"{len(failures)} twins could not be compared, {len(failures) - len(told)} of them held:", "",
                  *(f"- `{each.twin.name}`: {each.message}" for each in told), ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("gmd")
    parser.add_argument("twins")
    parser.add_argument("--results")
    parser.add_argument("--rows", type=int, default=10, help="of the worst twins, by each figure")
    parser.add_argument("--more-workspaces", help="calls that were recorded, beside those of the built-in table")
    parser.add_argument("--open-held", action="store_true")
    parser.add_argument("--placement", type=int, default=0, metavar="N", help="orders of segment addresses")
    parser.add_argument("--least", type=int, nargs=5, metavar=("SEEN", "HELD", "SCENARIOS", "LATER", "FOURTH"),
                        default=(0, 0, 0, 0, 0))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with opened(options.twins) as file:
        recorded = json.load(file)
    options.table = None
    builtin_only = compare_all(argparse.Namespace(**{**vars(options), "placement": 0}),
                               recorded["twins"]) if options.more_workspaces else []
    with tempfile.TemporaryDirectory() as folder:
        options.table = joined_table(options.more_workspaces, folder) if options.more_workspaces else None
        results = compare_all(options, recorded["twins"])
    failures = [result for result in results if not result.errors]
    text = page(options, recorded, [result for result in results if result.errors], failures,
                [result for result in builtin_only if result.errors])
    if options.results:
        with open(options.results, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text)
    broken = sum("error" in each for each in recorded["twins"].values())
    print(f"{len(results) - len(failures)} twins compared, {len(failures)} not; PyTorch failed at {broken}", file=sys.stderr)
    compared = [result for result in results if result.errors]
    counts = [right(part) for part in (*halves(compared), sum(later_halves(compared), last_round(compared)),
                                       fourth_round(compared))]
    print("figures that are right: seen {}, held {}, scenarios {}, later rounds {}, the fourth {}".format(*counts),
          file=sys.stderr)
    is_worse = any(count < least for count, least in zip(counts, options.least))
    if is_worse:
        print("at least {}, {}, {}, {} and {} are to be".format(*options.least), file=sys.stderr)
    return 1 if failures or not results or is_worse else 0


if __name__ == "__main__":
    sys.exit(main())
