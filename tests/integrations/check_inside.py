#!/usr/bin/env python3
"""What PyTorch says of memory and tells of it, with gmd's allocator inside as with its own: each check runs in a
process of its own with either, and both must tell the same.

    check_inside.py [--library PATH] [--out FOLDER] [CHECK...]

Exit status 0: all as it should be; 1: not; 77: there is no PyTorch here, or no GPU.
"""

import contextlib
import glob
import inspect
import io
import json
import logging
import os
import statistics
import sys
import time
import warnings

import side_by_side

MIB = 2**20
GIB = 2**30


def some_work(torch):
    kept = [torch.empty(1 + i * 104729 % 5_000_000, device="cuda", dtype=torch.uint8) for i in range(60)]
    del kept[::3]
    return kept


def accelerator_figures(torch, _out, _is_gmd):
    """torch.accelerator tells what torch.cuda tells."""
    kept = some_work(torch)
    ours, cuda = torch.accelerator.memory_stats(), torch.cuda.memory_stats()
    return {"stats": ours, "is_same": all(cuda[name] == ours[name] for name in ours), "kept": len(kept),
            "figures": [torch.accelerator.memory_allocated(), torch.accelerator.max_memory_allocated(),
                        torch.accelerator.memory_reserved(), torch.accelerator.max_memory_reserved()]}


def accelerator_empty_cache(torch, _out, _is_gmd):
    some_work(torch)
    before = torch.accelerator.memory_reserved()
    torch.accelerator.empty_cache()
    return {"before": before, "after": torch.accelerator.memory_reserved()}


def accelerator_resets(torch, _out, _is_gmd):
    some_work(torch)
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    kept = torch.empty(3 * MIB, device="cuda", dtype=torch.uint8)
    return {"stats": torch.accelerator.memory_stats(), "kept": kept.numel()}


def accumulated_resets(torch, _out, _is_gmd):
    some_work(torch)
    torch.cuda.reset_accumulated_memory_stats()
    kept = torch.empty(3 * MIB, device="cuda", dtype=torch.uint8)
    return {"stats": torch.cuda.memory_stats(), "kept": kept.numel()}


def profiler_sees_memory(torch, out, _is_gmd):
    """Every allocation and free of the device: bytes, and the totals after it."""
    x = torch.randn(512, 512, device="cuda")
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        y = (x * 2).relu() + 1
        del y
        y = torch.empty(9 * MIB, device="cuda", dtype=torch.uint8)
        del y
    path = os.path.join(out, f"profile-{os.getpid()}.json")
    profile.export_chrome_trace(path)
    with open(path, encoding="utf-8") as file:
        events = [e["args"] for e in json.load(file)["traceEvents"] if e.get("name") == "[memory]"]
    os.unlink(path)
    seen = [[e["Bytes"], e["Total Allocated"], e["Total Reserved"]] for e in events if e["Device Type"] == 1]
    by_operator = {e.key: e.self_device_memory_usage for e in profile.key_averages()}
    return {"seen": seen, "by_operator": by_operator, "any": bool(seen)}


def profiler_sees_refusals(torch, out, _is_gmd):
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        try:
            torch.empty(2**50, device="cuda", dtype=torch.uint8)
        except torch.OutOfMemoryError:
            pass
    path = os.path.join(out, f"refusals-{os.getpid()}.json")
    profile.export_chrome_trace(path)
    with open(path, encoding="utf-8") as file:
        names = [e.get("name") for e in json.load(file)["traceEvents"]]
    os.unlink(path)
    return {"refusals": names.count("[OutOfMemory]")}


def allocated_by(torch, size):
    before = torch.cuda.memory_allocated()
    block = torch.empty(size, device="cuda", dtype=torch.uint8)
    after = torch.cuda.memory_allocated()
    del block
    return after - before


def settings_at_run_time(torch, _out, _is_gmd):
    """Those that may change while memory is reserved; what is not named falls back to its default."""
    sizes = [allocated_by(torch, 8200)]
    for conf in ("roundup_power2_divisions:4", "garbage_collection_threshold:0.9", "roundup_power2_divisions:[>:2]"):
        torch.cuda.memory._set_allocator_settings(conf)
        sizes.append([conf, allocated_by(torch, 1_300_000), allocated_by(torch, 8200)])
    told = torch.cuda.memory._snapshot()["allocator_settings"]
    return {"sizes": sizes, "told": {k: told[k] for k in sorted(told) if "roundup" in k or "garbage" in k}}


