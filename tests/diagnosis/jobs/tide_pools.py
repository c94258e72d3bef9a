"""Simulations of tide pools with learned parts, in PyTorch."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


class LearnedMixing(nn.Module):
    """What the coarse grid of a simulation does not see."""

    def __init__(self, width=24):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, water):
        return self.last(torch.tanh(self.first(water)))  # guilty in hours_of_a_pool


def advance(water, mixing, step=0.01):
    flow = torch.roll(water, 1, 2) + torch.roll(water, 1, 3) - 2 * water
    return water + step * (flow + mixing(water))  # guilty in hours_of_a_pool


@job("hidden_state")
def hours_of_a_pool(run):
    """A simulation runs on with a mixing that was learned; its heat is written down hour by hour. Nothing is trained
    any more, but the water of each hour has the graph of all hours before. Fixed: detach() after each hour."""
    mixing = LearnedMixing().to(run.device)
    water = torch.rand(4, 3, 224, 224, device=run.device)
    heat = []
    for _ in run.steps(13):
        water = advance(water, mixing)
        if run.fixed:
            water = water.detach()
        heat.append(water[:, 0].mean().item())
    assert len(heat) == 13


class Chart:
    """Draws the water on a stream of its own, slowly."""

    def __init__(self, device):
        self.stream = torch.cuda.Stream()
        self.rays = torch.randn(4096, 4096, device=device) / 64
        self.drawn = None

    def draw(self, water):
        with torch.cuda.stream(self.stream):
            light = water.flatten()[: 2048 * 4096].view(2048, 4096)
            for _ in range(36):
                light = torch.sigmoid(light @ self.rays)
            return light.mean()


@job("cross_stream_pending")
def charts_of_the_tide(run):
    """Each state of the water is charted on another stream while the simulation goes on. The states are marked with
    record_stream() and replaced by the next at once, which is faster than charts are drawn. Fixed: a chart is waited
    for before the next one is begun."""
    chart = Chart(run.device)
    water = torch.rand(8, 3, 640, 640, device=run.device)
    with torch.no_grad():
        for _ in run.steps(15):
            water = water + 0.01 * torch.roll(water, 1, 3)  # guilty
            chart.stream.wait_stream(torch.cuda.current_stream())
            chart.drawn = chart.draw(water)
            water.record_stream(chart.stream)  # cause
            if run.fixed:
                chart.stream.synchronize()


class StatesOfTheDay:
    """States at some hours, from which the adjoint simulation recomputes those between them."""

    def __init__(self, every, reuse):
        self.every = every
        self.reuse = reuse
        self.recomputed = {}
        self.day = 0

    def between(self, start, mixing):
        key = 0 if self.reuse else self.day
        states = self.recomputed.setdefault(key, [])
        states.clear()
        water = start
        for _ in range(self.every):
            with torch.no_grad():
                water = water + 0.01 * (torch.roll(water, 1, 2) - water + mixing(water))  # guilty in adjoint_of_a_day
            states.append(water)  # cause in adjoint_of_a_day
        self.day += 1
        return states


@job("checkpoint_cache")
def adjoint_of_a_day(run):
    """The adjoint of a simulation: the states between two checkpoints are recomputed and gone through backwards. They
    are filed under the number of the day, and stay when the day is over. Fixed: all days have one file."""
    mixing = LearnedMixing().to(run.device)
    optimizer = torch.optim.Adam(mixing.parameters(), lr=1e-3)
    store = StatesOfTheDay(every=6, reuse=run.fixed)
    for _ in run.steps(12):
        start = torch.rand(4, 3, 256, 256, device=run.device)
        states = store.between(start, mixing)
        adjoint = torch.ones_like(start)
        optimizer.zero_grad()
        for water in reversed([start, *states[:-1]]):
            water = water.detach().requires_grad_()
            after = water + 0.01 * (torch.roll(water, 1, 2) - water + mixing(water))
            adjoint, *slopes = torch.autograd.grad(after, [water, *mixing.parameters()], adjoint)
            for weight, slope in zip(mixing.parameters(), slopes):
                weight.grad = slope if weight.grad is None else weight.grad + slope
        optimizer.step()


@job("healthy")
def unrolled_over_more_hours(run):
    """The mixing is trained through ever more hours of the simulation: two at first, eight in the end."""
    mixing = LearnedMixing().to(run.device)
    optimizer = torch.optim.Adam(mixing.parameters(), lr=1e-3)
    for step in run.steps(14):
        water = torch.rand(2, 3, 160, 160, device=run.device)
        truth = water.flip(3)
        for _ in range(2 + step // 2):
            water = advance(water, mixing)
        loss = F.mse_loss(water, truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
