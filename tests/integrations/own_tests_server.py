#!/usr/bin/env python3
"""A process that has imported PyTorch once and forks a process for each request to run tests: the import takes
longer than most tests do.

    own_tests_server.py SOCKET

A request is a line of JSON: root (of PyTorch's source tree), file, names (null: they are told), folder (to run
in), output (a file). The answers are lines of JSON, ended by {"done": true} or the end of the process. The server
ends with its standard input.

What is imported must not use CUDA, or no forked process could: each stage of imports is tried first.
"""

import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
import types
import unittest
import warnings

STAGES = (
    ("torch",),
    ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.cudagraph_trees", "functorch"),
    ("torch.testing._internal.common_utils",),
    ("torch._inductor.async_compile", "torch._inductor.graph", "torch._inductor.codecache",
     "torch._inductor.codegen.wrapper", "torch._inductor.codegen.triton", "torch._dynamo.backends.debugging",
     "torch._functorch._aot_autograd.autograd_cache", "torch.fx.experimental.proxy_tensor", "triton"),
    ("torch.testing._internal.common_cuda", "torch.testing._internal.common_device_type"),
    ("torch.testing._internal.common_optimizers", "torch.testing._internal.autocast_test_lists"),
    ("torch._inductor.test_case",),
    ("torchvision.models", "torch.cuda._memory_viz", "torch.utils.viz._cycles"),
)
STARTED = time.monotonic()
WITHOUT_CUDA = "PYTORCH_NVML_BASED_CUDA_CHECK"  # torch.cuda.is_available() asks the driver's management library


# --- the tests --------------------------------------------------------------------------------------------------


def _no_disabled_tests():
    """PyTorch's list of disabled tests is on the network."""
    stub = types.ModuleType("tools.stats.import_test_stats")
    stub.get_disabled_tests = lambda *_: {}
    for name in ("tools", "tools.stats"):
        sys.modules.setdefault(name, types.ModuleType(name)).__path__ = []
    sys.modules[stub.__name__] = stub


def _tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _tests_of(item)
        else:
            yield item


def _short_name(test):
    return f"{type(test).__name__}::{test._testMethodName}"


class Outcome(unittest.TestResult):
    """Tells each test's end, and stops after one that failed."""

    def __init__(self, tell):
        super().__init__()
        self.tell = tell
        self.outcome, self.said, self.started = "pass", "", 0.0

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()
        self.outcome, self.said = "pass", ""
        self.tell(began=_short_name(test))

    def _end_as(self, test, outcome, said):
        self.outcome, self.said = outcome, said[-4000:]
        if not hasattr(test, "_testMethodName"):  # in setUpClass: none of its tests will start
            self.tell(none_starts=outcome, said=self.said)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._end_as(test, "skip", reason)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._end_as(test, "fail", "unexpected success")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._end_as(test, "fail", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._end_as(test, "fail", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        super().addError(test, err)
        self._end_as(test, "fail", self._exc_info_to_string(err, test))

    def stopTest(self, test):
        super().stopTest(test)
        self.tell(ended=_short_name(test), outcome=self.outcome, said=self.said,
                  seconds=round(time.monotonic() - self.started, 2))
        if self.outcome == "fail":
            self.stop()


def run_tests(root, file, wanted, tell):
    """Runs a file of tests as its main program, with these of its tests; None: tells their names."""
    path = os.path.join(root, "test", file)
    sys.argv = [path]
    sys.path[:0] = [os.path.dirname(path), os.path.join(root, "test")]
    _no_disabled_tests()

    def run_these(*_, **__):
        tests = {_short_name(test): test for test in
                 _tests_of(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))}
        tell(loaded=True)
        if wanted is None:
            tell(names=list(tests))
        else:
            unittest.TestSuite(tests[name] for name in wanted if name in tests).run(Outcome(tell))
        tell(done=True)
        sys.stdout.flush()
        os._exit(0)  # what a test left running does not matter

    from torch.testing._internal import common_utils
    if hasattr(common_utils, "parse_cmd_line_args"):
        common_utils.parse_cmd_line_args()
    common_utils.run_tests = run_these
    if "inductor" in file:
        from torch._inductor import test_case
        test_case.run_tests = run_these
    runpy.run_path(path, run_name="__main__")
    tell(names=[], done=True)  # the file has found that it has nothing to run here


# --- the server -------------------------------------------------------------------------------------------------


def _fork():
    with warnings.catch_warnings():  # of threads that the imports have started: those of OpenBLAS
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _can_fork():
    """Whether a forked process can use CUDA: not if the imports have."""
    child = _fork()
    if child == 0:
        status = 1
        try:
            import torch
            torch.cuda.init()
            status = 0
        except Exception as error:  # pylint: disable=broad-except # any reason will do
            print(f"a forked process cannot use CUDA: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _import_stage(names):
    """In a forked process, which goes on as the server; the one that comes back has not imported."""
    child = _fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != 3:
            os._exit(status)
        return
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"not imported: {error}", file=sys.stderr, flush=True)
    is_fine = _can_fork()
    print(f"{time.monotonic() - STARTED:.0f} s: {'imported' if is_fine else 'not imported'}: {', '.join(names)}",
          file=sys.stderr, flush=True)
    if not is_fine:
        os._exit(3)


def _begin(connection, request):
    """In the forked process."""
    started = time.monotonic()
    os.setsid()
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["folder"])
    os.environ.pop(WITHOUT_CUDA)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(request["folder"], "inductor")

    def tell(**said):
        said["at"] = round(time.monotonic() - started, 1)
        connection.sendall(json.dumps(said).encode() + b"\n")

    tell(pid=os.getpid())
    try:
        run_tests(request["root"], request["file"], request["names"], tell)
    except BaseException:  # pylint: disable=broad-except # the output has it
        import traceback
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def _reap(running):
    for pid in list(running):
        if os.waitpid(pid, os.WNOHANG)[0]:
            running.remove(pid)


def _kill(running):
    """Whoever asked has gone: processes that are left would keep the GPU's memory."""
    for pid in running:
        for kill in (os.killpg, os.kill):
            try:
                kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def serve(listening):
    running = set()
    while True:
        ready = select.select([listening, sys.stdin], [], [], 5)[0]
        _reap(running)
        if sys.stdin in ready:
            _kill(running)
            return
        if listening not in ready:
            continue
        connection = listening.accept()[0]
        with connection, connection.makefile("rb") as lines:
            request = json.loads(lines.readline())
            child = _fork()
            if child == 0:
                listening.close()
                _begin(connection, request)
            running.add(child)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    path = sys.argv[1]
    sys.argv = ["test.py"]
    os.environ[WITHOUT_CUDA] = "1"
    for stage in STAGES:
        _import_stage(stage)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(64)
    serve(listening)
    return 0


if __name__ == "__main__":
    sys.exit(main())