def settings_before_the_first_tensor(torch, _out, _is_gmd):
    """While nothing is reserved every setting may change."""
    torch.cuda.init()
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    kept = torch.empty(3 * MIB, device="cuda", dtype=torch.uint8)
    segments = torch.cuda.memory._snapshot()["segments"]
    return {"expandable": [s["is_expandable"] for s in segments], "kept": kept.numel()}


def segments_of_both_kinds(torch, _out, _is_gmd):
    """Expandable segments are switched on and off while memory is reserved."""
    kept = [torch.empty(30 * MIB, device="cuda", dtype=torch.uint8)]
    for setting in ("True", "False", "True"):
        torch.cuda.memory._set_allocator_settings(f"expandable_segments:{setting}")
        kept.append(torch.empty(30 * MIB, device="cuda", dtype=torch.uint8))
    kinds = sorted((s["is_expandable"], s["allocated_size"]) for s in torch.cuda.memory_snapshot())
    reserved = [torch.cuda.memory_reserved()]
    del kept
    torch.cuda.empty_cache()
    reserved.append(torch.cuda.memory_reserved())
    return {"kinds": kinds, "bytes": reserved}


def settings_that_cannot_change_are_named(torch, _out, is_gmd):
    """PyTorch's own allocator changes these, too; gmd's does not, and says so."""
    kept = torch.empty(3 * MIB, device="cuda", dtype=torch.uint8)
    try:
        torch.cuda.memory._set_allocator_settings("max_split_size_mb:64")
    except RuntimeError as error:
        return {"is_told": "max_split_size_mb cannot change" in str(error), "kept": kept.numel()}
    return {"is_told": not is_gmd, "kept": kept.numel()}


def bad_settings_are_refused(torch, _out, _is_gmd):
    torch.cuda.init()
    try:
        torch.cuda.memory._set_allocator_settings("no_such_setting:1")
    except (RuntimeError, ValueError) as error:
        return {"names_it": "no_such_setting" in str(error)}
    return {"names_it": False}


def snapshot_of_a_pool(torch, _out, _is_gmd):
    """memory_snapshot(mempool_id) has the pool's segments and no others."""
    outside = torch.empty(30 * MIB, device="cuda", dtype=torch.uint8)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        inside = torch.empty(3 * MIB, device="cuda", dtype=torch.uint8)
    of_pool = torch.cuda.memory_snapshot(graph.pool())
    whole = torch.cuda.memory_snapshot()
    return {"of_pool": [s["total_size"] for s in of_pool], "whole": sorted(s["total_size"] for s in whole),
            "is_of_pool": all(tuple(s["segment_pool_id"]) == tuple(graph.pool()) for s in of_pool),
            "kept": outside.numel() + inside.numel()}


def nested_pools(torch, _out, _is_gmd):
    """The innermost of two pools that take a thread's requests gets them."""
    torch.empty(1, device="cuda")
    outer, inner = torch.cuda.graph_pool_handle(), torch.cuda.graph_pool_handle()
    kept = []

    def take():
        kept.append(torch.empty(3 * MIB, device="cuda", dtype=torch.uint8))

    begin, end = torch._C._cuda_beginAllocateCurrentThreadToPool, torch._C._cuda_endAllocateToPool
    begin(0, outer)
    take()
    begin(0, inner)
    take()
    end(0, inner)
    take()
    end(0, outer)
    names = {tuple(outer): "outer", tuple(inner): "inner"}
    of = {b["address"]: names.get(tuple(s["segment_pool_id"]), "default")
          for s in torch.cuda.memory_snapshot() for b in s["blocks"]}
    pools = [of.get(k.data_ptr()) for k in kept]
    del kept
    for pool in (inner, outer):
        torch._C._cuda_releasePool(0, pool)
    return {"pools": pools}


