#!/usr/bin/env python3
"""Records the PyTorch half of all twins, on a GPU machine; or writes their scripts, on any.

    python3 -B tests/scenarios/twins/record_twins.py OUT --jobs 12 --seconds 200
    python3 -B tests/scenarios/twins/record_twins.py --scripts DIR

Writes OUT/twins.json: the device and versions, and for each twin its device and phases: label, and bytes allocated,
max_allocated, reserved, max_reserved, requested, max_requested. OUT/twins.jsonl grows while it runs, a line for each
twin. A twin that fails is recorded with its error, and the rest goes on.

Workers are processes. Before each twin a worker frees what it can (cuBLAS's workspaces, the allocator's cache), so
that a twin starts as in a new process; where something is left, the worker is replaced. After --seconds no twin is
begun; --merge OUT makes twins.json of the lines that there are.
"""
import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time

import catalogue

FIGURES = ("allocated", "max_allocated", "reserved", "max_reserved", "requested", "max_requested")
# The collector decides, and runs.
COLLECTED = ("reference_cycle", "awaitable_cycle", "closure_cycle")
TWIN_SECONDS = 90


def is_collected(twin):
    return bool(twin.run) and twin.run[0] in COLLECTED


def is_alone(twin):
    """It has a process of its own: it leaves more behind than clean() can free."""
    return is_collected(twin) or twin.family in ("sharded", "replayed") or any(
        name in twin.program for name in ("init_process_group(", "CUDAGraph("))


# --- a worker: names from standard input, a line of JSON for each ---------------------------------------------------


def clean(torch):
    """True if nothing of earlier twins is left."""
    torch.backends.cudnn.benchmark = False
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_reserved() == 0


def record(twin, torch, prelude):
    import gc
    recorder = prelude.Recorder()
    names = dict(prelude.names(), phase=recorder.phase, recorder=recorder)
    torch.manual_seed(0)
    result = {"name": twin.name, "program": catalogue.fingerprint(twin), "device": torch.cuda.get_device_name()}
    if is_collected(twin):
        gc.enable()
    try:
        exec(compile(twin.program, twin.name, "exec"), names)
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
    gc.disable()
    names.clear()
    result["phases"] = [[phase["label"], *(phase[figure] for figure in FIGURES)] for phase in recorder.phases]
    gc.collect()
    return result


def work():
    import gc
    answers = os.fdopen(os.dup(1), "w")  # what libraries print goes elsewhere
    os.dup2(2, 1)
    import prelude
    import torch
    gc.disable()  # its moments are not what is recorded
    torch.cuda.init()
    twins = {twin.name: twin for twin in catalogue.all_twins()}
    gc.collect()
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                      "device": torch.cuda.get_device_name(), "python": sys.version.split()[0]}), file=answers, flush=True)
    for line in sys.stdin:
        result = record(twins[line.strip()], torch, prelude) if clean(torch) else {"dirty": True}
        print(json.dumps(result), file=answers, flush=True)


# --- the workers' parent --------------------------------------------------------------------------------------------


class Worker:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-B", __file__, "--work"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.machine = self.answer(TWIN_SECONDS)
        self.fresh = True

    def answer(self, seconds):
        """None: the worker died, or was too slow and was ended."""
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        return json.loads(line) if line.endswith("\n") else None

    def ask(self, name):
        self.fresh = False
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        return self.answer(TWIN_SECONDS)

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()


class Recording:
    def __init__(self, folder, seconds):
        self.path, self.until, self.lock = os.path.join(folder, "twins.jsonl"), time.time() + seconds, threading.Lock()
        self.out = open(self.path, "a", encoding="utf-8")
        self.machine_told = False

    def put(self, result):
        with self.lock:
            self.out.write(json.dumps(result) + "\n")
            self.out.flush()

    def tell_machine(self, machine):
        if machine and not self.machine_told:
            self.machine_told = True
            self.put({"machine": machine})

    def one(self, worker, twin):
        """Records a twin; gives the worker for the next one."""
        if worker and is_alone(twin) and not worker.fresh:
            worker.end()
            worker = None
        if not worker:
            worker = Worker()
        self.tell_machine(worker.machine)
        result = worker.ask(twin.name)
        if result and "dirty" in result:
            worker.end()
            worker = Worker()
            result = worker.ask(twin.name)
        died = not result
        if died or "dirty" in result:
            result = {"name": twin.name, "program": catalogue.fingerprint(twin), "error": "the worker died", "phases": []}
        self.put(result)
        if "CUDA error" in result.get("error", "") or is_alone(twin) or died:
            worker.end()
            worker = None
        return worker

    def serve(self, queues):
        worker = None
        for twins in queues:
            while time.time() < self.until:
                try:
                    twin = twins.get_nowait()
                except queue.Empty:
                    break
                worker = self.one(worker, twin)
        if worker:
            worker.end()


