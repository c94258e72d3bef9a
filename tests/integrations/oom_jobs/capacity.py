"""An embedding that no device of this kind can hold."""
# expect: Cause: capacity

import torch

import job

job.start()
rest = torch.empty(64 * job.MIB, dtype=torch.uint8, device="cuda")
table = torch.empty(200_000_000, 1024, dtype=torch.float16, device="cuda")  # asked
