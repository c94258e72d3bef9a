"""gmd_torch.py with a stub in place of PyTorch, the real libgmd_allocator.so and the simulated device. Each
test runs in a process of its own, since installing is for good. Environment: GMD_TEST_LIB_DIR."""

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
HELPER = os.path.normpath(os.path.join(HERE, "..", "..", "integrations"))
LIBRARIES = os.environ.get("GMD_TEST_LIB_DIR", "")
PRELUDE = """
import ctypes, glob, os, pickle, sys
sys.dont_write_bytecode = True
import torch
import gmd_torch
gmd_torch_malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
gmd_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
def malloc(size): return gmd_torch_malloc(torch.cuda.memory.current.functions["malloc"])(size, 0, None)
def free(block): gmd_free(torch.cuda.memory.current.functions["free"])(block, 0, 0, None)
"""


def run(program, folder=None, whole=False, **environment):
    """What the program printed, or the last line of its error; `whole`: both, from the start."""
    base = {k: v for k, v in os.environ.items()
            if k not in ("GMD_ALLOCATOR", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")}
    base.update({"PYTHONPATH": os.pathsep.join([os.path.join(HERE, "stub"), HELPER]),
                 "GMD_ALLOCATOR": LIBRARIES, "LD_LIBRARY_PATH": os.path.join(LIBRARIES, "sim"), **environment})
    done = subprocess.run([sys.executable, "-c", PRELUDE + program], cwd=folder, env=base, text=True,
                          capture_output=True, timeout=60, check=False)
    if whole:
        return done.stdout + done.stderr
    if done.returncode == 0:
        return done.stdout.strip()
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}"


class Install(unittest.TestCase):
    def test_tensors_live_in_the_library(self):
        self.assertEqual(run("gmd_torch.install()\nb = malloc(1000)\nprint(gmd_torch.memory_allocated())"), "1024")

    def test_every_hook_is_set(self):
        hooks = run("gmd_torch.install()\nprint(*sorted(torch.cuda.memory.current.functions))")
        self.assertEqual(hooks.split(), [
            "free", "malloc", "set_base_alloc_fn", "set_begin_allocate_to_pool", "set_end_allocate_to_pool_fn",
            "set_init_fn", "set_memory_fraction_fn", "set_record_stream_fn", "set_release_pool", "set_reset_fn"])

    def test_settings_are_taken(self):
        self.assertEqual(run("gmd_torch.install('roundup_power2_divisions:4')\nmalloc(8200)\n"
                             "print(gmd_torch.memory_allocated())"), "10240")

    def test_settings_of_the_environment_are_the_default(self):
        self.assertEqual(run("gmd_torch.install()\nmalloc(8200)\nprint(gmd_torch.memory_allocated())",
                             PYTORCH_CUDA_ALLOC_CONF="roundup_power2_divisions:4"), "10240")

    def test_the_environment_may_switch_caching_off(self):
        program = "gmd_torch.install()\nb = malloc(1000)\nprint(gmd_torch.memory_allocated())\nfree(b)"
        self.assertEqual(run(program, PYTORCH_NO_CUDA_MEMORY_CACHING="1"), "0")

    def test_a_bad_setting_is_named_and_nothing_is_installed(self):
        printed = run("try: gmd_torch.install('no_such:1')\n"
                   "except gmd_torch.GmdError as e: print(e, gmd_torch.installed(), torch.cuda.memory.current)")
        self.assertRegex(printed, r"no_such.* False None$")

    def test_cuda_in_use_is_refused(self):
        self.assertIn("too late", run("torch.cuda.initialized = True\ngmd_torch.install()"))

    def test_a_refusal_of_pytorch_is_told(self):
        self.assertIn("GmdError: PyTorch refused another allocator: Can't swap",
                      run("torch.cuda.memory.refuses = True\ngmd_torch.install()"))

    def test_pytorch_without_cuda_is_refused(self):
        self.assertIn("built without CUDA", run("torch.version.cuda = None\ngmd_torch.install()"))

    def test_a_second_install_is_refused(self):
        self.assertIn("called already", run("gmd_torch.install()\ngmd_torch.install()"))

    def test_everything_else_needs_install_first(self):
        self.assertIn("install() comes first", run("gmd_torch.memory_stats()"))

    def test_a_missing_library_names_where_it_was_sought(self):
        self.assertRegex(run("gmd_torch.install(library='/no/such.so')"), "not found .*/no/such.so.*GMD_ALLOCATOR")

    def test_the_library_of_an_installation_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "share", "gmd"))
            os.makedirs(os.path.join(folder, "lib"))
            os.symlink(LIBRARIES, os.path.join(folder, "lib", "gmd"))
            shutil.copy(os.path.join(HELPER, "gmd_torch.py"), os.path.join(folder, "share", "gmd"))
            path = os.pathsep.join([os.path.join(HERE, "stub"), os.path.join(folder, "share", "gmd")])
            self.assertEqual(run("gmd_torch.install()\nprint(gmd_torch.memory_reserved())",
                                 PYTHONPATH=path, GMD_ALLOCATOR=""), "0")

    def test_a_file_that_is_no_library_is_named(self):
        self.assertRegex(run("gmd_torch.install(library=gmd_torch.__file__)"), "gmd_torch.py cannot be loaded")

    def test_missing_hooks_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(LIBRARIES, "libgmd_allocator.so"), folder)
            self.assertIn("libgmd_torch_hooks.so is missing", run("gmd_torch.install()", GMD_ALLOCATOR=folder))

    def test_an_unknown_kind_of_stacks_is_refused(self):
        self.assertIn("stacks is 'some'", run("gmd_torch.install(stacks='some')"))


