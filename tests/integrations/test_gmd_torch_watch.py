"""gmd_torch_watch.py with an allocator of a few lines in place of PyTorch's, and the real program gmd. Environment:
GMD_PROGRAM, GMD_TEST_HISTORIES."""

import os
import sys
import time
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "integrations"))
sys.dont_write_bytecode = True

import gmd_torch_watch  # noqa: E402

MIB = 1 << 20


class FakeAllocator:
    """Blocks by address; a recording notes allocations with their line."""

    device = 0

    def __init__(self):
        self.blocks, self.events, self.on, self.next = {}, [], False, 0

    def take(self, size, line):
        self.next += 1
        self.blocks[self.next] = (size, line if self.on else None)
        if self.on:
            self.events.append({"action": "alloc", "addr": self.next, "time_us": time.time_ns() // 1000})
        return self.next

    def give(self, address):
        del self.blocks[address]

    def allocated(self):
        return sum(size for size, _ in self.blocks.values())

    def is_recording(self):
        return self.on

    def record(self):
        self.on, self.events = True, []

    def stop(self):
        self.on = False

    def snapshot(self):
        def frames(line):
            own = [{"filename": "/lib/torch/nn.py", "line": 7, "name": "forward"},
                   {"filename": "train.py", "line": line, "name": "step"}]
            return own if line else []

        blocks = [{"address": address, "size": size, "state": "active_allocated", "frames": frames(line)}
                  for address, (size, line) in self.blocks.items()]
        return {"device_traces": [self.events], "segments": [{"device": 0, "blocks": blocks}]}


def train(iterations, each, warm_up=2, window=8):
    """The leaks that are found over iterations of which each does `each(allocator, number)`."""
    allocator, leaks = FakeAllocator(), []
    watch = gmd_torch_watch.Watch(allocator, window, MIB, warm_up, leaks.append)
    for number in range(iterations):
        each(allocator, number)
        time.sleep(0.0005)  # the clock of events is in microseconds
        watch.step()
    return allocator, leaks


class Watching(unittest.TestCase):
    def test_what_is_kept_each_iteration_is_found_by_its_line(self):
        def each(allocator, _number):
            allocator.give(allocator.take(50 * MIB, 10))
            allocator.take(MIB, 20)

        _, leaks = train(30, each)
        self.assertEqual([(leak.bytes_per_iteration, leak.lines) for leak in leaks],
                         [(MIB, [("train.py", 20, "step", MIB)])])

    def test_what_the_next_iteration_frees_is_not_blamed(self):
        held = []

        def each(allocator, _number):
            held.append(allocator.take(8 * MIB, 30))
            if len(held) > 1:
                allocator.give(held.pop(0))
            allocator.take(MIB, 20)

        _, leaks = train(30, each)
        self.assertEqual([line for _file, line, _function, _bytes in leaks[0].lines], [20])

    def test_memory_that_goes_up_and_down_is_no_leak(self):
        held = []

        def each(allocator, number):
            held.append(allocator.take((1 + number * 7 % 5) * MIB, 10))
            if len(held) > 4:
                allocator.give(held.pop(0))

        self.assertEqual(train(100, each)[1], [])

    def test_a_growth_that_ended_is_no_leak(self):
        self.assertEqual(train(60, lambda allocator, number: number < 3 and allocator.take(9 * MIB, 10))[1], [])

    def test_a_growth_below_the_least_is_none(self):
        self.assertEqual(train(20, lambda allocator, _number: allocator.take(100, 10))[1], [])

    def test_nothing_is_recorded_until_memory_has_grown_and_after_it_was_told(self):
        seen = []

        def each(allocator, number):
            seen.append(allocator.on)
            allocator.take(MIB, 20)

        train(20, each)
        self.assertEqual((seen.index(True), seen.count(True)), (10, gmd_torch_watch.Watch.LOOK))

    def test_a_recording_of_the_program_is_left_on(self):
        allocator = FakeAllocator()
        allocator.record()
        watch = gmd_torch_watch.Watch(allocator, 8, MIB, 0, lambda leak: None)
        for _ in range(20):
            allocator.take(MIB, 20)
            watch.step()
        self.assertTrue(allocator.on)

    def test_of_two_optimizers_one_counts_iterations(self):
        watch = gmd_torch_watch.Watch(FakeAllocator(), 8, MIB, 5, lambda leak: None)
        first, second = object(), object()
        for optimizer in (first, second, first, second):
            watch._after_optimizer(optimizer, (), {})
        self.assertEqual(watch.resting, 3)

    def test_the_warning_names_line_and_growth(self):
        leak = gmd_torch_watch.Leak(2 * MIB, 32, 70 * MIB, [("train.py", 20, "step", 2 * MIB)])
        with self.assertWarnsRegex(gmd_torch_watch.LeakWarning,
                                   r"grows by 2\.00 MiB each iteration, for 32 .* 70\.00 MiB\n.*train\.py:20 in step"):
            gmd_torch_watch._warn(leak)


class Explaining(unittest.TestCase):
    def history(self, name):
        return os.path.join(os.environ["GMD_TEST_HISTORIES"], name + ".pickle.gz")

    def test_five_lines_on_the_last_refusal(self):
        lines = gmd_torch_watch.explain_snapshot(self.history("left_free_1.2"))
        self.assertEqual([line.split(":")[0].split(" ")[0] for line in lines],
                         ["Asked", "Held", "Cached,", "Cause", "Change"])

    def test_a_limit_that_an_observer_is_told_is_not_the_device(self):
        torch = types.SimpleNamespace(cuda=types.SimpleNamespace(mem_get_info=lambda device: (10, 80)))
        self.assertEqual(gmd_torch_watch._device_bytes(torch, 0, 2), 80)
        del torch.cuda.mem_get_info
        self.assertIsNone(gmd_torch_watch._device_bytes(torch, 0, 2))

    def test_what_others_hold_follows_from_the_devices_capacity(self):
        path = self.history("left_free_1.2")
        self.assertIn("8.66 GiB are held beside PyTorch", gmd_torch_watch.explain_snapshot(path, capacity=140 << 30)[0])
        self.assertNotIn("beside", gmd_torch_watch.explain_snapshot(path)[0])

    def test_a_recording_without_refusals_says_so(self):
        self.assertRegex(gmd_torch_watch.explain_snapshot(self.history("resnet50_fixed"))[0], "^Why: .*not recorded")

    def test_a_file_that_cannot_be_read_is_no_surprise(self):
        self.assertRegex(gmd_torch_watch.explain_snapshot("/no/such/file")[0], "^Why: not told .*/no/such/file")


if __name__ == "__main__":
    unittest.main(verbosity=1)
