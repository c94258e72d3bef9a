"""A graph is replayed on a side stream, and its input dropped while the graph runs."""

import torch

import case

SIZE = 1 << 20


def program(mended):
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    static_input = torch.full((SIZE,), 3.0, device="cuda")  # guilty: alloc
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_output = static_input * 2.0
    side.wait_stream(main)
    with torch.cuda.stream(side):
        case.late()
        graph.replay()  # guilty: use
    if mended:
        main.wait_stream(side)
    del static_input  # guilty: free
    following = torch.full((SIZE,), 5.0, device="cuda")
    torch.cuda.synchronize()
    return bool((static_output == 6.0).all()) and bool((following == 5.0).all())


case.run(program)
