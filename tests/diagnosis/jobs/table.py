"""Which jobs are recorded, in which modes (record.py), and for which half: a table for each time when jobs were added.

A line is a module, a job, and a mode; where the job leaks, two: of the leaking variant and of the fixed one.
"""
import os
from typing import NamedTuple

# Table, half.
TABLES = (("table_1.txt", "seen"), ("table_2.txt", "seen"), ("table_3.txt", "seen"), ("table_4.txt", "seen"),
          ("table_5.txt", "seen"), ("table_6.txt", "seen"), ("table_7.txt", "seen"), ("table_8.txt", "seen"),
          ("table_9.txt", "seen"), ("table_10.txt", "seen"), ("table_11.txt", "seen"),
          ("held/table.txt", "held"),
          ("table_12.txt", "seen"),  # numbered after those that are held
          ("held/table_2.txt", "held"))


class Recording(NamedTuple):
    module: str
    job: str
    variant: str
    mode: str


def rows(table):
    """The recordings of one table, in its order."""
    found = []
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), table), encoding="utf-8") as lines:
        for module, job, *modes in filter(None, map(str.split, lines)):
            variants = ("leak", "fixed") if len(modes) == 2 else ("healthy",)
            found += [Recording(module, job, *named) for named in zip(variants, modes, strict=True)]
    return found


def recordings():
    return [recording for table, _ in TABLES for recording in rows(table)]
