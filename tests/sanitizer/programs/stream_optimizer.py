"""The optimizer steps on a side stream; its gradients are dropped while it still reads them."""

import torch

import case

SIZE, STEPS = 1 << 20, 3


def program(mended):
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weight = torch.nn.Parameter(torch.zeros(SIZE, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    inputs = [torch.full((SIZE,), 1.0 + step, device="cuda") for step in range(STEPS)]
    for x in inputs:
        (weight * x).sum().backward()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            case.late()
            optimizer.step()  # guilty: use
        if mended:
            main.wait_stream(side)
        optimizer.zero_grad()  # guilty: free
    torch.cuda.synchronize()
    return bool((weight == -sum(1.0 + step for step in range(STEPS))).all())


case.run(program)
