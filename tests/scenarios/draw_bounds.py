#!/usr/bin/env python3
"""draw_bounds.py GMD: fixed variants of scenarios hold the bounds that they state, with parameters that are drawn.

Each number is drawn between its default divided and multiplied by the SPREAD of the variant, evenly by its
logarithm; features are a multiple of heads. What a leak needs to add up stays as it is (FIXED). Every other
set has an order of addresses of its own (--placement). With its defaults each leaking variant must pass its
bound; with drawn parameters, where the leak may be small beside everything else, it is only counted.

--seed N (0), --sets N of each variant (5), --scenarios NAME,..., --results FILE writes the page. Exit status 1
if a bound is wrong; the set is printed as a command."""
import argparse
import collections
import concurrent.futures
import datetime
import json
import math
import os
import random
import re
import subprocess
import sys

PARAMETER = re.compile(r"^    (\w+)=(\S*) ")
# How long a leak adds up, and how often the collector or the script itself ends it.
FIXED = {"iterations", "epochs", "max_instructions", "interval", "objects", "free_lists", "every", "skew", "factor"}
SPREAD = {"leak=false": 4, "leak=true": 2, "": 4}
CAPACITY = "16384GiB"

Result = collections.namedtuple("Result", "command share message")


def play(gmd, *arguments):
    return subprocess.run([gmd, "run", *arguments], capture_output=True, text=True, check=False)


def scenarios_of(gmd):
    """{scenario: {parameter: default}}"""
    names = re.findall(r"^(\w+) ", play(gmd, "--list").stdout, re.M)
    return {name: dict(match.groups() for match in map(PARAMETER.match, play(gmd, "--list", name).stdout.split("\n"))
                       if match) for name in names}


# --- sets of parameters ---------------------------------------------------------------------------


def drawn(default, spread, draw):
    value = float(default) * math.exp(draw.uniform(-math.log(spread), math.log(spread)))
    return f"{value:.2f}" if "." in default else str(max(1, round(value)))


def fitting_heads(values):
    """Heads of keys divide those of queries, which divide the features; with such groups a head's features are a
    multiple of 8, at most 128, as kernels take them."""
    heads, features = int(values["heads"]), int(values["features"])
    if "groups" not in values:
        return {"features": str(max(1, round(features / heads)) * heads)}
    groups = min(int(values["groups"]), heads)
    heads = round(heads / groups) * groups
    depth = 8 * min(16, max(1, round(features / heads / 8)))
    return {"groups": str(groups), "heads": str(heads), "features": str(depth * heads)}


def draw_set(defaults, spread, draw):
    """KEY=VALUE for each number; the features of attention are a multiple of its heads."""
    values = {key: drawn(default, spread, draw) for key, default in sorted(defaults.items())
              if key not in FIXED and re.fullmatch(r"\d+(\.\d+)?", default) and default != "0"}
    if "heads" in values and "features" in values:
        values.update(fitting_heads(values))
    return [f"{key}={value}" for key, value in values.items()]


def options_of(number):
    """Every other set has an order of addresses of its own."""
    placement = ["--placement", f"seed {number}"] if number % 2 else []
    return [*placement, "--capacity", CAPACITY, "--cases", "none"]


# --- runs -----------------------------------------------------------------------------------------


def look(gmd, name, variant, values, options):
    """The Result of a run: the largest share of a bound that a peak has. None: the script refuses the parameters."""
    arguments = [name, *variant.split(), *values, *options]
    command = "gmd run " + " ".join(f"'{each}'" if " " in each else each for each in arguments)
    done = play(gmd, *arguments, "--json", "-", "--quiet")
    if done.returncode == 2:
        return None
    run = json.loads(done.stdout)["scenarios"][0]
    shares = [each["peak"] / each["bytes"] for each in run.get("bounds", [])]
    message = "" if shares else "states no bound"
    if run["verdict"] != "pass":
        message = "; ".join(each["message"] for each in run["violations"]) or run.get("error", "fails")
    return Result(command, max(shares, default=0), message)


