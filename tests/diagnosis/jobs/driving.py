"""Autonomous driving: planners, stereo cameras, bird's-eye views, optical flow."""
from collections import deque
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Planner(nn.Module):
    """Steering, and on top of the same features a set of possible paths."""

    def __init__(self, width=1024):
        super().__init__()
        self.scene = nn.Sequential(nn.Linear(256, width), nn.ReLU())
        self.control = nn.Linear(width, 3)
        self.paths = nn.Sequential(nn.Linear(width, 2 * width), nn.Tanh(), nn.Linear(2 * width, 60))

    def forward(self, scan):
        scene = self.scene(scan)  # guilty in shown_paths
        return self.control(scene), self.paths(scene)  # guilty in shown_paths


class Scene(NamedTuple):
    step: int
    paths: torch.Tensor


class Viewer:
    """Keeps the last scenes, for the picture that is drawn at the end of an epoch."""

    def __init__(self, to_host):
        self.scenes = deque(maxlen=500)
        self.to_host = to_host

    def show(self, step, paths):
        few = paths[:8]
        self.scenes.append(Scene(step, few.detach().cpu() if self.to_host else few))  # cause in shown_paths


@job("retained_graph")
def shown_paths(run):
    """The path head of a planner counts in the loss only after a warm-up, so backward() does not go through it; a
    viewer keeps some of each batch's paths, and their graph. Fixed: .detach().cpu()."""
    model = Planner().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    viewer = Viewer(to_host=run.fixed)
    warm_up = 1000
    for step in run.steps(14):
        scan = torch.randn(2048, 256, device=run.device)
        control, paths = model(scan)
        loss = F.smooth_l1_loss(control, torch.zeros_like(control))
        if step >= warm_up:
            loss = loss + 0.1 * paths.square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        viewer.show(step, paths)
        del control, paths


def camera(device, height=568, width=1000):
    """One picture in three channels, as floats."""
    return torch.rand(3, height, width, device=device)  # guilty in stereo_pairs


def disparity(left, right):
    """A crude one: how far the mean brightness of the columns is shifted."""
    one, other = left.mean((0, 1)), right.mean((0, 1))
    return torch.stack([(one - other.roll(shift)).abs().mean() for shift in range(4)]).argmin().item()


@job("fragmentation")
def stereo_pairs(run):
    """Pairs of pictures are loaded onto the GPU, left beside right; the right ones only serve for the disparities
    and are dropped. The left ones stay, one or two in each segment, and training needs larger pieces than what is
    between them. Fixed: a right picture is dropped before the next pair is loaded."""
    lefts, rights, targets = [], [], []
    for _ in range(45):
        lefts.append(camera(run.device))
        rights.append(camera(run.device))
        if run.fixed:
            targets.append(disparity(lefts[-1], rights.pop()))
    if not run.fixed:
        targets = [disparity(left, right) for left, right in zip(lefts, rights)]
        rights.clear()  # cause
    model = nn.Sequential(nn.Conv2d(3, 8, 7, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                          nn.Linear(128, 4)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in run.steps(10):
        chosen = [(4 * step + k) % len(lefts) for k in range(4)]
        logits = model(torch.stack([lefts[k] for k in chosen]))
        loss = F.cross_entropy(logits, torch.tensor([targets[k] for k in chosen], device=run.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


class BirdsEye(nn.Module):
    """Fuses the features of the last sweeps."""

    def __init__(self, sweeps, width=32):
        super().__init__()
        self.lift = nn.Conv2d(8, width, 1)
        self.fuse = nn.Conv2d(sweeps * width, width, 3, padding=1)
        self.heat = nn.Conv2d(width, 4, 1)
        self.queue = deque(maxlen=sweeps - 1)
        self.sweeps = sweeps

    def forward(self, sweep):
        now = torch.relu(self.lift(sweep))
        missing = [torch.zeros_like(now)] * (self.sweeps - 1 - len(self.queue))
        fused = torch.cat([now, *self.queue, *missing], 1)
        self.queue.append(now.detach())
        return self.heat(torch.relu(self.fuse(fused)))


@job("healthy")
def birds_eye_queue(run):
    """Temporal fusion in a bird's-eye view: a queue of the features of five past sweeps, detached, which
    fills during the first iterations."""
    model = BirdsEye(6).to(run.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for _ in run.steps(14):
        heat = model(torch.randn(4, 8, 120, 120, device=run.device))
        loss = F.binary_cross_entropy_with_logits(heat, torch.zeros_like(heat))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


class Refiner(nn.Module):
    """Refines an estimate of the flow between two pictures a few times."""

    def __init__(self, width=32, rounds=3):
        super().__init__()
        self.motion = nn.Conv2d(8, width, 3, padding=1)
        self.change = nn.Conv2d(width, 2, 3, padding=1)
        self.rounds = rounds

    def forward(self, pair, flow):
        estimates = []
        for _ in range(self.rounds):
            hidden = torch.relu(self.motion(torch.cat([pair, flow], 1)))  # guilty in warm_started_flow
            flow = flow + self.change(hidden)
            estimates.append(flow)
        return estimates


def sequence_loss(estimates, truth, decay=0.8):
    weights = [decay ** (len(estimates) - 1 - k) for k in range(len(estimates))]
    return sum(weight * (estimate - truth).abs().mean() for weight, estimate in zip(weights, estimates))


class OnlineAdaptation:
    """Adapts the refiner to a drive while it goes on; each pair starts from the flow of the pair before."""

    def __init__(self, model, rate, detach):
        self.model = model
        self.rate = rate
        self.detach = detach
        self.flow = None

    def observe(self, pair, truth):
        if self.flow is None:
            self.flow = torch.zeros_like(truth)
        estimates = self.model(pair, self.flow)
        loss = sequence_loss(estimates, truth)
        loss.backward(retain_graph=not self.detach)
        for weight in self.model.parameters():
            weight.data.add_(weight.grad, alpha=-self.rate)
            weight.grad = None
        self.flow = estimates[-1].detach() if self.detach else estimates[-1]  # cause in warm_started_flow
        return loss.item()


@job("hidden_state")
def warm_started_flow(run):
    """Optical flow that starts from that of the previous pair, which still has its graph: the loss of each pair goes
    back to the first one. Fixed: the flow that is carried over is detached."""
    adaptation = OnlineAdaptation(Refiner().to(run.device), 1e-4, detach=run.fixed)
    for _ in run.steps(10):
        pair = torch.rand(4, 6, 112, 112, device=run.device)
        adaptation.observe(pair, torch.randn(4, 2, 112, 112, device=run.device))


@job("healthy")
def refined_flow(run):
    """Supervised training of the refiner: the graph goes through six rounds, whose estimates are all in the loss,
    and ends with the batch."""
    model = Refiner(24, rounds=6).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(8):
        pair, truth = torch.rand(4, 8, 96, 96, device=run.device).split([6, 2], 1)
        loss = sequence_loss(model(pair, torch.zeros_like(truth)), truth)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
