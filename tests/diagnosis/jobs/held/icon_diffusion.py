"""A small diffusion model of icons, in the form of the diffusers library: scheduler, pipeline, training loop."""
import itertools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


class Scheduler:
    def __init__(self, steps=1000, device="cuda"):
        self.kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, steps, device=device), 0)

    def add_noise(self, icons, noise, times):
        kept = self.kept[times].view(-1, 1, 1, 1)
        return kept.sqrt() * icons + (1 - kept).sqrt() * noise

    def step(self, noise, time, icons):
        kept = self.kept[time]
        return (icons - (1 - kept).sqrt() * noise) / kept.sqrt()  # guilty in icons_for_the_gallery


class Denoiser(nn.Module):
    def __init__(self, width=48, blocks=3, recompute=False, features=None):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(blocks))
        self.last = nn.Conv2d(width, 3, 3, padding=1)
        self.recompute = recompute
        self.features = features
        self.calls = itertools.count()

    def block(self, index, hidden):
        inner = F.silu(self.blocks[index](hidden))  # guilty in icons_for_the_gallery
        return hidden + inner  # guilty in icons_for_the_gallery

    def recomputed_block(self, index, hidden):
        inner = F.silu(self.blocks[index](hidden))  # guilty in probe_of_the_middle
        if self.features is not None and torch.is_grad_enabled():
            self.features[next(self.calls)] = inner.detach()  # cause in probe_of_the_middle
        return hidden + inner

    def forward(self, icons, time):
        hidden = self.first(icons) + torch.as_tensor(time, device=icons.device).float().view(-1, 1, 1, 1) / 1000
        for index in range(len(self.blocks)):
            if self.recompute:
                hidden = checkpoint(self.recomputed_block, index, hidden, use_reentrant=True)
            else:
                hidden = self.block(index, hidden)
        return self.last(hidden)


@job("eval_graph")
def icons_for_the_gallery(run):
    """A pipeline samples icons for a gallery after each epoch, in six steps of the model; the icons stay on the GPU,
    with the graph of the sampling. Fixed: no_grad()."""
    model, scheduler = Denoiser().to(run.device), Scheduler(device=run.device)
    gallery = []
    with torch.set_grad_enabled(not run.fixed):
        for _ in run.steps(8):
            icons = torch.randn(4, 3, 64, 64, device=run.device)
            for time in (999, 800, 600, 400, 200, 0):
                icons = scheduler.step(model(icons, time), time, icons)
            gallery.append(icons.clamp(-1, 1))  # cause


@job("checkpoint_cache")
def probe_of_the_middle(run):
    """Blocks are recomputed in backward(). A probe keeps the features of each block where gradients are on, which with
    checkpointing is the recomputation; nobody empties it. Fixed: it is emptied after each step."""
    features = {}
    model = Denoiser(recompute=True, features=features).to(run.device)
    scheduler = Scheduler(device=run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in run.steps(11):
        icons = torch.rand(8, 3, 64, 64, device=run.device).requires_grad_()
        noise = torch.randn_like(icons)
        times = torch.randint(1000, (8,), device=run.device)
        loss = F.mse_loss(model(scheduler.add_noise(icons, noise, times), times), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if run.fixed:
            features.clear()


@job("healthy")
def latents_of_all_icons(run):
    """Icons are encoded when they are met for the first time and stay encoded: memory grows in the first eight
    iterations, which are the first epoch, and not in the following ones."""
    encoder = nn.Conv2d(3, 32, 4, stride=2, padding=1).to(run.device)
    model = nn.Conv2d(32, 32, 3, padding=1).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    encoded = {}
    for step in run.steps(18):
        batch = step % 8
        if batch not in encoded:
            with torch.no_grad():
                encoded[batch] = encoder(torch.rand(64, 3, 64, 64, device=run.device))
        noise = torch.randn_like(encoded[batch])
        loss = F.mse_loss(model(encoded[batch] + noise), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
