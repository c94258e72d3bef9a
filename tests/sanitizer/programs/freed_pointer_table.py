"""A batched kernel gets a table of pointers to contiguous copies, which were temporaries."""

import cupy
import numpy
import torch

import case

BATCH, SIZE = 8, 1 << 18

SOURCE = r"""
extern "C" __global__ void add_all(float *out, const float *const *table, int batch, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int b = 0; b < batch; b++)
        sum += table[b][i];
    out[i] = sum;
}
"""


def program(mended):
    add_all = cupy.RawKernel(SOURCE, "add_all")
    stacked = torch.arange(BATCH, device="cuda").float().repeat(SIZE, 1)
    columns = stacked.unbind(1)
    out = torch.zeros(SIZE, device="cuda")
    if mended:
        kept = [c.contiguous() for c in columns]
        pointers = [k.data_ptr() for k in kept]
    else:
        pointers = [c.contiguous().data_ptr() for c in columns]  # guilty: alloc, free
    table = torch.tensor(pointers, device="cuda")
    arguments = (cupy.asarray(out), cupy.asarray(table), numpy.int32(BATCH), numpy.int32(SIZE))
    add_all((SIZE // 256,), (256,), arguments)  # guilty: use
    return bool((out == BATCH * (BATCH - 1) / 2).all())


case.run(program)
