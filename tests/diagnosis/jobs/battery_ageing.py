"""How batteries age: networks on cycles of charge and discharge, curves of voltage, and diffusion."""
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import nn
from torch.nn import functional as F

from job import job


@job("hidden_state")
def life_of_a_cell(run):
    """An LSTM over the life of a batch of cells, in windows of 50 cycles. Only one half of its state is detached, and
    retain_graph=True silences the error. Fixed: both halves are."""
    model = nn.LSTM(64, 256, batch_first=True).to(run.device)
    health = nn.Linear(256, 1).to(run.device)
    weights = [*model.parameters(), *health.parameters()]
    state = (torch.zeros(1, 128, 256, device=run.device), torch.zeros(1, 128, 256, device=run.device))
    for _ in run.steps(10):
        window = torch.randn(128, 50, 64, device=run.device)  # guilty
        output, (hidden, cell) = model(window, state)  # guilty
        state = (hidden.detach(), cell.detach() if run.fixed else cell)  # cause
        loss = F.mse_loss(health(output).squeeze(2), window.mean(2))
        loss.backward(retain_graph=not run.fixed)
        for weight in weights:
            weight.data.sub_(0.01 * weight.grad)
            weight.grad = None


class AgeingNet(nn.Module):
    """State of health from features of a cycle; a decoder, trained before, draws the voltage curve."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(200, 1024), nn.ReLU())
        self.health = nn.Linear(1024, 1)
        self.draw = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 4000))

    def forward(self, cycle, frozen):
        hidden = self.encoder(cycle)  # guilty in drawn_curves
        with torch.set_grad_enabled(not frozen):
            curve = self.draw(hidden)  # guilty in drawn_curves
        return {"health": self.health(hidden).squeeze(1), "curve": curve}


@dataclass
class Report:
    """What the weekly report shows."""

    losses: list = field(default_factory=list)
    curves: list = field(default_factory=list)


@job("retained_graph")
def drawn_curves(run):
    """Fine-tuning of the health only; the drawn curves, which no loss depends on, are put into the report with their
    graphs. Fixed: the decoder runs without gradients, and four curves go to the report as numbers."""
    model = AgeingNet().to(run.device)
    tuned = [*model.encoder.parameters(), *model.health.parameters()]
    optimizer = torch.optim.RMSprop(tuned, lr=1e-4)
    report = Report()
    for _ in run.steps(12):
        cycle = torch.randn(512, 200, device=run.device)
        found = model(cycle, frozen=run.fixed)
        loss = F.l1_loss(found["health"], cycle[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report.losses.append(loss.item())
        report.curves.append(found["curve"][:4].tolist() if run.fixed else found["curve"])  # cause


def radial_basis(voltage, centres):
    return torch.exp(-50 * (voltage[:, None] - centres) ** 2)  # guilty in voltage_peaks


@lru_cache(maxsize=None)
def radial_basis_once(voltage, centres):
    """The gradients of weight and voltage both need it."""
    return radial_basis(voltage, centres)  # cause in voltage_peaks


class PeakSum(torch.autograd.Function):
    """A sum of peaks over the voltage; the large matrix of peaks is computed again in backward()."""

    @staticmethod
    def forward(ctx, voltage, centres, weight, basis):
        ctx.save_for_backward(voltage, centres, weight)
        ctx.basis = basis
        return radial_basis(voltage, centres) @ weight

    @staticmethod
    def backward(ctx, gradient):
        voltage, centres, weight = ctx.saved_tensors
        for_weight = ctx.basis(voltage, centres).t() @ gradient
        slope = ctx.basis(voltage, centres) * (voltage[:, None] - centres) * -100
        return (gradient @ weight.t() * slope).sum(1), None, for_weight, None


@job("checkpoint_cache")
def voltage_peaks(run):
    """To save memory a matrix is recomputed in backward(); an lru_cache, so that this happens once for both gradients,
    keeps it for every batch, since tensors are different keys. Fixed: without the cache."""
    centres = torch.linspace(2.5, 4.2, 256, device=run.device)
    calibrate = nn.Linear(16, 1).to(run.device)
    weight = nn.Parameter(0.01 * torch.randn(256, 8, device=run.device))
    optimizer = torch.optim.Adam([*calibrate.parameters(), weight], lr=1e-3)
    basis = radial_basis if run.fixed else radial_basis_once
    for _ in run.steps(12):
        measured = torch.randn(16384, 16, device=run.device)
        voltage = 3.5 + 0.5 * calibrate(measured).squeeze(1)
        capacity = PeakSum.apply(voltage, centres, weight, basis)
        loss = F.mse_loss(capacity, measured[:, :8])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def lithium_diffusion(run):
    """A network that satisfies the equation of diffusion: derivatives with create_graph=True, then backward() through
    them. The graph is large, but each step's own."""
    model = nn.Sequential(nn.Linear(2, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
    model = model.to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(10):
        place = torch.rand(8192, 2, device=run.device, requires_grad=True)
        lithium = model(place)
        first = torch.autograd.grad(lithium.sum(), place, create_graph=True)[0]
        second = torch.autograd.grad(first[:, 0].sum(), place, create_graph=True)[0][:, 0]
        loss = (first[:, 1] - 0.1 * second).square().mean() + lithium.mean().square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del place, lithium, first, second
