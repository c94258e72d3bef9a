"""Ranking of advertisements, recommendations."""
import random
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class ColumnStore:
    """The columns of a feature table that a model was found to need; the rest of each partition is dropped."""

    def __init__(self, device, arena=None):
        self.device = device
        self.arena = arena
        self.used = 0
        self.columns = []

    def read(self, rows):
        return torch.full((rows,), 0.5, device=self.device)  # guilty in daily_partitions

    def keep(self, column):
        if self.arena is not None:
            place = self.arena[self.used : self.used + len(column)]
            self.used += len(column)
            column = place.copy_(column)
        self.columns.append(column)

    def load(self, rows, width=24):
        if self.arena is not None:
            for index in range(width):
                column = self.read(rows)
                if index % 2 == 0:
                    self.keep(column)
                del column
            return
        partition = [self.read(rows) for _ in range(width)]
        for index, column in enumerate(partition):
            if index % 2 == 0:  # the label's correlation decides in real life
                self.keep(column)  # cause in daily_partitions


@job("fragmentation")
def daily_partitions(run):
    """Each day's partition has more rows than the one before; half of its columns are kept. What the other columns
    leave are gaps that are just too small for the columns of the next day. Fixed: columns are copied one by one into
    an arena that was allocated once."""
    days = 10
    rows = [int(330_000 * 1.19**day) for day in range(days)]
    store = ColumnStore(run.device, torch.empty(12 * sum(rows), device=run.device) if run.fixed else None)
    for day in run.steps(days):
        store.load(rows[day])


@job("cross_stream_pending")
def candidate_prefetch(run):
    """Embeddings of candidates are gathered on a stream of their own; ranking, on the main stream, is slower than
    that, and nothing holds the gathering back. Fixed: the gathering of the next candidates waits for the ranking of
    these."""
    table = torch.randn(50_000, 256, device=run.device)
    ranker = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1)).to(run.device).requires_grad_(False)
    gather, rank = torch.cuda.Stream(), torch.cuda.current_stream()
    gather.wait_stream(rank)
    best = torch.zeros(30_000, 1, device=run.device)
    for _ in run.steps(14):
        with torch.cuda.stream(gather):
            ids = torch.randint(50_000, (30_000,), device=run.device)  # guilty
            candidates = F.embedding(ids, table)  # guilty
        rank.wait_stream(gather)
        torch.cuda._sleep(16_000_000)  # the rest of the request
        torch.maximum(best, ranker(candidates), out=best)
        candidates.record_stream(rank)  # cause
        ids.record_stream(rank)
        if run.fixed:
            rank.synchronize()
        del candidates, ids


class EmbeddingCache:
    """Rows of a table on the host, the most recently used of which are on the GPU."""

    def __init__(self, device, rows, width, capacity):
        self.table = torch.randn(rows, width)
        self.device = device
        self.capacity = capacity
        self.shards = OrderedDict()

    def shard(self, number, size=4096):
        if number not in self.shards:
            self.shards[number] = self.table[number * size : (number + 1) * size].to(self.device)
        self.shards.move_to_end(number)
        while len(self.shards) > self.capacity:
            self.shards.popitem(last=False)
        return self.shards[number]


@job("healthy")
def least_recently_used(run):
    """An embedding table larger than its cache on the GPU, which fills for some iterations and then evicts."""
    draw = random.Random(3)
    cache = EmbeddingCache(run.device, 65_536, 512, capacity=8)
    tower = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)).to(run.device)
    optimizer = torch.optim.Adagrad(tower.parameters(), lr=0.01)
    for _ in run.steps(20):
        rows = cache.shard(draw.randrange(16))
        clicks = torch.randint(2, (1024, 1), device=run.device).float()
        logits = tower(rows[torch.randint(4096, (1024,), device=run.device)])
        loss = F.binary_cross_entropy_with_logits(logits, clicks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def area_under_curve(scores, labels):
    order = scores.argsort()
    ranks = torch.empty(len(scores))
    ranks[order] = torch.arange(1, len(scores) + 1, dtype=torch.float32)
    positive = labels.sum()
    return ((ranks[labels.bool()].sum() - positive * (positive + 1) / 2) / (positive * (len(labels) - positive))).item()


@job("healthy")
def progressive_validation(run):
    """Each batch is scored before it is trained on; scores and labels of the whole stream are kept, on the CPU, for
    the area under the curve. AdaGrad's sums appear with the first step."""
    wide = nn.EmbeddingBag(60_000, 128, mode="mean").to(run.device)
    deep = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    deep = deep.to(run.device)
    optimizer = torch.optim.Adagrad([*wide.parameters(), *deep.parameters()], lr=0.02)
    scores, labels = [], []
    for step in run.steps(12):
        features = torch.randint(60_000, (4096, 30), device=run.device)
        label = (torch.rand(4096, device=run.device) < 0.1).float()
        with torch.no_grad():
            scores.append(deep(wide(features)).squeeze(1).cpu())
        labels.append(label.cpu())
        loss = F.binary_cross_entropy_with_logits(deep(wide(features)).squeeze(1), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            print(f"AUC {area_under_curve(torch.cat(scores), torch.cat(labels)):.3f}")