def look_at_variant(gmd, name, defaults, variant, seed, count):
    """Results of drawn sets; those that the script refuses are drawn again."""
    draw, results = random.Random(f"{seed} {name} {variant}"), []
    for number in range(20 * count):
        values = draw_set(defaults, SPREAD[variant], draw)
        result = look(gmd, name, variant, values, options_of(number))
        results += [result] if result else []
        if len(results) == count:
            return results
    return [*results, Result(f"gmd run {name} {variant}", 0, f"takes {len(results)} of {20 * count} sets")]


def look_at_defaults(gmd, name):
    """The Result of the leaking variant with its own parameters."""
    result = look(gmd, name, "leak=true", [], options_of(0))
    return result._replace(message=result.message or "" if result.share > 1 else "the leaking variant holds its bound")


# --- what is told ---------------------------------------------------------------------------------


def sentence(fixed, leaking):
    broke, held = (sum(map(test, results)) for test, results in ((lambda r: r.share > 1, fixed),
                                                                 (lambda r: r.share <= 1, leaking)))
    return (f"{len(fixed)} sets of fixed variants, {broke} broke their bound; "
            f"{len(leaking)} sets of leaking variants, {held} held theirs")


def row(name, fixed, leaking):
    broke = sum(each.share > 1 for each in fixed)
    held = sum(each.share <= 1 for each in leaking)
    most, least = max(each.share for each in fixed), min((each.share for each in leaking), default=0)
    return (f"| `{name}` | {len(fixed)} | {broke} | {100 * most:.1f} % | {len(leaking) or ''} | "
            f"{held if leaking else ''} | {f'{100 * least:.0f} %' if leaking else ''} |")


def page(options, table):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            cwd=os.path.dirname(os.path.abspath(__file__)), check=False).stdout.strip()
    fixed, leaking = ([each for rows in table.values() for each in rows[of]] for of in (0, 1))
    return "\n".join([
        "# Bounds of scenarios with drawn parameters", "",
        f"- made by: `tests/scenarios/draw_bounds.py GMD --seed {options.seed} --sets {options.sets} --results FILE`",
        f"- date: {datetime.date.today()}", f"- commit: {commit}", "",
        "Each number of a scenario is drawn evenly by its logarithm: for fixed variants between a quarter of",
        "its default and four times it, for leaking ones between half and twice. How long a leak adds up",
        "(`iterations` and the like) stays as it is. Every other set has an order of addresses of its own",
        "(`--placement 'seed N'`). The allocator is the reference, the simulated device large enough.", "",
        sentence(fixed, leaking) + ".", "",
        "| scenario | fixed | broke it | most of the bound | leaking | held it | least of the bound |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(row(name, *table[name]) for name in sorted(table)), "",
        "A leaking variant holds its bound where the leak is small beside everything else: where fragments",
        "of a few large segments count for little, or shapes are drawn that fit into each other. With its",
        "defaults each passes its bound, which the script tests, too.", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("gmd")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--scenarios", default="")
    parser.add_argument("--results")
    options = parser.parse_args()
    known = scenarios_of(options.gmd)
    names = options.scenarios.split(",") if options.scenarios else sorted(known)
    print(f"seed {options.seed}, {options.sets} sets of each variant of {len(names)} scenarios", flush=True)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        def start(name, variant):
            return pool.submit(look_at_variant, options.gmd, name, known[name], variant, options.seed, options.sets)
        started = {name: (start(name, "leak=false"), start(name, "leak=true")) if "leak" in known[name] else
                   (start(name, ""),) for name in names}
        defaults = [pool.submit(look_at_defaults, options.gmd, name) for name in names if "leak" in known[name]]
        table = {name: [each.result() for each in variants] + [[]] * (2 - len(variants))
                 for name, variants in started.items()}
        wrong = [each for rows in table.values() for results in rows for each in results if each.message]
        wrong += [each.result() for each in defaults if each.result().message]
    for each in wrong:
        print(f"{each.command}\n    {each.message}")
    print(sentence(*([each for rows in table.values() for each in rows[of]] for of in (0, 1))))
    if options.results:
        with open(options.results, "w", encoding="utf-8") as file:
            file.write(page(options, table))
    sys.exit(1 if wrong or not names else 0)


if __name__ == "__main__":
    main()
