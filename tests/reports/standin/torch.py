"""A stand-in for the part of PyTorch that gmd's Python reproducers use: on gmd's simulated device (LD_LIBRARY_PATH) and
an allocator under test (GMD_STANDIN_ALLOCATOR, a library with gmd's ABI, allocator/gmd_abi.h). So a reproducer can run
without PyTorch and a GPU. The only device there is the first one. In torch 2.11 the end of a MemPool also empties its
cache, which the ABI has no function for; and there the pool of a capture that has failed stays open and held, while here
it is ended and let go like any other, so that what is left of it is the allocator's doing."""
import contextlib
import ctypes
import os

from ctypes import c_bool, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint64, c_void_p

NON_BLOCKING = 1  # of streams
DISABLE_TIMING = 2  # of events
UNKNOWN = (1 << 64) - 1  # a figure that the allocator does not keep
GLOBAL = 0  # the mode of captures
REUSE_FIRST = 1  # where memory is
LONG_BYTES = 1 << 30  # setting so many takes longer than what a script sets of its blocks

pool_id = c_uint64 * 2
runtime = ctypes.CDLL("libcudart.so.13")


class _Config(ctypes.Structure):
    """The beginning of gmd_sim_config, of device/gmd_sim.h, with room for the rest."""
    _fields_ = [("struct_size", c_size_t), ("device_count", c_uint), ("capacity_bytes", c_uint64), ("seed", c_uint64),
                ("placement", c_int), ("rest", c_uint64 * 32)]


# As on a real device memory that was given back is handed out again: where it was tells nothing.
config = _Config()
runtime.gmd_sim_default_config(ctypes.byref(config))
config.placement = REUSE_FIRST
if runtime.gmd_sim_reset(ctypes.byref(config)) != 0:
    raise RuntimeError("the simulated device cannot be set up")
allocator = ctypes.CDLL(os.environ["GMD_STANDIN_ALLOCATOR"])
uint8 = "uint8"


class OutOfMemoryError(RuntimeError):
    pass


class _Call(ctypes.Structure):
    """gmd_sim_call, of device/gmd_sim.h."""
    _fields_ = [("function", c_char_p), ("index", c_uint64), ("address", c_uint64), ("size", c_uint64), ("kind", c_int),
                ("result", c_int), ("device", c_int), ("failed_by_fault", c_bool), ("is_pooled", c_bool),
                ("misuse", c_char_p)]


class _Figures(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t)] + [(name, c_uint64) for name in (
        "allocated_bytes", "allocated_bytes_peak", "reserved_bytes", "reserved_bytes_peak", "active_bytes",
        "active_bytes_peak", "inactive_split_bytes", "requested_bytes", "allocation_count", "segment_count",
        "num_alloc_retries", "num_ooms")]