def pools_of_users(torch, _out, _is_gmd):
    """torch.cuda.MemPool: its segments, how often it is held, nested ones, and its memory when it is gone."""
    outside = torch.empty(512, device="cuda", dtype=torch.uint8)
    outer, inner = torch.cuda.MemPool(), torch.cuda.MemPool()
    counts, kept = [outer.use_count()], []
    with torch.cuda.use_mem_pool(outer):
        counts.append(outer.use_count())
        kept.append(torch.empty(30 * MIB, device="cuda", dtype=torch.uint8))
        with torch.cuda.use_mem_pool(inner):
            kept.append(torch.empty(40 * MIB, device="cuda", dtype=torch.uint8))
        kept.append(torch.empty(50 * MIB, device="cuda", dtype=torch.uint8))
    counts.append(outer.use_count())
    told = [[s["total_size"] for s in pool.snapshot()] for pool in (outer, inner)]
    del kept
    reserved = [torch.cuda.memory_reserved()]
    del inner
    reserved.append(torch.cuda.memory_reserved())
    del outer
    reserved.append(torch.cuda.memory_reserved())
    return {"counts": counts, "told": told, "after_pools": reserved, "kept": outside.numel()}


def blocks_of(pool):
    """By size: where segments lie is the device's choice."""
    return sorted([s["total_size"], [[b["size"], b["state"]] for b in s["blocks"]]] for s in pool.snapshot())


def pool_without_splits(torch, _out, _is_gmd):
    torch.cuda.init()
    pool = torch.cuda.MemPool(no_split=True)
    with torch.cuda.use_mem_pool(pool):
        kept = [torch.empty(n, device="cuda", dtype=torch.uint8) for n in (512, 3 * MIB, 600, 30 * MIB, 4 * MIB)]
    del kept[1]
    return {"blocks": blocks_of(pool), "kept": len(kept)}


def pool_in_reserve(torch, _out, _is_gmd):
    """use_on_oom: what would be refused is served by the free blocks of such a pool, and of no other."""
    torch.cuda.init()
    pools = [torch.cuda.MemPool(), torch.cuda.MemPool(use_on_oom=True)]
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction((80 * MIB + torch.cuda.memory_reserved()) / total)
    places = []
    for pool in pools:
        with torch.cuda.use_mem_pool(pool):
            places.append(torch.empty(40 * MIB, device="cuda", dtype=torch.uint8).data_ptr())
    first = torch.empty(30 * MIB, device="cuda", dtype=torch.uint8)
    try:
        torch.empty(30 * MIB, device="cuda", dtype=torch.uint8)
        is_refused = False
    except torch.OutOfMemoryError:
        is_refused = True
    return {"is_of_the_reserve": first.data_ptr() == places[1], "is_refused": is_refused}


def cache_of_a_held_pool(torch, _out, _is_gmd):
    """Nothing of it is given back while it is there."""
    pool, reserved = torch.cuda.MemPool(), []
    with torch.cuda.use_mem_pool(pool):
        torch.empty(30 * MIB, device="cuda", dtype=torch.uint8)
        torch.cuda.empty_cache()
        reserved.append(torch.cuda.memory_reserved())
    torch.cuda.empty_cache()
    reserved.append(torch.cuda.memory_reserved())
    del pool
    torch.cuda.empty_cache()
    return {"of_pool": [*reserved, torch.cuda.memory_reserved()]}


