"""Forecasting floods from gauges, rain and the shape of the land."""
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from batching import ByteBudget
from job import job


def catchment_model(width=1024):
    return nn.Sequential(nn.Linear(240, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 12))


@dataclass
class Sample:
    examples: int
    gradient: torch.Tensor


class NoiseScale:
    """The ratio of noise and signal in gradients, from those of small and of large batches; it says which size of batch
    is worth while."""

    def __init__(self, squares_only):
        self.squares_only = squares_only
        self.small, self.large = [], []

    def flat(self, model):
        return torch.cat([weight.grad.flatten() for weight in model.parameters()])  # guilty in worthwhile_batch_size

    def after_part(self, model, examples):
        self.small.append(self.sample(self.flat(model), examples))  # cause in worthwhile_batch_size

    def after_batch(self, model, examples):
        self.large.append(self.sample(self.flat(model), examples))  # cause in worthwhile_batch_size

    def sample(self, gradient, examples):
        return Sample(examples, gradient.square().sum() if self.squares_only else gradient)

    def estimate(self):
        small, large = ([each.gradient.square().sum() for each in part] for part in (self.small, self.large))
        return (torch.stack(small).mean() / torch.stack(large).mean()).item()


@job("gradient_accumulation")
def worthwhile_batch_size(run):
    """To find a good batch size, gradients after the first part of a batch and after all of it are compared. Both are
    kept as vectors until the end of the training, when their norms are taken. Fixed: the norms are taken at once."""
    model = catchment_model().to(run.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    noise = NoiseScale(squares_only=run.fixed)
    for _ in run.steps(12):
        optimizer.zero_grad()
        for part in range(4):
            rain = torch.rand(96, 240, device=run.device)
            loss = F.huber_loss(model(rain), torch.rand(96, 12, device=run.device)) / 4
            loss.backward()
            if part == 0:
                noise.after_part(model, examples=96)
        noise.after_batch(model, examples=4 * 96)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


class FlowMaps:
    """How much water comes together where, for catchments of any size."""

    def __init__(self, device, room=None, scratch=None):
        self.device = device
        self.room = room
        self.scratch = scratch
        self.used = 0
        self.maps = []

    def heights(self, cells):
        if self.scratch is not None:
            return self.scratch[:cells].normal_()
        return torch.randn(cells, device=self.device)  # guilty in larger_catchments

    def place(self, cells):
        if self.room is None:
            return torch.empty(cells, device=self.device)  # guilty in larger_catchments
        self.used += cells
        return self.room[self.used - cells : self.used]

    def add(self, cells):
        heights = self.heights(cells)
        lowest = heights.min()
        del heights
        self.maps.append(self.place(int(0.56 * cells)).fill_(1.0).mul_(lowest))


@job("fragmentation")
def larger_catchments(run):
    """Flow maps of catchments from small to large. A map takes a little more than half the memory in which the heights
    were, which were needed before it and are gone; the rest of it is too small for the next map. Fixed: heights and
    maps each have memory that was set aside."""
    sizes = [int(4_600_000 * 1.17**number) for number in range(12)]
    maps = FlowMaps(run.device)
    if run.fixed:
        room = torch.empty(sum(int(0.56 * cells) for cells in sizes), device=run.device)
        maps = FlowMaps(run.device, room, torch.empty(sizes[-1], device=run.device))
    for number in run.steps(12):
        maps.add(sizes[number])


@job("healthy", contested="only the newest history is ever read: up to half of the peak is kept for nobody")
def histories_of_gauges(run):
    """Gauges report at any time, with histories of different lengths. The latest of each is kept, in 64 MiB for all:
    when that is exceeded, half of the entries go, those that were renewed longest ago."""
    draw = random.Random(17)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    histories = ByteBudget(64 << 20)
    for _ in run.steps(32):
        for _ in range(draw.randrange(1, 5)):
            hours = 1024 * draw.randrange(4, 17)
            histories.put(draw.randrange(60), torch.randn(hours, 64, device=run.device).cumsum_(0))
        newest = list(histories.tensors)[-1]
        loss = model(histories[newest] / 100).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class LaggedSmoother:
    """An ensemble of river states; each new measurement also corrects the states of the last hours."""

    def __init__(self, lag):
        self.lag = lag
        self.hours = []

    def assimilate(self, states, measured):
        self.hours.append(states)
        error = measured - states[:, :32]
        gain = (states[:, :32].T @ states) / len(states) / 50
        self.hours = [hour + error @ gain for hour in self.hours]
        if measured.abs().max() > 3.5:  # a flood wave went by: what was before it does not matter any more
            self.hours = self.hours[-2:]
        return self.hours[-1]

    def trim(self):
        while len(self.hours) > self.lag:
            self.hours.pop(0)


@job("healthy")
def corrected_hours(run):
    """An ensemble smoother keeps the states of the last ten hours and replaces all of them with each measurement. After
    a flood wave, of which there are two, only the last hours are kept."""
    smoother = LaggedSmoother(lag=10)
    flow = torch.randn(2048, 2048, device=run.device).div_(64)
    states = torch.randn(1024, 2048, device=run.device)
    for hour in run.steps(30):
        states = 0.9 * states + torch.tanh(states @ flow)
        measured = torch.rand(1024, 32, device=run.device)
        if hour in (6, 13):
            measured += 3
        states = smoother.assimilate(states, measured)
        smoother.trim()
