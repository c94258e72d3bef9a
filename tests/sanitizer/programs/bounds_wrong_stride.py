"""A kernel that writes a packed image with the pitch of the padded one that it reads."""

import torch

import case

HEIGHT, WIDTH, PITCH = 100, 100, 128

SOURCE = """
extern "C" __global__ void unpad(float *out, const float *in, int width, int height, int in_pitch, int out_pitch)
{
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width && y < height)
        out[y * out_pitch + x] = in[y * in_pitch + x];
}
"""


def program(mended):
    unpad = torch.cuda._compile_kernel(SOURCE, "unpad")
    padded = torch.full((HEIGHT, PITCH), 2.0, device="cuda")
    packed = torch.zeros(HEIGHT, WIDTH, device="cuda")  # guilty: alloc
    neighbour = torch.ones(HEIGHT, WIDTH, device="cuda")
    pitch = packed.stride(0) if mended else padded.stride(0)
    arguments = [packed, padded, WIDTH, HEIGHT, padded.stride(0), pitch]
    unpad(grid=(HEIGHT, 1, 1), block=(PITCH, 1, 1), args=arguments)  # guilty: use
    return packed.sum().item() == 2.0 * HEIGHT * WIDTH and bool((neighbour == 1.0).all())


case.run(program)
