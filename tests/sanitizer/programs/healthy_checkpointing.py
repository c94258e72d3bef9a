"""Activation checkpointing: blocks are computed again in the backward pass."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import case


def train():
    blocks = nn.ModuleList([nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Dropout(0.1), nn.Linear(2048, 512))
                            for _ in range(4)]).cuda()
    optimizer = torch.optim.AdamW(blocks.parameters(), lr=1e-3)
    x, target = torch.randn(128, 512, device="cuda"), torch.randn(128, 512, device="cuda")
    for _ in range(20):
        y = x
        for block in blocks:
            y = y + checkpoint(block, y, use_reentrant=False)
        loss = nn.functional.mse_loss(y, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


case.run_healthy(train)