class Figures(unittest.TestCase):
    def test_pytorchs_own_question_gets_the_same_figures(self):
        self.assertEqual(run("gmd_torch.install()\nb = malloc(5 << 20)\n"
                             "nested = torch._C._cuda_memoryStats(0)\n"
                             "print(nested['reserved_bytes']['all']['peak'], nested['num_ooms'])"), "20971520 0")

    def test_pytorchs_own_question_is_left_alone_on_demand(self):
        self.assertIn("does not yet support", run("gmd_torch.install(answer_torch=False)\n"
                                                  "torch._C._cuda_memoryStats(0)"))

    def test_peaks_are_reset(self):
        self.assertEqual(run("gmd_torch.install()\nfree(malloc(5 << 20))\ngmd_torch.reset_peak_memory_stats()\n"
                             "print(gmd_torch.max_memory_allocated(), gmd_torch.max_memory_reserved())"),
                         "0 20971520")

    def test_the_cache_is_given_back(self):
        self.assertEqual(run("gmd_torch.install()\nfree(malloc(5 << 20))\ngmd_torch.empty_cache()\n"
                             "print(gmd_torch.memory_reserved('cuda:0'))"), "0")

    def test_a_device_that_is_not_there_is_named(self):
        self.assertIn("no CUDA device 7", run("gmd_torch.install()\ngmd_torch.memory_stats('cuda:7')"))

    def test_the_memory_fraction_of_pytorch_is_kept_and_told(self):
        self.assertEqual(run("gmd_torch.install()\ntorch._C._cuda_setMemoryFraction(0.25, 0)\n"
                             "print(torch._C._cuda_getMemoryFraction(0))"), "0.25")

    def test_a_fraction_out_of_range_is_refused(self):
        self.assertIn("1.5 is not between", run("gmd_torch.install()\ngmd_torch.set_per_process_memory_fraction(1.5)"))


    def test_counts_begin_anew(self):
        self.assertEqual(run("gmd_torch.install()\nfree(malloc(5 << 20))\n"
                             "torch._C._cuda_resetAccumulatedMemoryStats(0)\nb = malloc(512)\nstats = gmd_torch.memory_stats()\n"
                             "print(stats['allocation.all.allocated'], stats['num_device_alloc'],"
                             " stats['allocated_bytes.all.freed'])"), "1 1 0")

    def test_torch_accelerator_is_answered(self):
        self.assertEqual(run("gmd_torch.install()\nb = malloc(5 << 20)\ntorch.cuda.initialized = True\n"
                             "print(torch._C._accelerator_isAllocatorInitialized(),"
                             " torch._C._accelerator_getDeviceStats(0)['allocated_bytes']['all']['current'])\n"
                             "free(b)\ntorch._C._accelerator_emptyCache()\nprint(gmd_torch.memory_reserved())"),
                         "True 5242880\n0")

    def test_the_fraction_of_the_settings_is_told(self):
        self.assertEqual(run("gmd_torch.install('per_process_memory_fraction:0.5')\n"
                             "print(torch._C._cuda_getMemoryFraction(0))"), "0.5")


