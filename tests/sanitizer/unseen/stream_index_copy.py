"""A cache's rows are written by a side stream, a small integer tensor, dropped by a rebinding."""

import torch

import case

SIZE = 3000


def program(mended):
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    rows = torch.arange(0, SIZE, 3, device="cuda")
    values = torch.full((rows.numel(),), -5, device="cuda")
    table = torch.zeros(SIZE, dtype=torch.int64, device="cuda")  # guilty: alloc
    part = table[100:2100]
    side.wait_stream(main)
    with torch.cuda.stream(side):
        case.late()
        part.index_fill_(0, rows[:600], -5)  # guilty: use
        if mended:
            table.record_stream(side)
    table = part = None  # guilty: free
    following = torch.ones(SIZE, dtype=torch.int64, device="cuda")
    side.synchronize()
    return following.sum().item() == SIZE and values.sum().item() == -5 * rows.numel() and table is part


case.run(program)
