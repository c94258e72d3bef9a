"""Image classification, super-resolution, active learning, architecture search."""
import functools
import gc
import random

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def small_net(classes=10, width=32):
    return nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, classes))


def images(run, count, size):
    return torch.rand(count, 3, size, size, device=run.device)


def perturb(model, clean, labels, epsilon, private):
    """A step of the fast gradient sign method."""
    if private:
        clean = clean.detach().clone()
    clean.requires_grad_(True)  # cause in adversarial_examples
    F.cross_entropy(model(clean), labels).backward()  # guilty in adversarial_examples
    return (clean + epsilon * clean.grad.sign()).detach().clamp(0, 1)


@job("gradient_accumulation")
def adversarial_examples(run):
    """Adversarial training on batches that stay on the GPU: each batch is made to require gradients in place, and
    keeps its .grad for the rest of the epoch. Fixed: a copy of the batch for the attack."""
    model = small_net().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    loader = [(images(run, 24, 192), torch.randint(10, (24,), device=run.device)) for _ in range(12)]
    for step in run.steps(12):
        clean, labels = loader[step]
        attacked = perturb(model, clean, labels, 8 / 255, private=run.fixed)
        optimizer.zero_grad()
        F.cross_entropy(model(attacked), labels).backward()
        optimizer.step()


@functools.lru_cache(maxsize=None)  # cause in arbitrary_scale
def coordinates(height, width, bands, device):
    """Positions of all pixels with their Fourier features."""
    rows = torch.linspace(-1, 1, height, device=device)
    columns = torch.linspace(-1, 1, width, device=device)
    grid = torch.stack(torch.broadcast_tensors(rows[:, None], columns), -1)
    angles = (grid[..., None] * 2.0 ** torch.arange(bands, device=device)).flatten(2)
    return torch.cat([angles.sin(), angles.cos()], -1)  # guilty in arbitrary_scale


class ImplicitDecoder(nn.Module):
    def __init__(self, bands=6):
        super().__init__()
        self.bands = bands
        self.mix = nn.Linear(4 * bands + 3, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, low, size, remember):
        grid = coordinates if remember else coordinates.__wrapped__
        place = grid(*size, self.bands, low.device)
        color = F.interpolate(low, size).permute(0, 2, 3, 1)
        return self.out(torch.relu(self.mix(torch.cat([color, place.expand(len(low), -1, -1, -1)], -1))))


@job("checkpoint_cache", contested="what is cached is no activation: no class of design.md is of caches in general")
def arbitrary_scale(run):
    """Super-resolution to any scale: the grid of coordinates is under lru_cache(maxsize=None), and the target's size is
    drawn anew for each batch. Fixed: the grid is made where it is needed."""
    decoder = ImplicitDecoder().to(run.device)
    optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-3)
    draw = random.Random(7)
    coordinates.cache_clear()
    for _ in run.steps(14):
        size = (draw.randint(330, 370), draw.randint(330, 370))
        sharp = torch.rand(1, *size, 3, device=run.device)
        restored = decoder(images(run, 1, 96), size, remember=not run.fixed)
        loss = F.l1_loss(restored, sharp)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    coordinates.cache_clear()


class Profiler:
    """Counts the multiplications of a candidate by hooks on its layers."""

    def __init__(self, candidate):
        self.candidate = candidate
        self.handles = [layer.register_forward_hook(self.count) for layer in candidate
                        if isinstance(layer, nn.Linear)]  # cause in architecture_search
        self.operations = 0

    def count(self, layer, inputs, _output):
        self.operations += inputs[0].shape[0] * layer.weight.numel()

    def close(self):
        for handle in self.handles:
            handle.remove()


def build(genome, device):
    layers, before = [], 256
    for width in genome:
        layers += [nn.Linear(before, width, device=device), nn.ReLU()]  # guilty in architecture_search
        before = width
    return nn.Sequential(*layers, nn.Linear(before, 10, device=device))