def filled(twins):
    result = queue.Queue()
    for twin in twins:
        result.put(twin)
    return result


def record_all(options, twins):
    """Scenarios take gigabytes: three at a time."""
    os.makedirs(options.folder, exist_ok=True)
    recording = Recording(options.folder, options.seconds)
    is_large = lambda twin: twin.family == "scenarios" and not is_collected(twin)
    large = filled(filter(is_large, twins))
    small = filled(sorted((twin for twin in twins if not is_large(twin)), key=lambda twin: not is_alone(twin)))
    threads = [threading.Thread(target=recording.serve, args=([large, small] if k < 3 else [small],))
               for k in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recording.out.close()
    left = large.qsize() + small.qsize()
    if left:
        print(f"{left} twins were not begun: --seconds", flush=True)


def merge(folder):
    """twins.json of the lines that there are, a twin on each line, the last recording of each."""
    machine, twins = {}, {}
    with open(os.path.join(folder, "twins.jsonl"), encoding="utf-8") as file:
        for line in file:
            try:
                result = json.loads(line)
            except ValueError:  # cut off
                continue
            if "machine" in result:
                machine = result["machine"]
            else:
                twins[result.pop("name")] = result
    lines = [json.dumps({name: twins[name]}, separators=(",", ":"))[1:-1] for name in sorted(twins)]
    with open(os.path.join(folder, "twins.json"), "w", encoding="utf-8") as file:
        file.write('{"machine":' + json.dumps(machine) + ',\n"twins":{\n' + ",\n".join(lines) + "\n}}\n")
    failed = [name for name in sorted(twins) if "error" in twins[name]]
    for name in failed:
        print(f"{name}: {twins[name]['error']}")
    print(f"{len(twins)} twins, {len(failed)} failed")


def write_scripts(folder, twins):
    os.makedirs(folder, exist_ok=True)
    for twin in twins:
        if not twin.run:
            with open(os.path.join(folder, twin.name + ".lua"), "w", encoding="utf-8") as file:
                file.write(catalogue.script(twin))


def chosen(options):
    twins = [twin for twin in catalogue.all_twins() if not options.family or twin.family in options.family.split(",")]
    twins = [twin for twin in twins if not options.later or catalogue.is_later(twin)]
    twins = [twin for twin in twins if not options.last or catalogue.is_last(twin)]
    twins = [twin for twin in twins if not options.fourth or catalogue.is_fourth(twin)]
    twins = [twin for twin in twins if not options.names or twin.name in options.names.split(",")]
    return twins[options.start:options.start + options.count if options.count else None]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--family", default="", help="operations, chains, layers, models, sharded, replayed, scenarios; several with commas")
    parser.add_argument("--names", default="")
    parser.add_argument("--later", action="store_true", help="those of the second round")
    parser.add_argument("--last", action="store_true", help="those of the third round")
    parser.add_argument("--fourth", action="store_true", help="those of the fourth round")
    parser.add_argument("--from", dest="start", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--scripts", metavar="DIR")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error("--jobs: at least 1")
    if options.work:
        return work()
    if options.list:
        print("\n".join(f"{twin.name} {twin.family}" for twin in chosen(options)))
    elif options.scripts:
        write_scripts(options.scripts, chosen(options))
    elif not options.folder:
        parser.error("a folder for the recordings, or --scripts DIR")
    else:
        if not options.merge:
            record_all(options, chosen(options))
        merge(options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
