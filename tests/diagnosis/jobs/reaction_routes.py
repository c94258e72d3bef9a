"""Planning syntheses: which reactions lead from what can be bought to a molecule."""
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import nn

from held.bounded_stores import FlushedStore
from job import job


class RoutePlanner:
    """Looks for a route to one target. Applying the templates to an intermediate is slow, so it is remembered."""

    def __init__(self, target, templates, memoise):
        self.target = target
        self.templates = templates
        self.known = {}
        self.memoised = lru_cache(maxsize=None)(self.apply) if memoise else None  # cause in routes_to_targets

    def apply(self, intermediate):
        return torch.relu(self.target.roll(intermediate, 0) @ self.templates)  # guilty in routes_to_targets

    def reactions(self, intermediate):
        if self.memoised:
            return self.memoised(intermediate)
        if intermediate not in self.known:
            self.known[intermediate] = self.apply(intermediate)
        return self.known[intermediate]

    def route(self, steps):
        intermediate, route = 1, []
        for _ in range(steps):
            route.append(intermediate)
            intermediate = int(self.reactions(intermediate).sum(0).argmax()) % 7
        return route


@job("reference_cycle")
def routes_to_targets(run):
    """Each target gets a planner of its own, which remembers what it computed with lru_cache() around its own method.
    The planner has the cache, and the cache has the method, and so the planner: it stays until the collector runs.
    Fixed: a dictionary of results."""
    templates = torch.randn(512, 1024, device=run.device) / 512**0.5
    routes = []
    with torch.no_grad():
        for _ in run.steps(12):
            target = torch.randn(4096, 512, device=run.device)  # guilty
            routes.append(RoutePlanner(target, templates, memoise=not run.fixed).route(steps=8))
            del target
    assert all(len(route) == 8 for route in routes)


def energies_from_teacher(geometries):
    """Energies by a large network, which is not needed afterwards."""
    teacher = nn.Sequential(nn.Linear(96, 4096), nn.SiLU(), nn.Linear(4096, 4096), nn.SiLU(), nn.Linear(4096, 4096),
                            nn.SiLU(), nn.Linear(4096, 1))
    teacher = teacher.to(geometries.device).eval()  # guilty in energies_before_dynamics
    with torch.no_grad():
        return torch.cat([teacher(part) for part in geometries.split(4096)])  # guilty in energies_before_dynamics


@job("cached_not_released")
def energies_before_dynamics(run):
    """A large network labels geometries of a transition state, and is gone when its function returns. The small network
    that learns from the labels runs for days beside a simulation on the same GPU, which cannot have the memory that
    PyTorch keeps. Fixed: empty_cache() after the labels were made."""
    geometries = torch.randn(8192, 96, device=run.device)
    energies = energies_from_teacher(geometries)
    if run.fixed:
        torch.cuda.empty_cache()
    student = nn.Sequential(nn.Linear(96, 256), nn.SiLU(), nn.Linear(256, 1)).to(run.device)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    for _ in run.steps(16):
        batch = torch.randint(8192, (2048,), device=run.device)
        optimizer.zero_grad()
        F.huber_loss(student(geometries[batch]), energies[batch]).backward()
        optimizer.step()


class ReagentScorer:
    """Scores reagents for a product. Their representations are stored within a budget."""

    def __init__(self, device, budget):
        self.represent = nn.Linear(768, 1024).to(device)
        self.stored = FlushedStore(budget)

    def representation(self, catalogue):
        rows = 1024 + 512 * (catalogue * 5 % 7)
        fingerprints = torch.rand(rows, 768, device=self.represent.weight.device)
        return torch.tanh(self.represent(fingerprints))

    def score(self, product, catalogue):
        reagents = self.stored.get(catalogue, lambda: self.representation(catalogue))
        return (reagents @ product).amax()


@job("healthy")
def reagents_within_budget(run):
    """Reagents of many catalogues are scored for products. Representations of catalogues are stored up to 150 MiB;
    when the next does not fit, all are dropped, and the store fills up again."""
    scorer = ReagentScorer(run.device, 150 << 20)
    scores = []
    with torch.inference_mode():
        for step in run.steps(24):
            product = torch.randn(1024, device=run.device)
            scores += [scorer.score(product, catalogue).item() for catalogue in (3 * step % 31, step)]
    assert len(scores) == 48


class BoostedYields:
    """A sum of small networks, each fitted to what those before it leave over. The least useful one goes when
    there are more than five."""

    def __init__(self, device):
        self.device = device
        self.networks, self.gains = [], []

    def predict(self, conditions):
        with torch.no_grad():
            return sum((0.3 * network(conditions) for network in self.networks), torch.zeros(1, device=self.device))

    def fit_next(self, conditions, yields):
        left = yields - self.predict(conditions)
        network = nn.Sequential(nn.Linear(600, 2048), nn.Tanh(), nn.Linear(2048, 1)).to(self.device)
        optimizer = torch.optim.RMSprop(network.parameters(), lr=1e-4)
        for _ in range(3):
            loss = F.mse_loss(network(conditions), left)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        network.requires_grad_(False)
        optimizer.zero_grad(set_to_none=True)
        self.networks.append(network)
        self.gains.append(left.square().mean().item() - loss.item())
        self.prune()

    def prune(self):
        if len(self.networks) > 5:
            weakest = self.gains.index(min(self.gains))
            del self.networks[weakest], self.gains[weakest]


@job("healthy")
def boosted_yields(run):
    """Boosting with small networks: five rounds add one, and from then on each round also drops the weakest."""
    boosted = BoostedYields(run.device)
    conditions = torch.rand(4096, 600, device=run.device)
    yields = conditions.square().mean(1, keepdim=True)
    for _ in run.steps(14):
        boosted.fit_next(conditions, yields)
    assert len(boosted.networks) == 5
