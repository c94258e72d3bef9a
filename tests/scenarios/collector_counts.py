#!/usr/bin/env python3
"""Prints what CPython's collector counted after N objects, as rows of test_collector.c. For CPython 3.12:

    python3.12 -S -I tests/scenarios/collector_counts.py
"""
import gc
import subprocess
import sys


class Plain:
    pass


def pairs(count, kept):
    for _ in range(count):
        a, b = Plain(), Plain()
        a.other, b.other = b, a


def singles(count, kept):
    for _ in range(count):
        kept.append(Plain())


def count_once(kind, count):
    kept = []
    pairs(1, kept)
    gc.collect()
    if kind == "pairs":
        pairs(count, kept)
    else:
        singles(count, kept)
    counts = gc.get_count()
    print(f'    {{"{kind}", {count}, "{" ".join(map(str, counts))}"}},')


if __name__ == "__main__":
    if len(sys.argv) == 3:
        count_once(sys.argv[1], int(sys.argv[2]))
    else:
        for kind in ("pairs", "singles"):
            for count in (100, 349, 350, 351, 1000, 4199, 4210, 20000, 100000):
                subprocess.run([sys.executable, "-S", "-I", __file__, kind, str(count)], check=True)
