"""What the programs here share: the switch --mended and the line that tells the judge how it went.

A program with a defect is a function that gets whether to run its mended twin and returns whether the results are
right; a healthy program is a function that returns its losses. `# guilty: alloc`, `free` and `use` in a program mark
the lines that a report should name: where the block was allocated, where it was freed, and which line works on it
after that, or out of its bounds. Where several lines have the same mark, each of them is right.
"""

import argparse
import json
import math

import torch

LATE_CYCLES = 200_000_000  # about a tenth of a second on an H100: longer than the host needs for what follows


def late():
    """What is queued on the current stream from here on runs late."""
    torch.cuda._sleep(LATE_CYCLES)


def tell(right, **details):
    print("RESULT " + json.dumps({"right": bool(right), **details}), flush=True)


def run(program):
    """program(mended): whether its results are right. The mended twin runs first in any case: it loads the kernels,
    which would make the host wait for the device just where the defect needs it to hurry ahead."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mended", action="store_true", help="run the twin without the defect")
    mended = parser.parse_args().mended
    right = program(True)
    torch.cuda.synchronize()
    if not mended:
        right = program(False)
        torch.cuda.synchronize()
    tell(right)


def run_healthy(train):
    """train(): losses, or other figures; the last must be finite and, of losses, below the first."""
    torch.manual_seed(22)
    losses = [float(loss) for loss in train()]
    torch.cuda.synchronize()
    tell(all(map(math.isfinite, losses)) and losses[-1] < losses[0], losses=losses)
