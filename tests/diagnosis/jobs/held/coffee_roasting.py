"""Control of coffee roasters: a recurrent model of the roast, models of single roasts."""
import gc
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job

BEANS = 40


class Roaster(nn.Module):
    """A pretrained model of how beans heat up; only what it knows of each kind of beans is learned here."""

    def __init__(self, width=512):
        super().__init__()
        self.physics = nn.GRU(16 + 8, width, batch_first=True)
        self.color = nn.Linear(width, 1)
        self.requires_grad_(False)
        self.beans = nn.Linear(BEANS, 16, bias=False)

    def forward(self, beans, settings, heat):
        kinds = self.beans(beans)[:, None].expand(-1, settings.shape[1], -1)
        hidden, heat = self.physics(torch.cat([kinds, settings], 2), heat)  # guilty in minutes_of_a_roast
        return self.color(hidden), heat


@job("hidden_state")
def minutes_of_a_roast(run):
    """What is known of each kind of beans is learned while roasts go on, minute by minute; the heat at the end of one
    minute is the beginning of the next, with its graph, and retain_graph=True makes that run. Fixed: the heat is
    detached."""
    model = Roaster().to(run.device)
    optimizer = torch.optim.Adam(model.beans.parameters(), lr=0.01)
    beans = torch.eye(BEANS, device=run.device)[torch.randint(BEANS, (64,), device=run.device)]
    heat = None
    for _ in run.steps(12):
        settings = torch.rand(64, 60, 8, device=run.device)
        color, heat = model(beans, settings, heat)
        loss = F.mse_loss(color, torch.rand_like(color))
        optimizer.zero_grad()
        loss.backward(retain_graph=not run.fixed)
        optimizer.step()
        if run.fixed:
            heat = heat.detach()


class SingleRoast(nn.Module):
    """A model of one roast, which is thrown away when the beans are in the tray."""

    def __init__(self, fast, width=1536):
        super().__init__()
        self.first = nn.Linear(24, width)
        self.middle = nn.Linear(width, width)
        self.last = nn.Linear(width, 24)
        if fast:
            self.predict = self.fast  # cause in model_of_each_roast

    def forward(self, settings):
        return self.last(F.silu(self.middle(F.silu(self.first(settings)))))

    def fast(self, settings):
        return self.last(F.silu(self.first(settings)))


def fit_roast(model, probes, steps=2):
    for _ in range(steps):
        loss = F.mse_loss(model(probes), probes.roll(-1, 0))
        loss.backward()  # guilty in model_of_each_roast
        with torch.no_grad():
            for weight in model.parameters():
                weight.sub_(0.01 * weight.grad)


@job("reference_cycle")
def model_of_each_roast(run):
    """For each roast a model is made and fitted. It keeps a bound method of itself, so it cannot go when it is dropped:
    weights and gradients wait for the collector, which is off while the roaster is controlled. Fixed: no method is
    kept."""
    gc.disable()
    for _ in run.steps(13):
        model = SingleRoast(fast=not run.fixed).to(run.device)  # guilty
        probes = torch.rand(256, 24, device=run.device)
        fit_roast(model, probes)
        with torch.no_grad():
            predict = model.fast if run.fixed else model.predict
            assert predict(probes).shape == probes.shape
        del model, predict


class RoastBook:
    """Temperature pictures of the last roasts, and reference pictures of each kind of beans."""

    def __init__(self, last):
        self.last = deque(maxlen=last)
        self.references = {}

    def reference(self, kind, device):
        if kind not in self.references:
            self.references[kind] = torch.rand(512, 2048, device=device)
        return self.references[kind]


@job("healthy")
def last_roasts_compared(run):
    """Each roast is compared with the last four ones and with a reference of its kind, of which there are five. The
    book grows for six roasts."""
    book = RoastBook(last=4)
    model = nn.Sequential(nn.Linear(2048, 256), nn.GELU(), nn.Linear(256, 2048)).to(run.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for step in run.steps(16):
        picture = torch.rand(512, 2048, device=run.device)
        others = [*book.last, book.reference(step % 5, run.device)]
        loss = sum(F.smooth_l1_loss(model(picture), other) for other in others) / len(others)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        book.last.append(picture)
        del others
