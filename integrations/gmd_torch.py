"""gmd's reference allocator inside PyTorch: one file, which needs PyTorch and the standard library.

    import gmd_torch
    gmd_torch.install("expandable_segments:True")     # before the first use of CUDA

From then on every CUDA tensor of the process lives in libgmd_allocator.so. torch.cuda.memory_stats(),
max_memory_reserved(), reset_peak_memory_stats(), memory._record_memory_history(), memory._snapshot() and
their relatives answer from it, too; a refused request raises torch.OutOfMemoryError and writes a snapshot
first. docs/pytorch.md says what differs from PyTorch's own allocator.
"""

import atexit
import collections
import ctypes
import os
import pickle
import re
import sys
import tempfile
import threading
import warnings

__all__ = [
    "GmdError", "change_settings", "dump_snapshot", "empty_cache", "install", "installed",
    "check", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "record_memory_history", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
    "set_metadata", "set_per_process_memory_fraction", "snapshot", "watch",
]

_LIBRARY = "libgmd_allocator.so"
_HOOKS = "libgmd_torch_hooks.so"
_SANITIZER = "libgmd_sanitizer.so"
_MESSAGE_BYTES = 1000
_STAT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)
_STACK = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_EXPLAIN = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64,
                            ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_TRACE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_STACKS = {None: 0, "state": 1, "alloc": 1, "all": 2}  # gmd_stacks, by torch's names of contexts

_state = None  # of install


class GmdError(RuntimeError):
    """What the helper cannot do, and what to do about it."""


class _State:
    def __init__(self, torch, library, hooks, path):
        self.torch, self.library, self.hooks, self.path = torch, library, hooks, path
        self.allocator = None  # the object that PyTorch was given: it must outlive its tensors
        self.stack_source = self.explain = self.traces = None  # likewise for what the library calls
        self.fractions = {}  # set since, by device
        self.conf = ""
        self.counted = {}  # by device: the figures that reset_accumulated_memory_stats() began at
        self.observers = []  # of out-of-memory, for torch
        self.recorded_entries = 0  # 0: no history is recorded
        self.has_only_live_stacks = False  # as torch's context "state": its events have none
        self.metadata = threading.local()  # .text: the thread's
        self.sanitizer = None  # its library
        self.finding_count = None  # of the last check, once it was made


# --- finding the libraries ----------------------------------------------------------------------


def _candidates(library):
    """(where it was said, path) of the places that may hold the library, in order."""
    if library is not None:
        return [("library=", os.fspath(library))]
    if os.environ.get("GMD_ALLOCATOR"):
        return [("GMD_ALLOCATOR", os.environ["GMD_ALLOCATOR"])]
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.join(here, "gmd_torch_libraries"), here, os.path.join(here, "..", "..", "lib", "gmd"), os.path.join(here, "..", "lib", "gmd"),
               os.path.join(here, "..", "build", "release", "lib", "gmd")]
    return [("near gmd_torch.py", os.path.normpath(os.path.join(f, _LIBRARY))) for f in folders]


def _find_library(library):
    candidates = _candidates(library)
    for said, path in candidates:
        if os.path.isdir(path):
            path = os.path.join(path, _LIBRARY)
        if os.path.isfile(path):
            return os.path.abspath(path)
    tried = ", ".join(path for _, path in candidates)
    raise GmdError(f"{_LIBRARY} was not found ({candidates[0][0]}: {tried}); name it with "
                   "install(library=PATH) or the environment variable GMD_ALLOCATOR")


def _load(path):
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise GmdError(f"{path} cannot be loaded: {error}") from None


def _load_beside(library_path, name):
    path = os.path.join(os.path.dirname(library_path), name)
    if not os.path.isfile(path):
        raise GmdError(f"{path} is missing: it belongs beside {_LIBRARY}, and is built where there is a "
                       "C++ compiler")
    return _load(path), path


