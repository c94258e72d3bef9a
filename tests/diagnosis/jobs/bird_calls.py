"""Recognising birds by their calls."""
import gc

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from job import job

SPECIES = 60


class Recording:
    """A recording and features of it, each computed when it is first asked for."""

    def __init__(self, wave, table):
        self.wave = wave
        self.features = {}
        self.recipes = {}
        if table:
            self.recipes = {"energy": self.energy, "contrast": self.contrast}  # cause in features_by_name

    def energy(self):
        return F.avg_pool1d(self.wave.square(), 64)  # guilty in features_by_name

    def contrast(self):
        energy = self["energy"]
        return energy / (energy.mean(2, keepdim=True) + 1e-6)  # guilty in features_by_name

    def __getitem__(self, name):
        if name not in self.features:
            recipe = self.recipes.get(name) or getattr(self, name)
            self.features[name] = recipe()
        return self.features[name]


def recordings(device, table, count=4):
    """The next few recordings, each in overlapping windows."""
    for _ in range(count):
        yield Recording(torch.randn(24, 1, 32_000, device=device), table)  # guilty in features_by_name


@job("reference_cycle")
def features_by_name(run):
    """Each recording has a table of its own bound methods, one for each feature, so that it refers to itself; the
    collector is off for the sake of the data loader. Fixed: methods are found by their names."""
    gc.disable()
    head = nn.Linear(500, SPECIES).to(run.device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9)
    for _ in run.steps(14):
        optimizer.zero_grad()
        for recording in recordings(run.device, table=not run.fixed):
            species = torch.randint(SPECIES, (24,), device=run.device)
            F.cross_entropy(head(recording["contrast"].squeeze(1)), species).backward()
        optimizer.step()
        del recording


class Percentiles:
    """What an activation's percentiles are, for the scales of the quantized network on the field recorder."""

    def __init__(self, running):
        self.running = running
        self.samples = []
        self.highest = None

    def observe(self, activation):
        if not activation.requires_grad:  # the pass of checkpoint() that is only for the output
            return
        if self.running:
            highest = activation.detach().amax((0, 2))
            self.highest = highest if self.highest is None else torch.maximum(self.highest, highest)
        else:
            self.samples.append(activation.detach())  # cause in observed_percentiles

    def epoch_ended(self):
        highest = self.highest if self.running else torch.cat(self.samples).amax((0, 2))
        self.samples = []
        return highest


class CallBlock(nn.Module):
    def __init__(self, width, running):
        super().__init__()
        self.widen = nn.Conv1d(width, 2 * width, 5, padding=2)
        self.narrow = nn.Conv1d(2 * width, width, 1)
        self.percentiles = Percentiles(running)

    def forward(self, hidden):
        wide = self.widen(hidden)  # guilty in observed_percentiles
        self.percentiles.observe(wide)
        return hidden + self.narrow(F.relu(wide))


class CallNetwork(nn.Module):
    def __init__(self, running, width=24):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 33, stride=16, padding=16)
        self.blocks = nn.ModuleList(CallBlock(width, running) for _ in range(3))
        self.classify = nn.Linear(width, SPECIES)

    def forward(self, waves):
        hidden = self.stem(waves)
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant=True)
        return self.classify(hidden.mean(2))


@job("checkpoint_cache")
def observed_percentiles(run):
    """Observers keep activations until the end of the epoch, for percentiles. As the blocks are checkpointed, they see
    them twice, and take those that are computed again in backward(). Fixed: they keep the highest values."""
    network = CallNetwork(running=run.fixed).to(run.device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    for _ in run.steps(11):
        waves = torch.randn(24, 1, 32_000, device=run.device)
        loss = F.cross_entropy(network(waves), torch.randint(SPECIES, (24,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Callback:
    def segment_heard(self, embedding):
        pass

    def recording_ended(self, number):
        pass


class ChorusTrainer(Callback):
    """Trains a head on all embeddings of a recording: which species sing in it at all?"""

    def __init__(self, device, width):
        self.device = device
        self.head = nn.Linear(width, SPECIES).to(device)
        self.optimizer = torch.optim.Adam(self.head.parameters(), lr=1e-3)
        self.heard = []

    def segment_heard(self, embedding):
        self.heard.append(embedding)

    def recording_ended(self, number):
        chances = torch.sigmoid(torch.cat([self.head(embedding) for embedding in self.heard]))
        self.heard.clear()
        sings = torch.arange(SPECIES, device=self.device) % (number + 2) == 0
        loss = F.binary_cross_entropy(chances.amax(0), sings.float())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class Loudest(Callback):
    """The loudest segment of each of the last three recordings, for the web page of the station."""

    def __init__(self):
        self.loudness, self.segment = 0.0, None
        self.shown = []

    def segment_heard(self, embedding):
        loudness = embedding.abs().mean().item()
        if loudness > self.loudness:
            self.loudness, self.segment = loudness, embedding.amax(1)

    def recording_ended(self, number):
        self.shown = [*self.shown[-2:], self.segment]
        self.loudness, self.segment = 0.0, None


@job("healthy")
def dawn_chorus(run):
    """Recordings of two to eleven segments, a segment in each iteration. Callbacks keep what a frozen encoder says
    about the segments, until the recording ends."""
    encoder = nn.Sequential(nn.Linear(400, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(run.device).requires_grad_(False)
    callbacks = [ChorusTrainer(run.device, 512), Loudest()]
    lengths = iter((4, 2, 11, 3, 7, 9))
    number, left = 0, next(lengths)
    for _ in run.steps(30):
        embedding = encoder(torch.randn(5000, 400, device=run.device))
        for callback in callbacks:
            callback.segment_heard(embedding)
        left -= 1
        if left == 0:
            for callback in callbacks:
                callback.recording_ended(number)
            number, left = number + 1, next(lengths)
