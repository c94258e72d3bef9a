"""The layout of chips: cells are moved to where wires are short, with graph networks and with annealing."""
import gc

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Placement:
    """Where the cells are, and the move that led there."""

    def __init__(self, cells, last_move=None):
        self.cells = cells
        self.last_move = last_move

    def length(self, nets):
        return (self.cells[nets[0]] - self.cells[nets[1]]).abs().sum()


class Move:
    """Can be taken back."""

    def __init__(self, before, cells, shift):
        self.before = before
        self.cells, self.shift = cells, shift
        self.after = None

    def apply(self):
        moved = self.before.cells.clone()  # guilty in annealed_chips
        moved[self.cells] += self.shift
        self.after = Placement(moved, self)  # cause in annealed_chips
        return self.after

    def forget(self):
        """Nobody will take it back."""
        self.before = self.after = None


@job("reference_cycle")
def annealed_chips(run):
    """Annealing accepts a move or takes it back. A move knows the placement that it leads to, and the placement its
    move: those that were taken back wait for the collector, which seldom comes with thresholds as in services. Fixed:
    a move that was taken back forgets its placements."""
    gc.set_threshold(200_000, 50, 50)
    placement = Placement(torch.rand(1_200_000, 2, device=run.device))
    nets = torch.randint(1_200_000, (2, 400_000), device=run.device)
    for step in run.steps(14):
        for _ in range(2):
            cells = torch.randint(1_200_000, (2000,), device=run.device)
            move = Move(placement, cells, 0.1 * torch.randn(2000, 2, device=run.device))
            tried = move.apply()
            better = (tried.length(nets) < placement.length(nets) + 50 - step).item()
            if better and step % 7 == 6:
                placement = Placement(tried.cells)
            if run.fixed:
                move.forget()
            del move, tried


def crowded(centers, reach):
    """How many cells are near each cell."""
    gaps = centers[:, None, 0] - centers[None, :, 0]  # guilty in crowds_of_the_first_plan
    gaps = gaps.square() + (centers[:, None, 1] - centers[None, :, 1]).square()  # guilty in crowds_of_the_first_plan
    return (gaps < reach**2).sum(1)


@job("cached_not_released")
def crowds_of_the_first_plan(run):
    """In the first plan of a chip it is counted how crowded it is around each cell, by the distances of all pairs. The
    refinement that follows looks at 600 cells at a time. Fixed: empty_cache() in between."""
    centers = torch.rand(8000, 2, device=run.device)
    order = crowded(centers, 0.02).argsort(descending=True)
    if run.fixed:
        torch.cuda.empty_cache()
    force = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 2)).to(run.device)
    optimizer = torch.optim.Adam(force.parameters(), lr=1e-3)
    for step in run.steps(14):
        chosen = order[600 * (step % 13) :][:600]
        near = crowded(centers[chosen], 0.05).float()
        moved = centers[chosen] + 0.01 * force(torch.cat([centers[chosen], near[:, None]], 1))
        loss = -torch.pdist(moved).clamp(max=0.05).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            centers[chosen] = moved.detach()


class CellNet(nn.Module):
    """A graph network over nets of two cells."""

    def __init__(self, width=96):
        super().__init__()
        self.into = nn.Linear(6, width)
        self.rounds = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3))
        self.out = nn.Linear(width, 2)

    def forward(self, cells, nets):
        hidden = self.into(cells)
        for layer in self.rounds:
            gathered = torch.zeros_like(hidden).index_add(0, nets[1], hidden[nets[0]])
            hidden = F.relu(layer(torch.cat([hidden, gathered], 1)))
        return self.out(hidden)


def wires_of(model, count, device):
    """The length of the wires of a chip with so many cells, and a penalty for cells in a heap."""
    nets = torch.randint(count, (2, 3 * count), device=device)
    places = model(torch.randn(count, 6, device=device), nets)
    return (places[nets[0]] - places[nets[1]]).square().sum(1).mean() + (places.std(0) - 1).square().sum()


@job("healthy")
def larger_and_larger_chips(run):
    """A curriculum: chips have more cells from step to step until the eighth, and then as many as there are. The
    largest was tried once before, to see that it fits. The best lengths of wires are kept as numbers."""
    model = CellNet().to(run.device)
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    best = {}
    wires_of(model, 28_000, run.device).backward()
    for step in run.steps(17):
        count = 4000 + 3000 * min(step, 8)
        loss = wires_of(model, count, run.device)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best[count] = min(best.get(count, loss.item()), loss.item())
    assert len(best) == 9