def _function(name, result=ctypes.c_int, *arguments):
    """A function of the installed allocator, by name; GmdError where it has none."""
    state = _installed()
    try:
        function = getattr(state.library, name)
    except AttributeError:
        raise GmdError(f"{state.path} has no {name}: it is older than this gmd_torch.py") from None
    function.restype, function.argtypes = result, list(arguments)
    return function


def _has(name):
    return hasattr(_installed().library, name)


def _address(library, name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


def _call_with_message(function, *arguments):
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    if function(*arguments, message, ctypes.c_size_t(_MESSAGE_BYTES)) != 0:
        raise GmdError(message.value.decode(errors="replace"))


def _installed():
    if _state is None:
        raise GmdError("gmd_torch.install() comes first")
    return _state


def installed():
    """Whether install() has succeeded in this process."""
    return _state is not None


# --- installing ---------------------------------------------------------------------------------


def _import_torch():
    try:
        import torch
    except ImportError as error:
        raise GmdError(f"PyTorch cannot be imported: {error}") from None
    if torch.version.cuda is None:
        raise GmdError(f"this PyTorch ({torch.__version__}) is built without CUDA")
    if torch.cuda.is_initialized():
        raise GmdError("install() comes too late: CUDA is in use already; call it right after "
                       "`import torch`, before the first tensor or .cuda()")
    return torch


def _default_conf():
    return os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""


def _hand_over(state, hooks_path):
    """Makes PyTorch use the library; returns the object that it holds."""
    torch, library, hooks, sanitizer = state.torch, state.library, state.hooks, state.sanitizer
    wrapper = torch.cuda.memory.CUDAPluggableAllocator(hooks_path, "gmd_torch_malloc", "gmd_torch_free")
    target = wrapper.allocator()
    target.set_init_fn(_address(library, "gmd_init"))
    if sanitizer:
        target.set_reset_fn(_address(sanitizer, "gmd_sanitizer_empty_cache"))
        target.set_record_stream_fn(_address(sanitizer, "gmd_sanitizer_record_stream"))
    else:
        target.set_reset_fn(_address(library, "gmd_empty_cache"))
        target.set_record_stream_fn(_address(library, "gmd_record_stream"))
    target.set_memory_fraction_fn(_address(library, "gmd_set_memory_fraction"))
    target.set_base_alloc_fn(_address(hooks, "gmd_torch_base_allocation"))
    target.set_begin_allocate_to_pool(_address(hooks, "gmd_torch_begin_pool"))
    target.set_end_allocate_to_pool_fn(_address(hooks, "gmd_torch_end_pool"))
    target.set_release_pool(_address(hooks, "gmd_torch_release_pool"))
    try:
        torch.cuda.memory.change_current_allocator(wrapper)
    except RuntimeError as error:
        raise GmdError(f"PyTorch refused another allocator: {error}") from None
    return wrapper


def install(conf=None, *, library=None, dump_on_oom=None, dump_limit=3, history=0, stacks=None,
            answer_torch=True, sanitize=None):
    """Makes PyTorch allocate CUDA memory with libgmd_allocator.so; once, before the first use of CUDA.

    conf          settings as in PYTORCH_CUDA_ALLOC_CONF; None: what that variable says
    library       libgmd_allocator.so or its folder; None: GMD_ALLOCATOR, else near this file
    dump_on_oom   where a refused request writes its snapshot, PREFIX-PID-N.pickle; None: "gmd-oom" in
                  the current folder if the library writes snapshots; False: nowhere
    dump_limit    how many refused requests do so
    history, stacks   as record_memory_history(history, stacks), from the start; 0: not recorded
    answer_torch  torch.cuda's own questions (memory_stats() and so on) are answered from gmd
    sanitize      True, or "TIER,KEY:VALUE,...": writes out of bounds and to freed memory are found and
                  reported (docs/sanitizer.md); None: what GMD_SANITIZE says
    """
    global _state
    if _state is not None:
        raise GmdError("gmd_torch.install() was called already")
    if stacks not in _STACKS:
        raise GmdError(f"stacks is {stacks!r}; it is one of {', '.join(map(repr, _STACKS))}")
    torch = _import_torch()
    path = _find_library(library)
    loaded = _load(path)
    hooks, hooks_path = _load_beside(path, _HOOKS)
    if os.environ.get("NVTX_INJECTION64_PATH"):  # compute-sanitizer, say: it is told of blocks
        os.environ.setdefault("GMD_ANNOUNCE", "1")
    state = _State(torch, loaded, hooks, path)
    _state = state  # for _function; taken back where something is refused
    conf = _default_conf() if conf is None else conf
    try:
        configure = _function("gmd_configure", ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p,
                              ctypes.c_size_t)
        _call_with_message(configure, conf.encode())
        _dump_on_oom(dump_on_oom, dump_limit)
        _sanitize(os.environ.get("GMD_SANITIZE") if sanitize is None else sanitize)
        state.allocator = _hand_over(state, hooks_path)
    except BaseException:
        _state = None
        raise
    state.conf = conf
    _answer_questions(hooks)
    _tell_refusals()
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):
        _torch_enable(False)
    if answer_torch:
        _answer_torch(torch)
    if history:
        record_memory_history(history, stacks)


