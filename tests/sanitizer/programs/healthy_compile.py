"""torch.compile: inductor's kernels reuse buffers inside a step."""

import torch
from torch import nn

import case


def train():
    model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10)).cuda()
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, labels = torch.randn(64, 128, device="cuda"), torch.randint(0, 10, (64,), device="cuda")
    for _ in range(20):
        loss = nn.functional.cross_entropy(compiled(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


if __name__ == "__main__":
    case.run_healthy(train)
