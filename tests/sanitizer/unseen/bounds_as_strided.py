"""CuPy's as_strided believes what it is told: one byte too many."""

import cupy
import torch

import case

SIZE = 513


def program(mended):
    mask = torch.zeros(SIZE, dtype=torch.uint8, device="cuda")  # guilty: alloc
    length = SIZE if mended else SIZE + 1
    window = cupy.lib.stride_tricks.as_strided(cupy.asarray(mask), (length,), (1,))
    window += 1  # guilty: use
    return mask.sum().item() == SIZE


case.run(program)