def _dump_on_oom(prefix, limit):
    if prefix is None:
        prefix = "gmd-oom" if _has("gmd_dump_snapshot") else False
    text = os.path.abspath(os.fspath(prefix)) if prefix else ""
    _call_with_message(_installed().hooks.gmd_torch_dump_on_oom, text.encode(),
                       ctypes.c_uint(max(0, limit)))


def _answer_questions(hooks):
    """What PyTorch's class for pluggable allocators refuses to answer, or answers itself."""
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    if hooks.gmd_torch_answer(message, ctypes.c_size_t(_MESSAGE_BYTES)) != 0:
        print(f"gmd_torch: with this PyTorch these do not work: {message.value.decode(errors='replace')}",
              file=sys.stderr)
    if not hooks.gmd_torch_tells_profiler():
        print("gmd_torch: with this PyTorch torch.profiler(profile_memory=True) sees no memory", file=sys.stderr)


def _setting(name):
    """What the settings last said of it, as text; None: nothing."""
    found = re.findall(rf"(?:^|,)\s*{name}\s*:\s*([^,\[]+)", _installed().conf)
    return found[-1].strip() if found else None


def change_settings(conf):
    """Settings while CUDA is in use: torch.cuda.memory._set_allocator_settings(). max_split_size_mb,
    roundup_power2_divisions and garbage_collection_threshold fall back to their defaults where conf does not
    name them, as with PyTorch's own allocator. GmdError: what cannot change any more, and why."""
    change = _function("gmd_change_settings", ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    _call_with_message(change, conf.encode())
    _installed().conf = conf


# --- the sanitizer ------------------------------------------------------------------------------


class _Serving(ctypes.Structure):  # serving_functions
    _fields_ = [(name, ctypes.c_void_p) for name in ("malloc", "free", "block_size", "empty_cache", "pools", "error")]


def _sanitize(options):
    """Puts the sanitizer in front of the allocator; False, "" or "0": no sanitizer."""
    state = _installed()
    if options in (None, False, "", "0"):
        return
    text = "cheap" if options is True else options
    if not isinstance(text, str):
        raise GmdError(f"sanitize is {options!r}; it is True, False or a text such as 'full,interval:1s'")
    library, _ = _load_beside(state.path, _SANITIZER)
    _call_with_message(library.gmd_sanitizer_start, text.encode())
    serving = _Serving(*(_address(library, f"gmd_sanitizer_{name}") for name, _ in _Serving._fields_))
    state.hooks.gmd_torch_serve_by(ctypes.byref(serving))
    if library.gmd_sanitizer_waits_for_launches():
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # the driver reads it when CUDA is first used
    library.gmd_sanitizer_mapped_bytes.restype = ctypes.c_uint64
    library.gmd_sanitizer_check.restype = library.gmd_sanitizer_finish.restype = ctypes.c_uint64
    library.gmd_sanitizer_set_stack_source(ctypes.c_void_p(_address(state.hooks, "gmd_torch_python_stack")), None)
    stacks = ("gmd_torch_keep_stack", "gmd_torch_stack_text")
    library.gmd_sanitizer_set_stacks(*(ctypes.c_void_p(_address(state.hooks, name)) for name in stacks))
    state.sanitizer = library
    state.hooks.gmd_torch_allow_python(1)
    atexit.register(state.hooks.gmd_torch_allow_python, 0)
    atexit.register(_finish_sanitizer)  # before that
    if library.gmd_sanitizer_wants_reads():
        _watch_reads(library)


def _watch_reads(library):
    """What the operators of this thread, and of the backward passes that it starts, read from now on."""
    try:
        import gmd_torch_reads
    except ImportError as error:
        raise GmdError(f"'reads:watched' needs gmd_torch_reads.py beside gmd_torch.py, and PyTorch's "
                       f"torch.utils._python_dispatch: {error}") from None
    library.gmd_sanitizer_watch_use.restype = None
    library.gmd_sanitizer_watch_use.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int,
                                                ctypes.c_int]
    mode = gmd_torch_reads.WatchReads(library.gmd_sanitizer_watch_use)
    mode.__enter__()
    atexit.register(mode.__exit__, None, None, None)


