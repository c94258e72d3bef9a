#!/usr/bin/env python3
"""test_twins.py GMD: programs of twins as scripts. Needs no torch."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import catalogue
from compare_twins import LEAST, worst
from translate import Untranslatable, script_of

GMD = sys.argv.pop()


def off(recorded, runs):
    """How far a phase's allocated bytes are outside the range of the runs."""
    phase = dict.fromkeys(("allocated", "max_allocated", "reserved"), recorded)
    return worst([dict(phase, label="a")], [{"phases": [dict.fromkeys(phase, each)]} for each in runs])["allocated"][0]


def last_line(program):
    return script_of("test", program).splitlines()[-1]


class Spelling(unittest.TestCase):
    def test_dimensions_count_from_one(self):
        self.assertEqual(last_line("y = x.sum((0, 2), keepdim=True)"), "y = x:sum({ 1, 3 }, { keepdim = true })")
        self.assertEqual(last_line("y = x.softmax(-1)"), "y = x:softmax(-1)")
        self.assertEqual(last_line("y = x.permute(2, 0, 1)"), "y = x:permute { 3, 1, 2 }")

    def test_narrow_has_a_dimension_a_start_and_a_length(self):
        self.assertEqual(last_line("y = x.narrow(1, 3, 4)"), "y = x:narrow(2, 4, 4)")

    def test_the_first_of_several_results_stands_in_parentheses(self):
        self.assertEqual(last_line("y = x.max(-1)[0]"), "y = (x:max(-1))")

    def test_states_of_a_network_are_given_one_after_the_other(self):
        self.assertEqual(last_line("m = nn.LSTM(8, 8)\ny, (h, c) = m(x, (h, c))"), "y, h, c = m(x, h, c)")

    def test_a_network_is_length_first_unless_it_says_otherwise(self):
        self.assertEqual(last_line("m = nn.GRU(8, 16, 2).cuda()"),
                         "m = nn.GRU { input = 8, hidden = 16, layers = 2, batch_first = false }")

    def test_an_optimizer_takes_modules_in_place_of_their_parameters(self):
        self.assertEqual(last_line("o = torch.optim.SGD(params(a, b), lr=0.1)"), "o = optim.SGD { a, b, lr = 0.1 }")

    def test_a_local_is_held_to_the_end_of_its_function(self):
        self.assertIn("  local y <close> = hold(relu(x))", script_of("test", "def f(x):\n    y = torch.relu(x)\n    return y"))

    def test_what_scripts_lack_is_refused_with_its_line(self):
        for program in ("x = 1\ny = torch.einsum('ij->ji', x)", "x = 1\ny = x.kthvalue(1)", "x = 1\nwhile x: pass",
                        "x = 1\ny = x.sum(0, dtype=torch.float64)", "x = 1\ny = x[1:3]"):
            with self.assertRaisesRegex(Untranslatable, "line 2"):
                script_of("test", program)

    def test_a_local_that_is_assigned_twice_is_refused(self):
        with self.assertRaises(Untranslatable):
            script_of("test", "def f(x):\n    x = torch.relu(x)\n    return x")


class Sharded(unittest.TestCase):
    def test_ranks_types_and_pools_are_spelt_as_scripts_take_them(self):
        self.assertEqual(last_line("init_process_group(world_size=4, rank=1)"),
                         "dist.init_process_group { world_size = 4, rank = 1 }")
        self.assertEqual(last_line("m = nn.ReLU()\nfully_shard(m, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))"),
                         'fully_shard(m, { param_dtype = "bfloat16" })')
        self.assertEqual(last_line("with torch.cuda.graph(g, pool=h.pool()):\n    y = 1"), "end, { pool = h:pool() })")

    def test_names_of_luas_own_are_other_names(self):
        self.assertEqual(last_line("table = torch.zeros(4)"), "table_ = zeros { 4 }")


class Ranges(unittest.TestCase):
    def test_a_recording_between_two_runs_is_not_off(self):
        self.assertEqual(off(recorded=2048, runs=[1024, 4096]), 0)

    def test_a_recording_outside_is_off_by_its_distance(self):
        self.assertEqual(off(recorded=LEAST * 4, runs=[LEAST, LEAST * 3]), 0.25)


class Catalogue(unittest.TestCase):
    twins = catalogue.all_twins()

    def test_names_are_unique(self):
        self.assertEqual(len({twin.name for twin in self.twins}), len(self.twins))

    def test_half_of_the_drawn_twins_of_each_family_are_held(self):
        for family in ("operations", "chains", "layers", "models", "sharded", "replayed"):
            held = [catalogue.is_held(twin) for twin in self.twins if twin.family == family]
            self.assertAlmostEqual(sum(held) / len(held), 0.5, delta=0.2, msg=family)

    def test_every_script_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            for twin in self.twins:
                path = os.path.join(folder, twin.name + ".lua")
                if not twin.run:
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(catalogue.script(twin))
                done = subprocess.run([GMD, "run", *(twin.run or [path]), "--json", "-", "--quiet", "--cases", "none"],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f"{twin.name}: {done.stderr}")
                self.assertTrue(json.loads(done.stdout)["scenarios"][0]["phases"], twin.name)


if __name__ == "__main__":
    unittest.main()
