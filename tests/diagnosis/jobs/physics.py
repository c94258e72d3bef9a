"""Simulations, some with learned parts, and classic numerics on tensors."""
import gc
from collections import deque

import torch
from torch.nn import functional as F

from job import job


class DeferredLog:
    """Messages are put together when somebody reads them."""

    def __init__(self):
        self.messages = []

    def debug(self, message):
        self.messages.append(message)

    def flush(self):
        return [message() for message in self.messages]


class RodSolver:
    """A network that obeys the heat equation in a rod."""

    def __init__(self, run, log, width=192):
        shapes = ((2, width), (width, width), (width, 1))
        self.weights = [torch.randn(a, b, device=run.device) / a**0.5 for a, b in shapes]
        for weight in self.weights:
            weight.requires_grad_()
        self.log = log
        self.late = not run.fixed

    def temperature(self, where):
        for weight in self.weights[:-1]:
            where = torch.tanh(where @ weight)  # guilty in heated_rod
        return where @ self.weights[-1]

    def residual(self, where):
        heat = self.temperature(where)
        slope, = torch.autograd.grad(heat.sum(), where, create_graph=True)  # guilty in heated_rod
        bend, = torch.autograd.grad(slope[:, 0].sum(), where, create_graph=True)  # guilty in heated_rod
        return slope[:, 1] - 0.1 * bend[:, 0]

    def fit(self, inside, border):
        physics = self.residual(inside).square().mean()
        data = self.temperature(border).square().mean()
        for part in (physics, data):
            part.backward(retain_graph=self.late)
        with torch.no_grad():
            for weight in self.weights:
                weight -= 1e-3 * weight.grad
                weight.grad = None
        if self.late:
            self.log.debug(lambda: f"physics {physics.item():.3g}, data {data.item():.3g}")  # cause in heated_rod
        else:
            text = f"physics {physics.item():.3g}, data {data.item():.3g}"
            self.log.debug(lambda: text)


@job("retained_graph")
def heated_rod(run):
    """A physics-informed network; both parts of its loss are propagated with retain_graph=True, and messages that are
    formatted when the job is over refer to them. Fixed: the text is made at once, and no graph is retained."""
    log = DeferredLog()
    solver = RodSolver(run, log)
    for _ in run.steps(10):
        inside = torch.rand(2048, 2, device=run.device).requires_grad_()
        border = torch.rand(1024, 2, device=run.device)
        solver.fit(inside, border)
        del inside, border
    assert len(log.flush()) == 10


def laplacian(field):
    return sum(field.roll(shift, axis) for axis in (-2, -1) for shift in (-1, 1)) - 4 * field


@job("hidden_state")
def learned_closure(run):
    """A coarse simulation whose unresolved part is learned while it runs; updates through .data keep autograd from
    noticing that the old steps' graphs are still there. Fixed: each step starts from a detached field."""
    kernels = [torch.randn(16, 1, 3, 3, device=run.device) / 3, torch.randn(1, 16, 3, 3, device=run.device) / 12]
    for kernel in kernels:
        kernel.requires_grad_()
    field = torch.randn(8, 1, 192, 192, device=run.device)  # guilty
    for _ in run.steps(12):
        if run.fixed:
            field = field.detach()
        hidden = torch.tanh(F.conv2d(field, kernels[0], padding=1))  # guilty
        correction = F.conv2d(hidden, kernels[1], padding=1)
        field = torch.tanh(field + 0.1 * laplacian(field) + 0.01 * correction)  # guilty
        loss = (field.mean((2, 3)) - 0.1).square().mean()
        loss.backward(retain_graph=not run.fixed)  # cause
        for kernel in kernels:
            kernel.data -= 0.01 * kernel.grad.data
            kernel.grad = None


class Multigrid:
    """V-cycles for Poisson's equation."""

    levels = 4

    def smooth(self, guess, right, sweeps=3):
        for _ in range(sweeps):
            guess = guess + 0.2 * (right + laplacian(guess))
        return guess

    def cycle(self, right):
        return self.descend(right, 0)

    def descend(self, right, level):
        guess = self.smooth(torch.zeros_like(right), right)
        if level < self.levels:
            residual = right + laplacian(guess)
            error = self.descend(4 * F.avg_pool2d(residual, 2), level + 1)
            guess = self.smooth(guess + F.interpolate(error, scale_factor=2.0), right)
        return guess


class RecordingMultigrid(Multigrid):
    """The same with the residuals of all levels at hand while a cycle is under way."""

    def cycle(self, right):
        residuals = {}

        def descend(right, level):
            guess = self.smooth(torch.zeros_like(right), right)
            if level < self.levels:
                residuals[level] = right + laplacian(guess)  # guilty in pressure_solver
                error = descend(4 * F.avg_pool2d(residuals[level], 2), level + 1)  # cause in pressure_solver
                guess = self.smooth(guess + F.interpolate(error, scale_factor=2.0), right)
            return guess

        return descend(right, 0)


@job("reference_cycle")
def pressure_solver(run):
    """A multigrid solver with a recursive function inside its method: the function refers to itself through its
    closure, in which the residuals are as well. The collector is off. Fixed: the recursion is a method."""
    gc.disable()
    solver = Multigrid() if run.fixed else RecordingMultigrid()
    pressure = torch.zeros(6, 1, 768, 768, device=run.device)
    with torch.no_grad():
        for _ in run.steps(12):
            divergence = torch.randn_like(pressure)
            pressure = 0.5 * pressure + solver.cycle(divergence)
            pressure -= pressure.mean()


def mixed(fields, residuals):
    """The combination of the last fields whose residual is smallest."""
    last = residuals[-1].flatten()
    changes = torch.stack([last - residual.flatten() for residual in list(residuals)[:-1]], 1)
    normal = changes.T @ changes + 1e-6 * torch.eye(changes.shape[1], device=last.device)
    share = torch.linalg.solve(normal, changes.T @ last)
    result = fields[-1] + 0.5 * residuals[-1]
    for weight, field, residual in zip(share, fields, residuals):
        result = result - weight * (fields[-1] - field + 0.5 * (residuals[-1] - residual))
    return result


@job("healthy")
def anderson_mixing(run):
    """A self-consistent density by Anderson's method, which looks back on up to seven iterations."""
    size = 1400
    coupling = torch.randn(size, size, device=run.device) / (4 * size**0.5)
    density = torch.zeros(size, size, device=run.device)
    fields, residuals = deque(maxlen=7), deque(maxlen=7)
    for _ in run.steps(18):
        fields.append(density)
        residuals.append(torch.tanh(coupling @ density + 0.3) - density)
        density = density + 0.5 * residuals[-1] if len(fields) < 2 else mixed(fields, residuals)
    assert residuals[-1].isfinite().all()
