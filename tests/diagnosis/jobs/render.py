"""Differentiable rendering."""
from functools import lru_cache

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def view(grid, rays):
    """The colours along rays through a grid of features."""
    samples = F.grid_sample(grid[None], rays[None], align_corners=True)[0]
    return samples.mean(2).mean(1)


def fit_scene(grid, device, rounds=3):
    for _ in range(rounds):
        rays = torch.rand(64, 64, 16, 3, device=device) * 2 - 1
        wanted = torch.rand(24, 16, device=device)
        grid.grad = None
        (view(grid, rays) - wanted).square().mean().backward()  # guilty in scene_after_scene
        with torch.no_grad():
            grid -= 0.1 * grid.grad


@job("gradient_accumulation")
def scene_after_scene(run):
    """Grids of features are fitted to one scene after the other by hand-written descent; the gradient of the last
    round stays with each grid. Fixed: it is dropped when a scene is done."""
    scenes = [torch.zeros(24, 56, 56, 56, device=run.device, requires_grad=True) for _ in range(12)]
    for number in run.steps(12):
        fit_scene(scenes[number], run.device)
        if run.fixed:
            scenes[number].grad = None


def encode(points):
    """Sines and cosines of eight frequencies."""
    waves = [function(points * 2**octave) for octave in range(8) for function in (torch.sin, torch.cos)]
    return torch.cat(waves, 1)  # guilty in neural_field


@lru_cache(maxsize=None)
def encoded(points):
    """backward() needs the encoding twice."""
    return encode(points)  # cause in neural_field


class Field(torch.autograd.Function):
    """Colours at points; only the points are kept for backward(), where the encoding is computed again."""

    @staticmethod
    def forward(ctx, points, weight, remember):
        ctx.save_for_backward(points, weight)
        ctx.again = encoded if remember else encode
        return torch.cat([encode(part) @ weight for part in points.chunk(4)])

    @staticmethod
    def backward(ctx, slope):
        points, weight = ctx.saved_tensors
        code = ctx.again(points)
        energy = ctx.again(points).square().mean(0)
        return None, code.T @ slope / (1 + energy[:, None]), None


@job("checkpoint_cache")
def neural_field(run):
    """A rendering function that computes its encoding again in backward(), twice; lru_cache saves the second time, and
    keeps each iteration's encoding, since tensors are equal only to themselves. Fixed: no cache."""
    weight = torch.randn(48, 3, device=run.device, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.01, momentum=0.9)
    for _ in run.steps(12):
        origin = torch.randn(1024, 1, 3, device=run.device)
        depth = torch.linspace(0, 1, 96, device=run.device)[:, None]
        points = (origin + depth * torch.randn_like(origin)).reshape(-1, 3)  # guilty
        colours = Field.apply(points, weight, not run.fixed).view(1024, 96, 3).mean(1)
        optimizer.zero_grad()
        colours.square().mean().backward()
        optimizer.step()
        del points


def carve(silhouettes, cameras, size=128):
    """The cells of a grid that all silhouettes cover."""
    axis = torch.linspace(-1, 1, size, device=cameras.device)
    cells = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)  # guilty in silhouettes_first
    seen = torch.einsum("vij,nj->vni", cameras, cells)  # guilty in silhouettes_first
    place = seen[..., :2] / (seen[..., 2:].abs() + 2)  # guilty in silhouettes_first
    covered = F.grid_sample(silhouettes, place[:, :, None], align_corners=True)  # guilty in silhouettes_first
    hull = covered.squeeze(3).squeeze(1).amin(0)
    return cells[hull.topk(4096).indices].cpu()


@job("cached_not_released")
def silhouettes_first(run):
    """The hull of an object is carved from 24 silhouettes, all at once, then its surface is refined in small steps; the
    viewer on the same GPU has no memory for its meshes. Fixed: empty_cache() after the carving."""
    silhouettes = torch.rand(24, 1, 256, 256, device=run.device)
    start = carve(silhouettes, torch.randn(24, 3, 3, device=run.device))
    if run.fixed:
        torch.cuda.empty_cache()
    surface = start.to(run.device).requires_grad_()
    target = torch.randn(512, 3, device=run.device)
    for _ in run.steps(14):
        distance = torch.cdist(target, surface).amin(1).mean() + 0.1 * surface.square().mean()
        surface.grad = None
        distance.backward()
        with torch.no_grad():
            surface -= 0.05 * surface.grad


class Distance(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, width), nn.Linear(width, width), nn.Linear(width, 1)])

    def forward(self, points):
        for layer in self.layers[:-1]:
            points = F.softplus(layer(points), beta=20)
        return self.layers[-1](points)

    def normals(self, points):
        return torch.autograd.grad(self(points).sum(), points, create_graph=True)[0]


@job("healthy")
def eikonal_surface(run):
    """A signed distance whose gradient should have the length 1: a second derivative in each iteration, with a graph of
    the first that goes when the loss has been propagated."""
    model = Distance().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    lengths = []
    for _ in run.steps(10):
        points = torch.rand(6000, 3, device=run.device, requires_grad=True)
        length = model.normals(points).norm(dim=1)
        loss = (length - 1).square().mean() + model(points[:1000].detach()).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(length.detach().mean())
    assert len(lengths) == 10
