"""Two threads prepare batches on streams of their own; the consumer waits for their events and tells the allocator."""

import queue
import threading

import torch
from torch import nn

import case

BATCHES = 10


def feed(seed, batches):
    stream, generator = torch.cuda.Stream(), torch.Generator().manual_seed(seed)
    with torch.cuda.stream(stream):
        for _ in range(BATCHES):
            x = torch.randn(256, 256, generator=generator).pin_memory().to("cuda", non_blocking=True)
            x = (x - x.mean()) / x.std()
            batches.put((x, stream.record_event()))
            del x


def train():
    batches = queue.Queue(maxsize=4)
    threads = [threading.Thread(target=feed, args=(seed, batches)) for seed in range(2)]
    for thread in threads:
        thread.start()
    model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 256)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(2 * BATCHES):
        x, ready = batches.get()
        torch.cuda.current_stream().wait_event(ready)
        x.record_stream(torch.cuda.current_stream())
        loss = nn.functional.mse_loss(model(x), torch.ones_like(x))
        del x
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()
    for thread in threads:
        thread.join()


case.run_healthy(train)
