"""Sharded parameters: the full ones of a layer are gathered on the communicator's stream into memory that the layer
before it is still computing with."""

import torch

import case

LAYERS, SIZE = 3, 1 << 20


class Communicator:
    def __init__(self):
        self.stream = torch.cuda.Stream()

    def all_gather(self, shard):
        with torch.cuda.stream(self.stream):
            full = torch.empty(2 * shard.numel(), device="cuda")  # guilty: alloc
            full.view(2, -1).copy_(shard)
        torch.cuda.current_stream().wait_stream(self.stream)
        return full


def program(mended):
    communicator = Communicator()
    shards = [torch.full((SIZE // 2,), 1.0 + layer, device="cuda") for layer in range(LAYERS)]
    torch.cuda.synchronize()
    outputs = []
    for shard in shards:
        full = communicator.all_gather(shard)
        case.late()
        outputs.append(full.sum())  # guilty: use
        if mended:
            communicator.stream.wait_stream(torch.cuda.current_stream())
        del full  # guilty: free
    return [o.item() for o in outputs] == [SIZE * (1.0 + layer) for layer in range(LAYERS)]


case.run(program)
