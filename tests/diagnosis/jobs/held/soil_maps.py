"""Maps of soils from samples: kriging, implicit networks."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


class NotFiniteGuard:
    """Remembers what layers gave, so that the first that is not finite can be named."""

    def __init__(self):
        self.given = []

    def remember(self, layer, values):
        self.given.append((layer, values))  # cause in guarded_soil_network

    def check(self):
        for layer, values in self.given:
            if not values.isfinite().all():
                raise FloatingPointError(f"layer {layer}")
        self.given.clear()


class SoilNetwork(nn.Module):
    """Soil at a place, from many frequencies of its coordinates; layers are recomputed."""

    def __init__(self, guard=None, width=512):
        super().__init__()
        self.frequencies = nn.Parameter(torch.randn(3, width))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, 5)
        self.guard = guard

    def layer(self, index, hidden):
        hidden = torch.sin(self.layers[index](hidden))  # guilty in guarded_soil_network
        if self.guard and hidden.requires_grad:
            self.guard.remember(index, hidden.detach())
        return hidden

    def forward(self, places):
        hidden = torch.sin(places @ self.frequencies)
        for index in range(len(self.layers)):
            hidden = checkpoint(self.layer, index, hidden, use_reentrant=True)
        return self.head(hidden)


@job("checkpoint_cache")
def guarded_soil_network(run):
    """A guard remembers what layers give, until it is asked to check, which is done after each epoch. Layers that are
    recomputed tell it what they gave in backward(). Fixed: it is asked after each step."""
    guard = NotFiniteGuard()
    model = SoilNetwork(guard).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in run.steps(13):
        places = torch.rand(3000, 3, device=run.device)
        loss = F.cross_entropy(model(places), torch.randint(5, (3000,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if run.fixed or step % 100 == 99:
            guard.check()


def kriging_weights(samples, values):
    covariance = torch.exp(-torch.cdist(samples, samples))  # guilty in kriging_before_the_network
    noise = 0.1 * torch.eye(len(samples), device=samples.device)  # guilty in kriging_before_the_network
    covariance = covariance + noise  # guilty in kriging_before_the_network
    factor = torch.linalg.cholesky(covariance)  # guilty in kriging_before_the_network
    return torch.cholesky_solve(values[:, None], factor).squeeze(1)  # guilty in kriging_before_the_network


@job("cached_not_released")
def kriging_before_the_network(run):
    """A trend is found by kriging with all samples, whose covariances are large; the network that learns the rest needs
    little. Fixed: empty_cache() between the two."""
    samples = torch.rand(7000, 3, device=run.device)
    trend = kriging_weights(samples, samples.sum(1))
    if run.fixed:
        torch.cuda.empty_cache()
    model = SoilNetwork(width=128).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in run.steps(15):
        rows = slice(400 * step, 400 * step + 400)
        loss = F.mse_loss(model(samples[rows]).mean(1), samples[rows].sum(1) - trend[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def county_after_county(run):
    """Kriging for one county after another, large and small: each begins when what the last one took is free."""
    counties = [1500, 3000, 2000, 2500, 1000, 3000, 2200, 1800, 3000, 1200]
    for step in run.steps(10):
        samples = torch.rand(counties[step % 10], 3, device=run.device)
        weights = kriging_weights(samples, samples.sum(1))
        assert weights.isfinite().all().item()
        del samples, weights