def _declare(library, name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments


_declare(runtime, "cudaMalloc", c_int, c_void_p, c_size_t)
_declare(runtime, "cudaMemGetInfo", c_int, c_void_p, c_void_p)
_declare(runtime, "cudaMemsetAsync", c_int, c_void_p, c_int, c_size_t, c_void_p)
_declare(runtime, "cudaStreamCreateWithFlags", c_int, c_void_p, c_uint)
_declare(runtime, "cudaStreamSynchronize", c_int, c_void_p)
_declare(runtime, "cudaStreamWaitEvent", c_int, c_void_p, c_void_p, c_uint)
_declare(runtime, "cudaStreamBeginCapture", c_int, c_void_p, c_int)
_declare(runtime, "cudaStreamEndCapture", c_int, c_void_p, c_void_p)
_declare(runtime, "cudaGraphInstantiateWithFlags", c_int, c_void_p, c_void_p, ctypes.c_ulonglong)
_declare(runtime, "cudaGraphDestroy", c_int, c_void_p)
_declare(runtime, "cudaGraphLaunch", c_int, c_void_p, c_void_p)
_declare(runtime, "cudaGraphExecDestroy", c_int, c_void_p)
_declare(runtime, "cudaGetLastError", c_int)
_declare(runtime, "gmd_sim_observe", None, c_void_p, c_void_p)
_declare(runtime, "cudaEventCreateWithFlags", c_int, c_void_p, c_uint)
_declare(runtime, "cudaEventRecord", c_int, c_void_p, c_void_p)
_declare(runtime, "cudaEventQuery", c_int, c_void_p)
_declare(runtime, "cudaEventSynchronize", c_int, c_void_p)
_declare(allocator, "gmd_malloc", c_void_p, c_size_t, c_int, c_void_p)
_declare(allocator, "gmd_free", None, c_void_p, c_size_t, c_int, c_void_p)
_declare(allocator, "gmd_record_stream", None, c_void_p, c_void_p)
_declare(allocator, "gmd_set_memory_fraction", None, c_double, c_int)
_declare(allocator, "gmd_get_stats", c_int, c_int, c_void_p)
if hasattr(allocator, "gmd_last_error"):
    _declare(allocator, "gmd_last_error", c_char_p)
_declare(allocator, "gmd_begin_pool", c_int, c_int, pool_id, c_void_p, c_void_p)
_declare(allocator, "gmd_end_pool", c_int, c_int, pool_id, c_void_p)
_declare(allocator, "gmd_release_pool", c_int, c_int, pool_id)


def _demand(status):
    if status != 0:
        runtime.cudaGetLastError()  # as PyTorch does
        raise RuntimeError(f"a call was refused: {status}")


class _Stream:
    def __init__(self, priority=0, is_default=False):
        self.handle = c_void_p()
        if not is_default:
            _demand(runtime.cudaStreamCreateWithFlags(ctypes.byref(self.handle), NON_BLOCKING))

    def synchronize(self):
        _demand(runtime.cudaStreamSynchronize(self.handle))

    def wait_stream(self, other):
        event = _Event()
        _demand(runtime.cudaEventRecord(event.handle, other.handle))
        _demand(runtime.cudaStreamWaitEvent(self.handle, event.handle, 0))
        if other.handle.value in captured:
            captured.add(self.handle.value)


class _Event:
    def __init__(self, enable_timing=False):
        self.handle = c_void_p()
        _demand(runtime.cudaEventCreateWithFlags(ctypes.byref(self.handle), 0 if enable_timing else DISABLE_TIMING))

    def record(self):
        _demand(runtime.cudaEventRecord(self.handle, current[-1].handle))

    def query(self):
        return runtime.cudaEventQuery(self.handle) == 0

    def synchronize(self):
        _demand(runtime.cudaEventSynchronize(self.handle))

    def elapsed_time(self, _):
        return 1.0  # _sleep takes what it takes


class _Tensor:
    def __init__(self, size):
        self.size, self.stream = size, current[-1]
        self.address = allocator.gmd_malloc(size, 0, self.stream.handle) if size else None  # PyTorch asks for no 0 B
        if size and not self.address:
            failure = allocator.gmd_last_error() if hasattr(allocator, "gmd_last_error") else None
            raise RuntimeError(failure.decode()) if failure else OutOfMemoryError()

    def __del__(self):
        if self.address:
            allocator.gmd_free(self.address, self.size, 0, self.stream.handle)

    def data_ptr(self):
        return self.address or 0

    def fill_(self, value):
        _demand(runtime.cudaMemsetAsync(self.address, value, self.size, current[-1].handle))
        return self

    def record_stream(self, stream):
        allocator.gmd_record_stream(self.address, stream.handle)


def _graph_pool_handle():
    global pools_made
    pools_made += 1
    return 0, pools_made


class _MemPool:
    def __init__(self):
        self.id = _graph_pool_handle()
        self.name = pool_id(*self.id)
        _demand(allocator.gmd_begin_pool(0, self.name, None, None))
        _demand(allocator.gmd_end_pool(0, self.name, ctypes.byref(c_void_p())))

    def __del__(self):
        allocator.gmd_release_pool(0, self.name)


@contextlib.contextmanager
def _use_mem_pool(pool):
    _demand(allocator.gmd_begin_pool(0, pool.name, None, None))
    try:
        yield
    finally:
        _demand(allocator.gmd_end_pool(0, pool.name, ctypes.byref(c_void_p())))
        _demand(allocator.gmd_release_pool(0, pool.name))


@ctypes.CFUNCTYPE(c_bool, c_void_p, c_void_p)
def _is_captured(_, stream):
    return stream in captured


class _CUDAGraph:
    random_state = []  # as PyTorch does it, the first graph takes memory for the state of random numbers

    def __init__(self):
        self.name, self.executable = None, None

    def capture_begin(self, pool=None):
        if not _CUDAGraph.random_state:
            _CUDAGraph.random_state.extend((_Tensor(8), _Tensor(8)))
        self.name, self.stream = pool_id(*(pool or _graph_pool_handle())), current[-1]
        _demand(allocator.gmd_begin_pool(0, self.name, ctypes.cast(_is_captured, c_void_p), None))
        captured.add(self.stream.handle.value)
        _demand(runtime.cudaStreamBeginCapture(self.stream.handle, GLOBAL))

    def capture_end(self):
        graph, executable = c_void_p(), c_void_p()
        status = runtime.cudaStreamEndCapture(self.stream.handle, ctypes.byref(graph))
        captured.clear()
        _demand(allocator.gmd_end_pool(0, self.name, ctypes.byref(c_void_p())))
        _demand(status)
        _demand(runtime.cudaGraphInstantiateWithFlags(ctypes.byref(executable), graph, 0))
        _demand(runtime.cudaGraphDestroy(graph))
        self.executable = executable

    def replay(self):
        _demand(runtime.cudaGraphLaunch(self.executable, current[-1].handle))

    def reset(self):
        if self.executable:
            _demand(runtime.cudaGraphExecDestroy(self.executable))
        if self.name:
            _demand(allocator.gmd_release_pool(0, self.name))
        self.name = self.executable = None

    __del__ = reset


@contextlib.contextmanager
def _graph(graph, stream):
    cuda.synchronize()
    cuda.empty_cache()
    with _stream(stream):
        graph.capture_begin()
        yield
        graph.capture_end()


class _DeviceMemory:
    """What the allocator has of the device, followed call by call."""
    MALLOC, FREE, MAP, UNMAP = 1, 2, 3, 4  # gmd_sim_call_kind
    ACTIONS = {FREE: "segment_free", UNMAP: "segment_unmap"}

    def __init__(self):
        self.sizes, self.freed, self.events = {}, 0, []
        self.observer = ctypes.CFUNCTYPE(None, c_void_p, ctypes.POINTER(_Call))(self.note)
        runtime.gmd_sim_observe(ctypes.cast(self.observer, c_void_p), None)

    def note(self, _, call):
        call = call.contents
        if call.result != 0:
            return
        if call.kind in (self.MALLOC, self.MAP):
            self.sizes[call.address] = call.size
        elif call.kind in self.ACTIONS:
            for address in [a for a in self.sizes if call.address <= a < call.address + max(call.size, 1)]:
                size = self.sizes.pop(address)
                self.freed += size
                self.events.append({"action": self.ACTIONS[call.kind], "addr": address, "size": size})


class _Memory:
    """torch.cuda.memory"""
    @staticmethod
    def _record_memory_history(context):
        device_memory.events.clear()

    @staticmethod
    def _snapshot():
        return {"device_traces": [device_memory.events]}


@contextlib.contextmanager
def _stream(stream):
    current.append(stream)
    try:
        yield
    finally:
        current.pop()


def _memory_stats(_):
    f = _Figures(struct_size=ctypes.sizeof(_Figures))
    _demand(allocator.gmd_get_stats(0, ctypes.byref(f)))
    figures = {"allocated_bytes": f.allocated_bytes, "active_bytes": f.active_bytes, "reserved_bytes": f.reserved_bytes,
               "allocation": f.allocation_count, "inactive_split_bytes": f.inactive_split_bytes}
    return {name + ".all.current": 0 if value == UNKNOWN else value for name, value in figures.items()} | {
        "reserved_bytes.all.peak": f.reserved_bytes, "reserved_bytes.all.freed": device_memory.freed}


def _device_properties(_):
    free, total = c_size_t(), c_size_t()
    _demand(runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    return type("properties", (), {"total_memory": total.value})


def empty(size, dtype, device):
    return _Tensor(size)


settings, refusal = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), ctypes.create_string_buffer(400)
if settings and hasattr(allocator, "gmd_configure"):
    _declare(allocator, "gmd_configure", c_int, c_char_p, c_void_p, c_size_t)
    if allocator.gmd_configure(settings.encode(), refusal, len(refusal)) != 0:
        print("cannot run: the settings:", refusal.value.decode())
        raise SystemExit(2)
if hasattr(allocator, "gmd_init"):
    allocator.gmd_init(1)
default_stream = _Stream(is_default=True)
current = [default_stream]
captured = set()  # handles of the streams that are
pools_made = 0
long_memory = c_void_p()
_demand(runtime.cudaMalloc(ctypes.byref(long_memory), LONG_BYTES))
device_memory = _DeviceMemory()


class cuda:
    Stream, Event, MemPool, CUDAGraph = _Stream, _Event, _MemPool, _CUDAGraph
    graph_pool_handle = staticmethod(_graph_pool_handle)
    graph, memory = staticmethod(_graph), _Memory
    stream, use_mem_pool = staticmethod(_stream), staticmethod(_use_mem_pool)
    memory_stats, get_device_properties = staticmethod(_memory_stats), staticmethod(_device_properties)
    is_available = staticmethod(lambda: True)
    default_stream = staticmethod(lambda: default_stream)
    synchronize = staticmethod(lambda: _demand(runtime.cudaDeviceSynchronize()))
    empty_cache = staticmethod(lambda: allocator.gmd_empty_cache())
    reset_peak_memory_stats = staticmethod(lambda device: None)
    set_per_process_memory_fraction = staticmethod(allocator.gmd_set_memory_fraction)

    @staticmethod
    def _sleep(_):
        _demand(runtime.cudaMemsetAsync(long_memory, 0, LONG_BYTES, current[-1].handle))
