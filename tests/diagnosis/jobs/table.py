"""Which jobs are recorded, in which modes (record.py): a table for each time when jobs were added.

A line is a module, which says the half by where it lies, a job, and a mode; where the job leaks, two: of the leaking
variant and of the fixed one.
"""
import os
from typing import NamedTuple

TABLES = ("table_1.txt", "table_2.txt", "table_3.txt", "table_4.txt", "table_5.txt", "table_6.txt", "table_7.txt",
          "table_8.txt", "table_9.txt", "table_10.txt", "table_11.txt", "held/table.txt",
          "table_12.txt",  # numbered after those of held/table.txt
          "held/table_2.txt")
HELD = "held."  # modules that are held back; others of held/table.txt are opened


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
    return [recording for table in TABLES for recording in rows(table)]
