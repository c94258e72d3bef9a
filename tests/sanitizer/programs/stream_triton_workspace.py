"""A function launches Triton kernels on a side stream with a workspace that dies when it returns."""

import torch
import triton
import triton.language as tl

import case

BLOCKS, BLOCK = 1024, 1024


@triton.jit
def square(x, workspace, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    tl.store(workspace + offsets, value * value)


@triton.jit
def halve(workspace, y, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.load(workspace + offsets) / 2)


def half_square(x, y, stream, mended):
    workspace = torch.zeros_like(x)  # guilty: alloc
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        case.late()
        square[(BLOCKS,)](x, workspace, BLOCK)  # guilty: use
        halve[(BLOCKS,)](workspace, y, BLOCK)  # guilty: use
    if mended:
        workspace.record_stream(stream)


def program(mended):
    stream = torch.cuda.Stream()
    x = torch.full((BLOCKS * BLOCK,), 4.0, device="cuda")
    y = torch.zeros_like(x)
    half_square(x, y, stream, mended)  # guilty: free
    following = torch.ones_like(x)
    stream.synchronize()
    return bool((y == 8.0).all()) and bool((following == 1.0).all())


case.run(program)