def _finish_sanitizer():
    """At the end of the process, once: the last check and the summary. Gives the number of findings."""
    state = _installed()
    if state.finding_count is None:
        state.finding_count = state.sanitizer.gmd_sanitizer_finish()
    return state.finding_count


def check():
    """Verifies all memory that the sanitizer watches, waits for the devices, and gives the number of findings
    so far; they have been reported then."""
    if _installed().sanitizer is None:
        raise GmdError("check() needs gmd_torch.install(sanitize=True)")
    return _installed().sanitizer.gmd_sanitizer_check()


# --- out of memory ------------------------------------------------------------------------------


def _tell_refusals():
    """A refused request asks here what else its message says, and who wants to know."""
    state = _installed()
    state.explain = _EXPLAIN(_explain)
    state.hooks.gmd_torch_explain_with(state.explain)
    atexit.register(state.hooks.gmd_torch_explain_with, None)


def _explain(device, asked, total, free, path, text, room):
    try:
        for observer in _installed().observers:
            observer(device, asked, _allowed(device, total), free)
        lines = _diagnosis(path.decode(errors="surrogateescape"), total) if path else []
        said = "".join("\n  " + line for line in lines).encode(errors="replace")[:room]
        ctypes.memmove(text, said, len(said))
        return len(said)
    except Exception as error:  # pylint: disable=broad-except # nothing may be raised into C++
        print(f"gmd_torch: out of memory could not be explained: {error!r}", file=sys.stderr)
        return 0


def _allowed(device, total):
    """What PyTorch's own allocator calls the device's total: where a limit is set, that."""
    fraction = _torch_fraction(device)
    return int(fraction * total) if fraction < 1 else total


def _diagnosis(path, capacity):
    """Five lines on the last out-of-memory of a snapshot."""
    try:
        import gmd_torch_watch
    except ImportError:
        return ["gmd_torch_watch.py, which says why, is not beside gmd_torch.py"]
    return gmd_torch_watch.explain_snapshot(path, near=_installed().path, capacity=capacity)


def watch(**options):
    """Warns of a leak during training: gmd_torch_watch.watch(). PyTorch's own allocator will do, too."""
    import gmd_torch_watch
    return gmd_torch_watch.watch(**options)


