#!/usr/bin/env python3
"""Tests of torch_own_tests.py and installed_first/: a stub in place of PyTorch, its tests and gmd's helper."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

STUBS = {
    "packages/torch/__init__.py": "from . import cuda\n",
    "packages/torch/cuda.py": "def is_available(): return True\ndef init(): pass\n",
    "packages/torch/testing/__init__.py": "",
    "packages/torch/testing/_internal/__init__.py": "",
    "packages/torch/testing/_internal/common_utils.py": "def run_tests(): raise SystemExit('not replaced')\n",
    "helper/gmd_torch.py": "import os\ndef install(**_): os.environ['STUB_GMD'] = '1'\n",
    "tree/test/test_cuda.py": """
import os, subprocess, sys, time, unittest
import torch
from torch.testing._internal.common_utils import run_tests
from tools.stats.import_test_stats import get_disabled_tests

IS_OURS = "STUB_GMD" in os.environ
order = []

class TestCuda(unittest.TestCase):
    def setUp(self):
        order.append(self.id())

    def test_a_good_one(self):
        pass

    def test_b_only_native(self):
        self.assertFalse(IS_OURS, "ours is not like that")

    def test_c_skipped(self):
        self.skipTest("no")

    def test_d_crash(self):
        if IS_OURS:
            os.abort()

    def test_e_first_only(self):
        self.assertEqual(len(order), 1)

    def test_f_never(self):
        self.fail("never")

    def test_g_child(self):
        said = subprocess.run([sys.executable, "-c", "import torch, os; print('STUB_GMD' in os.environ)"],
                              env={k: v for k, v in os.environ.items() if k != "STUB_GMD"},
                              capture_output=True, text=True).stdout
        self.assertEqual(said.strip(), str(IS_OURS))

    def test_h_hang(self):
        if IS_OURS:
            if "STUB_MARK" in os.environ:
                with open(os.environ["STUB_MARK"], "w") as file:
                    file.write(str(os.getpid()))
            time.sleep(60)

    def test_i_last(self):
        pass

class TestNone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("not here")

    def test_x(self):
        pass

if __name__ == "__main__":
    run_tests()
