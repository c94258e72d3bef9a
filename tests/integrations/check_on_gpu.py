#!/usr/bin/env python3
"""gmd_torch.py and PyTorch on a real GPU: each check runs in a process of its own with PyTorch's allocator
and in one with gmd's, and both must tell the same.

    check_on_gpu.py [--library PATH] [--out FOLDER] [CHECK...]

Exit status 0: all as it should be; 1: not; 77: there is no PyTorch here, or no GPU.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile
import threading

import side_by_side

GIB = 2**30


def small_model(torch, width=1024):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                               torch.nn.Linear(4 * width, width)).cuda()


def train(torch, model, steps, batch_of):
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for step in range(steps):
        x = torch.randn(batch_of(step), model[0].in_features, device="cuda")
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def statistics(torch, _out, _is_gmd):
    """Every figure of memory_stats() after varied work, small and large, and a summary in words."""
    losses = train(torch, small_model(torch), 50, lambda step: 1 + step * 7919 % 4000)
    kept = [torch.empty(1 + i * 104729 % 5_000_000, device="cuda", dtype=torch.uint8) for i in range(400)]
    del kept[::3]
    torch.empty(0, device="cuda")
    before = torch.cuda.memory_stats()
    torch.cuda.memory_summary()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    after = torch.cuda.memory_stats()
    return {"losses": losses, "before": before, "after": after,
            "reserved": [torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved()]}


def out_of_memory(torch, _out, _is_gmd):
    """A capped run hits the cap again and again, empties the cache and goes on training."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(2 * GIB / total)
    model = small_model(torch)
    story, batch = [], 1000
    for _ in range(12):
        try:
            story.append([batch, train(torch, model, 1, lambda step, size=batch: size)[0]])
            batch *= 2
        except torch.OutOfMemoryError as error:
            assert "CUDA out of memory. Tried to allocate" in str(error), str(error)
            story.append([batch, "out of memory"])
            torch.cuda.empty_cache()
            batch = 1500
    stats = torch.cuda.memory_stats()
    assert any(end == "out of memory" for _, end in story), story
    return {"story": story, "ooms": stats["num_ooms"], "retries": stats["num_alloc_retries"],
            "peak": stats["reserved_bytes.all.peak"]}


def backward_out_of_memory(torch, _out, _is_gmd):
    """The refusal of a thread of the autograd engine reaches the caller as the same exception."""
    x = torch.zeros(64 * 2**20, device="cuda", requires_grad=True)
    doubled = x * 2  # kept: the gradient finds no cached block
    y = doubled.sum()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(torch.cuda.memory_reserved() / total)
    try:
        y.backward()
    except torch.OutOfMemoryError:
        return {"raised": True, "ooms": torch.cuda.memory_stats()["num_ooms"]}
    raise AssertionError("the gradient fitted")


def convolutions_with_a_cap(torch, _out, _is_gmd):
    """cudnn.benchmark tries plans whose workspaces do not fit, and goes on to the next."""
    torch.backends.cudnn.benchmark = True
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(1.5 * GIB / total)
    torch.manual_seed(4)
    convolution = torch.nn.Conv2d(64, 256, 5, padding=2).cuda()
    for size in (64, 96, 128):
        x = torch.randn(16, 64, size, size, device="cuda")
        convolution(x).square().mean().backward()
    return {"ran": True, "fits": torch.cuda.max_memory_reserved() <= 1.5 * GIB}


