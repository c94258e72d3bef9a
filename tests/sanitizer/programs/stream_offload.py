"""Activations are copied to pinned memory by a stream of their own and dropped before they have left."""

import torch

import case

LAYERS, SIZE = 4, 1 << 20


def offload(tensor, host, stream, mended):
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        host.copy_(tensor, non_blocking=True)  # guilty: use
    if mended:
        tensor.record_stream(stream)


def program(mended):
    copies = torch.cuda.Stream()
    hosts = [torch.empty(SIZE).pin_memory() for _ in range(LAYERS)]
    with torch.cuda.stream(copies):
        case.late()
    for layer, host in enumerate(hosts):
        activations = torch.full((SIZE,), float(layer), device="cuda")  # guilty: alloc
        offload(activations, host, copies, mended)
        del activations  # guilty: free
    copies.synchronize()
    return all(bool((host == float(layer)).all()) for layer, host in enumerate(hosts))


case.run(program)
