"""A whole training step in one CUDA graph, as PyTorch's notes on graphs show it."""

import torch
from torch import nn

import case


def train():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 64)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
    x, target = torch.randn(64, 256, device="cuda"), torch.randn(64, 64, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            nn.functional.mse_loss(model(x), target).backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
    batches = [torch.randn(64, 256, device="cuda") for _ in range(3)]
    for step in range(60):
        x.copy_(batches[step % 3])
        graph.replay()
        if step % 3 == 0:
            yield loss.item()
    # The optimizer's state is of the side stream: it must not go while the main stream's last replays work on it.
    side.wait_stream(torch.cuda.current_stream())


case.run_healthy(train)
