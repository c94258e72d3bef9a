"""Stacks of Python frames as libgmd_torch_hooks.so takes them, beside what Python itself says. Runs with every
python3 there is, for frames are read where each version keeps them. Environment: GMD_TEST_LIB_DIR."""

import ctypes
import gc
import os
import subprocess
import sys
import sysconfig
import threading
import unittest

LIBRARIES = os.environ.get("GMD_TEST_LIB_DIR", "")
HOOKS = ctypes.CDLL(os.path.join(LIBRARIES, "libgmd_torch_hooks.so"))  # as PyTorch, it gives Python's lock away
WITH_LOCK = ctypes.PyDLL(os.path.join(LIBRARIES, "libgmd_torch_hooks.so"))
IS_READ = sys.version_info[:2] in ((3, 10), (3, 11), (3, 12), (3, 13)) and not sysconfig.get_config_var("Py_GIL_DISABLED")
for library in (HOOKS, WITH_LOCK):
    library.gmd_torch_keep_stack.restype = ctypes.c_uint32
    library.gmd_torch_stack_text.restype = ctypes.c_size_t
keep = HOOKS.gmd_torch_keep_stack
HOOKS.gmd_torch_allow_python(1)


def text_of(stack, size=1 << 16):
    text = ctypes.create_string_buffer(size)
    length = HOOKS.gmd_torch_stack_text(ctypes.c_uint32(stack), text, ctypes.c_size_t(size))
    return text.raw[:length].decode()


def said(most=128):
    """What Python says of the frames from the caller outwards."""
    lines, frame = [], sys._getframe(1)
    while frame and len(lines) < most:
        lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}:{frame.f_code.co_name}\n")
        frame = frame.f_back
    return "".join(lines)


def both():
    return (keep(), said())


class Same(unittest.TestCase):
    def check(self, pair):
        stack, expected = pair
        self.assertEqual(text_of(stack), expected)

    def test_a_plain_call(self):
        self.check(both())

    def test_whether_the_lock_is_held_or_not(self):
        take = WITH_LOCK.gmd_torch_keep_stack
        self.check((take(), said()))
        for _ in range(3):
            numbers = keep(), take()
            self.assertEqual(*numbers)

    def test_the_same_place_has_the_same_number(self):
        numbers = {keep() for _ in range(10)}
        self.assertEqual(len(numbers), 1)

    def test_one_line_with_two_calls_is_one_stack(self):
        self.assertEqual(keep(), keep())

    def test_lines_differ(self):
        first = keep()
        second = keep()
        self.assertNotEqual(first, second)

    def test_the_line_of_an_outer_frame_counts(self):
        def inner():
            return both()
        first = inner()
        second = inner()
        self.assertNotEqual(first[0], second[0])
        self.check(first)
        self.check(second)

    def test_recursion(self):
        def sink(depth):
            return both() if depth == 0 else sink(depth - 1)
        seen = [sink(depth) for depth in (0, 1, 2, 7, 50)]
        self.assertEqual(len({stack for stack, _ in seen}), 5)
        for pair in seen:
            self.check(pair)

    def test_of_a_very_deep_stack_the_innermost_frames(self):
        def sink(depth):
            return (keep(), said()) if depth == 0 else sink(depth - 1)
        stack, expected = sink(400)
        self.assertEqual(expected.count("\n"), 128)
        self.assertEqual(text_of(stack), expected)

    def test_generators(self):
        def numbers():
            yield both()
            yield both()
        g = numbers()
        first, second = next(g), next(g)
        self.check(first)
        self.check(second)
        self.assertNotEqual(first[0], second[0])

        def outer():
            yield from numbers()
        for pair in outer():
            self.check(pair)

    def test_coroutines(self):
        async def step():
            return both()

        async def run():
            return await step()
        try:
            run().send(None)
        except StopIteration as end:
            self.check(end.value)

    def test_frames_of_c_between(self):
        self.check(sorted([0], key=lambda _: SEEN.append(both()))and SEEN.pop())
        self.check(list(map(lambda _: both(), [0]))[0])
        self.check(eval("both()"))
        space = {"both": both}
        exec("def f():\n    return both()\nx = f()", space)
        self.check(space["x"])

        class Called:
            def __init__(self):
                self.pair = both()

            def __add__(self, other):
                return both()

            @property
            def seen(self):
                return both()
        self.check(Called().pair)
        self.check(Called() + 1)
        self.check(Called().seen)

    def test_comprehensions_and_closures(self):
        outside = 1
        self.check([(outside, both()) for _ in range(1)][0][1])
        self.check(next((outside, both()) for _ in range(1))[1])

    def test_within_a_finalizer(self):
        class Block:
            def __del__(self):
                SEEN.append(both())
        block = Block()
        del block
        self.check(SEEN.pop())

    def test_within_the_garbage_collector(self):
        class Ring:
            def __init__(self):
                self.me = self

            def __del__(self):
                SEEN.append(both())
        Ring()
        gc.collect()
        self.check(SEEN.pop())

    def test_an_exception_on_its_way_is_kept(self):
        class Block:
            def __del__(self):
                SEEN.append(both())

        def fail():
            block = Block()
            raise ValueError("mine" if block else "")
        for _ in range(2):
            with self.assertRaisesRegex(ValueError, "mine"):
                fail()
        self.check(SEEN.pop())

    def test_while_a_program_is_traced(self):
        sys.settrace(lambda *_: None)
        try:
            pair = both()
        finally:
            sys.settrace(None)
        self.check(pair)

    def test_text_is_cut_at_a_line(self):
        stack = keep()
        first = text_of(stack).splitlines(keepends=True)[0]
        self.assertEqual(text_of(stack, len(first) + 3), first)
        self.assertEqual(text_of(stack, 3), "")

    def test_no_stack_has_no_text(self):
        self.assertEqual(text_of(0), "")
        self.assertEqual(text_of(2**32 - 1), "")

    def test_names_that_are_not_ascii(self):
        space = {"both": both}
        exec(compile("def \u00fcber():\n    return both()\nx = \u00fcber()", "\u0434\u043e\u043c.py", "exec"), space)
        self.check(space["x"])


