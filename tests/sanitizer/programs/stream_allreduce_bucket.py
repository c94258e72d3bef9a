"""Gradients are reduced in a bucket on the communicator's stream; the bucket dies with the function that made it."""

import torch

import case

SIZES = (300_000, 500_000, 248_576)


class Communicator:
    """As a process group of two ranks with equal gradients: its collectives run on a stream of its own."""

    def __init__(self):
        self.stream = torch.cuda.Stream()

    def all_reduce(self, tensor):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            case.late()
            tensor.mul_(2.0)  # guilty: use

    def wait(self):
        torch.cuda.current_stream().wait_stream(self.stream)


def reduce_gradients(gradients, communicator, mended):
    bucket = torch.cat(gradients)  # guilty: alloc
    communicator.all_reduce(bucket)
    with torch.cuda.stream(communicator.stream):
        torch._foreach_copy_(gradients, bucket.split(SIZES))  # guilty: use
    if mended:
        bucket.record_stream(communicator.stream)


def program(mended):
    communicator = Communicator()
    gradients = [torch.full((size,), 1.0 + i, device="cuda") for i, size in enumerate(SIZES)]
    reduce_gradients(gradients, communicator, mended)  # guilty: free
    following = torch.full((sum(SIZES),), 100.0, device="cuda")
    communicator.wait()
    sums = [g.double().sum().item() for g in gradients]
    return sums == [2.0 * (1 + i) * size for i, size in enumerate(SIZES)] and bool((following == 100.0).all())


case.run(program)
