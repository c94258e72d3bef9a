"""A PyTorch of two dozen lines for the tests of gmd_torch.py: it keeps what it is given, and its device is
the simulated one."""

import ctypes
import sys
import types

__version__ = "0.stub"
version = types.SimpleNamespace(cuda="13.0")


class OutOfMemoryError(RuntimeError):
    pass


class _CustomAllocator:
    def __init__(self):
        self.functions = {}

    def __getattr__(self, name):
        if not name.startswith("set_"):
            raise AttributeError(name)
        return lambda address: self.functions.__setitem__(name, address)


class CUDAPluggableAllocator:
    def __init__(self, path, malloc, free):
        library = ctypes.CDLL(path)
        self._allocator = _CustomAllocator()
        for name, function in (("malloc", malloc), ("free", free)):
            self._allocator.functions[name] = ctypes.cast(getattr(library, function), ctypes.c_void_p).value

    def allocator(self):
        return self._allocator


class _Memory:
    CUDAPluggableAllocator = CUDAPluggableAllocator
    refuses = False
    current = None

    def change_current_allocator(self, allocator):
        if self.refuses:
            raise RuntimeError("Can't swap an already initialized allocator")
        self.current = allocator.allocator()


class _Cuda:
    memory = _Memory()
    initialized = False

    def is_initialized(self):
        return self.initialized

    def current_device(self):
        return 0


def device(name):
    index = name.partition(":")[2]
    return types.SimpleNamespace(index=int(index) if index else None)


def _refuse(*_):
    raise RuntimeError("CUDAPluggableAllocator does not yet support it")


cuda = _Cuda()


class _GpuTrace(types.ModuleType):
    """torch.cuda._gpu_trace: callbacks are kept, and called one after the other."""

    class Registry:
        def __init__(self):
            self.callbacks = []

        def fire_callbacks(self, *arguments):
            for callback in self.callbacks:
                callback(*arguments)

    def __init__(self):
        super().__init__("torch.cuda._gpu_trace")
        self.MemoryAllocationCallbacks, self.MemoryDeallocationCallbacks = self.Registry(), self.Registry()


sys.modules["torch.cuda"] = cuda
sys.modules["torch.cuda._gpu_trace"] = cuda._gpu_trace = _GpuTrace()
_C = types.SimpleNamespace(**{name: _refuse for name in (
    "_accelerator_emptyCache", "_accelerator_getDeviceStats", "_accelerator_isAllocatorInitialized",
    "_accelerator_resetAccumulatedStats", "_accelerator_resetPeakStats", "_accelerator_setAllocatorSettings",
    "_cuda_attach_out_of_memory_observer", "_cuda_getMemoryFraction", "_cuda_getMemoryMetadata", "_cuda_isHistoryEnabled", "_cuda_memorySnapshot",
    "_cuda_memoryStats", "_cuda_record_memory_history", "_cuda_record_memory_history_legacy",
    "_cuda_resetAccumulatedMemoryStats", "_cuda_resetPeakMemoryStats", "_cuda_setMemoryMetadata")},
    _activate_gpu_trace=lambda: None,
    _cuda_setMemoryFraction=lambda fraction, device: ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_int)(
        cuda.memory.current.functions["set_memory_fraction_fn"])(fraction, device))
