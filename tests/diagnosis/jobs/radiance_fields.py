"""Neural rendering and point clouds."""
import gc
import random

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Field(nn.Module):
    """Density and colour at points in space."""

    def __init__(self, width, bands=6):
        super().__init__()
        self.bands = bands
        self.trunk = nn.Sequential(nn.Linear(6 * bands, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.out = nn.Linear(width, 4)

    def forward(self, points):
        angles = (points[..., None] * 2.0 ** torch.arange(self.bands, device=points.device)).flatten(-2)
        hidden = self.trunk(torch.cat([angles.sin(), angles.cos()], -1))  # guilty in coarse_picture
        density, color = self.out(hidden).split((1, 3), -1)  # guilty in coarse_picture
        return F.softplus(density), torch.sigmoid(color)  # guilty in coarse_picture


def render(field, origins, directions, samples):
    """Colours of rays."""
    depth = torch.linspace(0.5, 4, samples, device=origins.device)
    points = origins[:, None] + directions[:, None] * depth[:, None]
    density, color = field(points)  # guilty in coarse_picture
    alpha = 1 - torch.exp(-density * 3.5 / samples)  # guilty in coarse_picture
    through = torch.cumprod(1 - alpha + 1e-6, 1)  # guilty in coarse_picture
    return (alpha * through * color).sum(1)  # guilty in coarse_picture


def rays(run, count):
    directions = F.normalize(torch.randn(count, 3, device=run.device), dim=1)
    return torch.zeros(count, 3, device=run.device), directions


@job("retained_graph")
def coarse_picture(run):
    """A radiance field whose loss is that of the fine network; what the coarse one renders is written into a picture
    in place, which so gets a graph that grows with each batch of rays. Fixed: .detach() as it is written."""
    coarse, fine = Field(64).to(run.device), Field(96).to(run.device)
    optimizer = torch.optim.Adam([*coarse.parameters(), *fine.parameters()], lr=5e-4)
    picture = torch.zeros(128 * 128, 3, device=run.device)
    for step in run.steps(12):
        origins, directions = rays(run, 1024)
        color = render(coarse, origins, directions, 24)  # guilty
        loss = F.mse_loss(render(fine, origins, directions, 48), torch.rand(1024, 3, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows = slice(1024 * step, 1024 * (step + 1))
        picture[rows] = color.detach() if run.fixed else color  # cause


def octree(points, leaf_size, by_hand):
    """Sizes of the leaves of an octree over the points."""
    ordered = points[points[:, 0].argsort()]
    scaled = (ordered - ordered.amin(0)) / (ordered.amax(0) - ordered.amin(0))  # guilty in octree_closure
    sizes = []

    def split(low, high, axis):
        if high - low <= leaf_size or axis > 4:
            sizes.append((high - low, scaled[low, axis % 3].item()))
            return
        split(low, (low + high) // 2, axis + 1)  # cause in octree_closure
        split((low + high) // 2, high, axis + 1)

    split(0, len(scaled), 0)
    if by_hand:
        split = None
    return sizes


@job("reference_cycle")
def octree_closure(run):
    """Octrees of laser scans by a nested function that calls itself: it is in its own closure, next to the points, and
    waits for the collector, which the data loader has switched off. Fixed: the name is cleared at the end."""
    gc.disable()
    leaves = 0
    for _ in run.steps(12):
        scan = torch.randn(900_000, 3, device=run.device)
        leaves += len(octree(scan, 100_000, by_hand=run.fixed))
        del scan
    assert leaves > 12


class Map:
    """The points so far, and for each keyframe how far and how visible each of them was."""

    def __init__(self, device, capacity=0):
        self.store = torch.zeros(capacity, 8, device=device)
        self.points = self.store[:0]
        self.keyframes = []

    def insert(self, scan):
        end = len(self.points) + len(scan)
        if len(self.store):
            self.store[len(self.points) : end].copy_(scan)
            self.points = self.store[:end]
        else:
            self.points = torch.cat([self.points, scan])  # guilty in keyframe_map

    def add_keyframe(self, pose):
        seen = torch.zeros(len(self.points), 4, device=pose.device)  # guilty in keyframe_map
        seen[:, :3].copy_(self.points[:, :3]).sub_(pose)
        self.keyframes.append(seen)

    def locate(self, guess):
        nearby = self.points[::4000, :3]
        return torch.cdist(guess, nearby).amin(1).argmin().item()


@job("fragmentation")
def keyframe_map(run):
    """A map is built, then used: its cloud grows by torch.cat(), and a table for each keyframe takes its place from the
    cloud before, of which the rest is too small for any later cloud or table. Fixed: the cloud has room for all scans
    from the start."""
    world = Map(run.device, capacity=14 * 300_000 if run.fixed else 0)
    for _ in range(14):
        world.insert(torch.randn(300_000, 8, device=run.device))
        world.add_keyframe(torch.zeros(3, device=run.device))
    for _ in run.steps(12):
        assert world.locate(torch.randn(500, 3, device=run.device)) < 500


def voxel_net(device):
    return nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(inplace=True), nn.Conv3d(8, 1, 1)).to(device)


@job("true_capacity")
def voxel_scan(run):
    """Segmentation of volumes of several sizes, whole; the third one is too large for the GPU. Fixed: slabs of
    32 slices."""
    run.cap(480)
    model = voxel_net(run.device).eval()
    voxels = 0
    with torch.no_grad():
        for step in run.steps(8):
            side = (96, 128, 256, 160)[step % 4]
            volume = torch.rand(1, 1, side, side, side, device=run.device)
            for slab in volume.split(32 if run.fixed else side, 2):
                voxels += (model(slab) > 0).sum().item()  # guilty
            del volume, slab
    assert voxels > 0


class OccupancyGrid:
    """Which cells of space hold anything, refreshed now and then."""

    def __init__(self, side, device):
        self.cells = torch.ones(side, side, side, device=device)
        self.side = side

    @torch.no_grad()
    def refresh(self, field):
        axis = torch.linspace(-1, 1, self.side, device=self.cells.device)
        points = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"), -1)
        for layer, cells in zip(points, self.cells):
            cells.mul_(0.95).clamp_(min=field(layer)[0].squeeze(-1))


@job("healthy")
def rendered_views(run):
    """A radiance field with an occupancy grid, refreshed each fourth step, and a view that is rendered in chunks of
    rays, moved to the CPU, each sixth."""
    field = Field(64).to(run.device)
    grid = OccupancyGrid(48, run.device)
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-3, eps=1e-15)
    views = []
    for step in run.steps(14):
        color = render(field, *rays(run, 2048), 32)
        loss = F.mse_loss(color, torch.rand_like(color))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            grid.refresh(field)
        if step % 6 == 5:
            with torch.no_grad():
                views.append(torch.cat([render(field, *rays(run, 1024), 32).cpu() for _ in range(8)]))


@job("healthy")
def scanned_rooms(run):
    """Classification of rooms whose scans have quite different numbers of points."""
    draw = random.Random(8)
    point = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 128)).to(run.device)
    head = nn.Linear(128, 12).to(run.device)
    optimizer = torch.optim.SGD([*point.parameters(), *head.parameters()], lr=0.01)
    for _ in run.steps(16):
        rooms = [torch.randn(draw.randint(8_000, 40_000), 6, device=run.device) for _ in range(4)]
        logits = torch.stack([head(point(room).amax(0)) for room in rooms])
        loss = F.cross_entropy(logits, torch.randint(12, (4,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del rooms
