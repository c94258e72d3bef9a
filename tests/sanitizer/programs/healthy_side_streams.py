"""Branches on two side streams, joined by waits; backward runs on the streams of the forward pass. One branch's
input is told by record_stream, the other's by a wait before it goes."""

import torch
from torch import nn

import case


def train():
    main, left, right = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
    a, b = nn.Linear(512, 512).cuda(), nn.Linear(512, 512).cuda()
    optimizer = torch.optim.Adam([*a.parameters(), *b.parameters()], lr=1e-2)
    target = torch.randn(256, 512, device="cuda")
    for step in range(20):
        torch.manual_seed(step % 2)
        x = torch.randn(256, 512, device="cuda")
        left.wait_stream(main)
        right.wait_stream(main)
        with torch.cuda.stream(left):
            y = a(x).relu()
        with torch.cuda.stream(right):
            z = b(x).tanh()
        x.record_stream(left)
        x.record_stream(right)
        del x
        main.wait_stream(left)
        main.wait_stream(right)
        y.record_stream(main)
        z.record_stream(main)
        loss = nn.functional.mse_loss(y + z, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        statistics = torch.ones(1 << 20, device="cuda") * step
        left.wait_stream(main)
        with torch.cuda.stream(left):
            case.late()
            mean = statistics.mean()
        main.wait_stream(left)
        mean.record_stream(main)
        del statistics
        following = torch.zeros(1 << 20, device="cuda")
        assert mean.item() == step and not following.any()
        yield loss.item()


case.run_healthy(train)
