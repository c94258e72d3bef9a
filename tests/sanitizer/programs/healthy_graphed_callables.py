"""torch.cuda.make_graphed_callables: forward and backward graphs that share a pool, inside an eager step."""

import torch
from torch import nn

import case


def train():
    first = nn.Sequential(nn.Linear(128, 512), nn.ReLU()).cuda()
    second = nn.Sequential(nn.Linear(512, 512), nn.ReLU()).cuda()
    head = nn.Linear(512, 10).cuda()
    x = torch.randn(64, 128, device="cuda")
    hidden = torch.randn(64, 512, device="cuda", requires_grad=True)
    first, second = torch.cuda.make_graphed_callables((first, second), ((x,), (hidden,)))
    parameters = [*first.parameters(), *second.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    labels = torch.randint(0, 10, (64,), device="cuda")
    for _ in range(30):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(head(second(first(x))), labels)
        loss.backward()
        optimizer.step()
        yield loss.item()


case.run_healthy(train)
