"""Allocated on one side stream, read on a second; the main stream waits for the reader, the first stream does not."""

import torch

import case

SIZE = 1 << 20


def program(mended):
    first, second, main = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()
    with torch.cuda.stream(first):
        tensor = torch.full((SIZE,), 2.0, device="cuda")  # guilty: alloc
    second.wait_stream(first)
    with torch.cuda.stream(second):
        case.late()
        total = tensor.sum()  # guilty: use
    main.wait_stream(second)
    if mended:
        first.wait_stream(second)
    del tensor  # guilty: free
    with torch.cuda.stream(first):
        following = torch.full((SIZE,), 3.0, device="cuda")
    torch.cuda.synchronize()
    return total.item() == 2.0 * SIZE and following[0].item() == 3.0


case.run(program)
