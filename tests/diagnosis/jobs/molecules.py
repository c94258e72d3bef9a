"""Proteins and molecules."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


class TraceMixin:
    """Lets a module show what happened inside it."""

    tracing = False

    def trace(self, name, value):
        if self.tracing and torch.is_grad_enabled():
            self.__dict__.setdefault("traced", {}).setdefault(name, []).append(value.detach())  # cause in pair_blocks


class PairBlock(TraceMixin, nn.Module):
    """Attention along the rows of a protein's matrix of pairs."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)

    def forward(self, pairs):
        query, key, value = self.project(self.norm(pairs)).chunk(3, -1)
        scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
        maps = torch.softmax(scores, -1)  # guilty in pair_blocks
        self.trace("maps", maps)
        return pairs + maps @ value


@job("checkpoint_cache")
def pair_blocks(run):
    """Blocks of a structure model are checkpointed; a mixin that shows attention maps was left on, and keeps those of
    the recomputation. Fixed: it is off in training."""
    blocks = nn.ModuleList(PairBlock(32) for _ in range(2)).to(run.device)
    embed = nn.Embedding(21, 32).to(run.device)
    optimizer = torch.optim.AdamW([*blocks.parameters(), *embed.parameters()], lr=1e-3)
    for block in blocks:
        block.tracing = not run.fixed
    for _ in run.steps(12):
        residues = embed(torch.randint(21, (128,), device=run.device))
        pairs = residues[:, None] + residues[None, :]
        for block in blocks:
            pairs = checkpoint(block, pairs, use_reentrant=True)
        optimizer.zero_grad()
        pairs.square().mean().backward()
        optimizer.step()


def diverse(fingerprints, count):
    """The molecules that are least like the others."""
    common = fingerprints @ fingerprints.T  # guilty in diverse_molecules
    bits = fingerprints.sum(1)
    similarity = common / (bits[:, None] + bits[None, :] - common)  # guilty in diverse_molecules
    return similarity.mean(1).topk(count, largest=False).indices.tolist()


@job("cached_not_released")
def diverse_molecules(run):
    """Molecules for training are chosen by the similarities of all pairs in a library; then a small model is trained,
    beside a docking program that needs the GPU's memory too. Fixed: empty_cache() once they are chosen."""
    library = (torch.rand(10_000, 256, device=run.device) < 0.2).float()
    chosen = diverse(library, 2000)
    if run.fixed:
        torch.cuda.empty_cache()
    model = nn.Sequential(nn.Linear(256, 128), nn.SiLU(), nn.Linear(128, 1)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in run.steps(16):
        batch = library[chosen[step * 100 : step * 100 + 100]]
        loss = F.mse_loss(model(batch).squeeze(1), batch.mean(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Refiner(nn.Module):
    """One pass of a structure model over its own result."""

    def __init__(self, width=48):
        super().__init__()
        self.mix = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def block(self, index, pairs):
        left = torch.tanh(self.mix[index](pairs))
        return pairs + torch.einsum("ikc,jkc->ijc", left, pairs) / len(pairs)

    def forward(self, pairs):
        for index in range(3):
            if torch.is_grad_enabled():
                pairs = checkpoint(self.block, index, pairs, use_reentrant=False)
            else:
                pairs = self.block(index, pairs)
        return self.out(pairs)


@job("healthy")
def recycled_structure(run):
    """A structure model is applied to its own result one to three times, and only the last pass gets gradients;
    proteins have different lengths."""
    model = Refiner().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for step in run.steps(12):
        length = (160, 96, 224, 128)[step % 4]
        pairs = torch.randn(length, length, 48, device=run.device)
        result = torch.zeros_like(pairs)
        for turn in range(1 + step % 3):
            with torch.set_grad_enabled(turn == step % 3):
                result = model(pairs + result)
        optimizer.zero_grad()
        result.square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()


class Relaxation:
    """Conformers that follow their forces; those that have settled leave for the host."""

    def __init__(self, places):
        self.places = places
        self.settled = []

    def energy(self, places):
        apart = places[:, :, None] - places[:, None, :]
        square = apart.square().sum(-1) + 0.5
        return (square.pow(-3) - square.pow(-1.5)).sum((1, 2)) + 0.1 * places.square().sum((1, 2))

    def step(self, leaving):
        places = self.places.requires_grad_()
        force, = torch.autograd.grad(-self.energy(places).sum(), places)
        moved = places.detach() + 0.01 * force.clamp(-1, 1)
        order = force.square().sum((1, 2)).argsort()
        self.settled.append(moved[order[:leaving]].cpu())
        self.places = moved[order[leaving:]]


@job("healthy", contested="needs only shrink while the first iterations' cache stays: cached_not_released")
def relaxed_conformers(run):
    """Conformers of a molecule are relaxed together, and fewer are left in each iteration."""
    relaxation = Relaxation(torch.randn(512, 96, 3, device=run.device))
    for _ in run.steps(12):
        for _ in range(2):
            relaxation.step(leaving=6)
    assert len(torch.cat(relaxation.settled)) == 144
