"""Work on two streams: offloading, scoring, communication, loading."""
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job

CYCLES = 20_000_000  # about 10 ms on a GPU of 2 GHz


class InFlight:
    """Waits until at most `depth` of the pieces of work that were handed in are still under way."""

    def __init__(self, depth):
        self.depth = depth
        self.events = deque()

    def add(self, stream):
        self.events.append(stream.record_event())
        while len(self.events) > self.depth:
            self.events.popleft().synchronize()


@job("cross_stream_pending")
def activation_offload(run):
    """Activations are copied to the host on a second stream, which is slower than they are made; each is held until
    its copy has ended. Fixed: no more than one copy under way."""
    model = nn.Linear(2048, 2048).to(run.device).requires_grad_(False)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    host = torch.empty(8192, 2048, pin_memory=True)
    inputs = torch.randn(8192, 2048, device=run.device)
    flight = InFlight(1)
    for _ in run.steps(12):
        hidden = model(inputs)  # guilty
        side.wait_stream(main)
        with torch.cuda.stream(side):
            host.copy_(hidden, non_blocking=True)
        hidden.record_stream(side)  # cause
        if run.fixed:
            flight.add(side)
        del hidden


@job("cross_stream_pending")
def second_opinion(run):
    """A large model on a second stream judges each batch that the first one has dealt with, and falls behind. Fixed:
    the loop waits for the batch before the last."""
    small = nn.Linear(2048, 16).to(run.device).requires_grad_(False)
    large = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(24))).to(run.device).requires_grad_(False)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    opinion = torch.zeros((), device=run.device)
    flight = InFlight(1)
    for _ in run.steps(12):
        batch = torch.randn(4096, 2048, device=run.device)  # guilty
        small(batch)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            opinion.copy_(large(batch).mean())
        batch.record_stream(side)  # cause
        if run.fixed:
            flight.add(side)
        del batch


@job("cross_stream_pending")
def bucket_reduction(run):
    """Gradients in buckets go to a communication stream, where a slow network (a delay) is the bottleneck; the
    buckets wait for it. Fixed: the main stream waits for the communication, and no record_stream()."""
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).to(run.device)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    for _ in run.steps(10):
        loss = model(torch.randn(256, 1024, device=run.device)).square().mean()
        model.zero_grad()
        loss.backward()
        bucket = torch.cat([weight.grad.flatten() for weight in model.parameters()])  # guilty
        side.wait_stream(main)
        with torch.cuda.stream(side):
            torch.cuda._sleep(CYCLES)
            bucket.mul_(0.5)
        if run.fixed:
            main.wait_stream(side)
        else:
            bucket.record_stream(side)  # cause
        del bucket


@job("cross_stream_pending")
def loader_ahead(run):
    """Batches come from a loader's stream and are used on the main stream; the loop never waits, and the loader is
    many batches ahead. Fixed: at most two batches in flight."""
    model = nn.Sequential(*(nn.Linear(3072, 3072) for _ in range(12))).to(run.device).requires_grad_(False)
    loader, main = torch.cuda.Stream(), torch.cuda.current_stream()
    flight = InFlight(2)
    for _ in run.steps(12):
        with torch.cuda.stream(loader):
            batch = torch.rand(4096, 3072, device=run.device)  # guilty
        main.wait_stream(loader)
        model(batch)
        batch.record_stream(main)  # cause
        if run.fixed:
            flight.add(main)
        del batch


@job("healthy")
def prefetcher(run):
    """The next batch is uploaded on a second stream while this one trains; the loss is read in each iteration, so
    that nothing runs ahead."""
    model = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    host = torch.randn(2048, 2048).pin_memory()
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()

    def upload():
        with torch.cuda.stream(side):
            return host.to(run.device, non_blocking=True)

    following = upload()
    for _ in run.steps(10):
        main.wait_stream(side)
        batch, following = following, upload()
        batch.record_stream(main)
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert loss.item() >= 0


@job("healthy")
def two_towers(run):
    """Two encoders on two streams that wait for each other; their results meet on the main stream."""
    towers = [nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 256)).to(run.device) for _ in range(2)]
    optimizer = torch.optim.SGD([*towers[0].parameters(), *towers[1].parameters()], lr=0.01)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    for _ in run.steps(8):
        images, texts = torch.randn(2, 2048, 1024, device=run.device).unbind()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            second = towers[1](texts)
        first = towers[0](images)
        main.wait_stream(side)
        loss = F.cosine_embedding_loss(first, second, torch.ones(2048, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del first, second
        assert loss.item() >= 0
