"""A speculative result is dropped while its stream still writes it: into the next tensor."""

import torch

import case

SIZE = 1 << 20


def program(mended):
    speculation = torch.cuda.Stream()
    draft = torch.zeros(SIZE, device="cuda")  # guilty: alloc
    speculation.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(speculation):
        case.late()
        draft.add_(7.0)  # guilty: use
    if mended:
        draft.record_stream(speculation)
    del draft  # guilty: free
    weights = torch.ones(SIZE, device="cuda")
    speculation.synchronize()
    return bool((weights == 1.0).all())


case.run(program)
