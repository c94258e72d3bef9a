"""Tensors in use on a side stream are kept until an event has happened; the event is recorded before the use."""

import time

import torch

import case

SIZE = 1 << 20


class Pending:
    """Tensors, each until its event has happened: the frugal alternative to record_stream."""

    def __init__(self):
        self.kept = []

    def add(self, tensor, event):
        self.kept.append((tensor, event))

    def collect(self):
        self.kept = [(tensor, event) for tensor, event in self.kept if not event.query()]  # guilty: free


def program(mended):
    side, pending, used = torch.cuda.Stream(), Pending(), torch.cuda.Event()
    batch = torch.full((SIZE,), 3.0, device="cuda")  # guilty: alloc
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        if not mended:
            used.record()
        case.late()
        mean = batch.mean()  # guilty: use
        if mended:
            used.record()
    pending.add(batch, used)
    del batch
    time.sleep(0.03)  # the host has other work
    pending.collect()
    following = torch.full((SIZE,), 4.0, device="cuda")
    side.synchronize()
    pending.collect()
    return mean.item() == 3.0 and following[0].item() == 4.0


case.run(program)
