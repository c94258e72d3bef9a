"""A tensor crosses to CuPy by DLPack; only the address is kept, and the capsule's owner goes."""

import cupy
import torch

import case

SIZE = 1 << 20


def program(mended):
    tensor = torch.zeros(SIZE, device="cuda")  # guilty: alloc
    imported = cupy.from_dlpack(tensor)
    owner = imported if mended else None
    memory = cupy.cuda.UnownedMemory(imported.data.ptr, imported.nbytes, owner)
    array = cupy.ndarray((SIZE,), cupy.float32, cupy.cuda.MemoryPointer(memory, 0))
    del tensor, imported, owner  # guilty: free
    following = torch.ones(SIZE, device="cuda")
    array += 5  # guilty: use
    return bool((following == 1.0).all())


case.run(program)
