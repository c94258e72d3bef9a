"""A prefetcher copies batches on its own stream; nobody tells the allocator that the main stream reads them."""

import torch

import case

COUNT, SIZE = 5, 1 << 20


class Prefetcher:
    def __init__(self, batches, mended):
        self.batches, self.mended = iter(batches), mended
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        host = next(self.batches, None)
        self.batch = None
        if host is not None:
            with torch.cuda.stream(self.stream):
                self.batch = host.to("cuda", non_blocking=True)  # guilty: alloc

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.batch
        if batch is not None and self.mended:
            batch.record_stream(torch.cuda.current_stream())
        self.preload()
        return batch


def program(mended):
    hosts = [torch.full((SIZE,), float(i)).pin_memory() for i in range(COUNT)]
    sums = []
    case.late()
    prefetcher = Prefetcher(hosts, mended)
    batch = prefetcher.next()
    while batch is not None:
        sums.append(batch.sum())  # guilty: use
        batch = prefetcher.next()  # guilty: free
    return [s.item() for s in sums] == [float(i * SIZE) for i in range(COUNT)]


case.run(program)