class Settings(unittest.TestCase):
    def test_those_given_at_run_time_are_taken(self):
        self.assertEqual(run("gmd_torch.install()\nmalloc(8200)\n"
                             "torch._C._accelerator_setAllocatorSettings('roundup_power2_divisions:4')\nmalloc(8200)\n"
                             "print(gmd_torch.memory_allocated())"), str(8704 + 10240))

    def test_one_that_cannot_change_is_named(self):
        self.assertIn("GmdError: large_segment_size_mb cannot change while memory of device 0 is reserved",
                      run("gmd_torch.install('expandable_segments:True')\nb = malloc(1)\n"
                          "gmd_torch.change_settings('expandable_segments:True,large_segment_size_mb:40')"))

    def test_the_largest_size_that_is_split_changes_with_memory_reserved(self):
        self.assertEqual(run("gmd_torch.install()\nfree(malloc(60 << 20))\n"
                             "gmd_torch.change_settings('max_split_size_mb:25')\nmalloc(30 << 20)\n"
                             "print(gmd_torch.memory_reserved() >> 20)"), "90")


class Watchers(unittest.TestCase):
    def test_callbacks_of_a_trace_are_called(self):
        self.assertEqual(run("gmd_torch.install()\nseen = []\n"
                             "torch.cuda._gpu_trace.MemoryAllocationCallbacks.callbacks.append(seen.append)\n"
                             "torch.cuda._gpu_trace.MemoryDeallocationCallbacks.callbacks.append(seen.append)\n"
                             "malloc(1)\ntorch._C._activate_gpu_trace()\nb = malloc(1)\nfree(b)\n"
                             "print(seen == [b, b])"),
                         "True")

    def test_observers_of_out_of_memory_are_called(self):
        said = run("gmd_torch.install(dump_on_oom=False)\n"
                   "def tell(*told): print(told, file=sys.stderr, flush=True)\n"
                   "torch._C._cuda_attach_out_of_memory_observer(tell)\nmalloc((1 << 50) + 1)", whole=True)
        self.assertIn(f"(0, {(1 << 50) + (2 << 20)}, {80 << 30}, {80 << 30})", said)