# --- figures ------------------------------------------------------------------------------------


class _Stats(ctypes.Structure):  # gmd_stats
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in (
        "allocated_bytes", "allocated_bytes_peak", "reserved_bytes", "reserved_bytes_peak", "active_bytes",
        "active_bytes_peak", "inactive_split_bytes", "requested_bytes", "allocation_count", "segment_count",
        "num_alloc_retries", "num_ooms")]


def _allocated_bytes(index):
    """One figure, at the cost of one."""
    stats = _Stats(struct_size=ctypes.sizeof(_Stats))
    if _installed().library.gmd_get_stats(ctypes.c_int(index), ctypes.byref(stats)) != 0:
        raise GmdError(f"there is no CUDA device {index}")
    return stats.allocated_bytes + _mapped_bytes(index)[0]


def _device_index(device):
    torch = _installed().torch
    if device is None:
        return torch.cuda.current_device()
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return torch.cuda.current_device() if index is None else index


def _mapped_bytes(index, resets_peak=False):
    """What blocks have in mappings of their own, which the sanitizer makes: (now, at most)."""
    if _installed().sanitizer is None:
        return 0, 0
    peak = ctypes.c_uint64()
    now = _installed().sanitizer.gmd_sanitizer_mapped_bytes(ctypes.c_int(index), ctypes.byref(peak),
                                                            ctypes.c_int(resets_peak))
    return now, peak.value


def _add_mapped(figures, index):
    now, peak = _mapped_bytes(index)
    for name in ("allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes"):
        for pool in ("all", "large_pool"):
            for key, value in (("current", now), ("peak", peak)):
                if f"{name}.{pool}.{key}" in figures:
                    figures[f"{name}.{pool}.{key}"] += value


def _figures(index):
    figures = {}

    def keep(_, name, value):
        figures[name.decode()] = value

    emit = _function("gmd_memory_stats", ctypes.c_int, ctypes.c_int, _STAT, ctypes.c_void_p)
    if emit(index, _STAT(keep), None) != 0:
        raise GmdError(f"there is no CUDA device {index}")
    # PyTorch counts this setting among the figures; -1: no limit.
    split = _setting("max_split_size_mb")
    figures.setdefault("max_split_size", int(split) << 20 if split else -1)
    _add_mapped(figures, index)
    for name, count in _installed().counted.get(index, {}).items():
        figures[name] -= count
    return figures


def memory_stats(device=None):
    """torch.cuda.memory_stats(): the same names, the same meanings."""
    return collections.OrderedDict(sorted(_figures(_device_index(device)).items()))


def memory_allocated(device=None):
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device=None):
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device=None):
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device=None):
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device=None):
    _function("gmd_reset_peak_stats", None, ctypes.c_int)(_device_index(device))
    _mapped_bytes(_device_index(device), resets_peak=True)


def _is_accumulated(name):
    return name.startswith("num_") or name.endswith((".allocated", ".freed"))


def reset_accumulated_memory_stats(device=None):
    """What memory_stats() counts from the start counts from now on."""
    index = _device_index(device)
    _installed().counted.pop(index, None)
    _installed().counted[index] = {name: n for name, n in _figures(index).items() if _is_accumulated(name)}


def empty_cache():
    """Waits for pending frees and gives unused memory back to the device."""
    _function("gmd_empty_cache", None)()


def set_per_process_memory_fraction(fraction, device=None):
    """No more than `fraction` (0 to 1) of the device's memory is reserved from now on."""
    if not 0 <= fraction <= 1:
        raise GmdError(f"the memory fraction {fraction!r} is not between 0 and 1")
    index = _device_index(device)
    _function("gmd_set_memory_fraction", None, ctypes.c_double, ctypes.c_int)(fraction, index)
    _installed().fractions[index] = fraction


# --- history and snapshots ----------------------------------------------------------------------


