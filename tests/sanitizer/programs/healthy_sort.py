"""Sorting, top-k, unique, cumulative sums, masked selection: CUB's workspaces and sizes that only the device knows."""

import torch

import case


def train():
    scores = torch.randn(50_000, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([scores], lr=1.0)
    for _ in range(20):
        top, places = scores.topk(1000)
        ordered, order = torch.sort(scores, stable=True)
        distinct, inverse, counts = torch.unique((scores.detach() * 100).int(), return_inverse=True, return_counts=True)
        above = scores[scores > scores.median()]
        histogram = torch.bincount(inverse, minlength=distinct.numel())
        assert torch.equal(histogram, counts) and torch.equal(scores.detach()[order], ordered.detach())
        assert torch.nonzero(scores > 1e9).numel() == 0 and places.unique().numel() == 1000
        loss = top.mean() + above.mean() + ordered.detach().cumsum(0)[-1] * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


case.run_healthy(train)
