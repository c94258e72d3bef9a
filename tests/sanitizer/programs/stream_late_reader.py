"""A side stream logs the mean of a tensor that the main stream has dropped by then."""

import torch

import case

SIZE = 1 << 20


def program(mended):
    logging = torch.cuda.Stream()
    activations = torch.full((SIZE,), 1.0, device="cuda")  # guilty: alloc
    logging.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(logging):
        case.late()
        mean = activations.mean()  # guilty: use
        if mended:
            activations.record_stream(logging)
    del activations  # guilty: free
    following = torch.full((SIZE,), 2.0, device="cuda")
    logging.synchronize()
    return mean.item() == 1.0 and following[0].item() == 2.0


case.run(program)
