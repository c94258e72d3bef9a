"""Crop yield from drone pictures of fields."""
import copy
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class GradientFlow:
    """Watches the gradients of each parameter, for a plot after the training."""

    def __init__(self, model, as_numbers):
        self.as_numbers = as_numbers
        self.seen = defaultdict(list)
        for name, parameter in model.named_parameters():
            parameter.register_hook(lambda gradient, name=name: self.watch(name, gradient))

    def watch(self, name, gradient):
        if self.as_numbers:
            self.seen[name].append(gradient.abs().mean().item())
        else:
            self.seen[name].append(gradient.clone())  # guilty in plotted_gradients


@job("gradient_accumulation")
def plotted_gradients(run):
    """A network on patches of fields does not learn, and hooks record what gradients arrive at each layer: whole, on
    the GPU, for each step. Fixed: their mean sizes as numbers."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 768), nn.ReLU(), nn.Linear(768, 256), nn.ReLU())
    model = nn.Sequential(model, nn.Linear(256, 1)).to(run.device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    flow = GradientFlow(model, as_numbers=run.fixed)
    for _ in run.steps(14):
        patch = torch.randn(128, 3, 32, 32, device=run.device)
        loss = F.mse_loss(model(patch).squeeze(1), patch[:, 1].mean((1, 2)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert len(flow.seen) == 6


class YieldMap:
    """The expected yield for each pixel of a field, put together from tiles that overlap."""

    def __init__(self, run, model, height, width):
        self.run = run
        self.model = model
        self.total = torch.zeros(height, width, device=run.device)
        self.count = torch.zeros(height, width, device=run.device)

    def add(self, row, column, size=256):
        torch.no_grad()  # cause in map_of_a_field
        tile = torch.randn(1, 3, size, size, device=self.run.device)  # guilty in map_of_a_field
        found = self.model(tile)[0, 0]  # guilty in map_of_a_field
        self.total[row : row + size, column : column + size] += found
        self.count[row : row + size, column : column + size] += 1

    def finished(self):
        return self.total / self.count.clamp(min=1)


@job("eval_graph")
def map_of_a_field(run):
    """A map of the yield, summed up tile by tile; torch.no_grad() stands there as a statement, which does nothing,
    and the graphs of all tiles hang on the map. Fixed: as a decorator."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
    model = nn.Sequential(model, nn.Conv2d(16, 1, 1)).to(run.device).eval()
    field = YieldMap(run, model, 1024, 1024)
    add = torch.no_grad()(field.add) if run.fixed else field.add
    for step in run.steps(14):
        for column in (0, 192, 384):
            add(row=48 * step, column=column)
    assert field.finished().shape == (1024, 1024)


def cut_tile(run, side):
    return torch.rand(3, side, side, device=run.device)  # guilty in tiles_from_the_descent


@job("fragmentation")
def tiles_from_the_descent(run):
    """While the drone descends, tiles become larger. All tiles of a picture are cut out, and every other one, with
    plants on it, is kept: the gaps between are too small for the tiles of the next picture. Fixed: it is decided on
    a preview which tiles are cut out at all."""
    kept = []
    for step in run.steps(9):
        side = int(310 * 1.118**step)
        count = (96 << 20) // (12 * side * side) // 2 * 2
        if run.fixed:
            kept += [cut_tile(run, side) for number in range(count) if number % 2 == 0]
        else:
            tiles = [cut_tile(run, side) for _ in range(count)]
            kept += tiles[::2]  # cause
            del tiles


class Average:
    """The moving average of a model's weights, with which it is evaluated."""

    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False).eval()

    @torch.no_grad()
    def update(self, model):
        for mean, weight in zip(self.model.parameters(), model.parameters()):
            mean.lerp_(weight, 1 - self.decay)

    @torch.no_grad()
    def predict(self, picture):
        """From the picture and its mirror images."""
        mirrored = [picture, picture.flip(2), picture.flip(3), picture.flip(2, 3)]
        return torch.stack([self.model(view) for view in mirrored]).mean(0)


@job("healthy")
def mirrored_fields(run):
    """An average of the weights starts after four steps, and from then on mirrored pictures are evaluated with it
    after every second step."""
    model = nn.Sequential(nn.Conv2d(3, 16, 5, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 1024, 256), nn.ReLU())
    model = nn.Sequential(model, nn.Linear(256, 1)).to(run.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    average = None
    errors = []
    for step in run.steps(14):
        picture = torch.randn(48, 3, 128, 128, device=run.device)
        loss = F.mse_loss(model(picture).squeeze(1), picture[:, 1].mean((1, 2)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= 4:
            average = average or Average(model)
            average.update(model)
            if step % 2:
                errors.append((average.predict(picture).squeeze(1) - picture[:, 1].mean((1, 2))).abs().mean().item())
