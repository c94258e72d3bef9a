"""CuPy and PyTorch share memory both ways, and a raw kernel of CuPy works on tensors; owners are kept."""

import cupy
import numpy
import torch

import case

SOURCE = r"""
extern "C" __global__ void scale(float *x, float factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= factor;
}
"""


def train():
    scale = cupy.RawKernel(SOURCE, "scale")
    x = torch.randn(1000, 37, device="cuda")
    target = torch.from_dlpack(cupy.asarray(x).sum(axis=1))
    weight = torch.zeros(37, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    for _ in range(20):
        loss = (x @ weight - target).square().mean()
        loss.backward()
        gradient = weight.grad
        scale((1,), (64,), (cupy.asarray(gradient), numpy.float32(0.3), numpy.int32(gradient.numel())))
        with torch.no_grad():
            weight -= gradient
        weight.grad = None
        noise = torch.full((1 << 20,), 1.0, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with cupy.cuda.ExternalStream(side.cuda_stream):
            total = cupy.asarray(noise).sum()
        noise.record_stream(side)
        del noise, gradient
        side.synchronize()
        assert float(total) == float(1 << 20)
        yield loss.item()


case.run_healthy(train)
