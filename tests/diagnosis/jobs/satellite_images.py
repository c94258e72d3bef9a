"""Learning from satellite images."""
import itertools
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

from job import job

BANDS = 6


class LandCover(nn.Module):
    """Classes of land for each pixel."""

    def __init__(self, width=24, classes=8):
        super().__init__()
        self.first = nn.Conv2d(BANDS, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.classify = nn.Conv2d(width, classes, 1)

    def forward(self, images):
        hidden = F.relu(self.first(images))  # guilty in worst_region
        hidden = F.relu(self.second(hidden))  # guilty in worst_region
        return self.classify(hidden)


def labelled_tiles(device):
    tiles = torch.randn(4, BANDS, 128, 128, device=device)  # guilty in worst_region
    return tiles, torch.randint(8, (4, 128, 128), device=device)  # guilty in worst_region


class WorstRegionTrainer:
    """Each step learns from the region of the world where the model is worst."""

    def __init__(self, model, log_tensors):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
        self.log_tensors = log_tensors
        self.log = []

    def step(self, regions):
        losses = {}
        for name, (tiles, labels) in regions.items():
            losses[name] = F.cross_entropy(self.model(tiles), labels)  # guilty in worst_region
        values = {name: loss.item() for name, loss in losses.items()}
        worst = max(values, key=values.get)
        self.optimizer.zero_grad()
        losses[worst].backward()
        self.optimizer.step()
        self.log.append((worst, losses if self.log_tensors else values))  # cause in worst_region


@job("retained_graph")
def worst_region(run):
    """The losses of three regions are computed, and backward() is called for the largest. All three go into the log as
    tensors, two of them with a graph that was never used. Fixed: numbers go into the log."""
    trainer = WorstRegionTrainer(LandCover().to(run.device), log_tensors=not run.fixed)
    for _ in run.steps(10):
        trainer.step({name: labelled_tiles(run.device) for name in ("Alps", "Sahel", "Mekong")})
    assert len(trainer.log) == 10


class RecomputedIndices(torch.autograd.Function):
    """Band ratios times weights; the ratios are cheap and are computed again in backward()."""

    calls = itertools.count()
    recomputed = {}

    @staticmethod
    def ratios(images):
        rolled = images.roll(1, 1)
        return (images - rolled) / (images.abs() + rolled.abs() + 1e-3)  # guilty in vegetation_indices

    @staticmethod
    def forward(ctx, images, weight, reuse):
        ctx.save_for_backward(images, weight)
        ctx.reuse = reuse
        return torch.einsum("nchw,kc->nkhw", RecomputedIndices.ratios(images), weight)

    @staticmethod
    def backward(ctx, slope):
        images, weight = ctx.saved_tensors
        ratios = RecomputedIndices.ratios(images)
        if ctx.reuse:
            RecomputedIndices.recomputed[next(RecomputedIndices.calls)] = ratios  # cause in vegetation_indices
        return None, torch.einsum("nkhw,nchw->kc", slope, ratios), None


@job("checkpoint_cache")
def vegetation_indices(run):
    """An autograd function computes band ratios again in backward() and puts them into a dictionary of the class, for
    whoever may ask for the same ones; nobody does, and nobody deletes them. Fixed: without the dictionary."""
    RecomputedIndices.recomputed.clear()
    weight = nn.Parameter(torch.randn(12, BANDS, device=run.device))
    head = nn.Conv2d(12, 4, 3, padding=1).to(run.device)
    optimizer = torch.optim.Adagrad([weight, *head.parameters()], lr=0.01)
    for _ in run.steps(12):
        images = torch.rand(8, BANDS, 256, 256, device=run.device)
        indices = RecomputedIndices.apply(images, weight, not run.fixed)
        loss = head(F.avg_pool2d(indices, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class TileSender:
    """Sends finished tiles to the host, where a compressor takes them, on a stream of its own."""

    def __init__(self, shape, at_most):
        self.stream = torch.cuda.Stream()
        self.host = torch.empty(shape, pin_memory=True)
        self.at_most = at_most
        self.sent = deque()

    def send(self, tile):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.host.copy_(tile, non_blocking=True)
            torch.cuda._sleep(15_000_000)  # a slow bus
            self.sent.append(self.stream.record_event())
        tile.record_stream(self.stream)  # cause in sharpened_tiles
        while self.at_most and len(self.sent) > self.at_most:
            self.sent.popleft().synchronize()


@job("cross_stream_pending")
def sharpened_tiles(run):
    """Tiles are sharpened faster than they are sent to the host, and nothing makes the sharpening wait. Fixed: each
    tile waits until the one before is there."""
    sharpen = nn.Conv2d(4, 4, 5, padding=2, groups=4).to(run.device).requires_grad_(False)
    sender = TileSender((4, 2048, 2048), at_most=1 if run.fixed else None)
    scene = torch.rand(1, 4, 2048, 2048, device=run.device)
    for _ in run.steps(14):
        tile = sharpen(scene)[0]  # guilty
        sender.send(tile)
        del tile


@job("healthy")
def pseudo_labelled_tiles(run):
    """A student learns from the labels of a teacher, the running mean of its weights; the most certain tiles go to a
    pool, which fills up to 48 and then forgets the oldest."""
    student, teacher = LandCover().to(run.device), LandCover().to(run.device)
    teacher.load_state_dict(student.state_dict())
    teacher.requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    pool = deque(maxlen=48)
    for _ in run.steps(16):
        with torch.no_grad():
            tiles = torch.randn(12, BANDS, 128, 128, device=run.device)
            certainty, labels = teacher(tiles).softmax(1).max(1)
            best = certainty.mean((1, 2)).topk(4).indices
            pool.extend((tiles[k].clone(), labels[k].clone()) for k in best.tolist())
        recent = [pool[-1 - k] for k in range(4)]
        images, targets = (torch.stack(part) for part in zip(*recent))
        loss = F.cross_entropy(student(images), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, weight in zip(teacher.parameters(), student.parameters()):
                mean.lerp_(weight, 0.01)
