"""Designing typefaces with generative models."""
import copy
import functools
import gc

import torch
import torch.nn.functional as F
from torch import nn

from job import job


class Outlines(nn.Module):
    """From a style and a letter to the control points of its outline."""

    def __init__(self, width=640):
        super().__init__()
        self.letters = nn.Embedding(96, width)
        self.bend = nn.Linear(2 * width, 3 * width)
        self.points = nn.Linear(3 * width, 128)

    def forward(self, style, letters):
        hidden = torch.cat([style, self.letters(letters)], 1)
        return self.points(F.relu(self.bend(hidden)))


def in_italics(forward, slant=0.2):
    """A forward() whose outlines lean to the right."""

    @functools.wraps(forward)
    def leaning(style, letters):
        x, y = forward(style, letters).chunk(2, 1)
        return torch.cat([x + slant * y, y], 1)

    return leaning


class Italics(nn.Module):
    """A model whose outlines lean to the right."""

    def __init__(self, upright):
        super().__init__()
        self.upright = upright

    def forward(self, style, letters):
        return in_italics(self.upright)(style, letters)


def variant(master, patch):
    """A copy of the master that draws italics."""
    model = copy.deepcopy(master)  # guilty in italic_variants
    if not patch:
        return Italics(model)
    model.forward = in_italics(model.forward)  # cause in italic_variants
    return model


@job("reference_cycle")
def italic_variants(run):
    """For each typeface a copy of the master is tuned, whose forward() is replaced by one that calls the original, a
    bound method: the copy refers to itself. The collector runs rarely, for speed. Fixed: a module around the copy."""
    gc.set_threshold(200_000, 50, 50)
    master = Outlines().to(run.device)
    for _ in run.steps(12):
        model = variant(master, patch=not run.fixed)
        style = torch.randn(96, 640, device=run.device)
        letters = torch.arange(96, device=run.device)
        drawn = torch.rand(96, 128, device=run.device)
        for _ in range(2):
            loss = F.l1_loss(model(style, letters), drawn)
            for weight, slope in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters()))):
                weight.data.sub_(slope, alpha=0.01)
        del model, weight, slope, loss


def published_weights(device, layers=12, width=2560):
    """Stands for torch.load(file, map_location=device)."""
    return {f"layer{n}": torch.randn(width, width).to(device) for n in range(layers)}  # guilty in weights_in_half


class GlyphDecoder:
    """A published decoder in half precision, and small adapters that are trained for one foundry."""

    def __init__(self, weights, device):
        self.weights = [weight.to(device, torch.bfloat16) for weight in weights.values()]
        self.adapters = [torch.zeros(weight.shape[0], device=device, requires_grad=True) for weight in self.weights]

    def decode(self, hidden):
        for weight, adapter in zip(self.weights, self.adapters):
            hidden = torch.tanh(hidden @ weight + adapter.bfloat16())
        return hidden


@job("cached_not_released")
def weights_in_half(run):
    """Weights are loaded in single precision onto the GPU and used in half precision. Where they were loaded stays with
    PyTorch, while the preview renderer in the same process wants memory. Fixed: they are loaded onto the host."""
    weights = published_weights("cpu" if run.fixed else run.device)
    decoder = GlyphDecoder(weights, run.device)
    del weights  # cause
    optimizer = torch.optim.Adam(decoder.adapters, lr=1e-3)
    for _ in run.steps(10):
        glyphs = torch.randn(16, 2560, device=run.device, dtype=torch.bfloat16)
        loss = decoder.decode(glyphs).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class StyleBook:
    """The style of each typeface, worked out from its letters when the typeface first comes up."""

    def __init__(self, encoder, device):
        self.encoder = encoder
        self.device = device
        self.styles = {}

    @torch.no_grad()
    def style(self, typeface):
        if typeface not in self.styles:
            letters = torch.rand(96, 128 * 128, device=self.device)
            self.styles[typeface] = self.encoder(letters)
        return self.styles[typeface]


@job("healthy")
def styles_of_typefaces(run):
    """A family of 14 typefaces, most of which come up early and the last ones late. The style of each is worked out
    once and stays."""
    encoder = nn.Linear(128 * 128, 96).to(run.device).requires_grad_(False)
    book = StyleBook(nn.Sequential(encoder, nn.Linear(96, 16_384).to(run.device)), run.device)
    decoder = nn.Sequential(nn.Linear(16_384, 64), nn.ReLU(), nn.Linear(64, 256)).to(run.device)
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    for step in run.steps(30):
        typeface = min(step, 9) if step < 12 else (step * 5) % 14
        loss = decoder(book.style(typeface)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
