"""Two side streams; the main stream waits for the wrong one before it drops what the other still reads."""

import torch

import case

SIZE = 1 << 20


def program(mended):
    copies, metrics, main = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()
    logits = torch.full((SIZE,), 5.0, device="cuda")  # guilty: alloc
    host = torch.empty(SIZE).pin_memory()
    copies.wait_stream(main)
    metrics.wait_stream(main)
    with torch.cuda.stream(copies):
        host.copy_(logits, non_blocking=True)
    with torch.cuda.stream(metrics):
        case.late()
        largest = logits.max()  # guilty: use
    main.wait_stream(copies)
    if mended:
        main.wait_stream(metrics)
    del logits  # guilty: free
    following = torch.full((SIZE,), 6.0, device="cuda")
    torch.cuda.synchronize()
    return largest.item() == 5.0 and host[-1].item() == 5.0 and following[0].item() == 6.0


case.run(program)
