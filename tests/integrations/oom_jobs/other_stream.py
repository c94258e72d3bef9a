"""Most of what is cached belongs to a side stream, and other streams cannot have it."""
# expect: Cached, and why it did not serve: .*stream

import torch

import job

job.start(limit_gib=1)
side = torch.cuda.Stream()
kept, passing = [], []
with torch.cuda.stream(side):
    for batch in range(90):
        kept.append(job.tensor(1.5))  # held
        passing.append(job.tensor(8.5))
side.synchronize()
del passing
for step in range(40):
    kept.append(job.tensor(8))  # asked
