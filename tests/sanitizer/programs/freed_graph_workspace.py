"""A module's cached workspace is baked into a graph; the cache is emptied, the graph replayed."""

import torch

import case

SIZE = 1 << 20


class Smoother(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.workspaces = {}

    def forward(self, x):
        if x.numel() not in self.workspaces:
            self.workspaces[x.numel()] = torch.zeros_like(x)  # guilty: alloc
        workspace = self.workspaces[x.numel()]
        torch.mul(x, 0.5, out=workspace)
        return workspace + 1.0


def program(mended):
    smoother = Smoother()
    static_input = torch.full((SIZE,), 2.0, device="cuda")
    smoother(static_input)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_output = smoother(static_input)
    if not mended:
        smoother.workspaces.clear()  # guilty: free
    following = torch.full((SIZE,), 9.0, device="cuda")
    graph.replay()  # guilty: use
    return bool((static_output == 2.0).all()) and bool((following == 9.0).all())


case.run(program)
