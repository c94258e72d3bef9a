"""judges.py - who tells a mutant from the allocator: the recorded histories, the gate, the unit tests.
Whatever does not end as it does with the allocator as it is (a finding, a crash, a hang) kills."""

import glob
import json
import os
import re
import resource
import signal
import subprocess

# What only a program sees that calls the allocator in its own process: no request, answer or statistic
# tells of it, and so no black-box gate can. Only the unit tests are asked.
INSIDE = {"history.c", "history.h", "snapshot.c", "device_state.c", "pickle_writer.c", "new_file.c",
          "new_file.h", "stacks.c", "stack_frames.c", "segment_stacks.c", "ticks.c", "ticks.h",
          "loan.c", "loan.h", "transfer.c", "host_image.c", "cuda_work.c", "private_pools.c"}

HANG_SECONDS = 5  # of one request, against 20 for users: no request of a test takes so long
patience = 1.0  # so many times as long as each judge needs on a quiet machine (--patience)


SANITIZER_OPTIONS = {"ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:"
                                     "hard_rss_limit_mb=4096",
                     "UBSAN_OPTIONS": "print_stacktrace=1"}


def _limits():
    """A mutant may ask for memory or write without end."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, 256 << 20))


def _limits_of_sanitizers():
    """Whose own tables take terabytes of addresses; hard_rss_limit_mb stands in."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, 256 << 20))


def run(words, cwd, seconds, environment, sanitized=False):
    """(exit status or "timeout", what it said). Ends the processes that it started."""
    with open(os.path.join(cwd, "said"), "w+b") as said:
        process = subprocess.Popen(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                   start_new_session=True,
                                   preexec_fn=_limits_of_sanitizers if sanitized else _limits,
                                   env=dict(os.environ, **environment))
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = "timeout"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        said.seek(0)
        return status, said.read().decode(errors="replace")


def _finding(said):
    """The line that names what was found."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for line in lines:
        if re.search(r"violation|FAIL|fail|expected|\[  ERROR", line):
            return line[:200]
    return lines[-1][:200] if lines else ""


def _assertion(said):
    """What the first assertion that failed (base/gmd_assert.h) says; None: none did."""
    failed = re.search(r"gmd: assertion failed: (.*)", said)
    return failed.group(1)[:300] if failed else None


class Steps:
    """Commands in their order; the first that does not end well kills."""

    def __init__(self, job):
        self.job = job
        self.cwd = job.work_folder()
        self.environment = {"GMD_TEST_ALLOCATOR": job.library}  # of tests/allocator/test_plugin.c
        if not job.shop.sanitized:
            self.environment.update(SANITIZER_OPTIONS)

    def kills(self, name, words, seconds=60):
        status, said = run(words, self.cwd, seconds * patience, self.environment, not self.job.shop.sanitized)
        if status == 0:
            return None
        return {"by": name, "status": status, "said": _finding(said[-4000:]), "assertion": _assertion(said)}

    def gmd(self, name, *arguments, seconds=60):
        return self.kills(name, [self.job.gmd, *arguments], seconds)


def _hang():
    return "%d" % (HANG_SECONDS * patience)


def replays(job):
    """The recorded histories of PyTorch, to the byte: the reference's own promise."""
    steps = Steps(job)
    folder = os.path.join(job.shop.root, "tests", "data", "histories")
    for file in sorted(glob.glob(folder + "/*.pickle.gz"), key=os.path.getsize):
        killed = steps.gmd("replay " + os.path.basename(file).split(".")[0], "replay", "--check", file,
                           "--cases", "none", "--timeout", _hang(), "--quiet")
        if killed:
            return killed
    return None


def _gate(job, *options, seconds):
    """By its path, as anybody's library: it tells by itself what it promises. The program is the one of
    the build, for what it holds a library to may be the reference as it is."""
    steps = Steps(job)
    gmd = os.path.join(job.shop.build, "bin", "gmd")
    return steps.kills("gate", [gmd, "gate", "--allocator", job.library, "--fail-fast", "--out", "none",
                                "--cases", "none", "--timeout", _hang(), *options], seconds)


def quick_gate(job):
    return _gate(job, "--quick", seconds=60)


def whole_gate(job):
    return _gate(job, seconds=240)


def unit_tests(job):
    """CTest's tests with the label `allocator`, with the mutant linked into their programs."""
    job.build_tests()
    steps, build = Steps(job), job.shop.build
    listed = subprocess.run(["ctest", "--show-only=json-v1", "-L", "^allocator$"], cwd=build, check=True,
                            capture_output=True)
    for test in json.loads(listed.stdout)["tests"]:
        words = [_moved(word, job) for word in test["command"]]
        program = "tests/" + os.path.basename(words[0])
        if program == "tests/test_allocator_adapters" or not (program in _programs(job) or job.shop.sanitized):
            continue  # of other allocators; and under sanitizers nothing but the programs themselves
        killed = steps.kills(test["name"], words, seconds=30 if job.shop.sanitized else 120)
        if killed:
            return killed
    return None


def sanitized_tests(job):
    """The same under AddressSanitizer, its leak check and UndefinedBehaviorSanitizer, as `ci/test dev`."""
    return unit_tests(job.sanitized())


def _programs(job):
    return {"tests/test_allocator_plugin", *job.shop.tests}


def _moved(word, job):
    build = job.shop.build
    if word == build + "/bin/gmd":
        return job.gmd
    if word.startswith(build + "/tests/allocator/"):  # files that one test leaves for another
        return os.path.join(job.folder, "work", os.path.basename(word))
    if word.startswith(build + "/") and word[len(build) + 1:] in job.shop.tests:
        return os.path.join(job.folder, "tests", os.path.basename(word))
    return word


# In this order: what is quick and kills many comes first.
ALL = {"replay": replays, "quick gate": quick_gate, "unit tests": unit_tests, "whole gate": whole_gate,
       "sanitizers": sanitized_tests}


def for_file(file):
    """The names of the judges of a mutant of that file."""
    return [name for name in ALL if file not in INSIDE or name in ("unit tests", "sanitizers")]
