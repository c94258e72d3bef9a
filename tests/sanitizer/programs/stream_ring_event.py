"""A ring of two batches with one event too few: the producer does not wait until a slot has been consumed."""

import torch

import case

COUNT, SIZE = 6, 1 << 20


def program(mended):
    producer, main = torch.cuda.Stream(), torch.cuda.current_stream()
    ring, ready, consumed = [None, None], [torch.cuda.Event() for _ in range(2)], [None, None]
    sums = []
    case.late()
    for i in range(COUNT):
        slot = i % 2
        with torch.cuda.stream(producer):
            if mended and consumed[slot] is not None:
                producer.wait_event(consumed[slot])
            ring[slot] = torch.full((SIZE,), float(i), device="cuda")  # guilty: alloc, free
            ready[slot].record(producer)
        main.wait_event(ready[slot])
        sums.append(ring[slot].sum())  # guilty: use
        if mended:
            consumed[slot] = main.record_event()
    result = [s.item() for s in sums] == [float(i * SIZE) for i in range(COUNT)]
    return result


case.run(program)
