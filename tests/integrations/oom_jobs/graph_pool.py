"""The private pool of a captured graph keeps memory that only the graph's replays use."""
# expect: Cached, and why it did not serve: .*private

import torch

import job

job.start(limit_gib=1)
x = torch.zeros(32 << 18, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    branches = [torch.relu(x + layer) for layer in range(11)]
    output = torch.stack(branches).sum()
    del branches
graph.replay()
activations = torch.empty(500 * job.MIB, dtype=torch.uint8, device="cuda")  # asked
