"""test_mutants.py - the mutants of a small file: what each operator makes, and what they are called."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mutants  # noqa: E402
import report  # noqa: E402
from workshop import moved_command, with_place_of_allocator  # noqa: E402

PROGRAM = """
#define COUNT 4
#define OUTER(x) ((x) < COUNT)
struct list { struct list *next, *previous; int length; };
enum state { OPEN, SHUT };
int cudaEventRecord(int event, int stream);
void device_enter(int d);
void device_leave(int d);
#define GMD_ASSERT(condition, text) ((condition) ? (void)0 : (void)answer(0, 0, 0))
int answer(struct list *l, int a, int b)
{
    if (a < b && l->next) {
        a += b;
    }
    if (OUTER(a)) {
        return COUNT;
    }
    return cudaEventRecord(a, b) == OPEN;
}
void locked(int d)
{
    device_enter(d);
    GMD_ASSERT(d > 10 && d != 12, "an assertion");
    answer(0, d, 1);
    device_leave(d);
}
"""


class Mutants(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.made = self.of(PROGRAM)

    def tearDown(self):
        self.folder.cleanup()

    def of(self, text):
        with open(os.path.join(self.folder.name, "a.c"), "w", encoding="utf-8") as stream:
            stream.write(text)
        return mutants.of_allocator(self.folder.name, ["a.c"], lambda source: [
            "clang", "-Xclang", "-ast-dump=json", "-fsyntax-only", "-w",
            os.path.join(self.folder.name, source)])

    def lines(self, operator):
        """The changed lines of the operator's mutants."""
        return {line[1:].strip() for m in self.made if m.operator == operator
                for line in m.diff().splitlines() if line.startswith("+") and line[1] != "+"}

    def test_relations_become_their_neighbours_and_opposites(self):
        self.assertTrue({"if (a <= b && l->next) {", "if (a >= b && l->next) {"} <= self.lines("relational"))

    def test_of_a_conjunction_one_operand_is_left(self):
        self.assertTrue({"if (a < b) {", "if (l->next) {"} <= self.lines("operand"))

    def test_a_list_is_mistaken_for_another_of_its_struct(self):
        self.assertEqual(self.lines("wrong-list"), {
            "if (a < b && l->previous) {", "return cudaEventRecord(a, b) == SHUT;"})

    def test_a_statement_is_left_out(self):
        self.assertEqual([m.function for m in self.made if m.operator == "statement"],
                         ["answer", "locked", "locked", "locked"])

    def test_an_event_is_not_recorded_and_said_to_be(self):
        self.assertIn("return 0 == OPEN;", self.lines("event"))

    def test_arguments_of_one_type_change_places(self):
        self.assertIn("return cudaEventRecord(b, a) == OPEN;", self.lines("swap"))

    def test_named_numbers_are_off_by_one(self):
        self.assertTrue({"return (COUNT + 1);", "return (COUNT - 1);"} <= self.lines("off-by-one"))

    def test_a_lock_is_left_out_with_its_end(self):
        locks = [m for m in self.made if m.operator == "lock"]
        self.assertEqual(len(locks), 1)
        self.assertEqual(locks[0].text().count("(void)0;"), 2)

    def test_what_a_macro_hides_is_left_alone(self):
        self.assertFalse([m for m in self.made if "define" in m.diff().split("@@")[2].split("\n-")[1]])

    def test_assertions_are_left_alone(self):
        self.assertFalse([m for m in self.made if "GMD_ASSERT" not in m.text().split("locked")[1]])
        self.assertFalse({line for m in self.made for line in m.diff().splitlines()
                          if line.startswith("-") and "GMD_ASSERT" in line})

    def test_a_function_that_checks_is_left_alone(self):
        made = self.of("const char *list_violation(int a) { return a < 3 ? 0 : \"small\"; }\n" + PROGRAM)
        self.assertEqual([m.name for m in made], [m.name for m in self.made])

    def test_names_do_not_depend_on_where_a_line_is(self):
        moved = self.of("/* a comment */\n\n" + PROGRAM)
        self.assertEqual([m.name for m in moved], [m.name for m in self.made])

    def test_names_are_different(self):
        self.assertEqual(len({m.name for m in self.made}), len(self.made))

    def test_lines_stay_where_they_are(self):
        for m in self.made:
            self.assertEqual(m.text().count("\n"), m.source.count("\n"))

    def test_a_sample_has_each_operator_before_any_comes_twice(self):
        strata = {m.operator for m in self.made}
        sample = mutants.in_sampling_order(self.made, 1)[:len(strata)]
        self.assertEqual({m.operator for m in sample}, strata)

    def test_the_same_seed_makes_the_same_sample(self):
        once, again = ([m.name for m in mutants.in_sampling_order(self.made, 7)] for _ in range(2))
        self.assertEqual(once, again)

    def test_a_mutant_that_the_compiler_warns_of_is_compiled_all_the_same(self):
        path = os.path.join(self.folder.name, "warned.c")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("int warned(int a, int b, int c) { return a && b || c; }")
        words = ["cc", "-Wall", "-Werror", "-o", "elsewhere", "-c", path]
        self.assertEqual(subprocess.run(moved_command(words, {}, path + ".o"), check=False).returncode, 0)

    def test_a_file_gives_the_same_object_in_any_folder(self):
        objects = []
        for name in ("base", "job"):
            folder = os.path.join(self.folder.name, name)
            os.mkdir(folder)
            path = os.path.join(folder, "placed.c")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write("const char *place(void) { return __FILE__; }")
            words = with_place_of_allocator(["cc", "-fmacro-prefix-map=%s/=" % self.folder.name, "-o",
                                             path + ".o", "-c", path], folder)
            subprocess.run(words, check=True)
            with open(path + ".o", "rb") as stream:
                objects.append(stream.read())
        self.assertIn(b"allocator/placed.c", objects[0])
        self.assertEqual(objects[0], objects[1])

    def test_assertions_are_counted_by_their_place(self):
        judged = [{"killed": None}, {"killed": {"assertion": None}}]
        judged += [{"killed": {"assertion": said}} for said in (
            "allocator/a.c:7: f: x > 0: few", "allocator/a.c:31: f: x: none", "allocator/a.c:31: f: y: some")]
        self.assertEqual(report.assertions(judged), [("allocator/a.c:31", 2), ("allocator/a.c:7", 1)])

    def test_the_page_of_results_fits_the_lines_of_the_manual(self):
        judged = [{"name": m.name, "operator": m.operator, "file": m.file, "killed": None} for m in self.made]
        for result in judged[1:]:
            result["killed"] = {"judge": "sanitizers", "assertion": "allocator/a.c:7: answer: a: a sentence"}
        page = report.page(judged, {"same": 10, "broken": 20}, {}, "ci/mutants -n 0")
        self.assertIn("- survived: `%s`" % judged[0]["name"], page)
        self.assertEqual([line for line in page.split("\n") if len(line) > 100], [])


if __name__ == "__main__":
    unittest.main()
