#!/usr/bin/env python3
"""The judge, with programs and a sanitizer that need no GPU: what it calls found, missed, accused and broken. And the
programs themselves: how many there are, and that their marks are such that a judge can use them."""

import collections
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import judge  # noqa: E402

DEFECT = """
import sys
print("the block")  # guilty: alloc
print("goes")  # guilty: free
print("is used")  # guilty: use
print('RESULT {"right": %s}' % ("true" if "--mended" in sys.argv else "false"))
"""
HEALTHY = """
print('RESULT {"right": true}')
"""
# It runs the program, and reports the lines LINES in programs whose source has the word WORD.
SANITIZER = """
import json, os, runpy, sys
report = sys.argv.pop(1) if sys.argv[1].endswith(".jsonl") else None
sys.argv = sys.argv[1:]
name = os.path.basename(sys.argv[0])
if WORD in open(sys.argv[0]).read() and "--mended" not in sys.argv:
    print("==gmd sanitizer== 1: a block was changed")
    for line in LINES:
        print(f"    {name}:{line} in program")
    if report:
        stacks = [[f"/a/{name}:{line}:program"] for line in LINES]
        finding = {"kind": "write_after_free", "block": {"allocated": stacks[0], "freed": stacks[1]}}
        with open(report, "w") as out:
            print(json.dumps(finding), file=out)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Judged(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.programs = os.path.join(self.folder.name, "programs")
        os.mkdir(self.programs)

    def write(self, name, source):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(textwrap.dedent(source))
        return path

    def judge(self, *arguments, word=None, lines=(), report=""):
        command = [sys.executable, os.path.join(HERE, "judge.py"), "--programs", self.programs,
                   "--out", os.path.join(self.folder.name, "out"), *arguments]
        if word is not None:
            source = f"WORD, LINES = {word!r}, {list(lines)!r}\n" + SANITIZER
            command += ["--sanitizer", f"toy={sys.executable} {self.write('sanitizer.py', source)} {report}"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_a_defect_with_all_its_lines_is_found(self):
        self.write("programs/stream_a.py", DEFECT)
        result = self.judge(word="guilty", lines=(3, 4))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("| stream_a | found; alloc, free | right |", result.stdout)

    def test_a_defect_without_the_line_of_its_free_is_not_enough(self):
        self.write("programs/stream_a.py", DEFECT)
        result = self.judge(word="guilty", lines=(3, 5))
        self.assertEqual(result.returncode, 1)
        self.assertIn("found; alloc, use; not free", result.stdout)

    def test_a_report_has_each_stack_in_its_place(self):
        self.write("programs/stream_a.py", DEFECT)
        self.assertEqual(self.judge(word="guilty", lines=(3, 4), report="{report}").returncode, 0)
        self.assertIn("not alloc, free", self.judge(word="guilty", lines=(4, 3), report="{report}").stdout)

    def test_what_was_run_can_be_judged_again(self):
        self.write("programs/stream_a.py", DEFECT)
        first = self.judge(word="guilty", lines=(3, 4), report="{report}")
        again = self.judge("--again", word="no such word", report="{report}")
        self.assertEqual((again.returncode, again.stdout), (0, first.stdout))

    def test_a_line_number_that_only_begins_like_a_mark_names_nothing(self):
        self.write("programs/stream_a.py", DEFECT)
        self.assertIn("not alloc, free", self.judge(word="guilty", lines=(33, 41)).stdout)

    def test_a_defect_that_no_line_accuses_is_missed(self):
        self.write("programs/stream_a.py", DEFECT)
        result = self.judge(word="no such word")
        self.assertEqual(result.returncode, 1)
        self.assertIn("0 of 1 defects found", result.stdout)

    def test_an_accused_healthy_program_fails_the_sanitizer(self):
        self.write("programs/healthy_a.py", HEALTHY)
        result = self.judge(word="RESULT")
        self.assertEqual(result.returncode, 1)
        self.assertIn("1 of 1 mended or healthy programs accused", result.stdout)

    def test_a_program_that_dies_of_its_defect_is_told(self):
        self.write("programs/stream_a.py", "import sys\nif '--mended' not in sys.argv: sys.exit(3)\n" + DEFECT)
        result = self.judge()
        self.assertEqual(result.returncode, 1)
        self.assertIn("stream_a (defect): status 3", result.stdout)

    def test_a_mended_twin_with_wrong_results_is_told(self):
        self.write("programs/stream_a.py", DEFECT.replace('"true" if', '"false" if'))
        self.assertIn("stream_a (mended): status 0, right: False", self.judge().stdout)


class Programs(unittest.TestCase):
    def setUp(self):
        folder = os.path.join(HERE, "programs")
        self.programs = [judge.Program(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
                         if name.endswith(".py") and name != "case.py"]

    def test_there_are_thirty_defects_two_reported_ones_and_twenty_healthy_programs(self):
        kinds = collections.Counter(p.kind for p in self.programs)
        self.assertEqual((kinds.pop("healthy"), kinds.pop("reported"), sum(kinds.values())), (20, 2, 30))

    def test_each_defect_marks_its_lines_and_no_healthy_program_does(self):
        for program in self.programs:
            with self.subTest(program.name):
                self.assertEqual(program.is_healthy, not program.marks)
                self.assertLessEqual(set(program.marks), set(judge.ROLES))
                self.assertTrue(program.is_healthy or "use" in program.marks)

    def test_each_program_is_python(self):
        for program in self.programs:
            with self.subTest(program.name), open(program.path, encoding="utf-8") as source:
                compile(source.read(), program.path, "exec")

    def test_the_halves_are_the_same_for_the_same_seed(self):
        opened, held = judge.halves(self.programs, 22)
        self.assertEqual(judge.halves(self.programs, 22), (opened, held))
        self.assertEqual((len(opened - held), len(held)), (37, 15))


if __name__ == "__main__":
    unittest.main()
