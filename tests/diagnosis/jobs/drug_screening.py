"""Looking for molecules that may become drugs."""
import torch
import torch.nn.functional as F
from torch import nn

from job import job


class InfluenceStudy:
    """Which molecules of the training set speak for a prediction: gradients of their losses, compared with one."""

    def __init__(self, model, target, keep_gradients):
        self.model = model
        self.keep_gradients = keep_gradients
        self.target = self.gradient(*target)
        self.by_molecule = {}

    def gradient(self, fingerprint, activity):
        loss = F.mse_loss(self.model(fingerprint), activity)
        parts = torch.autograd.grad(loss, list(self.model.parameters()))
        return torch.cat([part.flatten() for part in parts])  # guilty in influential_molecules

    def add(self, molecule, fingerprint, activity):
        gradient = self.gradient(fingerprint, activity)
        if not self.keep_gradients:
            gradient = float(gradient @ self.target)
        self.by_molecule[molecule] = gradient  # cause in influential_molecules

    def ranking(self):
        def influence(molecule):
            found = self.by_molecule[molecule]
            return float(found @ self.target) if self.keep_gradients else found

        return sorted(self.by_molecule, key=influence)


@job("gradient_accumulation")
def influential_molecules(run):
    """The gradient of each molecule's loss is kept in a dictionary until all of them are compared with that of the
    prediction in question. Fixed: each is compared at once, and the number is kept."""
    model = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1)).to(run.device)
    target = torch.rand(1, 1024, device=run.device), torch.ones(1, 1, device=run.device)
    study = InfluenceStudy(model, target, keep_gradients=not run.fixed)
    for step in run.steps(12):
        fingerprints = (torch.rand(6, 1024, device=run.device) < 0.1).float()
        activities = torch.rand(6, 1, device=run.device)
        for k in range(6):
            study.add((step, k), fingerprints[k : k + 1], activities[k : k + 1])
    assert len(study.ranking()) >= 72


def deepest_pocket(depths, first, last):
    """The deepest point between two layers of the protein, by bisection."""
    if last - first <= 8:
        return float(depths[first:last].max())
    middle = (first + last) // 2
    return max(deepest_pocket(depths, first, middle), deepest_pocket(depths, middle, last))


def deepest_pocket_in(depths):
    """The same as one function."""

    def search(first, last):
        if last - first <= 8:
            return float(depths[first:last].max())
        middle = (first + last) // 2
        return max(search(first, middle), search(middle, last))  # cause in binding_pockets

    return search(0, len(depths))


@job("reference_cycle")
def binding_pockets(run):
    """A function within a function calls itself: its closure holds it, and it the closure, with the grid of depths.
    Each protein's grid stays until the cyclic collector comes. Fixed: a function of the module with arguments."""
    pockets = []
    for _ in run.steps(14):
        grid = torch.rand(1, 1, 64, 192, 192, device=run.device)
        depths = F.avg_pool3d(grid, 3, stride=1, padding=1)[0, 0]  # guilty
        pockets.append(deepest_pocket(depths, 0, len(depths)) if run.fixed else deepest_pocket_in(depths))
        del depths, grid


def tanimoto(some, others):
    """How similar fingerprints are, all pairs."""
    common = some @ others.T  # guilty in whole_library
    either = some.sum(1)[:, None] + others.sum(1)[None] - common
    return common / either.clamp_min(1)


@job("true_capacity")
def whole_library(run):
    """For the diversity of a library the similarities of all pairs of its molecules are computed at once; that of the
    last library does not fit. Fixed: a thousand rows of them at a time."""
    run.cap(700)
    sizes = (2000, 2500, 3000, 4000, 3500, 4500, 5000, 12000)
    diversity = []
    for step in run.steps(8):
        library = (torch.rand(sizes[step], 256, device=run.device) < 0.1).float()  # guilty
        total = 0.0
        for part in library.split(1000 if run.fixed else len(library)):
            total += float(tanimoto(part, library).sum())
        diversity.append(1 - total / len(library) ** 2)
        del part, library


class Target(nn.Module):
    """What is specific to a protein."""

    def __init__(self):
        super().__init__()
        self.bind = nn.Linear(512, 2048)
        self.affinity = nn.Linear(2048, 1)

    def forward(self, molecules):
        return self.affinity(F.silu(self.bind(molecules)))


@job("healthy")
def proteins_in_turn(run):
    """A shared encoder and a head for each of twelve proteins, whose data come one protein after the other: Adam makes
    the state of a head when its turn comes first."""
    encoder = nn.Sequential(nn.Linear(1024, 512), nn.SiLU()).to(run.device)
    heads = nn.ModuleList(Target() for _ in range(12)).to(run.device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *heads.parameters()], lr=1e-3)
    losses = {}
    for step in run.steps(18):
        protein = step % 12
        for _ in range(2):
            molecules = torch.rand(512, 1024, device=run.device)
            loss = F.huber_loss(heads[protein](encoder(molecules)), molecules[:, :1])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        losses.setdefault(protein, []).append(loss.item())
