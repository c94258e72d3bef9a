"""An index that counts bytes where it should count elements: the write lands far behind, in another tensor."""

import torch

import case

ROWS, WIDTH = 64, 512

SOURCE = """
extern "C" __global__ void mark(float *out, int row, int pitch)
{
    out[row * pitch + threadIdx.x] = 3.0f;
}
"""


def program(mended):
    mark = torch.cuda._compile_kernel(SOURCE, "mark")
    table = torch.zeros(ROWS, WIDTH, device="cuda")  # guilty: alloc
    neighbour = torch.ones(4 * ROWS, WIDTH, device="cuda")
    pitch = table.stride(0) * (1 if mended else table.element_size())
    mark(grid=(1, 1, 1), block=(32, 1, 1), args=[table, ROWS - 1, pitch])  # guilty: use
    marked = table[-1, :32].sum().item()
    return marked == 96.0 and bool((neighbour == 1.0).all())


case.run(program)