@job("reference_cycle")
def architecture_search(run):
    """Random search: each candidate's layers have hooks of a profiler that knows the candidate. The collector is
    switched off by the launcher. Fixed: the profiler removes its hooks."""
    gc.disable()
    draw = random.Random(3)
    best = (0.0, None)
    batch = torch.randn(512, 256, device=run.device)
    for _ in run.steps(12):
        genome = [draw.choice((1280, 1536, 2048)) for _ in range(3)]
        candidate = build(genome, run.device)
        profiler = Profiler(candidate)
        with torch.no_grad():
            score = candidate(batch).std().item() - 1e-12 * profiler.operations
        best = max(best, (score, genome))
        if run.fixed:
            profiler.close()
        del candidate, profiler


class SuperResolution:
    """Trains an upscaler on patches; checks it on a whole picture before it starts."""

    def __init__(self, device, release):
        self.device = device
        self.release = release
        self.model = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.PReLU(), nn.Conv2d(24, 12, 3, padding=1),
                                   nn.PixelShuffle(2)).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-4)

    @torch.no_grad()
    def sanity_check(self, height, width):
        picture = torch.rand(1, 3, height, width, device=self.device)
        error = (F.avg_pool2d(self.model(picture), 2) - picture).abs().mean().item()  # guilty in whole_picture_first
        del picture
        if self.release:
            torch.cuda.empty_cache()
        return error

    def step(self):
        sharp = torch.rand(8, 3, 64, 64, device=self.device)
        loss = F.l1_loss(self.model(F.avg_pool2d(sharp, 2)), sharp)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


@job("cached_not_released")
def whole_picture_first(run):
    """Before training on small patches the model is run once on a whole photograph, to see that validation will work.
    Its segments are never used again. Fixed: empty_cache() after the check."""
    trainer = SuperResolution(run.device, release=run.fixed)
    assert trainer.sanity_check(1080, 1920) >= 0
    losses = []
    for _ in run.steps(12):
        losses.append(trainer.step())


class MixedBlock(nn.Module):
    """One of several operations, as the path says."""

    def __init__(self, width):
        super().__init__()
        self.choices = nn.ModuleList(nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
                                     for hidden in (512, 1024, 1536, 2048))

    def forward(self, hidden, choice):
        return hidden + self.choices[choice](hidden)


@job("healthy")
def one_shot_supernet(run):
    """A supernet trained along one path at a time: momentum appears for an operation when it is first on the path, so
    memory rises for as long as there are operations that were never drawn."""
    blocks = nn.ModuleList(MixedBlock(512) for _ in range(3)).to(run.device)
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01, momentum=0.9)
    draw = random.Random(0)
    for step in run.steps(16):
        hidden = torch.randn(256, 512, device=run.device)
        for block in blocks:
            hidden = block(hidden, step % 4 if step < 4 else draw.randrange(4))
        optimizer.zero_grad(set_to_none=True)
        hidden.square().mean().backward()
        optimizer.step()


@job("healthy")
def multi_scale_training(run):
    """Images of another size every third batch, and the best weights so far, on the CPU."""
    model = small_net().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    best, weights = float("inf"), None
    for step in run.steps(12):
        size = (160, 256, 192, 224)[step // 3 % 4]
        loss = F.cross_entropy(model(images(run, 24, size)), torch.randint(10, (24,), device=run.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if loss.item() < best:
            best, weights = loss.item(), {name: value.cpu() for name, value in model.state_dict().items()}
    assert weights


class LabelledPool:
    """Images that an oracle has labelled; each round adds some, up to a budget."""

    def __init__(self, budget):
        self.budget, self.batches = budget, []

    def add(self, batch, labels):
        if len(self.batches) < self.budget:
            self.batches.append((batch, labels))


@job("healthy")
def labelling_rounds(run):
    """Active learning: the labelled pool on the GPU grows round by round until the budget is spent."""
    model = small_net().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    pool = LabelledPool(budget=7)
    for _ in run.steps(16):
        candidates = images(run, 64, 128)
        with torch.no_grad():
            doubt = torch.softmax(model(candidates), 1).amax(1)
        picked = candidates[doubt.argsort()[:40]]
        pool.add(picked, torch.randint(10, (40,), device=run.device))
        del candidates, doubt, picked
        for batch, labels in pool.batches[-3:]:
            loss = F.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
