"""A custom autograd function keeps the address of what its backward needs, not the tensor."""

import cupy
import numpy
import torch

import case

SIZE = 1 << 20

SOURCE = r"""
extern "C" __global__ void multiply(float *out, const float *a, const float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] * b[i];
}
"""
multiply = cupy.RawKernel(SOURCE, "multiply")


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mended):
        slope = x * x * 3  # guilty: alloc
        if mended:
            ctx.save_for_backward(slope)
        ctx.address = slope.data_ptr()
        return x * x * x  # guilty: free

    @staticmethod
    def backward(ctx, gradient):
        result = torch.empty_like(gradient)
        gradient = gradient.contiguous()
        arguments = (numpy.uint64(result.data_ptr()), numpy.uint64(gradient.data_ptr()), numpy.uint64(ctx.address),
                     numpy.int32(SIZE))
        multiply((SIZE // 256,), (256,), arguments)  # guilty: use
        return result, None


def program(mended):
    x = torch.full((SIZE,), 2.0, device="cuda", requires_grad=True)
    y = Cube.apply(x, mended)  # guilty: free
    masks = [torch.full((SIZE,), 0.25, device="cuda") for _ in range(4)]
    sum((y * mask).sum() for mask in masks).backward()
    return bool((x.grad == 12.0).all())


case.run(program)
