"""A Triton kernel without a mask: the last block's tail lands behind the tensor."""

import torch
import triton
import triton.language as tl

import case

SIZE, BLOCK = 128, 256


@triton.jit
def fill(out, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        tl.store(out + offsets, 7.0, mask=offsets < n)
    else:
        tl.store(out + offsets, 7.0)


def program(mended):
    bias = torch.zeros(SIZE, device="cuda")  # guilty: alloc
    neighbour = torch.ones(SIZE, device="cuda")
    fill[(1,)](bias, SIZE, BLOCK, MASKED=mended)  # guilty: use
    return bool((bias == 7.0).all()) and bool((neighbour == 1.0).all())


case.run(program)