class Sanitizer(unittest.TestCase):
    def test_a_tier_that_there_is_not_is_named_and_nothing_is_installed(self):
        self.assertEqual(run("try: gmd_torch.install(sanitize='dear')\n"
                             "except gmd_torch.GmdError as e: print(e, gmd_torch.installed())"),
                         "sanitizer: there is no tier 'dear'; tiers are cheap, full, unmap False")

    def test_an_option_of_the_environment_is_taken(self):
        self.assertIn("there is no option 'zones'", run("gmd_torch.install()", GMD_SANITIZE="cheap,zones:1"))

    def test_an_option_that_is_no_text_is_refused(self):
        self.assertIn("sanitize is 7; it is True, False or a text", run("gmd_torch.install(sanitize=7)"))

    def test_false_is_no_sanitizer(self):
        self.assertEqual(run("gmd_torch.install(sanitize=False)\nb = malloc(1000)\nprint(gmd_torch.memory_allocated())",
                             GMD_SANITIZE="full"), "1024")

    def test_it_takes_the_place_of_the_allocators_functions(self):
        self.assertEqual(run("gmd_torch.install(sanitize=True)\n"
                             "print(torch.cuda.memory.current.functions['set_record_stream_fn'] =="
                             " gmd_torch._address(gmd_torch._state.sanitizer, 'gmd_sanitizer_record_stream'))"), "True")

    def test_a_device_without_its_kernels_is_told_at_the_first_request(self):
        said = run("gmd_torch.install(sanitize=True)\nmalloc(1000)", whole=True)
        self.assertIn("gmd_torch: sanitizer: the driver has no cuLibraryLoadData", said)

    def test_launches_are_waited_for_where_the_options_say_so(self):
        for options, expected in (("unmap,reads:unseen", "1"), ("cheap", "None"), ("cheap,launches:waited_for", "1")):
            self.assertEqual(run(f"gmd_torch.install(sanitize='{options}')\nimport os\n"
                                 "print(os.environ.get('CUDA_LAUNCH_BLOCKING'))"), expected)

    def test_a_tool_for_memory_is_told_of_blocks(self):
        tool = os.path.join(LIBRARIES, "..", "..", "tests", "allocator_fakes", "libfake_nvtx.so")
        if not os.path.exists(tool):
            self.skipTest("the tests' tool is not built")
        program = "gmd_torch.install()\nmalloc(1000)"
        self.assertIn("blocks are announced to", run(program, whole=True, NVTX_INJECTION64_PATH=tool))
        self.assertNotIn("announced", run(program, whole=True, NVTX_INJECTION64_PATH=tool, GMD_ANNOUNCE="0"))
        self.assertNotIn("announced", run(program, whole=True))

    def test_stacks_are_taken_without_python_code(self):
        said = run("gmd_torch.install(sanitize=True)\n"
                   "take = gmd_torch._state.hooks.gmd_torch_python_stack\n"
                   "text = ctypes.create_string_buffer(1000)\n"
                   "def inner(): return take(None, text, ctypes.c_size_t(1000))\n"
                   "def outer(): return inner()\n"
                   "length = outer()\nprint(text.raw[:length].decode().split())")
        self.assertEqual(said, "['<string>:13:inner', '<string>:14:outer', '<string>:15:<module>']")

    def test_an_exception_on_its_way_is_kept_while_a_stack_is_taken(self):
        said = run("gmd_torch.install(sanitize=True)\n"
                   "class Block:\n"
                   "    def __del__(self): gmd_torch._state.hooks.gmd_torch_python_stack(None, text, ctypes.c_size_t(1000))\n"
                   "text = ctypes.create_string_buffer(1000)\n"
                   "def fail():\n"
                   "    block = Block()\n"
                   "    raise ValueError('mine')\n"
                   "try: fail()\n"
                   "except ValueError as e: print(e)")
        self.assertEqual(said, "mine")

    def test_a_check_needs_it(self):
        self.assertIn("check() needs gmd_torch.install(sanitize=True)", run("gmd_torch.install()\ngmd_torch.check()"))

    def test_a_missing_library_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libgmd_allocator.so", "libgmd_torch_hooks.so"):
                shutil.copy(os.path.join(LIBRARIES, name), folder)
            self.assertIn("libgmd_sanitizer.so is missing", run("gmd_torch.install(sanitize=True)", GMD_ALLOCATOR=folder))


