"""Bikes that are shared in a city: stations, forecasts of demand, flows between stations."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job

HOURS, FEATURES = 48, 12


class City(nn.Module):
    """A shared encoder of the last hours."""

    def __init__(self, width=192, layers=2):
        super().__init__()
        self.features = nn.Linear(FEATURES, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, hours):
        return self.encoder(self.features(hours))  # guilty in balanced_demands


def hours_of(stations, device):
    return torch.randn(stations, HOURS, FEATURES, device=device)


class StationHead(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(192, width)
        self.mixed = nn.Linear(width, width)
        self.outer = nn.Linear(width, 2)

    def forward(self, hidden):
        return self.outer(F.gelu(self.mixed(F.gelu(self.inner(hidden)))))


@job("gradient_accumulation")
def stations_take_turns(run):
    """Each station has a head and an optimizer of its own, and their turns come one after another. An optimizer forgets
    gradients before its own backward() only: those of each head stay until its station comes again, a day later. Fixed:
    they are set to None after the step."""
    city = City().to(run.device).requires_grad_(False).eval()
    heads = [StationHead(1536).to(run.device) for _ in range(20)]
    optimizers = [torch.optim.SGD(head.parameters(), lr=0.01) for head in heads]
    for turn in run.steps(14):
        head, optimizer = heads[turn % 20], optimizers[turn % 20]
        with torch.no_grad():
            hidden = city(hours_of(64, run.device))[:, -1]
        for _ in range(2):
            optimizer.zero_grad()
            F.mse_loss(head(hidden), torch.rand(64, 2, device=run.device)).backward()  # guilty
            optimizer.step()
        if run.fixed:
            optimizer.zero_grad(set_to_none=True)


class Balance:
    """Weights of tasks by how fast their losses fall (dynamic weight averaging)."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.past = []

    def remember(self, losses):
        self.past.append([loss.item() for loss in losses] if self.numbers else losses)  # cause in balanced_demands

    def weights(self, count):
        if len(self.past) < 2:
            return [1.0] * count
        ratios = torch.tensor([float(new) / float(old) for new, old in zip(self.past[-1], self.past[-2])])
        return (count * (ratios / 2).softmax(0)).tolist()


@job("retained_graph")
def balanced_demands(run):
    """Bikes and docks are forecast together, with weights that follow from past losses. Norms of the gradients of both
    are logged, for which backward() keeps the graph, and the losses in the history keep it for ever. Fixed: the history
    has numbers, and the last backward() keeps nothing."""
    city = City().to(run.device)
    bikes, docks = (nn.Linear(192, 1).to(run.device) for _ in range(2))
    weights = [*city.parameters(), *bikes.parameters(), *docks.parameters()]
    optimizer = torch.optim.Adam(weights, lr=1e-4)
    balance, norms = Balance(numbers=run.fixed), []
    for _ in run.steps(11):
        hidden = city(hours_of(48, run.device))[:, -1]
        losses = [F.l1_loss(head(hidden), torch.rand(48, 1, device=run.device)) for head in (bikes, docks)]
        shares = balance.weights(2)
        balance.remember(losses)
        norms.append([torch.autograd.grad(loss, hidden, retain_graph=True)[0].norm().item() for loss in losses])
        optimizer.zero_grad()
        sum(share * loss for share, loss in zip(shares, losses)).backward(retain_graph=not run.fixed)
        optimizer.step()


def flows(stations, demand, block):
    """Expected trips between all pairs of stations, for so many of the origins at a time."""
    totals = []
    for origins in stations.split(block):
        pairs = origins[:, None] - stations[None]  # guilty in trips_of_a_large_city
        near = (-pairs.square()).exp()  # guilty in trips_of_a_large_city
        totals.append((near @ demand).sum(1))
        del pairs, near
    return torch.cat(totals)


@job("true_capacity")
def trips_of_a_large_city(run):
    """Trips between all pairs of stations by features of the pairs: a difference of vectors for each pair, which fits
    for towns and not for a large city. Fixed: 64 origins at a time."""
    run.cap(800)
    cities = [500, 800, 650, 1000, 700, 2200, 600]
    demand = torch.rand(24, device=run.device)
    with torch.no_grad():
        for step in run.steps(len(cities)):
            stations = torch.randn(cities[step % len(cities)], 24, device=run.device)
            assert len(flows(stations, demand, 64 if run.fixed else len(stations)).tolist()) == len(stations)


@job("healthy")
def forecasts_with_a_cycle(run):
    """Forecasts by a transformer, with a one-cycle rate and a test after each fourth batch; the errors of the test are
    numbers."""
    city = City(layers=3).to(run.device)
    head = nn.Linear(192, 24).to(run.device)
    weights = [*city.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=30)
    errors = []
    for step in run.steps(14):
        city.train()
        loss = F.mse_loss(head(city(hours_of(48, run.device))[:, -1]), torch.rand(48, 24, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        schedule.step()
        if step % 4 == 3:
            city.eval()
            with torch.no_grad():
                errors.append(head(city(hours_of(96, run.device))[:, -1]).abs().mean().item())
    assert len(errors) == 3
