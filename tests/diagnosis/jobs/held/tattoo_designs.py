"""Designs of tattoos by diffusion: low-rank adapters, a network that judges style, recomputed blocks."""
import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


class LowRank(nn.Module):
    """A linear layer that does not change, and a product of two small matrices that does."""

    def __init__(self, inner, rank=8):
        super().__init__()
        self.inner = inner.requires_grad_(False)
        self.down = nn.Linear(inner.in_features, rank, bias=False)
        self.up = nn.Linear(rank, inner.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, hidden):
        return self.inner(hidden) + self.up(self.down(hidden))


class PatchDenoiser(nn.Module):
    """Removes noise from patches of designs; `between` is the middle of its blocks."""

    def __init__(self, width=384, blocks=2, rank=None):
        super().__init__()
        self.into = nn.Linear(48, width)
        layers = [(nn.Linear(width, 2 * width), nn.Linear(2 * width, width)) for _ in range(blocks)]
        adapt = (lambda layer: LowRank(layer, rank)) if rank else (lambda layer: layer)
        self.blocks = nn.ModuleList(nn.ModuleList([adapt(wide), adapt(narrow)]) for wide, narrow in layers)
        self.out = nn.Linear(width, 48)

    def forward(self, patches, time, block=None):
        hidden = self.into(patches) + time[:, None, None]
        for wide, narrow in self.blocks:
            hidden = block(wide, narrow, hidden) if block else hidden + narrow(F.gelu(wide(hidden)))
        return self.out(hidden)


def noisy(count, patches, device):
    clean = torch.randn(count, patches, 48, device=device)
    time = torch.rand(count, device=device)
    noise = torch.randn_like(clean)
    return (1 - time)[:, None, None] * clean + time[:, None, None] * noise, time, noise


@job("gradient_accumulation")
def importance_of_weights(run):
    """How important each weight is to the designs so far (Fisher information), before a new style is learned: squared
    gradients of each batch are put in a list, of which the mean is to be taken at the end. Fixed: a running sum."""
    model = PatchDenoiser(width=512).to(run.device)
    squares, total = [], {}
    for _ in run.steps(12):
        patches, time, noise = noisy(16, 64, run.device)
        model.zero_grad()
        F.mse_loss(model(patches, time), noise).backward()
        for name, weight in model.named_parameters():
            square = weight.grad.square()  # guilty
            if run.fixed:
                total[name] = total[name].add_(square) if name in total else square
            else:
                squares.append((name, square))  # cause
        del square
    assert run.fixed or len(squares) == 12 * len(list(model.parameters()))


class StyleNet(nn.Module):
    """Frozen: sees how far a design is from a style."""

    def __init__(self, width=24):
        super().__init__()
        self.lines = nn.Conv2d(3, width, 5, padding=2)
        self.shapes = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.requires_grad_(False)

    def forward(self, designs):
        shapes = F.elu(self.shapes(F.elu(self.lines(designs))))  # guilty in style_in_the_log
        flat = shapes.flatten(2)
        return flat @ flat.transpose(1, 2) / flat.shape[2]  # guilty in style_in_the_log


def as_designs(patches):
    """64 patches of 4 x 4 pixels each to designs of 32 x 32."""
    squares = patches.view(-1, 8, 8, 3, 4, 4)
    return squares.permute(0, 3, 1, 4, 2, 5).reshape(len(patches), 3, 32, 32)  # guilty in style_in_the_log


@job("retained_graph")
def style_in_the_log(run):
    """The distance from a style is written to the log with each step, for a plot; it is no part of the loss, so nobody
    goes backward through it, and each entry keeps what the style network computed. Fixed: item()."""
    model, style = PatchDenoiser().to(run.device), StyleNet().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    wanted = style(torch.rand(1, 3, 32, 32, device=run.device))
    log = {"loss": [], "style": []}
    for _ in run.steps(12):
        patches, time, noise = noisy(96, 64, run.device)
        estimate = model(patches, time)
        loss = F.mse_loss(estimate, noise)
        distance = F.mse_loss(style(as_designs(patches - estimate)), wanted.expand(96, -1, -1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log["loss"].append(loss.item())
        log["style"].append(distance.item() if run.fixed else distance)  # cause
        del estimate, loss, distance


class Taps:
    """Collects what blocks hold in their middle while `open`."""

    def __init__(self):
        self.middles = []
        self.open = False

    def __enter__(self):
        self.open = True

    def __exit__(self, *_):
        self.open = False

    def offer(self, middle):
        if self.open:
            self.middles.append(middle.detach())  # cause in middles_of_adapters


@job("checkpoint_cache")
def middles_of_adapters(run):
    """Blocks with low-rank adapters are recomputed in backward(). Around it taps are open, to see in the recomputation
    in which directions adapters should begin; what they collect stays after the first batches, for which it was
    wanted. Fixed: it is emptied after each step."""
    model = PatchDenoiser(width=512, blocks=3, rank=16).to(run.device)
    taps = Taps()

    def middle_of(wide, narrow, hidden):
        middle = F.gelu(wide(hidden))  # guilty
        taps.offer(middle)
        return hidden + narrow(middle)

    def recomputed(wide, narrow, hidden):
        return checkpoint(middle_of, wide, narrow, hidden, use_reentrant=True)

    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=1e-3)
    for _ in run.steps(11):
        patches, time, noise = noisy(24, 64, run.device)
        loss = F.mse_loss(model(patches, time, block=recomputed), noise)
        optimizer.zero_grad()
        with taps:
            loss.backward()
        optimizer.step()
        if run.fixed:
            taps.middles.clear()


@job("healthy")
def average_after_warm_up(run):
    """An average of the weights begins after four steps, and the second half of the blocks is trained from the eighth
    step on: memory takes two steps up, with the copy, and with new gradients and moments."""
    model = PatchDenoiser(width=768, blocks=4).to(run.device)
    late = [weight for block in model.blocks[2:] for weight in block.parameters()]
    for weight in late:
        weight.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    average = None
    for step in run.steps(18):
        if step == 8:
            for weight in late:
                weight.requires_grad_(True)
        patches, time, noise = noisy(8, 64, run.device)
        loss = F.mse_loss(model(patches, time), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 4:
            average = copy.deepcopy(model).requires_grad_(False)
        elif step > 4:
            with torch.no_grad():
                for old, new in zip(average.parameters(), model.parameters()):
                    old.lerp_(new, 0.01)
