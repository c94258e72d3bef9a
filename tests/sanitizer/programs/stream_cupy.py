"""CuPy reads a tensor on a stream of its own, of which PyTorch's allocator never hears."""

import cupy
import torch

import case

SIZE = 1 << 20


def program(mended):
    stream = cupy.cuda.Stream(non_blocking=True)
    theirs = torch.cuda.ExternalStream(stream.ptr)
    frame = torch.full((SIZE,), 2.0, device="cuda")  # guilty: alloc
    doubled = torch.zeros(SIZE, device="cuda")
    theirs.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(theirs):
        case.late()
    with stream:
        cupy.multiply(cupy.asarray(frame), 2, out=cupy.asarray(doubled))  # guilty: use
    if mended:
        frame.record_stream(theirs)
    del frame  # guilty: free
    following = torch.full((SIZE,), 50.0, device="cuda")
    stream.synchronize()
    return bool((doubled == 4.0).all()) and following[0].item() == 50.0


case.run(program)