""",
}


def write_stubs(folder):
    for name, text in STUBS.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def command(folder, *more):
    return [sys.executable, "-B", os.path.join(HERE, "torch_own_tests.py"), "--pytorch-tests",
            os.path.join(folder, "tree"), "--helper", os.path.join(folder, "helper"), "--out",
            os.path.join(folder, "out"), "--jobs", "2", "--timeout", "4", *more]


def environment(folder):
    return dict(os.environ, PYTHONPATH=os.path.join(folder, "packages"))


def run(folder, *more):
    return subprocess.run(command(folder, *more), capture_output=True, text=True, env=environment(folder), check=False,
                          timeout=200)


class OwnTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="gmd-own-tests-")
        write_stubs(cls.folder.name)
        cls.done = run(cls.folder.name)
        with open(os.path.join(cls.folder.name, "out", "outcomes.json"), encoding="utf-8") as file:
            cls.outcomes = json.load(file)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def of(self, name):
        by = self.outcomes["test_cuda.py::" + name]
        return [by[allocator]["outcome"] for allocator in ("native", "gmd")]

    def test_a_test_that_passes_with_both(self):
        self.assertEqual(self.of("TestCuda::test_a_good_one"), ["pass", "pass"])
        self.assertEqual(self.of("TestCuda::test_i_last"), ["pass", "pass"])

    def test_the_helper_is_installed_for_ours_only(self):
        self.assertEqual(self.of("TestCuda::test_b_only_native"), ["pass", "fail"])

    def test_the_helper_is_installed_in_processes_that_a_test_starts(self):
        self.assertEqual(self.of("TestCuda::test_g_child"), ["pass", "pass"])

    def test_skips(self):
        self.assertEqual(self.of("TestCuda::test_c_skipped"), ["skip", "skip"])
        self.assertEqual(self.of("TestNone::test_x"), ["skip", "skip"])

    def test_a_crash_costs_one_test(self):
        self.assertEqual(self.of("TestCuda::test_d_crash"), ["pass", "crash"])

    def test_a_hang_costs_one_test(self):
        self.assertEqual(self.of("TestCuda::test_h_hang"), ["pass", "crash"])

    def test_a_failure_counts_in_a_process_of_its_own_only(self):
        self.assertEqual(self.of("TestCuda::test_e_first_only"), ["pass", "pass"])
        self.assertEqual(self.of("TestCuda::test_f_never"), ["fail", "fail"])

    def test_what_passes_natively_only_is_a_failure(self):
        self.assertEqual(self.done.returncode, 1, self.done.stderr)
        failed = [line.split(": ")[0] for line in self.done.stdout.splitlines() if line.startswith("FAIL")]
        self.assertEqual(failed, [f"FAIL test_cuda.py::TestCuda::{name}" for name in
                                  ("test_b_only_native", "test_d_crash", "test_h_hang")])

    def test_the_table_counts(self):
        self.assertIn("| `test_cuda.py` | 10 | 7 | 4 |", self.done.stdout)

    def with_left(self, text, *more):
        path = os.path.join(self.folder.name, "left.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return run(self.folder.name, "--left", path, *more)

    def test_what_is_listed_with_its_reason_is_no_failure(self):
        done = self.with_left("# known\ntest_cuda.py::TestCuda::test_b_only_native: so it is\n", "test_b_only")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_what_is_listed_and_passes_is_a_failure(self):
        done = self.with_left("test_cuda.py::TestCuda::test_a_good_one: so it was\n", "test_a_good")
        self.assertEqual(done.returncode, 1)
        self.assertIn("it passes, and is in the list", done.stdout)

    def test_a_listed_test_needs_a_reason(self):
        done = self.with_left("test_cuda.py::TestCuda::test_a_good_one\n", "test_a_good")
        self.assertIn("left.txt:1: a test, a colon and its reason", done.stderr)

    def test_quickly_only_what_fails_runs_with_pytorchs_allocator(self):
        run(self.folder.name, "--quick", "TestCuda::test_a_good", "TestCuda::test_b_only")
        with open(os.path.join(self.folder.name, "out", "outcomes.json"), encoding="utf-8") as file:
            ran = {name.rpartition("::")[2]: sorted(by) for name, by in json.load(file).items()}
        self.assertEqual(ran, {"test_a_good_one": ["gmd"], "test_b_only_native": ["gmd", "native"]})

    def test_a_run_that_is_killed_leaves_no_process(self):
        mark = os.path.join(self.folder.name, "hanging")
        process = subprocess.Popen(command(self.folder.name, "--timeout", "50", "test_h_hang"),
                                   env=dict(environment(self.folder.name), STUB_MARK=mark), stderr=subprocess.DEVNULL)
        while not os.path.exists(mark) or os.path.getsize(mark) == 0:
            time.sleep(0.1)
        process.kill()
        process.wait()
        with open(mark, encoding="utf-8") as file:
            pid = int(file.read())
        for _ in range(100):
            if not os.path.exists(f"/proc/{pid}"):
                return
            time.sleep(0.1)
        self.fail("the test's process is still there")

    def test_natives_of_an_earlier_run_are_taken(self):
        earlier = os.path.join(self.folder.name, "earlier.json")
        with open(earlier, "w", encoding="utf-8") as file:
            json.dump({"test_cuda.py::TestCuda::test_f_never": {"native": {"outcome": "pass", "said": ""}}}, file)
        done = run(self.folder.name, "--natives", earlier, "test_f_never")
        self.assertIn("FAIL test_cuda.py::TestCuda::test_f_never: fail: AssertionError: never", done.stdout)


if __name__ == "__main__":
    unittest.main()
