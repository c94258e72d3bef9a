"""Blocks of two lengths in turn; the shorter-lived ones leave holes, each too small for what comes then."""
# expect: Cause: fragmentation
# expect: Change: .*expandable_segments

import torch

import job

job.start(limit_gib=1)
kept, passing = [], []
for step in range(98):
    kept.append(torch.empty(6 * job.MIB, dtype=torch.uint8, device="cuda"))  # held
    passing.append(torch.empty(4 * job.MIB, dtype=torch.uint8, device="cuda"))
del passing
following = torch.empty(256 * job.MIB, dtype=torch.uint8, device="cuda")  # asked