def reduce_overhead(torch, _out, _is_gmd):
    """torch.compile's graphs, recorded in a tree whose private pool goes back to what it was."""
    torch.manual_seed(1)
    first = torch.compile(lambda x: torch.relu(x @ x) + 1, mode="reduce-overhead")
    second = torch.compile(lambda x: torch.tanh(x) * 2 + x.sum(), mode="reduce-overhead")
    x, told = torch.randn(512, 512, device="cuda"), []
    with torch.no_grad():
        for i in range(12):
            torch.compiler.cudagraph_mark_step_begin()
            y = first(x)
            told.append(float((second(y) if i % 3 else first(y.clone() / 1000)).sum()))
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).cuda()
    trained, optimizer = torch.compile(model, mode="reduce-overhead"), torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(8):
        loss = trained(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        told.append(float(loss))
    torch.cuda.synchronize()
    # Whether the compiler has to try its kernels out, which takes memory, depends on what an earlier process left.
    return {"told": told, **side_by_side.own(peak=torch.cuda.max_memory_allocated(),
                                             reserved=torch.cuda.max_memory_reserved())}


def fraction_of_the_environment(torch, _out, _is_gmd):
    torch.cuda.init()
    said = [torch.cuda.get_per_process_memory_fraction()]
    torch.cuda.set_per_process_memory_fraction(0.25)
    return {"said": [*said, torch.cuda.get_per_process_memory_fraction()]}


fraction_of_the_environment.conf = "per_process_memory_fraction:0.5"


def actions_of(torch):
    return [e["action"] for e in torch.cuda.memory._snapshot()["device_traces"][0] if e["action"] != "snapshot"]


def history_of_old(torch, _out, _is_gmd):
    """_record_memory_history(True), and whether a history is recorded."""
    torch.empty(1, device="cuda")
    said = [bool(torch._C._cuda_isHistoryEnabled())]
    torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=1000)
    said.append(bool(torch._C._cuda_isHistoryEnabled()))
    some_work(torch)
    actions = actions_of(torch)
    torch.cuda.memory._record_memory_history(False)
    said.append(bool(torch._C._cuda_isHistoryEnabled()))
    return {"said": said, "actions": actions}


def history_without_some_actions(torch, _out, _is_gmd):
    torch.cuda.memory._record_memory_history(max_entries=1000, skip_actions=["free_requested", "segment_alloc"])
    some_work(torch)
    return {"actions": actions_of(torch)}


def history_that_goes_on(torch, _out, _is_gmd):
    """Without clear_history a recording keeps what it has, whatever stacks it goes on with."""
    torch.cuda.memory._record_memory_history(context="all", stacks="python", max_entries=1000)
    kept = some_work(torch)
    torch.cuda.memory._record_memory_history(context=None, max_entries=1000)
    kept += some_work(torch)
    traces = torch.cuda.memory._snapshot()["device_traces"][0]
    return {"kept": len(kept), "has_frames": [[e["action"], bool(e.get("frames"))] for e in traces
                                              if e["action"] == "alloc"]}


def stacks_of_live_blocks(torch, _out, _is_gmd):
    """The context "state" gives events no frames."""
    torch.cuda.memory._record_memory_history(context="state", stacks="python", max_entries=1000)
    kept = some_work(torch)
    whole = torch.cuda.memory._snapshot()
    return {"kept": len(kept), "events": sum(bool(e.get("frames")) for e in whole["device_traces"][0]),
            "blocks": sum(bool(b.get("frames")) for s in whole["segments"] for b in s["blocks"]
                          if b["state"] == "active_allocated")}


def stacks_of_both_languages(torch, _out, _is_gmd):
    torch.cuda.memory._record_memory_history(context="all", stacks="all", max_entries=1000)
    kept = torch.rand(100, device="cuda")
    events = [e for e in torch.cuda.memory._snapshot()["device_traces"][0] if e["action"] == "alloc"]
    names = [[f["name"] for f in e["frames"]] for e in events]
    return {"kept": kept.numel(), "is_cpp": any("::rand" in n for n in names[-1]),
            "is_python": any("stacks_of_both_languages" in n for n in names[-1])}


def history_of_unknown_actions(torch, _out, _is_gmd):
    try:
        torch.cuda.memory._record_memory_history(skip_actions=["no_such_action"])
    except (RuntimeError, ValueError) as error:
        return {"names_it": "no_such_action" in str(error)}
    return {"names_it": False}


