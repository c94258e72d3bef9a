"""On PYTHONPATH: each python3 that imports torch has gmd's allocator in it, as soon as torch is imported; the
processes that a program starts, too. GMD_ALLOCATOR names the library.

A process whose settings ask for another of PyTorch's allocators (backend:cudaMallocAsync) is left alone.
"""

import importlib.abc
import importlib.machinery
import os
import sys


def _asks_for_another():
    conf = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    return "cudaMallocAsync" in conf


class _Loader(importlib.abc.Loader):
    def __init__(self, own):
        self.own = own

    def create_module(self, spec):
        return self.own.create_module(spec)

    def exec_module(self, module):
        self.own.exec_module(module)
        import gmd_torch
        gmd_torch.install(dump_on_oom=False)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname != "torch" or path is not None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            sys.meta_path.remove(self)  # once
            spec.loader = _Loader(spec.loader)
        return spec


if not _asks_for_another():
    sys.meta_path.insert(0, _Finder())