SEEN = []


class Codes(unittest.TestCase):
    """A code that is gone does not give its lines to another at its address."""

    def test_a_module_that_is_loaded_again(self):
        for version in range(200):
            space = {"keep": keep}
            source = "\n" * version + f"def step_{version}():\n    return keep()\nstack = step_{version}()\n"
            exec(compile(source, "module.py", "exec"), space)
            lines = text_of(space["stack"]).splitlines()
            self.assertEqual(lines[:2], [f"module.py:{version + 2}:step_{version}", f"module.py:{version + 3}:<module>"])

    def test_codes_at_the_address_of_earlier_ones(self):
        addresses = set()
        for version in range(200):
            space = {"keep": keep}
            exec(compile(f"def f(): return keep()\ndef g(): return 0\n", f"file_{version}.py", "exec"), space)
            self.assertTrue(text_of(space["f"]()).startswith(f"file_{version}.py:1:f\n"))
            addresses.add(id(space["f"].__code__))
            del space
        self.assertEqual(len(addresses), 200)  # they are kept

    def test_codes_that_no_stack_has_go(self):
        import weakref
        space = {}
        exec("def f(): return 0", space)
        code = weakref.ref(space["f"].__code__)
        space["f"]()
        del space
        gc.collect()
        self.assertIsNone(code())

    def test_a_code_that_is_replaced_while_its_function_lives(self):
        def first(): return keep()
        def second(): return keep()
        a = first()
        first.__code__ = second.__code__
        b = first()
        self.assertIn(":first\n", text_of(a).splitlines(keepends=True)[0])
        self.assertIn(":second\n", text_of(b).splitlines(keepends=True)[0])