def graph(torch, _out, _is_gmd):
    """A whole training step captured, replayed, and its memory given back when the graph is gone."""
    torch.backends.cudnn.benchmark = True
    model = small_model(torch)
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    x = torch.zeros(512, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = step()
    second = torch.cuda.CUDAGraph()
    with torch.cuda.graph(second, pool=captured.pool()):
        doubled = model(x) * 2
    losses = []
    for i in range(10):
        x.copy_(torch.full((512, 1024), 0.1 * i))
        captured.replay()
        losses.append(float(loss))
    second.replay()
    total = float(doubled.double().abs().sum())
    with_graph = torch.cuda.memory_reserved()
    del loss, doubled, captured, second
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return {"losses": losses, "total": total, "reserved": [with_graph, torch.cuda.memory_reserved()]}


def graphed_callables(torch, _out, _is_gmd):
    """torch.cuda.make_graphed_callables, trained with other tensors coming and going in between."""
    model = small_model(torch)
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn(256, 1024, device="cuda"),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for i in range(20):
        noise = [torch.full((1 + i * 37 % 11, 1 << 18), float(i), device="cuda") for _ in range(3)]
        loss = graphed(noise[0].flatten()[:256 * 1024].view(256, 1024) * 0.01).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return {"losses": losses, "reserved": torch.cuda.memory_reserved()}


def streams(torch, _out, _is_gmd):
    """A side stream prefetches and reads what the main stream frees at once: nothing may be overwritten."""
    side, wrong = torch.cuda.Stream(), torch.zeros((), device="cuda", dtype=torch.int64)
    for i in range(300):
        with torch.cuda.stream(side):
            made = torch.full((4_000_000,), i, device="cuda", dtype=torch.int32)
        torch.cuda.current_stream().wait_stream(side)
        made.record_stream(torch.cuda.current_stream())
        torch.cuda._sleep(200_000)
        wrong += (made != i).sum()
        del made
        with torch.cuda.stream(side):
            torch.full((4_000_000,), -1, device="cuda", dtype=torch.int32)
    return {"wrong": int(wrong)}


def threads(torch, _out, _is_gmd):
    """Eight threads on streams of their own, each with its data, at the same time."""
    failures = []

    def work(number):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for i in range(200):
                    value = number * 1000 + i
                    data = [torch.full((1 + (i * 7919 + k * 104729) % 300_000,), value, device="cuda")
                            for k in range(8)]
                    if not all(bool((d == value).all()) for d in data):
                        failures.append(value)
        except Exception as error:  # pylint: disable=broad-except # reported by the check
            failures.append(repr(error))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"failures": failures}


def snapshots(torch, out, is_gmd):
    """The dumped snapshot with a history, and those that refused requests write, for _memory_viz.py."""
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    train(torch, small_model(torch), 5, lambda step: 500 + 300 * step)
    total = torch.cuda.get_device_properties(0).total_memory
    name = os.path.join(out, "gmd" if is_gmd else "native")
    torch.cuda.memory._dump_snapshot(name + "-first.pickle")
    torch.cuda.set_per_process_memory_fraction(1 * GIB / total)
    try:
        torch.empty(2 * GIB, device="cuda", dtype=torch.uint8)
    except torch.OutOfMemoryError as error:
        if is_gmd:
            assert "The snapshot of this moment is" in str(error), str(error)
    torch.cuda.memory._dump_snapshot(name + "-second.pickle")
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    actions = [event["action"] for event in snapshot["device_traces"][0]]
    frames = [f["filename"] for event in snapshot["device_traces"][0] for f in event.get("frames", [])]
    return {"actions": {a: actions.count(a) for a in sorted(set(actions)) if a != "snapshot"},
            "this_file_is_in_stacks": any(f.endswith("check_on_gpu.py") for f in frames),
            "segments": sorted((s["total_size"], s["segment_type"]) for s in snapshot["segments"])}


snapshots.installs = lambda out: {"dump_on_oom": os.path.join(out, "oom")}


VIZ = os.path.join(os.path.dirname(os.path.abspath(__file__)), "offline_viz.py")


def commands_of_viz():
    usage = subprocess.run([sys.executable, "-m", "torch.cuda._memory_viz", "--help"], capture_output=True,
                           text=True, check=True).stdout
    return re.search(r"\{([a-z_,]+)\}", usage)[1].split(",")


def visualise(out):
    """All commands of _memory_viz.py on every snapshot; what failed."""
    failures, jobs = [], []
    commands = commands_of_viz()
    snapshots = sorted(glob.glob(os.path.join(out, "*.pickle")))
    for number, path in enumerate(snapshots):
        for command in commands:
            program = [VIZ, command, path]
            if command == "compare":
                program += [snapshots[0]]
            elif command not in ("stats", "trace"):
                program += ["-o", os.path.join(out, f"{number}-{command}.out")]
            home = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
            jobs.append((f"{os.path.basename(path)} {command}", home, subprocess.Popen(
                [sys.executable, *program], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                env={**os.environ, "HOME": home.name})))
    for name, home, job in jobs:
        said = job.communicate(timeout=120)[1]
        home.cleanup()
        if job.returncode != 0:
            failures.append(f"{name}: {said[-300:]}")
    return len(jobs), f"{', '.join(commands)} of {len(snapshots)} snapshots", failures


def all_commands_of_viz(options):
    if options.check and "snapshots" not in options.check:
        return True
    count, what, failures = visualise(options.out)
    print(f"{'FAIL' if failures else 'ok  '} _memory_viz.py: {count - len(failures)} of {count} commands, {what}")
    for line in failures:
        print(f"     {line}")
    return not failures


CHECKS = (statistics, out_of_memory, backward_out_of_memory, convolutions_with_a_cap, graph, graphed_callables,
          streams, threads, snapshots)

if __name__ == "__main__":
    sys.exit(side_by_side.main(__doc__, CHECKS, all_commands_of_viz))
