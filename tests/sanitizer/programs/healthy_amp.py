"""Half precision with GradScaler, whose check for infinite gradients is a foreach kernel."""

import torch
from torch import nn

import case


def train():
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1024, 256)).cuda()
    optimizer, scaler = torch.optim.Adam(model.parameters(), lr=1e-3), torch.amp.GradScaler("cuda")
    x, target = torch.randn(128, 256, device="cuda"), torch.randn(128, 256, device="cuda")
    for _ in range(30):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(x), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


case.run_healthy(train)
