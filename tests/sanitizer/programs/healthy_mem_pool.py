"""torch.cuda.MemPool: weights in one pool, each step's activations in another that is dropped again."""

import torch
from torch import nn

import case


def train():
    weights_pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(weights_pool):
        model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    x, target = torch.randn(128, 512, device="cuda"), torch.randn(128, 512, device="cuda")
    for _ in range(10):
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            loss = nn.functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()
        del loss, pool


case.run_healthy(train)
