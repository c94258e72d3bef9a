"""Tracks of particles in a collider: graph networks over hits, events read in parts, borders that are exchanged."""
import gc
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class TrackNet(nn.Module):
    """Messages over edges between hits, and a score for each edge."""

    def __init__(self, width=64):
        super().__init__()
        self.hits = nn.Linear(4, width)
        self.message = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, width))
        self.update = nn.GRUCell(width, width)
        self.score = nn.Linear(2 * width, 1)

    def forward(self, hits, edges):
        nodes = self.hits(hits)
        for _ in range(2):
            messages = self.message(torch.cat([nodes[edges[0]], nodes[edges[1]]], 1))
            received = torch.zeros_like(nodes).index_add(0, edges[1], messages)
            nodes = self.update(received, nodes)
        return self.score(torch.cat([nodes[edges[0]], nodes[edges[1]]], 1)).squeeze(1)


def event(hits, edges, device):
    return torch.randn(hits, 4, device=device), torch.randint(hits, (2, edges), device=device)


class MessageWatch:
    """Listens to the gradients of messages, to see whether any layer stops learning."""

    def __init__(self, module, keep_tensors):
        self.seen = []
        self.keep_tensors = keep_tensors
        module.register_full_backward_hook(self.listen)

    def listen(self, module, into, out):
        self.seen.append(out[0] if self.keep_tensors else out[0].norm().item())  # cause in gradients_of_messages


@job("gradient_accumulation")
def gradients_of_messages(run):
    """A backward hook of the message network writes down the gradients of all messages, for both rounds of each event.
    Fixed: their norm as a number."""
    model = TrackNet().to(run.device)
    watch = MessageWatch(model.message, keep_tensors=not run.fixed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(13):
        hits, edges = event(3000, 30_000, run.device)
        loss = F.binary_cross_entropy_with_logits(model(hits, edges), torch.rand(30_000, device=run.device))
        optimizer.zero_grad()
        loss.backward()  # guilty
        optimizer.step()
    assert len(watch.seen) == 26


class EventReader:
    """Reads an event and gives its hits part by part; who needs no more stops asking."""

    def __init__(self, hits, device, keep_parts):
        self.hits = torch.randn(hits, 64, device=device)  # guilty in triggered_parts
        self.energy = self.hits.square().sum(1)
        self.parts = self.read() if keep_parts else None  # cause in triggered_parts

    def read(self):
        for first in range(0, len(self.hits), 8192):
            yield self.hits[first : first + 8192], self.energy[first : first + 8192]


@job("reference_cycle")
def triggered_parts(run):
    """A trigger asks for parts of an event until it has decided, mostly after two. The reader has the generator that it
    reads with, whose frame has the reader; the collector is off, as a trigger must not be late. Fixed: the trigger
    has the generator."""
    gc.disable()
    weight = torch.randn(64, 64, device=run.device)
    accepted = 0
    with torch.no_grad():
        for _ in run.steps(14):
            reader = EventReader(65_536, run.device, keep_parts=not run.fixed)
            parts = reader.read() if run.fixed else reader.parts
            for _ in range(2):
                hits, energy = next(parts)
                accepted += int(((hits @ weight).mean(1) + energy).mean().item() > 60)
            del reader, parts, hits, energy
    assert accepted >= 0


def embed(hits, first, second, buffers):
    """Embeddings of hits by two layers."""
    if buffers is None:
        messages = hits @ first  # guilty in events_by_pile_up
        return messages.relu_() @ second  # guilty in events_by_pile_up
    messages = torch.mm(hits, first, out=buffers[1][: len(hits)])
    return torch.mm(messages.relu_(), second, out=buffers[2][: len(hits)])


@job("fragmentation")
def events_by_pile_up(run):
    """Events of a run are embedded from the emptiest to the fullest; hits and embeddings are kept. Between them lay the
    messages of each event, whose place is a little too small for anything of the next one. Fixed: three buffers for
    all events, and what is kept goes to the CPU."""
    first, second = (torch.randn(256, 256, device=run.device) / 16 for _ in range(2))
    buffers = torch.empty(3, 7000, 256, device=run.device) if run.fixed else None
    kept = []
    with torch.no_grad():
        for step in run.steps(12):
            for number in (2 * step, 2 * step + 1):
                count = 6000 + 30 * number
                if run.fixed:
                    hits = buffers[0][:count].normal_()
                    kept.append((hits.cpu(), embed(hits, first, second, buffers).cpu()))
                else:
                    hits = torch.randn(count, 256, device=run.device)  # guilty
                    kept.append((hits, embed(hits, first, second, None)))
            del hits
    assert len(kept) == 24


class Borders:
    """Sends what lies on the border of a part of the detector to the host of another part, in the background."""

    def __init__(self, rows, width, most_sending=None):
        self.stream = torch.cuda.Stream()
        self.host = [torch.empty(rows, width, pin_memory=True) for _ in range(2)]
        self.most_sending = most_sending
        self.sending = deque()
        self.sent = 0

    def send(self, border):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.host[self.sent % 2].copy_(border, non_blocking=True)
            self.sending.append(self.stream.record_event())
        border.record_stream(self.stream)  # cause in borders_of_the_detector
        self.sent += 1
        if self.most_sending is not None and len(self.sending) > self.most_sending:
            self.sending.popleft().synchronize()


@job("cross_stream_pending", fixed_contested="64 MiB of 256 wait for the copies' stream from the third iteration on")
def borders_of_the_detector(run):
    """Features at the border of each part are copied to the host on a stream that waits for the one that computes them.
    Python has given out all parts long before; each border is freed, and nobody may have its memory until its copy is
    done. Fixed: not more than one copy is under way."""
    borders = Borders(4096, 2048, most_sending=1 if run.fixed else None)
    weight = torch.randn(2048, 2048, device=run.device) / 45
    hidden = torch.randn(8192, 2048, device=run.device)
    torch.cuda.synchronize()
    with torch.no_grad():
        for _ in run.steps(15):
            for _ in range(25):
                hidden = torch.relu_(hidden @ weight)
            border = hidden[::2].contiguous()  # guilty
            borders.send(border)
            del border
    torch.cuda.synchronize()


@job("healthy")
def events_of_any_size(run):
    """A graph network learns from events with different numbers of hits and edges; after each fourth one the weights
    are averaged into a copy."""
    model, average = TrackNet(96).to(run.device), TrackNet(96).to(run.device)
    average.load_state_dict(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sizes = [2000, 2600, 1800, 3000, 2200, 2800]
    for step in run.steps(15):
        count = sizes[step % len(sizes)]
        hits, edges = event(count, 10 * count, run.device)
        loss = F.binary_cross_entropy_with_logits(model(hits, edges), torch.rand(10 * count, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            with torch.no_grad():
                for old, new in zip(average.parameters(), model.parameters()):
                    old.lerp_(new, 0.1)
