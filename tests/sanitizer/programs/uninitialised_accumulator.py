"""A running sum begins in torch.empty, as if that were zero."""

import torch

import case

SIZE, STEPS = 1 << 20, 4


def program(mended):
    warm_up = torch.full((SIZE,), 3.0, device="cuda")
    del warm_up
    make = torch.zeros if mended else torch.empty
    total = make(SIZE, device="cuda")  # guilty: alloc
    for step in range(STEPS):
        total += torch.full((SIZE,), float(step), device="cuda")  # guilty: use
    return total.mean().item() == STEPS * (STEPS - 1) / 2


case.run(program)
