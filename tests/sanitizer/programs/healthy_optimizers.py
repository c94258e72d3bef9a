"""Optimizers by foreach and fused kernels, which get tensors' addresses in structures of a fixed size: what is left
in their unused part are addresses that are no longer in use. Parameters come and go meanwhile."""

import torch
from torch import nn

import case


def steps(make):
    target = torch.randn(64, 256, device="cuda")
    for depth in (5, 1, 3):
        layers = [nn.Linear(256, 256) for _ in range(depth)]
        model = nn.Sequential(*layers).cuda()
        optimizer = make(model.parameters())
        x = torch.randn(64, 256, device="cuda")
        for _ in range(4):
            loss = nn.functional.mse_loss(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        del model, optimizer, layers
    return loss.item()


def train():
    optim = torch.optim
    yield 1000.0
    for make in (lambda p: optim.SGD(p, lr=0.01, foreach=True), lambda p: optim.SGD(p, lr=0.01, fused=True),
                 lambda p: optim.Adam(p, foreach=True), lambda p: optim.AdamW(p, fused=True),
                 lambda p: optim.AdamW(p, fused=True, amsgrad=True), lambda p: optim.RMSprop(p, foreach=True),
                 lambda p: optim.Adagrad(p, foreach=True), lambda p: optim.NAdam(p, foreach=True)):
        yield steps(make)


case.run_healthy(train)
