"""A kernel gets the second half of a buffer and the length of the whole."""

import torch

import case

SIZE = 2048

SOURCE = """
extern "C" __global__ void fill(float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 4.0f;
}
"""


def program(mended):
    fill = torch.cuda._compile_kernel(SOURCE, "fill")
    buffer = torch.zeros(2 * SIZE, device="cuda")  # guilty: alloc
    neighbour = torch.ones(2 * SIZE, device="cuda")
    tail = buffer[SIZE:]
    length = tail.numel() if mended else buffer.numel()
    fill(grid=(2 * SIZE // 256, 1, 1), block=(256, 1, 1), args=[tail, length])  # guilty: use
    return buffer.sum().item() == 4.0 * SIZE and bool((neighbour == 1.0).all())


case.run(program)
