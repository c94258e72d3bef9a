"""A histogram of labels where some are -100, which a loss would ignore: a negative index."""

import cupy
import numpy
import torch

import case

CLASSES = 1024

SOURCE = r"""
extern "C" __global__ void count(int *bins, const long long *labels, int n, int checked)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && (!checked || labels[i] >= 0))
        atomicAdd(&bins[labels[i]], 1);
}
"""


def program(mended):
    count = cupy.RawKernel(SOURCE, "count")
    labels = (torch.arange(CLASSES * 4) % CLASSES)
    labels[::64] = -100
    labels = labels.cuda()
    neighbour = torch.zeros(CLASSES, dtype=torch.int32, device="cuda")
    bins = torch.zeros(CLASSES, dtype=torch.int32, device="cuda")  # guilty: alloc
    n = labels.numel()
    arguments = (cupy.asarray(bins), cupy.asarray(labels), numpy.int32(n), numpy.int32(mended))
    count((n // 128,), (128,), arguments)  # guilty: use
    return bins.sum().item() == n - n // 64 and not bool(neighbour.any())


case.run(program)
