"""A kernel of the user's writes one element past the end of its tensor: `<=` for `<`."""

import torch

import case

SIZE = 1000

SOURCE = """
extern "C" __global__ void ramp(float *out, int n, int last)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n + last)
        out[i] = 0.5f * i;
}
"""


def program(mended):
    ramp = torch.cuda._compile_kernel(SOURCE, "ramp")
    table = torch.zeros(SIZE, device="cuda")  # guilty: alloc
    ramp(grid=(8, 1, 1), block=(128, 1, 1), args=[table, SIZE, 0 if mended else 1])  # guilty: use
    result = table.sum().item()
    return result == 0.5 * SIZE * (SIZE - 1) / 2


case.run(program)
