"""The last reference to a tensor goes in another thread, while a side stream reads the tensor."""

import queue
import threading

import torch

import case

SIZE = 1 << 20


def writer(items, written):
    while (box := items.get()) is not None:
        written.append(box[0].numel())
        box.clear()  # guilty: free
        items.task_done()


def program(mended):
    side, items, written = torch.cuda.Stream(), queue.Queue(), []
    thread = threading.Thread(target=writer, args=(items, written))
    thread.start()
    sample = torch.full((SIZE,), 8.0, device="cuda")  # guilty: alloc
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        case.late()
        total = sample.sum()  # guilty: use
    if mended:
        sample.record_stream(side)
    box = [sample]
    del sample
    items.put(box)
    items.join()
    following = torch.full((SIZE,), 9.0, device="cuda")
    items.put(None)
    thread.join()
    side.synchronize()
    return total.item() == 8.0 * SIZE and written == [SIZE] and following[0].item() == 9.0


case.run(program)
