"""Training is sound; the evaluation keeps its predictions, and with them the graphs that nobody switched off."""
# expect: Cause: leak

import torch
from torch import nn

import job

job.start(limit_gib=1)
model = nn.Sequential(nn.Linear(512, 4096), nn.GELU(), nn.Linear(4096, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(10):
    loss = model(torch.randn(512, 512, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
predictions = []
for batch in range(1000):
    x = torch.randn(512, 512, device="cuda")
    predictions.append(model(x))  # held # asked
