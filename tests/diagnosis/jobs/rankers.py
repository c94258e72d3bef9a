"""Recommendation and ranking with embedding tables."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Clicks(nn.Module):
    """The probability of a click from categorical fields, each with a table that has sparse gradients."""

    def __init__(self, fields=12, values=20_000, width=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(values, width, sparse=True) for _ in range(fields))
        self.mix = nn.Sequential(nn.Linear(fields * width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, fields):
        found = [table(column) for table, column in zip(self.tables, fields.unbind(1))]
        return self.mix(torch.cat(found, 1)).squeeze(1)


@job("gradient_accumulation")
def two_optimizers(run):
    """One optimizer for the dense layers, one for the embedding tables, whose sparse gradients nobody zeroes: each
    batch appends its rows to them. Fixed: both optimizers are asked to zero theirs."""
    model = Clicks().to(run.device)
    dense = torch.optim.AdamW(model.mix.parameters(), lr=1e-3)
    sparse = torch.optim.SGD(model.tables.parameters(), lr=0.05)
    stepped = [dense, sparse]
    zeroed = stepped if run.fixed else [dense]
    for _ in run.steps(12):
        fields = torch.randint(20_000, (6144, 12), device=run.device)
        clicked = torch.randint(2, (6144,), device=run.device).float()
        for optimizer in zeroed:
            optimizer.zero_grad()  # cause
        F.binary_cross_entropy_with_logits(model(fields), clicked).backward()  # guilty
        for optimizer in stepped:
            optimizer.step()


class Towers(nn.Module):
    """Users and items in one space."""

    def __init__(self, users=20_000, items=6000, width=128):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(users, width), nn.Embedding(items, width)])
        self.towers = nn.ModuleList([nn.Linear(width, 512) for _ in range(2)])

    def encode(self, side, numbers):
        hidden = self.towers[side](self.tables[side](numbers))  # guilty in hits_after_each_epoch
        return F.normalize(torch.relu(hidden), dim=1)  # guilty in hits_after_each_epoch

    def affinity(self, users, items):
        return torch.sigmoid(self.encode(0, users) @ self.encode(1, items).T)  # guilty in hits_after_each_epoch


@dataclass
class Ranking:
    epoch: int
    best: torch.Tensor
    confidence: torch.Tensor


class HitRate:
    """Ranks all items for some users when an epoch is over."""

    def __init__(self, items, device, track):
        self.items = torch.arange(items, device=device)
        self.track = track
        self.rankings = []

    def epoch_ended(self, epoch, model, users):
        model.eval()
        with torch.set_grad_enabled(self.track):
            top = model.affinity(users, self.items).topk(20)
        self.rankings.append(Ranking(epoch, top.indices.cpu(), top.values))  # cause in hits_after_each_epoch
        model.train()


@job("eval_graph")
def hits_after_each_epoch(run):
    """A callback ranks all items after each epoch and remembers the best scores, with gradients enabled, since
    model.eval() is thought to switch them off. Fixed: no gradients in the callback."""
    model = Towers().to(run.device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    callbacks = [HitRate(6000, run.device, track=not run.fixed)]
    for epoch in run.steps(9):
        for _ in range(4):
            users = torch.randint(20_000, (512,), device=run.device)
            items = torch.randint(6000, (512,), device=run.device)
            optimizer.zero_grad()
            loss = -model.affinity(users, items).diagonal().log().mean()
            loss.backward()
            optimizer.step()
        for callback in callbacks:
            callback.epoch_ended(epoch, model, torch.arange(768, device=run.device))


class Market:
    """The embedding table that serves a country, renewed every hour; some keep each hour's for a comparison."""

    def __init__(self, compared, archive=None):
        self.compared = compared
        self.archive = archive
        self.used = 0
        self.versions = []
        self.table = None

    def renew(self, rows, device):
        renewed = torch.full((rows, 64), 0.5, device=device)  # guilty in hourly_tables
        if self.compared and self.archive is not None:
            kept = self.archive[self.used : self.used + rows].copy_(renewed)
            self.used += rows
            self.versions.append(kept)
        elif self.compared:
            self.versions.append(renewed)
        self.table = renewed


@job("fragmentation")
def hourly_tables(run):
    """The tables of twelve countries are renewed each hour, and are larger each time; every second country keeps all
    versions, which lie between tables that are freed. Fixed: the versions have a place of their own."""
    hours, first, more = 10, 28_000, 1200
    total = sum(first + more * hour for hour in range(hours))
    markets = []
    for number in range(12):
        archive = torch.empty(total, 64, device=run.device) if run.fixed and number % 2 else None
        markets.append(Market(number % 2 == 1, archive))
    for hour in run.steps(hours):
        for market in markets:
            market.renew(first + more * hour, run.device)
        hits = [market.table[:64].sum().item() for market in markets]
        assert min(hits) > 0


class LazyAdagrad:
    """Adagrad for many tables; a table's accumulator is made when it is first used."""

    def __init__(self, rate):
        self.rate = rate
        self.squares = {}

    @torch.no_grad()
    def step(self, named):
        for name, weight in named.items():
            if weight.grad is None:
                continue
            if name not in self.squares:
                self.squares[name] = torch.zeros_like(weight)
            self.squares[name].addcmul_(weight.grad, weight.grad)
            weight.addcdiv_(weight.grad, self.squares[name].sqrt().add_(1e-8), value=-self.rate)
            weight.grad = None


@job("healthy")
def categories_in_turn(run):
    """A catalogue with a table for each category; the data come category by category, so that accumulators of a
    custom Adagrad appear during the first seven iterations."""
    tables = {f"category {n}": torch.randn(40_000, 96, device=run.device, requires_grad=True) for n in range(7)}
    optimizer = LazyAdagrad(0.05)
    for step in run.steps(18):
        table = tables[f"category {step % 7}"]
        pairs = torch.randint(40_000, (2, 4096), device=run.device)
        left, right = F.embedding(pairs, table)
        loss = F.softplus(-(left * right).sum(1)).mean()
        loss.backward()
        optimizer.step(tables)