class Runner(unittest.TestCase):
    """python -m gmd_torch"""

    def run_module(self, *arguments, program="", **environment):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.py"), "w", encoding="utf-8") as file:
                file.write(program)
            base = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.join(HERE, "stub"), HELPER]),
                    "GMD_ALLOCATOR": LIBRARIES, "LD_LIBRARY_PATH": os.path.join(LIBRARIES, "sim"), **environment}
            done = subprocess.run([sys.executable, "-B", "-m", "gmd_torch", *arguments], cwd=folder, env=base, text=True,
                                  capture_output=True, timeout=60, check=False)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "with this PyTorch" not in line]
        return done.returncode, "\n".join(lines)

    def test_a_program_runs_as_main_with_its_arguments_and_the_allocator(self):
        self.assertEqual(self.run_module("train.py", "--lr", "1", program="import sys, gmd_torch\n"
                                         "print(__name__, sys.argv, gmd_torch.installed())"),
                         (0, "__main__ ['train.py', '--lr', '1'] True"))

    def test_a_module_runs_as_main(self):
        self.assertEqual(self.run_module("-m", "train", "x", program="import sys\nprint(__name__, sys.argv[1:])"),
                         (0, "__main__ ['x']"))

    def test_the_status_of_the_program_is_kept(self):
        self.assertEqual(self.run_module("train.py", program="import sys\nsys.exit(3)"), (3, ""))

    def test_an_exception_is_printed_as_python_would(self):
        status, said = self.run_module("train.py", program="1 / 0")
        self.assertEqual((status, said.splitlines()[-1]), (1, "ZeroDivisionError: division by zero"))

    def test_what_is_wrong_is_said_with_the_usage(self):
        for arguments, message in ((["--sanitise", "train.py"], "there is no option --sanitise"),
                                   (["--conf"], "there is no option --conf, or it lacks its value"),
                                   ([], "no program is named")):
            status, said = self.run_module(*arguments)
            self.assertEqual(status, 2)
            self.assertIn(message, said)
            self.assertIn("usage: python -m gmd_torch", said)

    def test_wrong_options_of_the_sanitizer_end_it(self):
        self.assertEqual(self.run_module("--sanitize=cheap,zone:big", "train.py"),
                         (2, "gmd_torch: sanitizer: zone is 'big'; it is a size of 8 B to 1GiB (512, 64KiB)"))


