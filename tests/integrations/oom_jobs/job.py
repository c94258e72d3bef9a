"""What the jobs here share: PyTorch on gmd's allocator, with a history and a limit of its own.

Each job ends out of memory. `# asked` marks the line that asks for what is refused, `# held` the line whose blocks are
to blame; `# expect: REGEX` says what else the message must have.
"""

import gmd_torch
import torch

MIB = 1 << 20
GIB = 1 << 30


def start(limit_gib=None, conf=None):
    gmd_torch.install(conf, history=100_000, stacks="state")
    torch.manual_seed(22)
    if limit_gib is not None:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(limit_gib * GIB / total)
