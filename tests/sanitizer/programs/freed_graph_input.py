"""A graph's input is replaced by a new tensor, where the new values should be copied into the old one."""

import torch

import case

SIZE = 1 << 20


def program(mended):
    static_input = torch.full((SIZE,), 1.0, device="cuda")  # guilty: alloc
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_output = static_input + 1.0
    graph.replay()
    batch = torch.full((SIZE,), 3.0, device="cuda")
    if mended:
        static_input.copy_(batch)
    else:
        static_input = batch  # guilty: free
    scratch = torch.full((SIZE,), 70.0, device="cuda")
    graph.replay()  # guilty: use
    return bool((static_output == 4.0).all()) and scratch[0].item() == 70.0 and static_input[0].item() == 3.0


case.run(program)
