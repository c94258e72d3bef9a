"""The device has enough for the job, but another process has a part of it."""
# expect: Cause: capacity
# expect: (beside|other process)

import subprocess
import sys

import torch

import job

THEIRS = "import torch; x = torch.empty(5 << 30, dtype=torch.uint8, device='cuda'); print('ready', flush=True); input()"

job.start()
other = subprocess.Popen([sys.executable, "-c", THEIRS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
other.stdout.readline()
try:
    room = torch.cuda.get_device_properties(0).total_memory - 4 * job.GIB
    cache = torch.empty(room, dtype=torch.uint8, device="cuda")  # asked
finally:
    other.communicate(b"\n")
