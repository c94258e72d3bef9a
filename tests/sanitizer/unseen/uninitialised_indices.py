"""A permutation buffer of which only the first half is filled; integers have no NaN."""

import torch

import case

SIZE = 4096


def program(mended):
    earlier = torch.full((SIZE,), 7, device="cuda")
    del earlier
    order = torch.empty(SIZE, dtype=torch.int64, device="cuda")  # guilty: alloc
    order[: SIZE // 2] = torch.arange(SIZE // 2, device="cuda")
    if mended:
        order[SIZE // 2:] = torch.arange(SIZE // 2, SIZE, device="cuda")
    ranks = (order * 2).sum()  # guilty: use
    return ranks.item() == SIZE * (SIZE - 1)


case.run(program)
