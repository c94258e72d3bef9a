"""Sequences of different lengths go into one batch whose padding nobody writes."""

import torch

import case

LENGTHS, WIDTH = (700, 1024, 512, 900), 256


def program(mended):
    earlier = torch.full((len(LENGTHS), max(LENGTHS), WIDTH), 5.0, device="cuda")
    del earlier
    sequences = [torch.ones(length, WIDTH, device="cuda") for length in LENGTHS]
    make = torch.zeros if mended else torch.empty
    batch = make(len(LENGTHS), max(LENGTHS), WIDTH, device="cuda")  # guilty: alloc
    for row, sequence in zip(batch, sequences):
        row[: len(sequence)] = sequence
    sums = batch.sum(dim=(1, 2))  # guilty: use
    return sums.tolist() == [float(length * WIDTH) for length in LENGTHS]


case.run(program)