def _python_stack(_, text, size):
    """The current thread's Python frames, innermost first, as gmd_stack_source wants them."""
    try:
        frame = sys._getframe(1)
        lines, length = [], 0
        while frame is not None and length < size:
            code = frame.f_code
            line = f"{code.co_filename}:{frame.f_lineno or 0}:{code.co_name}\n".encode(errors="replace")
            lines.append(line)
            length += len(line)
            frame = frame.f_back
        data = b"".join(lines)[:size]
        ctypes.memmove(text, data, len(data))
        return len(data)
    except Exception:  # pylint: disable=broad-except # nothing may be raised into C
        return 0


def _set_stack_source(source):
    state = _installed()
    if state.stack_source is None:
        state.stack_source = _STACK(_python_stack)
        atexit.register(_forget_stack_source)
    python = ctypes.cast(state.stack_source, ctypes.c_void_p)
    set_source = _function("gmd_set_stack_source", None, ctypes.c_void_p, ctypes.c_void_p)
    if source == "all":
        set_source(_address(state.hooks, "gmd_torch_stack"), python)
    else:
        set_source(python, None)


def _forget_stack_source():
    """The library must not call into an interpreter that ends."""
    if _state is not None and _state.stack_source is not None:
        _function("gmd_set_stack_source", None, ctypes.c_void_p, ctypes.c_void_p)(None, None)
        _state.stack_source = None


