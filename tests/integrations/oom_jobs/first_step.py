"""Forward and backward fit; the optimizer's state, which comes with the first step, does not."""
# expect: Cause: limit

import torch
from torch import nn

import job

job.start(limit_gib=1)
model = nn.Sequential(*[nn.Linear(4096, 4096, bias=False) for _ in range(5)]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    loss = model(torch.randn(16, 4096, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # held # asked
