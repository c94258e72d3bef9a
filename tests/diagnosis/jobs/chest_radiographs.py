"""Reading chest radiographs and scans of the lung."""
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from job import job


class RadiographReader(nn.Module):
    """Probabilities of findings on a radiograph, and a vector that similar ones are looked up with."""

    def __init__(self, width=256):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 8, stride=8)
        self.mix = nn.Linear(width, width)
        self.findings = nn.Linear(width, 14)

    def forward(self, pictures):
        patches = F.gelu(self.patches(pictures)).flatten(2).transpose(1, 2)  # guilty in radiographs_of_the_night
        mixed = torch.tanh(self.mix(patches))  # guilty in radiographs_of_the_night
        return torch.sigmoid(self.findings(mixed.mean(1)))


class NightShift:
    """Reads the radiographs that have come in, some at the same time."""

    def __init__(self, model, gradients_off_in_thread):
        self.model = model
        self.gradients_off_in_thread = gradients_off_in_thread
        self.findings = []

    def read(self, study):
        with torch.no_grad() if self.gradients_off_in_thread else nullcontext():
            return self.model(study - study.mean())  # guilty in radiographs_of_the_night

    def read_all(self, studies):
        with torch.no_grad(), ThreadPoolExecutor(2) as threads:  # cause in radiographs_of_the_night
            self.findings.extend(threads.map(self.read, studies))


@job("eval_graph")
def radiographs_of_the_night(run):
    """Radiographs are read in two threads under no_grad(), which holds for the thread that it is called in and not for
    those of the pool. Findings are kept for the morning, each with its graph. Fixed: no_grad() within the threads."""
    shift = NightShift(RadiographReader().to(run.device).eval(), gradients_off_in_thread=run.fixed)
    for _ in run.steps(10):
        shift.read_all([torch.rand(2, 1, 512, 512, device=run.device) for _ in range(2)])
    assert len(shift.findings) == 20


class CheckedSegment(nn.Module):
    """A part of a network that is recomputed for backward(). Outputs that are not the same the second time are kept, so
    that one can look at them."""

    def __init__(self, width, restore_random_state):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1))
        self.restore_random_state = restore_random_state
        self.first = None
        self.different = []

    def compute(self, patches):
        output = self.block(patches)  # guilty in recomputed_differently
        checksum = output.detach().sum(1)
        if not torch.is_grad_enabled():  # the first time
            self.first = checksum
        elif not torch.allclose(checksum, self.first, rtol=1e-3, atol=1e-3):
            self.different.append(output.detach())
        return output

    def forward(self, patches):
        return checkpoint(self.compute, patches, use_reentrant=True,
                          preserve_rng_state=self.restore_random_state)  # cause in recomputed_differently


@job("checkpoint_cache")
def recomputed_differently(run):
    """Checkpointed segments check that recomputation gives what it gave at first, and keep what does not. They have
    dropout, and the state of the random numbers is not restored, so everything is kept. Fixed: it is restored."""
    stem, head = nn.Linear(256, 768).to(run.device), nn.Linear(768, 14).to(run.device)
    segments = nn.Sequential(*(CheckedSegment(768, restore_random_state=run.fixed) for _ in range(3))).to(run.device)
    optimizer = torch.optim.SGD([*stem.parameters(), *segments.parameters(), *head.parameters()], lr=0.01)
    for _ in run.steps(10):
        patches = torch.randn(2048, 256, device=run.device)
        findings = torch.randint(2, (2048, 14), device=run.device).float()
        loss = F.binary_cross_entropy_with_logits(head(segments(stem(patches))), findings)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class StreamedReader:
    """A model that reads slabs of a scan on a stream of its own."""

    def __init__(self, device, rows, width, layers):
        self.stream = torch.cuda.Stream()
        self.weight = torch.randn(width, width, device=device) / width**0.5
        self.hidden = torch.empty(2, rows, width, device=device)
        self.layers = layers

    def read(self, slab):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.mm(slab, self.weight, out=self.hidden[0])
            for layer in range(self.layers):
                torch.mm(self.hidden[layer % 2], self.weight, out=self.hidden[1 - layer % 2])


class Workstation:
    """Two models look at each slab at the same time: one for nodules, one for emboli."""

    def __init__(self, device, rows, width):
        self.readers = [StreamedReader(device, rows, width, layers) for layers in (24, 30)]

    def show(self, slab, wait):
        for reader in self.readers:
            reader.read(slab)
            if not wait:
                slab.record_stream(reader.stream)  # cause in slabs_for_two_models
        if wait:
            for reader in self.readers:
                torch.cuda.current_stream().wait_stream(reader.stream)


@job("cross_stream_pending")
def slabs_for_two_models(run):
    """Slabs of lung scans are read by two models on two streams. Slabs come faster than the models read, and with
    record_stream() each stays until both have read it. Fixed: the main stream waits for both of them."""
    workstation = Workstation(run.device, rows=10_240, width=1024)
    for _ in run.steps(14):
        slab = torch.rand(10_240, 1024, device=run.device)  # guilty
        workstation.show(slab, wait=run.fixed)
        del slab


class TopCheckpoints:
    """Weights of the best epochs, best first. A better one drives the last out."""

    def __init__(self, count):
        self.count = count
        self.kept = []

    def on_validation_end(self, score, model):
        if len(self.kept) == self.count and score <= self.kept[-1][0]:
            return
        self.kept.append((score, [weight.detach().clone() for weight in model.parameters()]))
        self.kept.sort(key=lambda scored: scored[0], reverse=True)
        del self.kept[self.count :]

    def average(self):
        return [torch.stack(weights).mean(0) for weights in zip(*(weights for _, weights in self.kept))]


@job("healthy")
def soup_of_radiograph_models(run):
    """Weights of the four best epochs are kept, to be averaged at the end; the first epochs all get in, later ones now
    and then, in the place of another."""
    model = nn.Sequential(nn.Linear(1024, 1536), nn.ReLU(), nn.Linear(1536, 14)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    checkpoints, draw = TopCheckpoints(4), random.Random(2)
    for epoch in run.steps(14):
        for _ in range(2):
            optimizer.zero_grad()
            patches = torch.rand(256, 1024, device=run.device)
            F.cross_entropy(model(patches), torch.randint(14, (256,), device=run.device)).backward()
            optimizer.step()
        checkpoints.on_validation_end(draw.random() + epoch / 40, model)
    assert len(checkpoints.average()) == 4
