"""What compute-sanitizer's memcheck is to find in cached memory of gmd's allocator, where blocks are announced to it:

    compute-sanitizer --tool memcheck python3 memcheck_case.py past_end|after_free|healthy|graph

Prints READY before the kernel with the defect. docs/sanitizer.md has what it says.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "integrations"))

import cupy
import numpy
import torch

import gmd_torch

SOURCE = r"""
extern "C" __global__ void put(float *to, int at)
{
    to[at] = 8.0f;
}
"""


def put(pointer, at):
    memory = cupy.cuda.UnownedMemory(pointer, 4096, None)
    view = cupy.ndarray((1024,), cupy.float32, cupy.cuda.MemoryPointer(memory, 0))
    cupy.RawKernel(SOURCE, "put")((1,), (1,), (view, numpy.int32(at)))
    torch.cuda.synchronize()


def train(steps=3):
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data, target = torch.randn(32, 64, device="cuda"), torch.randn(32, 8, device="cuda")
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(model(data), target).backward()
        optimizer.step()


def replay():
    data = torch.ones(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        (data * 2).sum()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        result = ((data * 2) * 3).sum()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    print("sum", result.item())


def main(mode):
    gmd_torch.install()
    neighbours = [torch.zeros(1000, device="cuda") for _ in range(3)]
    block = torch.zeros(1000, device="cuda")  # 4000 bytes, of 4096
    pointer = block.data_ptr()
    put(pointer, 999)
    print("READY", mode, flush=True)
    if mode == "past_end":
        put(pointer, 1000)
    elif mode == "after_free":
        del block
        put(pointer, 0)
    elif mode == "graph":
        replay()
    else:
        train()
    print("END", mode, len(neighbours), flush=True)


main(sys.argv[1])
