"""Poses of small molecules in the pockets of proteins: generated, scored, refined."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


def contacts(ligand, protein):
    """Distances of all pairs of atoms and what they contribute to the energy."""
    distances = torch.cdist(ligand, protein) + 1  # guilty in cached_contacts
    return distances, distances ** -12 - distances ** -6  # guilty in cached_contacts


class ContactEnergy(torch.autograd.Function):
    """Saves the coordinates only, and computes the pairs of atoms once more in backward()."""

    cache = {}
    caching = True

    @staticmethod
    def forward(ctx, ligand, protein, key):
        ctx.save_for_backward(ligand, protein)
        ctx.key = key
        return contacts(ligand, protein)[1].sum((1, 2))

    @staticmethod
    def backward(ctx, gradient):
        ligand, protein = ctx.saved_tensors
        with torch.enable_grad():
            ligand = ligand.detach().requires_grad_()
            distances, energies = contacts(ligand, protein)
            total = energies.sum((1, 2))
        if ContactEnergy.caching:
            ContactEnergy.cache[ctx.key] = distances.detach(), energies.detach()  # cause in cached_contacts
        return torch.autograd.grad(total, ligand, gradient)[0], None, None


@job("checkpoint_cache")
def cached_contacts(run):
    """An energy that is recomputed in backward() to save memory, and then puts what it recomputed into a cache by
    complex, for an analysis that never comes. Fixed: no cache."""
    ContactEnergy.caching = not run.fixed
    placer = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 40 * 3)).to(run.device)
    optimizer = torch.optim.Adam(placer.parameters(), lr=1e-3)
    for key in run.steps(14):
        protein = torch.randn(32, 2048, 3, device=run.device) * 8
        poses = placer(torch.randn(32, 128, device=run.device)).view(32, 40, 3)
        energy = ContactEnergy.apply(poses, protein, key).mean()
        optimizer.zero_grad(set_to_none=True)
        energy.backward()
        optimizer.step()


class PairScorer(nn.Module):
    """Scores a pose by a small network on each pair of atoms."""

    def __init__(self, features=8):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0, 20, features))
        self.hidden = nn.Linear(features, features)
        self.score = nn.Linear(features, 1)

    def forward(self, poses, pocket):
        distances = torch.cdist(poses, pocket)  # guilty in multimeric_target
        bases = (distances[..., None] - self.centres).square_().neg_().exp_()  # guilty in multimeric_target
        hidden = self.hidden(bases).relu_()
        return self.score(hidden).sum((1, 2, 3))


@job("true_capacity")
def multimeric_target(run):
    """Screening against pockets of some hundred atoms, all 64 poses of a ligand at once; the last is a multimer of
    four thousand atoms, which is too much. Fixed: eight poses at a time."""
    run.cap(600)
    scorer = PairScorer().to(run.device).eval()
    sizes = [520, 910, 700, 1010, 840, 630, 760, 580, 940, 4100]
    best = []
    with torch.inference_mode():
        for step in run.steps(len(sizes)):
            pocket = torch.randn(sizes[step % len(sizes)], 3, device=run.device) * 10
            poses = torch.randn(64, 40, 3, device=run.device) * 3
            scores = [scorer(part, pocket.expand(len(part), -1, -1)) for part in poses.split(8 if run.fixed else 64)]
            best.append(torch.cat(scores).argmin().item())


class TargetHeads:
    """An affinity head with its own optimizer for each protein, on a fingerprint that all share."""

    def __init__(self, targets, device, tidy):
        self.heads = [nn.Sequential(nn.Linear(2048, 1536), nn.ReLU(), nn.Linear(1536, 1)).to(device)
                      for _ in range(targets)]
        self.optimizers = [torch.optim.SGD(head.parameters(), lr=0.01) for head in self.heads]
        self.tidy = tidy

    def fit(self, target, fingerprints, affinities):
        optimizer = self.optimizers[target]
        optimizer.zero_grad(set_to_none=True)  # cause in head_for_each_target
        loss = F.mse_loss(self.heads[target](fingerprints), affinities)
        loss.backward()  # guilty in head_for_each_target
        optimizer.step()
        if self.tidy:
            optimizer.zero_grad(set_to_none=True)
        return loss.item()


@job("gradient_accumulation")
def head_for_each_target(run):
    """Targets take turns; each head's gradients are cleared only when its next turn begins, so that those of all heads
    stay. Fixed: they are cleared after the step."""
    heads = TargetHeads(16, run.device, tidy=run.fixed)
    for step in run.steps(15):
        fingerprints = torch.randn(256, 2048, device=run.device)
        affinities = torch.randn(256, 1, device=run.device)
        for _ in range(2):
            heads.fit(step % 16, fingerprints, affinities)


@job("healthy")
def polished_poses(run):
    """All poses of a library are refined together by L-BFGS, whose history of six steps fills up first."""
    anchors = torch.randn(16384, 32, 3, device=run.device)
    poses = nn.Parameter(anchors + torch.rand_like(anchors))
    optimizer = torch.optim.LBFGS([poses], lr=0.05, max_iter=1, history_size=6)

    def energy():
        optimizer.zero_grad(set_to_none=True)
        spread = (poses - anchors).square().sum(2)
        total = (spread - 0.1 * spread.sin()).sum(1).mean() * 1e3
        total.backward()
        return total

    for _ in run.steps(20):
        optimizer.step(energy)
    assert poses.isfinite().all()
