"""Most of what is cached belongs to a side stream, and other streams cannot have it."""
# expect: Cached, and why it did not serve: .*stream

import torch

import job

job.start(limit_gib=1)
side = torch.cuda.Stream()
kept, passing = [], []
with torch.cuda.stream(side):
    for batch in range(90):
        kept.append(torch.empty(3 * job.MIB // 2, dtype=torch.uint8, device="cuda"))  # held
        passing.append(torch.empty(17 * job.MIB // 2, dtype=torch.uint8, device="cuda"))
side.synchronize()
del passing
for step in range(40):
    kept.append(torch.empty(8 * job.MIB, dtype=torch.uint8, device="cuda"))  # asked