class Threads(unittest.TestCase):
    def test_each_has_its_own(self):
        wrong = []

        def work(number):
            space = {"both": both}
            exec(compile(f"def f_{number}(depth):\n    return both() if depth == 0 else f_{number}(depth - 1)",
                         f"thread_{number}.py", "exec"), space)
            for turn in range(300):
                stack, expected = space[f"f_{number}"](turn % 40)
                if text_of(stack) != expected:
                    wrong.append((text_of(stack), expected))
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong[:1], [])

    def test_those_that_meet_a_stack_at_once_agree(self):
        barrier, seen = threading.Barrier(8), []

        def work():
            barrier.wait()
            seen.append(keep())
        for _ in range(20):
            threads = [threading.Thread(target=work) for _ in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(len(set(seen)), 1)


class Ends(unittest.TestCase):
    def run_program(self, program):
        done = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, timeout=200,
                              check=False)
        return done.returncode, done.stdout.strip() + done.stderr.strip()

    def test_python_is_not_asked_when_it_ends(self):
        self.assertEqual(self.run_program(
            "import atexit, ctypes, os\n"
            "h = ctypes.CDLL(os.environ['GMD_TEST_LIB_DIR'] + '/libgmd_torch_hooks.so')\n"
            "h.gmd_torch_allow_python(1)\n"
            "first = h.gmd_torch_keep_stack()\n"
            "h.gmd_torch_allow_python(0)\n"
            "text = ctypes.create_string_buffer(1000)\n"
            "print(h.gmd_torch_keep_stack(), h.gmd_torch_stack_text(first, text, ctypes.c_size_t(1000)))"),
            (0, f"0 {len('<string>:4:<module>') + 1}"))

    def test_beyond_the_room_for_stacks_those_that_are_kept_stay_right(self):
        self.assertEqual(self.run_program(
            "import ctypes, os\n"
            "h = ctypes.CDLL(os.environ['GMD_TEST_LIB_DIR'] + '/libgmd_torch_hooks.so')\n"
            "h.gmd_torch_allow_python(1)\n"
            "def sink(depth, way):\n"
            "    if depth == 0: return h.gmd_torch_keep_stack()\n"
            "    if way & 1: return sink(depth - 1, way >> 1)\n"
            "    return sink(depth - 1, way >> 1)\n"
            "def lines(stack):\n"
            "    text = ctypes.create_string_buffer(1 << 14)\n"
            "    return text.value if h.gmd_torch_stack_text(stack, text, ctypes.c_size_t(1 << 14)) else b''\n"
            "seen, kept = {}, None\n"
            "for way in list(range(28000)) + [5]:\n"
            "    seen.setdefault(way, set()).add(sink(120, way))\n"
            "    kept = kept or lines(*seen.get(5, [0]))\n"
            "said = lines(*seen[5])\n"
            "print(len({n for s in seen.values() for n in s}) < 28000, lines(*seen[27999]), len(seen[5]) == 1, said == kept,\n"
            "      [line.split(b':')[1].decode() for line in said.split()[-4:-1]])"),
            (0, "True b':0:(a stack beyond those that there is room for)\\n' True True ['6', '7', '6']"))

    @unittest.skipUnless(IS_READ, "each request asks Python")
    def test_beyond_the_room_for_places_python_is_not_waited_for(self):
        """Another thread has Python's lock, and gives it away for whoever waits 10 ms: once, at the return."""
        self.assertEqual(self.run_program(
            "import ctypes, os, sys, threading, time\n"
            "h = ctypes.CDLL(os.environ['GMD_TEST_LIB_DIR'] + '/libgmd_torch_hooks.so')\n"
            "h.gmd_torch_allow_python(1)\n"
            "keep = h.gmd_torch_keep_stack\n"
            "for code in range(132): exec(compile('keep();' * 1000, f'{code}.py', 'exec'))\n"
            "text = ctypes.create_string_buffer(1000)\n"
            "print(h.gmd_torch_stack_text(keep(), text, ctypes.c_size_t(1000)) and text.value)\n"
            "def work():\n"
            "    while is_on: pass\n"
            "is_on, count = True, 1000\n"
            "sys.setswitchinterval(0.01)\n"
            "thread = threading.Thread(target=work)\n"
            "thread.start()\n"
            "def seconds():\n"
            "    start = time.perf_counter()\n"
            "    ctypes.CDLL(None).lfind(None, bytes(count), ctypes.byref(ctypes.c_size_t(count)), ctypes.c_size_t(1), keep)\n"
            "    return time.perf_counter() - start\n"
            "print(min(seconds() for _ in range(3)) < 1)\n"
            "is_on = False\n"
            "thread.join()"),
            (0, "b':0:(a stack beyond those that there is room for)\\n'\nTrue"))

    def test_frames_are_read_where_they_lie(self):
        """Where the version is known: the very first stack shows whether that is right."""
        self.assertEqual(self.run_program(
            "import ctypes, os, sys\n"
            "h = ctypes.CDLL(os.environ['GMD_TEST_LIB_DIR'] + '/libgmd_torch_hooks.so')\n"
            "h.gmd_torch_allow_python(1)\n"
            "before = h.gmd_torch_reads_frames()\n"
            "h.gmd_torch_keep_stack()\n"
            "print(before, h.gmd_torch_reads_frames())"), (0, f"0 {int(IS_READ)}"))

    def test_what_cannot_be_looked_at_is_looked_at_later(self):
        """A process without a descriptor that is free; and none is taken for good."""
        self.assertEqual(self.run_program(
            "import ctypes, os, resource\n"
            "h = ctypes.CDLL(os.environ['GMD_TEST_LIB_DIR'] + '/libgmd_torch_hooks.so')\n"
            "h.gmd_torch_allow_python(1)\n"
            "limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
            "used = os.listdir('/proc/self/fd')\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))\n"
            "h.gmd_torch_keep_stack()\n"
            "before = h.gmd_torch_reads_frames()\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))\n"
            "h.gmd_torch_keep_stack()\n"
            "print(before, h.gmd_torch_reads_frames(), os.listdir('/proc/self/fd') == used)"),
            (0, f"0 {int(IS_READ)} True"))

    def test_a_stack_as_deep_as_there_is_room_for_does_not_decide(self):
        self.assertEqual(self.run_program(
            "import ctypes, os\n"
            "h = ctypes.CDLL(os.environ['GMD_TEST_LIB_DIR'] + '/libgmd_torch_hooks.so')\n"
            "h.gmd_torch_allow_python(1)\n"
            "def sink(depth): return sink(depth - 1) if depth else h.gmd_torch_keep_stack()\n"
            "sink(126)\n"
            "before = h.gmd_torch_reads_frames()\n"
            "sink(125)\n"
            "print(before, h.gmd_torch_reads_frames())"), (0, f"0 {int(IS_READ)}"))


if __name__ == "__main__":
    unittest.main()
