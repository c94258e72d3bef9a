"""A limit of the process that is lower than what the model needs, on a device with room."""
# expect: Cause: limit
# expect: Change: .*(memory limit|set_per_process_memory_fraction)

from torch import nn

import job

job.start(limit_gib=1)
layers = []
for layer in range(100):
    layers.append(nn.Linear(4096, 4096, device="cuda"))  # held # asked