class Snapshots(unittest.TestCase):
    def test_a_library_that_lacks_a_function_is_named(self):
        self.assertRegex(run("gmd_torch.install()\ngmd_torch._function('gmd_new')"),
                         "libgmd_allocator.so has no gmd_new: it is older")

    def test_a_history_goes_on_unless_it_is_cleared(self):
        program = ("gmd_torch.install()\nrecord = torch._C._cuda_record_memory_history\n"
                   "record('all', None, 'python', 10)\na = malloc(1000)\n"
                   "record('all', 'all', 'python', 10)\nb = malloc(2000)\n"
                   "events = torch._C._cuda_memorySnapshot(None)['device_traces'][0]\n"
                   "print([(e['size'], bool(e.get('frames'))) for e in events if e['action'] == 'alloc'])\n"
                   "record('all', 'all', 'python', 10, True)\n"
                   "print(len(torch._C._cuda_memorySnapshot(None)['device_traces'][0]))")
        self.assertEqual(run(program).splitlines(), ["[(1000, False), (2000, True)]", "0"])

    def test_torchs_context_state_gives_frames_to_live_blocks_only(self):
        program = ("gmd_torch.install()\ntorch._C._cuda_record_memory_history('all', 'state', 'python', 10)\n"
                   "a = malloc(1000)\ns = torch._C._cuda_memorySnapshot(None)\n"
                   "print([bool(e.get('frames')) for e in s['device_traces'][0] if e['action'] == 'alloc'],\n"
                   "      bool(s['segments'][0]['blocks'][0]['frames']))")
        self.assertEqual(run(program), "[False] True")

    def test_frames_of_the_machine_code_come_before_pythons(self):
        program = ("gmd_torch.install()\ngmd_torch.record_memory_history(10, source='all')\n"
                   "def take(): return malloc(1000)\ntake()\n"
                   "names = [f['name'] for f in gmd_torch.snapshot()['segments'][0]['blocks'][0]['frames']]\n"
                   "print('ffi_call' in ' '.join(names[:5]), 'take' in names)")
        self.assertEqual(run(program).split()[1], "True")

    def test_events_have_pythons_frames(self):
        printed = run("gmd_torch.install(history=100, stacks='state')\n"
                   "def make_it(): return malloc(5 << 20)\nmake_it()\n"
                   "events = gmd_torch.snapshot()['device_traces'][0]\n"
                   "print([f['name'] for e in events if e['action'] == 'alloc' for f in e['frames']][:2])")
        self.assertEqual(printed, "['malloc', 'make_it']")

    def test_a_refused_request_writes_one(self):
        with tempfile.TemporaryDirectory() as folder:
            run("gmd_torch.install(dump_on_oom='short', history=100)\nmalloc(1 << 50)", folder, RANK="2")
            files = os.listdir(folder)
            self.assertEqual(len(files), 1, files)
            self.assertRegex(files[0], r"^short-rank2-\d{8}T\d{6}-\d+-1\.pickle$")
            with open(os.path.join(folder, files[0]), "rb") as file:
                actions = [e["action"] for e in pickle.load(file)["device_traces"][0]]
            self.assertIn("oom", actions)

    def test_whether_a_history_is_recorded_is_told(self):
        self.assertEqual(run("gmd_torch.install()\nsaid = [torch._C._cuda_isHistoryEnabled()]\n"
                             "torch._C._cuda_record_memory_history_legacy(True, True, 100, False, False, False, False,"
                             " False, [])\nsaid.append(torch._C._cuda_isHistoryEnabled())\nprint(*said)"), "False True")

    def test_skipped_actions_are_left_out(self):
        self.assertEqual(run("gmd_torch.install()\n"
                             "torch._C._cuda_record_memory_history('all', None, 'python', 100, False, False, False,"
                             " ['free_requested', 'segment_alloc'])\nfree(malloc(1))\n"
                             "print(*[e['action'] for e in gmd_torch.snapshot()['device_traces'][0]])"),
                         "alloc free_completed")

    def test_an_unknown_action_is_named(self):
        self.assertIn("'no_such' is no event", run("gmd_torch.install()\n"
                                                   "gmd_torch.record_memory_history(skip_actions=['no_such'])"))

    def test_what_histories_lack_is_told(self):
        said = run("gmd_torch.install()\ntorch._C._cuda_record_memory_history('all', None, 'python', 100, False, True,"
                   " True, [])", whole=True)
        self.assertIn("histories have no compile_context, no global_record_annotations", said)

    def test_events_carry_metadata(self):
        self.assertEqual(run("gmd_torch.install(history=100)\ntorch._C._cuda_setMemoryMetadata('of a step')\n"
                             "malloc(1)\nprint(torch._C._cuda_getMemoryMetadata(), *{e['user_metadata'] for e in"
                             " gmd_torch.snapshot()['device_traces'][0] if e['action'] == 'alloc'})"),
                         "of a step of a step")

    def test_a_snapshot_of_a_pool_has_its_segments_only(self):
        self.assertEqual(run("gmd_torch.install()\nb = malloc(1)\n"
                             "print(len(torch._C._cuda_memorySnapshot((0, 7, False))['segments']),"
                             " len(torch._C._cuda_memorySnapshot((0, 0, True))['segments']),"
                             " len(torch._C._cuda_memorySnapshot(None)['segments']))"), "0 1 1")

    def test_a_refused_request_explains_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            said = run("gmd_torch.install(history=100, stacks='all')\nkept = malloc(5 << 20)\nmalloc(1 << 50)",
                       folder, whole=True)
        for line in ("Asked for by ", "Held: 5.00 MiB by ", "Cached, and why it did not serve: 15.00 MiB",
                     "Cause: capacity", "Change: "):
            self.assertIn("\n  " + line, said)

    def test_without_a_history_a_refused_request_says_what_would_tell_more(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("record_memory_history", run("gmd_torch.install()\nmalloc(1 << 50)", folder, whole=True))

    def test_none_is_written_on_demand(self):
        with tempfile.TemporaryDirectory() as folder:
            run("gmd_torch.install(dump_on_oom=False)\nmalloc(1 << 50)", folder)
            self.assertEqual(os.listdir(folder), [])

    def test_a_path_that_cannot_be_written_is_named(self):
        self.assertIn("/no/such/folder", run("gmd_torch.install()\ngmd_torch.dump_snapshot('/no/such/folder/x')"))


if __name__ == "__main__":
    if not os.path.isfile(os.path.join(LIBRARIES, "libgmd_torch_hooks.so")):
        print("skipped, no libgmd_torch_hooks.so (no C++ compiler?)")
        sys.exit(77)
    unittest.main(verbosity=1)
