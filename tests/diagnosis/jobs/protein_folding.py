"""Structures of proteins from their sequences."""
import copy
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


class TriangleUpdate(nn.Module):
    """Each pair of residues learns from the pairs that share a third residue with it."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate, self.left, self.right, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, pair):
        known = self.norm(pair)  # guilty in predicted_targets
        left = torch.sigmoid(self.gate(known)) * self.left(known)  # guilty in predicted_targets
        right = self.right(known)
        mixed = torch.einsum("bikc,bjkc->bijc", left, right)  # guilty in predicted_targets
        return pair + self.out(mixed)  # guilty in predicted_targets


class Prediction(NamedTuple):
    target: str
    coordinates: torch.Tensor
    confidence: torch.Tensor


class Folder(nn.Module):
    """Coordinates and confidences of residues from a sequence."""

    def __init__(self, width=32, depth=3):
        super().__init__()
        self.embed = nn.Embedding(21, width)
        self.blocks = nn.ModuleList(TriangleUpdate(width) for _ in range(depth))
        self.place = nn.Linear(width, 3)
        self.trust = nn.Linear(width, 1)

    def forward(self, sequence):
        single = self.embed(sequence)
        pair = single[:, :, None] + single[:, None]  # guilty in predicted_targets
        for block in self.blocks:
            pair = block(pair)
        single = pair.mean(2)
        return self.place(single), torch.sigmoid(self.trust(single))


def predict(model, target, sequence):
    model.eval()
    coordinates, confidence = model(sequence)
    return Prediction(target, coordinates, confidence)  # cause in predicted_targets


@job("eval_graph")
def predicted_targets(run):
    """The targets of a benchmark are predicted one after another with model.eval() and nothing else; the list of
    predictions, from which the best are chosen at the end, holds the graph of each. Fixed: no_grad()."""
    model = Folder().to(run.device)
    predictions = []
    for step in run.steps(10):
        sequence = torch.randint(21, (2, 96 + 40 * step % 64), device=run.device)
        with torch.set_grad_enabled(not run.fixed):
            predictions.append(predict(model, f"T{1000 + step}", sequence))
    best = max(predictions, key=lambda prediction: prediction.confidence.mean().item())
    assert best.coordinates.shape[-1] == 3


class RowAttention(nn.Module):
    """Attention within the rows of an alignment. Its maps can be looked at after training has gone over a batch."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.maps = []

    def forward(self, alignment):
        rows, length, width = alignment.shape
        parts = self.qkv(alignment).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(query @ key.transpose(2, 3) / (width // self.heads) ** 0.5, 3)  # guilty in contact_maps
        if torch.is_grad_enabled():
            self.maps.append(weights.detach())  # cause in contact_maps
        return alignment + self.out((weights @ value).transpose(1, 2).flatten(2))

    def contacts(self):
        return self.maps[-1].mean((0, 1)).cpu()


@job("checkpoint_cache")
def contact_maps(run):
    """Checkpointed attention blocks that note their maps whenever gradients are enabled, that is at the recomputation;
    contacts are read from the newest ones and none is ever dropped. Fixed: they are cleared after each step."""
    blocks = nn.ModuleList(RowAttention() for _ in range(4)).to(run.device)
    embed = nn.Embedding(21, 64).to(run.device)
    optimizer = torch.optim.Adam([*embed.parameters(), *blocks.parameters()], lr=1e-3)
    for _ in run.steps(12):
        alignment = embed(torch.randint(21, (16, 160), device=run.device))
        for block in blocks:
            alignment = checkpoint(block, alignment, use_reentrant=True)
        loss = alignment.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        contacts = [block.contacts() for block in blocks]
        if run.fixed:
            for block in blocks:
                block.maps.clear()
    assert contacts[0].shape == (160, 160)


class TriangleAttention(nn.Module):
    """Attention along the rows of the pairs, of all rows at once or of some at a time."""

    def __init__(self, width=32, heads=4, rows_at_once=None):
        super().__init__()
        self.heads = heads
        self.rows_at_once = rows_at_once
        self.qkv = nn.Linear(width, 3 * width)

    def attend(self, pair):
        query, key, value = self.qkv(pair).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # guilty in longest_protein
        weights = torch.softmax(query @ key.transpose(2, 3), 3)  # guilty in longest_protein
        return (weights @ value).transpose(1, 2).flatten(2)

    def forward(self, pair):
        rows = self.rows_at_once or len(pair)
        return torch.cat([self.attend(some) for some in pair.split(rows)])


@job("true_capacity")
def longest_protein(run):
    """Six short proteins, then long ones: attention between pairs of residues is cubic in the length, and that of the
    long ones does not fit. Fixed: 32 rows at a time."""
    run.cap(768)
    block = TriangleAttention(rows_at_once=32 if run.fixed else None).to(run.device)
    lengths = [192] * 6 + [320] * 3
    with torch.no_grad():
        for step in run.steps(len(lengths)):
            length = lengths[step % len(lengths)]
            pair = torch.randn(length, length, 32, device=run.device)  # guilty
            distances = block(pair).mean(2).cpu()
            del pair
    assert distances.shape == (320, 320)


@job("healthy")
def proteins_of_all_lengths(run):
    """Gradients of four proteins of different lengths are accumulated for each step; with checkpointing, clipping and
    an average of the weights."""
    model = Folder(depth=2).to(run.device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(6):
        optimizer.zero_grad(set_to_none=True)
        for length in (160, 96, 144, 120):
            sequence = torch.randint(21, (1, length), device=run.device)
            truth = torch.randn(1, length, 3, device=run.device)
            coordinates, _ = checkpoint(model, sequence, use_reentrant=False)
            (F.smooth_l1_loss(coordinates, truth) / 4).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters()):
                mean.lerp_(weight, 0.01)