def record_memory_history(max_entries=100_000, stacks="state", source="python", skip_actions=(), clear=True):
    """Keeps the latest `max_entries` events from now on; 0: none any more.

    stacks        None: none; "state": of allocations; "all": of frees, too
    source        "python": Python frames (microseconds an event); "native": frames of the machine code; "all": these,
                  up to the interpreter, and then Python's
    skip_actions  names of events that are left out: "free_requested", say
    clear         False: a recording of as many that is under way goes on with what it has
    """
    if stacks not in _STACKS:
        raise GmdError(f"stacks is {stacks!r}; it is one of {', '.join(map(repr, _STACKS))}")
    if source not in ("python", "native", "all"):
        raise GmdError(f"source is {source!r}; it is 'python', 'native' or 'all'")
    if max_entries < 0:
        raise GmdError(f"max_entries is {max_entries!r}; it is 0 or more")
    skip = _function("gmd_skip_events", ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    _call_with_message(skip, ",".join(skip_actions).encode())
    if source == "native":
        _forget_stack_source()
    elif max_entries and _STACKS[stacks]:
        _set_stack_source(source)
    if max_entries and not clear and _installed().recorded_entries == max_entries:
        change = _function("gmd_change_stacks", ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
        _call_with_message(change, _STACKS[stacks])
    else:
        record = _function("gmd_record_history", ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p,
                           ctypes.c_size_t)
        _call_with_message(record, max_entries, _STACKS[stacks])
    _installed().recorded_entries = max_entries
    _installed().has_only_live_stacks = False


def dump_snapshot(path="dump_snapshot.pickle"):
    """Writes what torch.cuda._memory_viz and pytorch.org/memory_viz open."""
    dump = _function("gmd_dump_snapshot", ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    _call_with_message(dump, os.fsencode(path))


def snapshot():
    """The same as a dictionary: torch.cuda.memory._snapshot()."""
    with tempfile.TemporaryDirectory(prefix="gmd-") as folder:
        path = os.path.join(folder, "snapshot.pickle")
        dump_snapshot(path)
        with open(path, "rb") as file:
            return pickle.load(file)


# --- torch.cuda's own questions -----------------------------------------------------------------


def _nested(figures):
    """{"a.b.c": 1} as {"a": {"b": {"c": 1}}}, which is what PyTorch's C functions give."""
    nested = {}
    for name, value in figures.items():
        *groups, last = name.split(".")
        place = nested
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    return nested


def _torch_record_history(enabled, context=None, stacks="all", max_entries=sys.maxsize, _clear_history=False,
                          compile_context=False, global_record_annotations=False, skip_actions=(), *rest,
                          **_named):
    """torch._C._cuda_record_memory_history."""
    unkept = [name for name, is_wanted in (("compile_context", compile_context),
                                           ("global_record_annotations", global_record_annotations),
                                           ("record_pinned_host_memory", rest and rest[0])) if is_wanted]
    if unkept:
        warnings.warn(f"gmd_torch: histories have no {', no '.join(unkept)}", stacklevel=3)
    entries = 0 if enabled is None else min(max_entries, 1_000_000)
    record_memory_history(entries, context if entries else None, {"cpp": "native"}.get(stacks, stacks),
                          skip_actions or (), clear=_clear_history)
    _installed().has_only_live_stacks = context == "state"


def _torch_record_history_legacy(enabled, record_context=True, max_entries=1, record_context_of_all=False,
                                 record_context_cpp=False, clear_history=False, compile_context=False,
                                 global_record_annotations=False, skip_actions=(), *rest):
    """torch._C._cuda_record_memory_history_legacy: _record_memory_history(True)."""
    context = None if not record_context else "all" if record_context_of_all else "state"
    _torch_record_history("all" if enabled else None, context, "all" if record_context_cpp else "python",
                          max_entries, clear_history, compile_context, global_record_annotations,
                          skip_actions, *rest)


def _torch_snapshot(wanted=None):
    """torch._C._cuda_memorySnapshot: None, or a pool's two numbers, (0, 0) for all, and whether events, too."""
    *pool_id, include_traces = wanted or (0, 0, True)
    whole = snapshot()
    if pool_id != [0, 0]:
        whole["segments"] = [s for s in whole["segments"] if list(s["segment_pool_id"]) == pool_id]
    if not include_traces:
        whole["device_traces"] = [[] for _ in whole["device_traces"]]
    if _installed().has_only_live_stacks:
        for event in (event for trace in whole["device_traces"] for event in trace):
            event.pop("frames", None)
    return whole


def _torch_fraction(device):
    """torch._C._cuda_getMemoryFraction: what was set, else what the settings say."""
    said = _setting("per_process_memory_fraction")
    return _installed().fractions.get(device, float(said) if said else 1.0)


def _torch_trace(torch):
    """torch._C._activate_gpu_trace: PyTorch's own allocator calls these registries of Python."""
    from torch.cuda import _gpu_trace

    def caller(registry):
        return _TRACE(lambda address: registry.fire_callbacks(address or 0))

    state = _installed()
    state.traces = (caller(_gpu_trace.MemoryAllocationCallbacks), caller(_gpu_trace.MemoryDeallocationCallbacks))
    state.hooks.gmd_torch_trace_with(*state.traces)
    atexit.register(state.hooks.gmd_torch_trace_with, None, None)


def set_metadata(text):
    """A text that the events of this thread carry in the history: torch.cuda.memory._set_memory_metadata()."""
    _function("gmd_set_metadata", None, ctypes.c_char_p)(text.encode())
    _installed().metadata.text = text


def _torch_enable(is_caching):
    """torch._C._cuda_cudaCachingAllocator_enable: without caching each request is one of cudaMalloc."""
    _installed().hooks.gmd_torch_enable_caching(int(is_caching))


def _after(original, then):
    """The function that does the one, and then the other with the same arguments."""
    def both(*arguments):
        result = original(*arguments)
        then(*arguments)
        return result

    return both


def _answer_torch(torch):
    """torch's Python functions ask these of torch._C, and pluggable allocators refuse to answer, or PyTorch
    asks its own allocator, which holds nothing."""
    state, native = _installed(), torch._C
    answers = {
        "_accelerator_emptyCache": empty_cache,
        "_accelerator_getDeviceStats": lambda device: _nested(_figures(device)),
        "_accelerator_isAllocatorInitialized": torch.cuda.is_initialized,
        "_accelerator_resetAccumulatedStats": reset_accumulated_memory_stats,
        "_accelerator_resetPeakStats": reset_peak_memory_stats,
        "_accelerator_setAllocatorSettings": change_settings,
        "_cuda_attach_out_of_memory_observer": state.observers.append,
        "_cuda_cudaCachingAllocator_enable": _torch_enable,
        "_cuda_getMemoryFraction": _torch_fraction,
        "_cuda_getMemoryMetadata": lambda: getattr(state.metadata, "text", ""),
        "_cuda_isHistoryEnabled": lambda: state.recorded_entries > 0,
        "_cuda_memorySnapshot": _torch_snapshot,
        "_cuda_memoryStats": lambda device: _nested(_figures(device)),
        "_cuda_record_memory_history": _torch_record_history,
        "_cuda_record_memory_history_legacy": _torch_record_history_legacy,
        "_cuda_resetAccumulatedMemoryStats": reset_accumulated_memory_stats,
        "_cuda_resetPeakMemoryStats": reset_peak_memory_stats,
        "_cuda_setMemoryMetadata": set_metadata,
    }
    additions = {
        "_activate_gpu_trace": lambda: _torch_trace(torch),
        "_cuda_setMemoryFraction": lambda fraction, device: state.fractions.__setitem__(device, fraction),
    }
    for name, answer in answers.items():
        if hasattr(native, name):
            setattr(native, name, answer)
    for name, then in additions.items():
        if hasattr(native, name):
            setattr(native, name, _after(getattr(native, name), then))
    if state.hooks.gmd_torch_is_traced():
        _torch_trace(torch)


# --- python -m gmd_torch ------------------------------------------------------------------------

_USAGE = """usage: python -m gmd_torch [--sanitize[=OPTIONS]] [--conf SETTINGS] [--library PATH] PROGRAM.py [ARGUMENTS]
       python -m gmd_torch ... -m MODULE [ARGUMENTS]

Runs the program with gmd's allocator in PyTorch. With --sanitize the exit status is 66 where something
was found; OPTIONS are those of docs/sanitizer.md ("full", "cheap,quarantine:4GiB")."""
_FOUND_STATUS = 66


def _refuse_usage(message):
    print(f"gmd_torch: {message}\n{_USAGE}", file=sys.stderr)
    return 2


def _run_program(program, is_module, arguments):
    """As Python itself would; gives the exit status."""
    import runpy
    import traceback
    sys.argv = [program, *arguments]
    try:
        if is_module:
            sys.path[0] = os.getcwd()
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(program))
            runpy.run_path(program, run_name="__main__")
        return 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # pylint: disable=broad-except # printed as Python would
        traceback.print_exc()
        return 1


def _main(arguments):
    options = {}
    while arguments and arguments[0].startswith("--"):
        name, has_value, value = arguments.pop(0)[2:].partition("=")
        if name == "sanitize":
            options[name] = value if has_value else True
        elif name in ("conf", "library") and (has_value or arguments):
            options[name] = value if has_value else arguments.pop(0)
        else:
            return _refuse_usage(f"there is no option --{name}, or it lacks its value")
    is_module = arguments[:1] == ["-m"]
    program = arguments[is_module:is_module + 1]
    if not program or program[0].startswith("-"):
        return _refuse_usage("no program is named")
    try:
        install(**options)
    except GmdError as error:
        print(f"gmd_torch: {error}", file=sys.stderr)
        return 2
    status = _run_program(program[0], is_module, arguments[is_module + 1:])
    sys.stdout.flush()
    return _FOUND_STATUS if _state.sanitizer and _finish_sanitizer() else status


if __name__ == "__main__":
    import gmd_torch  # the module that programs import, which is another one than this
    sys.exit(gmd_torch._main(sys.argv[1:]))
