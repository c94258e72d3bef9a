"""Identifying molecules from their mass spectra."""
import functools
import random
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from job import job

BINS = 2000


class SpectrumEncoder(nn.Module):
    """Spectra as unit vectors, so that alike molecules are near each other."""

    def __init__(self, width=256):
        super().__init__()
        self.peaks = nn.Linear(BINS, 1024)
        self.losses = nn.Linear(BINS, 1024)
        self.join = nn.Linear(1024, width)

    def forward(self, spectra):
        peaks = F.relu(self.peaks(spectra))  # guilty in library_entries
        losses = torch.sigmoid(self.losses(spectra.flip(1)))  # guilty in library_entries
        return F.normalize(self.join(peaks * losses), dim=1)  # guilty in library_entries


class SpectralLibrary:
    """Embeddings of reference spectra, in which unknown ones are looked up."""

    def __init__(self, encoder, at_once):
        self.encoder = encoder
        self.at_once = at_once
        self.entries = []

    @torch.no_grad()
    def embed(self, batches):
        embedded = (self.encoder(spectra) for spectra in batches)  # cause in library_entries
        return list(embedded) if self.at_once else embedded

    def add(self, batches):
        self.entries.extend(self.embed(batches))

    @torch.no_grad()
    def nearest(self, spectra):
        return (self.encoder(spectra) @ torch.cat(self.entries).T).argmax(1)


@job("eval_graph")
def library_entries(run):
    """Reference spectra are embedded for a library. The method that embeds them is under no_grad(), but returns a
    generator, which does its work after no_grad() has ended: each entry has a graph. Fixed: it returns a list."""
    library = SpectralLibrary(SpectrumEncoder().to(run.device).eval(), at_once=run.fixed)
    for _ in run.steps(10):
        shelf = torch.rand(2, 768, BINS, device=run.device)  # guilty
        library.add(shelf.unbind())
        del shelf
    assert library.nearest(torch.rand(4, BINS, device=run.device)).max() < 15_360


@dataclass
class ColumnRun:
    """One sample on its way through the column: how long it takes, and the scans so far."""

    scans_left: int
    scans: list = field(default_factory=list)


class Chromatograph:
    """Several columns share a spectrometer. The scans of each are held until its sample is through."""

    def __init__(self, columns, draw):
        self.draw = draw
        self.profiles = []
        self.running = {column: self.inject() for column in range(columns)}

    def inject(self):
        return ColumnRun(self.draw.randint(4, 14))

    def scan(self, column, spectra):
        running = self.running[column]
        running.scans.append(spectra.sqrt())
        running.scans_left -= 1
        if running.scans_left == 0:
            self.profiles.append(functools.reduce(torch.maximum, self.eject(column)).mean(0).cpu())

    def eject(self, column):
        ended, self.running[column] = self.running[column], self.inject()
        return ended.scans


@job("healthy")
def columns_side_by_side(run):
    """Three columns feed one spectrometer. The scans of a sample stay on the GPU until it is through its column, which
    takes four to fourteen scans; then its profile goes to the CPU, and the scans are dropped."""
    chromatograph = Chromatograph(3, random.Random(5))
    for _ in run.steps(26):
        for column in range(3):
            chromatograph.scan(column, torch.rand(512, BINS, device=run.device))
    assert all(profile.shape == (BINS,) for profile in chromatograph.profiles)


class LabelledPool:
    """Spectra that were measured so far, on the GPU; when there is no more room, the oldest make way."""

    def __init__(self, most):
        self.most = most
        self.spectra, self.labels = [], []

    def __len__(self):
        return len(self.spectra)

    def add(self, spectra, labels):
        self.spectra.append(spectra)
        self.labels.append(labels)
        if len(self) > self.most:
            del self.spectra[: len(self) // 4], self.labels[: len(self.labels) // 4]


@job("healthy")
def measured_on_demand(run):
    """Active learning: of three candidate batches the one that the model is least sure of gets measured, and joins the
    pool that it trains on. The pool grows up to sixteen batches, then its oldest quarter is dropped."""
    model = nn.Sequential(nn.Linear(BINS, 512), nn.GELU(), nn.Linear(512, 40)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pool, draw = LabelledPool(16), random.Random(3)
    for _ in run.steps(26):
        candidates = [torch.rand(640, BINS, device=run.device) for _ in range(3)]
        with torch.no_grad():
            sure = [model(spectra).softmax(1).amax(1).mean() for spectra in candidates]
        chosen = candidates[int(torch.stack(sure).argmin())]
        pool.add(chosen, torch.randint(40, (640,), device=run.device))
        del candidates, chosen
        for _ in range(2):
            batch = draw.randrange(len(pool))
            optimizer.zero_grad()
            F.cross_entropy(model(pool.spectra[batch]), pool.labels[batch]).backward()
            optimizer.step()
