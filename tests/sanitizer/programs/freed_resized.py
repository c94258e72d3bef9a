"""A buffer grows by resize_(); a kernel was given the address of its first storage."""

import cupy
import numpy
import torch

import case

SIZE = 1 << 20

SOURCE = r"""
extern "C" __global__ void fill(float *out, float value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = value;
}
"""


def program(mended):
    fill = cupy.RawKernel(SOURCE, "fill")
    buffer = torch.zeros(SIZE, device="cuda")  # guilty: alloc
    address = buffer.data_ptr()
    buffer.resize_(2 * SIZE)  # guilty: free
    if mended:
        address = buffer.data_ptr()
    following = torch.ones(SIZE, device="cuda")
    arguments = (numpy.uint64(address), numpy.float32(6.0), numpy.int32(SIZE))
    fill((SIZE // 256,), (256,), arguments)  # guilty: use
    return bool((following == 1.0).all())


case.run(program)
