"""Brightness of stars over time: planets that pass before them, and things that explode."""
import math
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

from job import job


class TransitSearch:
    """Compares light curves with templates of transits, on a stream of its own."""

    def __init__(self, device, curves, points, most_pending=None):
        self.stream = torch.cuda.Stream()
        self.templates = torch.randn(points, points, device=device) / points**0.5
        self.power, self.spare = torch.empty(2, curves, points, device=device)
        self.most_pending = most_pending
        self.pending = deque()

    def submit(self, curves):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.mm(curves, self.templates, out=self.power)
            for _ in range(11):  # the other durations
                torch.mm(self.power, self.templates, out=self.spare)
                torch.mm(self.spare, self.templates, out=self.power)
        curves.record_stream(self.stream)  # cause in curves_to_search
        self.pending.append(self.stream.record_event())
        while self.most_pending is not None and len(self.pending) > self.most_pending:
            self.pending.popleft().synchronize()


def detrended(fluxes):
    """Fluxes without the slow changes of the star and of the telescope."""
    trend = fluxes.unflatten(1, (-1, 64)).mean(2, keepdim=True)
    return (fluxes.unflatten(1, (-1, 64)) - trend).flatten(1)  # guilty in curves_to_search


@job("cross_stream_pending")
def curves_to_search(run):
    """Light curves are detrended, which is quick, and handed to a search on another stream, which is slow. Nobody waits
    for the search, and curves that it has not come to yet pile up. Fixed: at most one batch of them."""
    fluxes = torch.rand(4096, 3072, device=run.device)
    search = TransitSearch(run.device, 4096, 3072, most_pending=1 if run.fixed else None)
    for _ in run.steps(12):
        curves = detrended(fluxes)
        search.submit(curves)
        del curves


class PhaseFeatures:
    """Sines and cosines of the phases of many periods. They are large, so autograd saves the times that they are
    computed from, and they are computed again in backward(), once for all that use them."""

    def __init__(self, periods, keep):
        self.periods = periods
        self.keep = keep
        self.times, self.recomputed = {}, {}
        self.features = None

    def make(self, times):
        phases = times[:, None] * (2 * math.pi / self.periods)
        return torch.cat([phases.sin(), phases.cos()], 1)  # guilty in phases_of_many_periods

    def begin(self, batch, times):
        self.times[batch] = times
        self.features = self.make(times)
        return self.features

    def pack(self, tensor):
        if self.features is not None and tensor.data_ptr() == self.features.data_ptr():
            return max(self.times)
        return tensor

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        if packed not in self.recomputed:
            self.recomputed[packed] = self.make(self.times[packed])  # cause in phases_of_many_periods
        return self.recomputed[packed]

    def forward_ended(self):
        self.features = None

    def backward_ended(self):
        if not self.keep:
            self.times.clear()
            self.recomputed.clear()


@job("checkpoint_cache")
def phases_of_many_periods(run):
    """Brightness and its error are fitted with features of many periods, which saved_tensors_hooks replace by the times
    of observation. Features that were computed again are shared by both heads, in a dictionary by batch that is never
    cleared. Fixed: it is cleared after backward()."""
    features = PhaseFeatures(torch.linspace(0.5, 40, 512, device=run.device), keep=not run.fixed)
    brightness, error = (nn.Linear(1024, 96).to(run.device) for _ in range(2))
    optimizer = torch.optim.Adam([*brightness.parameters(), *error.parameters()], lr=1e-3)
    for batch in run.steps(12):
        times, observed = torch.rand(4096, device=run.device) * 900, torch.randn(4096, 96, device=run.device)
        with torch.autograd.graph.saved_tensors_hooks(features.pack, features.unpack):
            made = features.begin(batch, times)
            spread = F.softplus(error(made)) + 0.01
            loss = ((brightness(made) - observed) / spread).square().mean() + spread.log().mean()
        del made
        features.forward_ended()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        features.backward_ended()


class AlertBroker:
    """Holds the newest difference images of the survey. An alert sends all of them out, in any other case the oldest
    one makes way when there are too many."""

    def __init__(self, most, listeners):
        self.held = deque()
        self.most = most
        self.listeners = listeners

    def on_image(self, image):
        self.held.append(image)
        while len(self.held) > self.most:
            self.held.popleft()

    def on_alert(self):
        for listener in self.listeners:
            listener(list(self.held))
        self.held.clear()


class AlertArchive:
    """What was sent out, on the CPU and on a coarser grid."""

    def __init__(self):
        self.sequences = []

    def __call__(self, images):
        self.sequences.append(torch.stack([F.avg_pool2d(image[None, None], 8)[0, 0] for image in images]).cpu())


@job("healthy")
def images_until_an_alert(run):
    """A survey for supernovae. Difference images are held on the GPU, at most six, until one of them gives alert:
    then they go to the archive, and holding begins anew."""
    archive, draw = AlertArchive(), random.Random(9)
    broker = AlertBroker(6, [archive])
    reference = torch.rand(1536, 1536, device=run.device)
    for _ in run.steps(36):
        image = torch.rand(1536, 1536, device=run.device).sub_(reference)
        broker.on_image(image)
        if draw.random() < 0.12:  # something has flared up
            broker.on_alert()
        del image
    assert archive.sequences
