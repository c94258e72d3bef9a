#!/usr/bin/env python3
"""draw_bounds.py GMD: scenarios hold the bounds that they state, and their leaking variants pass them, with
parameters that are drawn.

Each number is drawn between its default divided and multiplied by the SPREAD of the variant, evenly by its
logarithm; features are a multiple of heads. What a leak needs to add up stays as it is (FIXED), and far from
the defaults it may be small beside everything else. --seed N (0), --sets N of each scenario (5), --scenarios NAME,...; prints the seed, and each set that is wrong as a
command."""
import argparse
import concurrent.futures
import json
import math
import random
import re
import subprocess
import sys

PARAMETER = re.compile(r"^    (\w+)=(\S*) ")
# How long a leak adds up, and how often the collector or the script itself ends it.
FIXED = {"iterations", "epochs", "max_instructions", "interval", "objects", "free_lists", "every", "skew", "factor"}
SPREAD = {"leak=false": 4, "leak=true": 2, "": 4}
CAPACITY = "16384GiB"


def play(gmd, *arguments):
    return subprocess.run([gmd, "run", *arguments], capture_output=True, text=True, check=False)


def scenarios_of(gmd):
    """{scenario: {parameter: default}}"""
    names = re.findall(r"^(\w+) ", play(gmd, "--list").stdout, re.M)
    return {name: dict(match.groups() for match in map(PARAMETER.match, play(gmd, "--list", name).stdout.split("\n"))
                       if match) for name in names}


def drawn(default, spread, draw):
    value = float(default) * math.exp(draw.uniform(-math.log(spread), math.log(spread)))
    return f"{value:.2f}" if "." in default else str(max(1, round(value)))


def draw_set(defaults, spread, draw):
    """KEY=VALUE for each number; the features of attention are a multiple of its heads."""
    values = {key: drawn(default, spread, draw) for key, default in sorted(defaults.items())
              if key not in FIXED and re.fullmatch(r"\d+(\.\d+)?", default) and default != "0"}
    if "heads" in values and "features" in values:
        heads = int(values["heads"])
        values["features"] = str(max(1, round(int(values["features"]) / heads)) * heads)
    return [f"{key}={value}" for key, value in values.items()]


def wrong_with(gmd, name, variant, values):
    """What is wrong with a run; None where the script refuses the parameters."""
    done = play(gmd, name, *variant.split(), *values, "--capacity", CAPACITY, "--cases", "none", "--json", "-", "--quiet")
    if done.returncode == 2:
        return None
    run = json.loads(done.stdout)["scenarios"][0]
    if run["verdict"] != "pass":
        return "; ".join(each["message"] for each in run["violations"]) or run.get("error", "fails")
    bounds = run.get("bounds", [])
    if not bounds:
        return "states no bound"
    missed = [f"{each['figure']}: {each['peak']:,} of {each['bytes']:,} B" for each in bounds
              if each["leaks"] and each["held"]]
    return f"the leaking variant holds its bound: {', '.join(missed)}" if missed else ""


def check_variant(gmd, name, defaults, variant, seed, count):
    """[(command, what is wrong)]; sets that the script refuses are drawn again."""
    draw, checked, found = random.Random(f"{seed} {name} {variant}"), 0, []
    for _ in range(20 * count):
        values = draw_set(defaults, SPREAD[variant], draw)
        wrong = wrong_with(gmd, name, variant, values)
        checked += wrong is not None
        if wrong:
            found.append((f"gmd run {name} {variant} {' '.join(values)} --capacity {CAPACITY}", wrong))
        if checked == count:
            return found
    return [*found, (f"gmd run {name} {variant}", f"takes {checked} of {20 * count} sets of parameters")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("gmd")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--scenarios", default="")
    options = parser.parse_args()
    known = scenarios_of(options.gmd)
    names = options.scenarios.split(",") if options.scenarios else sorted(known)
    print(f"seed {options.seed}, {options.sets} sets of each of {len(names)} scenarios", flush=True)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        checks = [pool.submit(check_variant, options.gmd, name, known[name], variant, options.seed, options.sets)
                  for name in names for variant in (("leak=false", "leak=true") if "leak" in known[name] else ("",))]
        wrong = [each for check in checks for each in check.result()]
    for command, what in wrong:
        print(f"{command}\n    {what}")
    sys.exit(1 if wrong or not names else 0)


if __name__ == "__main__":
    main()
