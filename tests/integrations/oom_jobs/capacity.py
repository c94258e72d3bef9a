"""An embedding that no device of this kind can hold."""
# expect: Cause: capacity

import torch

import job

job.start()
rest = job.tensor(64)
table = torch.empty(200_000_000, 1024, dtype=torch.float16, device="cuda")  # asked
