"""Which customers will leave: tables of categories with an embedding for each column."""
import copy
import heapq
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class ChurnNet(nn.Module):
    """Embeddings of the categories and the numbers, then a perceptron."""

    def __init__(self, categories, width=16, numbers=24, hidden=256):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(count, width) for count in categories)
        self.trunk = nn.Sequential(
            nn.Linear(len(categories) * width + numbers, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.leaves = nn.Linear(hidden, 1)

    def forward(self, columns, numbers):
        embedded = [table(column) for table, column in zip(self.embeddings, columns.unbind(1))]
        return self.leaves(self.trunk(torch.cat([*embedded, numbers], 1))).squeeze(1)


def customers(run, rows, categories, numbers=24):
    columns = torch.stack([torch.randint(count, (rows,), device=run.device) for count in categories], 1)
    return columns, torch.randn(rows, numbers, device=run.device)


@job("true_capacity")
def embedding_per_customer(run):
    """A vector of 128 numbers for each of 400,000 customers, trained with Adam: the table fits, but the table, its
    dense gradient and two moments do not; the first step of the optimizer ends out of memory. Fixed: the customers
    share 50,000 vectors by hashing."""
    run.cap(700)
    rows = 50_000 if run.fixed else 400_000
    table = nn.Embedding(rows, 128)
    table = table.to(run.device)  # guilty
    head = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1)).to(run.device)
    optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()], lr=1e-3)
    for _ in run.steps(8):
        customer = torch.randint(400_000, (8192,), device=run.device) % rows
        left = torch.randint(2, (8192,), device=run.device).float()
        loss = F.binary_cross_entropy_with_logits(head(table(customer)).squeeze(1), left)
        optimizer.zero_grad()
        loss.backward()  # guilty
        optimizer.step()  # guilty


def customer_segments(features, count, rounds=3):
    """k-means: the number of each customer's segment."""
    centres = features[:count].clone()
    for _ in range(rounds):
        distance = torch.cdist(features, centres)  # guilty in segments_before_training
        nearest = distance.argmin(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, features)
        centres = sums / torch.bincount(nearest, minlength=count).clamp(min=1)[:, None]
    return nearest.cpu()


@job("cached_not_released")
def segments_before_training(run):
    """The customers are clustered once, with all distances to 512 centres in one matrix; then a small network is
    trained for hours next to another team's job, which does not get the memory. Fixed: empty_cache() after the
    clustering."""
    categories = (512, 40, 12, 7)
    model = ChurnNet(categories).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    segment = customer_segments(torch.randn(150_000, 24, device=run.device), 512)  # guilty
    if run.fixed:
        torch.cuda.empty_cache()
    for step in run.steps(12):
        columns, numbers = customers(run, 2048, categories)
        columns[:, 0] = segment[2048 * step :][:2048].to(run.device)
        loss = F.binary_cross_entropy_with_logits(model(columns, numbers), (numbers[:, 0] > 1).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@dataclass(order=True)
class Snapshot:
    """The weights of the model at a validation score."""

    score: float
    weights: dict = field(compare=False)


class BestSnapshots:
    """Keeps the weights with the best scores, to average their predictions at the end."""

    def __init__(self, count):
        self.count = count
        self.heap = []

    def offer(self, score, model):
        if len(self.heap) < self.count or score > self.heap[0].score:
            heapq.heappush(self.heap, Snapshot(score, copy.deepcopy(model.state_dict())))
            while len(self.heap) > self.count:
                heapq.heappop(self.heap)


@job("healthy")
def snapshot_ensemble(run):
    """The four best states of the network stay on the GPU for an ensemble: memory grows in the first validations,
    then a state replaces another."""
    categories = (60_000, 9000, 300)
    model = ChurnNet(categories, width=32, hidden=512).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    best = BestSnapshots(4)
    for _ in run.steps(14):
        for _ in range(2):
            columns, numbers = customers(run, 4096, categories)
            loss = F.binary_cross_entropy_with_logits(model(columns, numbers), (numbers[:, 1] > 1).float())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            columns, numbers = customers(run, 4096, categories)
            right = (model(columns, numbers) > 0) == (numbers[:, 1] > 1)
            best.offer(right.float().mean().item(), model)


@job("healthy")
def monthly_campaigns(run):
    """Each month the network is trained further, then all customers are scored in parts; the scores are collected on
    the CPU for the campaign's list."""
    categories = (5000, 300, 50)
    model = ChurnNet(categories, hidden=512).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lists = []
    for _ in run.steps(8):
        model.train()
        for _ in range(2):
            columns, numbers = customers(run, 4096, categories)
            loss = F.binary_cross_entropy_with_logits(model(columns, numbers), (numbers[:, 2] > 1).float())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        scores = []
        with torch.inference_mode():
            for _ in range(2):
                scores.append(model(*customers(run, 8192, categories)).sigmoid().cpu())
        lists.append(torch.cat(scores).topk(500).indices.tolist())
