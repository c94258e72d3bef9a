"""A row index from another table: three MiB behind the end."""

import cupy
import numpy
import torch

import case

SIZE = 1 << 18
SOURCE = r"""
extern "C" __global__ void put(float *out, long long row, int width)
{
    out[row * width + threadIdx.x] = 8.0f;
}
"""


def program(mended):
    put = cupy.RawKernel(SOURCE, "put")
    tables = [torch.zeros(SIZE * 3, device="cuda") for _ in range(4)]
    victim = tables[0]
    table = torch.zeros(SIZE * 3, device="cuda")  # guilty: alloc
    neighbours = [torch.zeros(SIZE * 3, device="cuda") for _ in range(4)]
    row = SIZE * 3 // 32 - 1 if mended else (SIZE * 3 + 3 * (1 << 18)) // 32
    put((1,), (32,), (cupy.asarray(table), numpy.int64(row), numpy.int32(32)))  # guilty: use
    return table.sum().item() == 8.0 * 32 and not any(bool(n.any()) for n in neighbours) and not bool(victim.any())


case.run(program)
