"""Steps with a batch of 64 pass; one of 1024 does not."""
# expect: Cause: limit

import torch
from torch import nn

import job

job.start(limit_gib=1)
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in (64, 64, 64, 64, 1024):
    images = torch.randn(batch, 3, 64, 64, device="cuda")
    loss = model(images).square().mean()  # held # asked
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