def what_histories_lack_is_told(torch, _out, is_gmd):
    """PyTorch's own allocator keeps these."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.cuda.memory._record_memory_history(max_entries=1000, compile_context=True)
    texts = " ".join(str(w.message) for w in said)
    return {"is_told": not is_gmd or "no compile_context" in texts}


def metadata_of_events(torch, _out, _is_gmd):
    torch.cuda.memory._record_memory_history(max_entries=1000)
    torch.cuda.memory._set_memory_metadata("of a step")
    kept = [torch.empty(MIB, device="cuda", dtype=torch.uint8)]
    said = [torch.cuda.memory._get_memory_metadata()]
    torch.cuda.memory._set_memory_metadata("")
    kept.append(torch.empty(MIB, device="cuda", dtype=torch.uint8))
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    return {"said": said, "kept": len(kept),
            "events": [[e["action"], e["user_metadata"]] for e in events if e["action"] != "snapshot"]}


def caching_switched_off(torch, _out, _is_gmd):
    """Each request is one of CUDA, and the figures know nothing of it."""
    torch.cuda.init()
    torch.cuda.caching_allocator_enable(False)
    x = torch.ones(MIB, device="cuda", dtype=torch.uint8)
    told = [torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), int(x.sum())]
    torch.cuda.caching_allocator_enable(True)
    y = torch.ones(MIB, device="cuda", dtype=torch.uint8)
    del x
    return {"told": [*told, torch.cuda.memory_allocated(), int(y.sum())]}


def gpu_trace(torch, _out, _is_gmd):
    """The callbacks of torch.cuda._gpu_trace, which the sanitizer of streams works by."""
    from torch.cuda import _gpu_trace
    seen = []
    _gpu_trace.register_callback_for_memory_allocation(lambda address: seen.append(["allocated", address]))
    _gpu_trace.register_callback_for_memory_deallocation(lambda address: seen.append(["freed", address]))
    torch._C._activate_gpu_trace()
    blocks = [torch.empty(MIB, device="cuda", dtype=torch.uint8) for _ in range(3)]
    pointers = [b.data_ptr() for b in blocks]
    del blocks
    return {"seen": [[what, pointers.index(address)] for what, address in seen if address in pointers]}


def sanitizer_of_streams(torch, _out, _is_gmd):
    """torch.cuda._sanitizer, which is told of blocks by that trace: a missing wait is an error, and a block that
    was freed and came back is not."""
    from torch.cuda import _sanitizer
    logged, handler = [], logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    logging.getLogger("torch.cuda._sanitizer").addHandler(handler)
    _sanitizer.enable_cuda_sanitizer()
    seen = []
    a = torch.rand(MIB, device="cuda")
    del a
    a = torch.rand(MIB, device="cuda")
    side = torch.cuda.Stream()
    try:
        with torch.cuda.stream(side):
            a.mul_(2)
    except _sanitizer.CUDASanitizerErrors as error:
        seen.append(str(error).splitlines()[0])
    assert seen == ["detected 1 errors"], (seen, logged)
    return {"logged": len(logged)}


def text_of_refusals(torch, _out, _is_gmd):
    torch.empty(1, device="cuda")
    try:
        torch.empty(2**50, device="cuda", dtype=torch.uint8)
    except torch.OutOfMemoryError as error:
        text = str(error)
        return {part: part in text for part in ("CUDA out of memory. Tried to allocate 1048576.00 GiB.",
                                                "GPU 0 has a total capacity of ", " is free.")}
    return {}


def observer_of_refusals(torch, _out, _is_gmd):
    seen = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *told: seen.append(told))
    torch.empty(1, device="cuda")
    for _ in range(2):
        with contextlib.suppress(torch.OutOfMemoryError):
            torch.empty(2**50, device="cuda", dtype=torch.uint8)
    return {"seen": [[device, asked, total] for device, asked, total, _free in seen],
            "free": all(0 < free <= total for _d, _a, total, free in seen)}


# --- other processes ----------------------------------------------------------------------------


def double_what_comes(queue, answers, library):
    """A process that was started anew: it has the allocator that its parent has."""
    side_by_side.find_helper()
    if library is not None:
        import gmd_torch
        gmd_torch.install(library=library or None, dump_on_oom=False)
    import torch
    for _ in range(2):
        tensor = queue.get(timeout=40)
        answers.put(float(tensor.sum()))
        tensor.mul_(2)
        torch.cuda.synchronize()
        del tensor
    answers.put("done")


def other_processes(torch, _out, is_gmd):
    """A tensor, and one in the middle of a segment, are read and written by another process."""
    import torch.multiprocessing as multiprocessing
    context = multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    arguments = sys.argv[sys.argv.index("--library") + 1] if "--library" in sys.argv else ""
    child = context.Process(target=double_what_comes, args=(queue, answers, arguments if is_gmd else None))
    child.start()
    tensors = [torch.full((1000,), float(i + 1), device="cuda") for i in range(2)]
    for tensor in tensors:
        queue.put(tensor)
    told = [answers.get(timeout=60) for _ in range(3)]
    child.join(20)
    return {"told": told, "written": [float(t.sum()) for t in tensors], "status": child.exitcode}


def segments_that_others_cannot_have_are_named(torch, _out, is_gmd):
    """PyTorch's own allocator shares expandable segments; gmd's does not, and says so."""
    tensor = torch.empty(MIB, device="cuda", dtype=torch.uint8)
    try:
        tensor.untyped_storage()._share_cuda_()
    except RuntimeError as error:
        return {"is_told": not is_gmd or "expandable segment cannot be shared" in str(error)}
    return {"is_told": not is_gmd}


segments_that_others_cannot_have_are_named.conf = "expandable_segments:True"


# --- out of memory that explains itself ----------------------------------------------------------


def limit(torch, reserved):
    torch.cuda.set_per_process_memory_fraction(reserved / torch.cuda.get_device_properties(0).total_memory)


def beyond_a_limit(torch):
    """Half of what a limit allows is held, and as much again and more is asked for."""
    limit(torch, 2 * GIB)
    held = [torch.empty(64 * MIB, device="cuda", dtype=torch.uint8) for _ in range(20)]  # the holder
    held.append(torch.empty(GIB, device="cuda", dtype=torch.uint8))  # the last one


def beyond_the_device(torch):
    """All but 2 GiB of the device is held."""
    free, _total = torch.cuda.mem_get_info()
    held = [torch.empty(free - 2 * GIB, device="cuda", dtype=torch.uint8)]
    held.append(torch.empty(4 * GIB, device="cuda", dtype=torch.uint8))  # the last one


def beside_many_small_ones(torch):
    """One block in four of each segment stays: three quarters of what a limit allows are free, in small parts."""
    limit(torch, int(3.4 * GIB))
    small = [torch.empty(5 * MIB, device="cuda", dtype=torch.uint8) for _ in range(600)]
    held = small[::4]
    del small
    held.append(torch.empty(GIB, device="cuda", dtype=torch.uint8))  # the last one


def in_the_backward_pass(torch):
    """A thread of the autograd engine, which has no line of the program, asks for a gradient."""
    x = torch.zeros(64 * MIB, device="cuda", requires_grad=True)
    doubled = x * 2  # kept: the gradient finds no cached block
    y = doubled.sum()
    limit(torch, torch.cuda.memory_reserved())
    y.backward()


def line_of(function, mark):
    """Where a function has this comment; None: nowhere."""
    source, first = inspect.getsourcelines(function)
    return next((first + i for i, text in enumerate(source) if mark in text), None)


def lines_of_refusal(torch, out, is_gmd, job):
    """What is said when the job runs out of memory, and how many snapshots with the rank lie there then."""
    os.environ["RANK"] = "3"
    folder = os.path.join(out, f"{job.__name__}-{'gmd' if is_gmd else 'native'}")
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "oom-*.pickle")):
        os.unlink(old)
    said = io.StringIO()
    if not is_gmd:
        import gmd_torch_watch
        gmd_torch_watch.watch(dump_on_oom=os.path.join(folder, "oom")).close()
    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    message = ""
    with contextlib.redirect_stderr(said):
        try:
            job(torch)
        except torch.OutOfMemoryError as error:
            message = str(error)
    lines = [line.strip() for line in (message if is_gmd else said.getvalue()).splitlines()[1:]]
    return lines, len(glob.glob(os.path.join(folder, "oom-rank3-*.pickle")))


def refusal_of(job, cause):
    """The check that a job's refusal explains itself: with gmd's allocator in the message, with PyTorch's own on
    standard error; and that the cause is this one."""
    def check(torch, out, is_gmd):
        lines, snapshots = lines_of_refusal(torch, out, is_gmd, job)
        starts = [line.split(":")[0].split(" ")[0] for line in lines]
        assert starts == ["Asked", "Held", "Cached,", "Cause", "Change"], lines
        line = line_of(job, "# the last one")
        assert (f"check_inside.py:{line} in {job.__name__}:" if line else "no recorded line") in lines[0], lines
        assert lines[3].startswith(f"Cause: {cause}"), lines
        return {"snapshots": snapshots, **side_by_side.own(lines=lines)}

    check.__name__ = f"refused_{job.__name__}"
    check.installs = lambda out: {"dump_on_oom": os.path.join(out, f"{job.__name__}-gmd", "oom")}
    check.runs_alone = job is beyond_the_device
    return check


# --- leaks while training -------------------------------------------------------------------------


def trainer(torch, width=1024, batch=256):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.ReLU(),
                                torch.nn.Linear(4 * width, width)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(batch, width, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def watching_finds_a_leak(torch, _out, _is_gmd):
    """4 MiB more are kept each iteration: found, by its line."""
    import gmd_torch_watch
    found, kept = [], []
    watch = gmd_torch_watch.watch(on_leak=found.append, dump_on_oom=False)
    step = trainer(torch)
    for _ in range(80):
        step()
        kept.append(torch.zeros(4 * MIB, device="cuda", dtype=torch.uint8))  # the leak
    watch.close()
    leak = found[0] if found else None
    line = line_of(watching_finds_a_leak, "# the leak")
    assert leak and [place[1:] for place in leak.lines] == [(line, "watching_finds_a_leak", 4 * MIB)], found
    assert not torch._C._cuda_isHistoryEnabled()
    return {"found": len(found), "growth": leak.bytes_per_iteration, "kept": len(kept)}


def watching_accuses_nobody(torch, _out, _is_gmd):
    """Batches that vary, an evaluation in between, a buffer of ten: nothing grows for good."""
    import gmd_torch_watch
    found, recent = [], []
    watch = gmd_torch_watch.watch(on_leak=found.append, dump_on_oom=False)
    step = trainer(torch)
    for i in range(150):
        step()
        recent = [*recent, torch.empty((1 + i * 7919 % 13) * MIB, device="cuda", dtype=torch.uint8)][-10:]
        if i % 20 == 0:
            with torch.no_grad():
                torch.empty(64 * MIB, device="cuda", dtype=torch.uint8)
    watch.close()
    assert not found, found
    return {"found": 0}


def watching_costs_little(torch, _out, _is_gmd):
    """Steps with the watch on and off in turns: the median of the ratios; below 2 %."""
    import gmd_torch_watch
    step = trainer(torch, 2048, 4096)

    def seconds_of_steps():
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(40):
            step()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    seconds_of_steps()
    ratios = []
    for _ in range(15):
        without = seconds_of_steps()
        watch = gmd_torch_watch.watch(dump_on_oom=False)
        ratios.append(seconds_of_steps() / without)
        watch.close()
    ratio = statistics.median(ratios)
    assert ratio < 1.02, ratio
    return side_by_side.own(ratio=round(ratio, 4), step_ms=round(without / 40 * 1e3, 2))


watching_costs_little.runs_alone = True

CHECKS = (
    accelerator_figures, accelerator_empty_cache, accelerator_resets, accumulated_resets,
    profiler_sees_memory, profiler_sees_refusals, settings_at_run_time, settings_before_the_first_tensor,
    segments_of_both_kinds, settings_that_cannot_change_are_named, bad_settings_are_refused, snapshot_of_a_pool, nested_pools,
    pools_of_users, pool_without_splits, pool_in_reserve, cache_of_a_held_pool, reduce_overhead,
    fraction_of_the_environment, history_of_old, history_that_goes_on, stacks_of_live_blocks,
    stacks_of_both_languages, history_without_some_actions, history_of_unknown_actions,
    what_histories_lack_is_told, metadata_of_events, caching_switched_off, gpu_trace,
    sanitizer_of_streams, text_of_refusals, observer_of_refusals, other_processes,
    segments_that_others_cannot_have_are_named, refusal_of(beyond_a_limit, "limit"),
    refusal_of(beyond_the_device, "capacity"), refusal_of(beside_many_small_ones, "fragmentation"),
    refusal_of(in_the_backward_pass, "limit"), watching_finds_a_leak, watching_accuses_nobody,
    watching_costs_little)

if __name__ == "__main__":
    sys.exit(side_by_side.main(__doc__, CHECKS))
