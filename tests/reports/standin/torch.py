"""A stand-in for the part of PyTorch that gmd's Python reproducers use: on gmd's simulated device (LD_LIBRARY_PATH) and
an allocator under test (GMD_STANDIN_ALLOCATOR, a library with gmd's ABI, allocator/gmd_abi.h). So a reproducer can run
without PyTorch and a GPU. The only device there is the first one. In torch 2.11 the end of a MemPool also empties its
cache, which the ABI has no function for."""
import contextlib
import ctypes
import os

from ctypes import c_double, c_int, c_size_t, c_uint, c_uint64, c_void_p

NON_BLOCKING = 1  # of streams
DISABLE_TIMING = 2  # of events
UNKNOWN = (1 << 64) - 1  # a figure that the allocator does not keep
LONG_BYTES = 1 << 30  # setting so many takes longer than what a script sets of its blocks

pool_id = c_uint64 * 2
runtime = ctypes.CDLL("libcudart.so.13")
allocator = ctypes.CDLL(os.environ["GMD_STANDIN_ALLOCATOR"])
uint8 = "uint8"


class OutOfMemoryError(RuntimeError):
    pass


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
_declare(runtime, "cudaEventCreateWithFlags", c_int, c_void_p, c_uint)
_declare(runtime, "cudaEventRecord", c_int, c_void_p, c_void_p)
_declare(runtime, "cudaEventQuery", c_int, c_void_p)
_declare(runtime, "cudaEventSynchronize", c_int, c_void_p)
_declare(allocator, "gmd_malloc", c_void_p, c_size_t, c_int, c_void_p)
_declare(allocator, "gmd_free", None, c_void_p, c_size_t, c_int, c_void_p)
_declare(allocator, "gmd_record_stream", None, c_void_p, c_void_p)
_declare(allocator, "gmd_set_memory_fraction", None, c_double, c_int)
_declare(allocator, "gmd_get_stats", c_int, c_int, c_void_p)
_declare(allocator, "gmd_begin_pool", c_int, c_int, pool_id, c_void_p, c_void_p)
_declare(allocator, "gmd_end_pool", c_int, c_int, pool_id, c_void_p)
_declare(allocator, "gmd_release_pool", c_int, c_int, pool_id)


def _demand(status):
    if status != 0:
        raise RuntimeError(f"a call was refused: {status}")


class _Stream:
    def __init__(self, is_default=False):
        self.handle = c_void_p()
        if not is_default:
            _demand(runtime.cudaStreamCreateWithFlags(ctypes.byref(self.handle), NON_BLOCKING))

    def synchronize(self):
        _demand(runtime.cudaStreamSynchronize(self.handle))

    def wait_stream(self, other):
        event = _Event()
        _demand(runtime.cudaEventRecord(event.handle, other.handle))
        _demand(runtime.cudaStreamWaitEvent(self.handle, event.handle, 0))


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
        self.address = allocator.gmd_malloc(size, 0, self.stream.handle)
        if size and not self.address:
            raise OutOfMemoryError()

    def __del__(self):
        if self.address:
            allocator.gmd_free(self.address, self.size, 0, self.stream.handle)

    def data_ptr(self):
        return self.address or 0

    def fill_(self, value):
        _demand(runtime.cudaMemsetAsync(self.address, value, self.size, current[-1].handle))

    def record_stream(self, stream):
        allocator.gmd_record_stream(self.address, stream.handle)


class _MemPool:
    made = 0

    def __init__(self):
        _MemPool.made += 1
        self.id = (0, _MemPool.made)
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
        "reserved_bytes.all.peak": f.reserved_bytes}


def _device_properties(_):
    free, total = c_size_t(), c_size_t()
    _demand(runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    return type("properties", (), {"total_memory": total.value})


def empty(size, dtype, device):
    return _Tensor(size)


if hasattr(allocator, "gmd_init"):
    allocator.gmd_init(1)
default_stream = _Stream(is_default=True)
current = [default_stream]
long_memory = c_void_p()
_demand(runtime.cudaMalloc(ctypes.byref(long_memory), LONG_BYTES))


class cuda:
    Stream, Event, MemPool = _Stream, _Event, _MemPool
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
