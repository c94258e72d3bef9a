"""A stencil spreads each element to its left neighbour, the first one's as well."""

import torch

import case

SIZE = 4096

SOURCE = """
extern "C" __global__ void spread(float *out, const float *in, int n, int first)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= first && i < n)
        out[i - 1] = in[i];
}
"""


def program(mended):
    spread = torch.cuda._compile_kernel(SOURCE, "spread")
    x = torch.full((SIZE,), 2.0, device="cuda")
    neighbour = torch.ones(SIZE, device="cuda")
    out = torch.zeros(SIZE, device="cuda")  # guilty: alloc
    spread(grid=(SIZE // 256, 1, 1), block=(256, 1, 1), args=[out, x, SIZE, int(mended)])  # guilty: use
    torch.cuda.synchronize()
    return out.sum().item() == 2.0 * (SIZE - 1) and bool((neighbour == 1.0).all())


case.run(program)
