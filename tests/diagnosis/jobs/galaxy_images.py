"""Images of galaxies: denoising, stacking, classification."""
import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

from job import job


class Restorer(nn.Module):
    """Takes noise and the blur of the atmosphere out of a picture."""

    def __init__(self, width=12):
        super().__init__()
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.last = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, pictures):
        return pictures + self.last(F.elu(self.first(pictures)))  # guilty in restored_galaxies


def local_mean(pictures):
    return F.avg_pool2d(pictures, 7, stride=1)  # guilty in restored_galaxies


def structural_similarity(restored, truth):
    """How alike two pictures look, from means and variances of small windows."""
    mean, true_mean = local_mean(restored), local_mean(truth)
    variance = local_mean(restored.square()) - mean.square()  # guilty in restored_galaxies
    true_variance = local_mean(truth.square()) - true_mean.square()
    covariance = local_mean(restored * truth) - mean * true_mean  # guilty in restored_galaxies
    above = (2 * mean * true_mean + 1e-4) * (2 * covariance + 9e-4)  # guilty in restored_galaxies
    spread = variance + true_variance + 9e-4  # guilty in restored_galaxies
    below = (mean.square() + true_mean.square() + 1e-4) * spread  # guilty in restored_galaxies
    return (above / below).mean()


class QualityTracker:
    """The quality of each batch, to be drawn over the batches."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.values = {"loss": [], "similarity": []}

    def update(self, **values):
        for name, value in values.items():
            self.values[name].append(float(value) if self.numbers else value)  # cause in restored_galaxies


@job("retained_graph")
def restored_galaxies(run):
    """A denoiser trains with a squared error. The similarity to the truth is only tracked: backward() never goes
    through it, and the tracker keeps it with its graph. Fixed: the tracker takes numbers."""
    model, tracker = Restorer().to(run.device), QualityTracker(numbers=run.fixed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(12):
        truth = torch.rand(8, 1, 192, 192, device=run.device)  # guilty
        restored = model(truth + 0.1 * torch.randn_like(truth))
        loss = F.mse_loss(restored, truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tracker.update(loss=loss.item(), similarity=structural_similarity(restored, truth))
    assert len(tracker.values["similarity"]) == 12


class NightlyReduction:
    """Reads the exposures of a night in single precision, and keeps them calibrated, in half precision."""

    def __init__(self, pixels, device, longest=0):
        self.pixels, self.device = pixels, device
        self.buffer = torch.empty(longest, pixels, pixels, device=device) if longest else None
        self.calibrated = []

    def read(self, count):
        if self.buffer is not None:
            return self.buffer[:count].normal_()
        return torch.randn(count, self.pixels, self.pixels, device=self.device)

    def reduce(self, count):
        raw = self.read(count)
        raw -= raw.mean()
        if self.buffer is None:
            self.calibrated.append(raw.half())  # guilty in lengthening_nights
        else:
            self.calibrated.append(raw.cpu().half())

    def coadd(self):
        return sum(night.float().sum(0) for night in self.calibrated) / sum(map(len, self.calibrated))


@job("fragmentation")
def lengthening_nights(run):
    """Towards winter each night has a few exposures more. They are kept in half precision, which settles where the
    exposures of the night before were, and leaves just too little room there for those of the next. Fixed: exposures
    are read into one buffer, large enough for the longest night, and kept on the CPU."""
    reduction = NightlyReduction(1024, run.device, longest=34 if run.fixed else 0)
    for night in run.steps(12):
        reduction.reduce(12 + 2 * (night % 12))
    assert reduction.coadd().shape == (1024, 1024)


def median_of(exposures, rows, device):
    """The median of each pixel, for so many rows at a time."""
    median = []
    for top in range(0, len(exposures[0]), rows):
        loaded = [exposure[top : top + rows].to(device) for exposure in exposures]  # guilty in median_of_exposures
        aligned = torch.stack(loaded)  # guilty in median_of_exposures
        median.append(aligned.median(0).values.cpu())
    return torch.cat(median)


@job("true_capacity")
def median_of_exposures(run):
    """Exposures of galaxies are combined by the median of each pixel, for which all of them must be there at once. The
    few of shallow fields fit, the twenty of a deep one do not. Fixed: strips of 256 rows."""
    run.cap(512)
    rows = 256 if run.fixed else 2048
    exposure = torch.rand(2048, 2048)
    depths = [4, 6, 5, 8, 7, 6, 20, 20]
    for step in run.steps(len(depths)):
        exposures = [exposure + noise for noise in range(depths[step % len(depths)])]
        combined = median_of(exposures, rows, run.device)
    assert combined.shape == exposure.shape


class BestEpoch:
    """The weights and predictions of the epoch that was best so far, which the next better one replaces."""

    def __init__(self):
        self.accuracy, self.weights, self.predictions = -1.0, None, None

    def on_validation_end(self, model, accuracy, predictions):
        if accuracy > self.accuracy:
            self.accuracy = accuracy
            self.weights = copy.deepcopy(model.state_dict())
            self.predictions = torch.cat(predictions)
        return self.accuracy


@job("healthy")
def redshifts_of_the_best_epoch(run):
    """A network estimates distributions of redshifts. Those of each validation, which goes over the fields that have
    been released by then, are collected; they and the weights are kept when the epoch was the best so far."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1000)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    best, draw = BestEpoch(), random.Random(1)
    for epoch in run.steps(14):
        for _ in range(draw.randint(1, 3)):
            loss = F.cross_entropy(model(torch.rand(256, 1, 32, 32, device=run.device)),
                                   torch.randint(1000, (256,), device=run.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            collected = [model(torch.rand(2048, 1, 32, 32, device=run.device)).softmax(1)
                         for _ in range(draw.randint(3, 7))]
        best.on_validation_end(model, draw.random() + epoch / 20, collected)
        del collected
    assert best.predictions.shape[1] == 1000
