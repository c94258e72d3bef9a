"""The metric of each step is kept, with the graph that nobody asks for its gradients."""
# expect: Cause: leak

import torch
from torch import nn

import job

job.start(limit_gib=1)
model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
history = []
for step in range(1000):
    x = torch.randn(1024, 1024, device="cuda")
    y = model(x)
    loss = y.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    metric = (y - x).abs()  # held
    history.append(metric.mean())
