#!/usr/bin/env python3
"""The loop of awaitable_cycle beside what a recorder does after each step: each torch.cuda.memory_stats()
leaves a cycle behind, a function with a list of some 110 tuples, and there are five. Without torch: objects stand for
tensors, and the statistics are made up.

    python3.12 -S -I tests/scenarios/collector_of_recorder.py [without]

Prints how many awaitables are alive after each of 60 steps: with the recorder the collector runs every 4 to 5 steps, as
it did in the recording of the scenario; without it, not once in 30.
"""
import collections
import gc
import sys

GROUPS = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
          "inactive_split_bytes", "requested_bytes")
FIGURES = ("current", "peak", "allocated", "freed")


class Plain:
    pass


class Awaitable:
    alive = 0

    def __init__(self):
        self.tensor = Plain()
        self.callback = lambda: self.tensor
        Awaitable.alive += 1

    def __del__(self):
        Awaitable.alive -= 1


def memory_stats():
    result = []

    def add(prefix, value):  # as torch has it: it refers to itself, and keeps the result until the collector runs
        if isinstance(value, dict):
            for key, item in value.items():
                add(f"{prefix}.{key}" if prefix else key, item)
        else:
            result.append((prefix, value))

    add("", {group: {pool: dict.fromkeys(FIGURES, 0) for pool in ("all", "small_pool", "large_pool")} for group in GROUPS})
    result.sort()
    return collections.OrderedDict(result)


def step():
    waiting = [Awaitable() for _ in range(4)]
    for each in waiting:
        result = each.callback()
    del each, result, waiting


def main():
    phases, alive = [], []
    gc.collect()
    for i in range(60):
        step()
        if "without" not in sys.argv:
            phases.append({"label": str(i), "all": [memory_stats() and 0 for _ in range(5)]})
        alive.append(Awaitable.alive)
    print(*alive)


if __name__ == "__main__":
    main()
