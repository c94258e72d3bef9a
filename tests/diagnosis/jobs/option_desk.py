"""Pricing and hedging options, and making a market in them."""
import random
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn

from job import job


class BasketPricer:
    """Prices of options on baskets by simulation, and their Greeks path by path."""

    def __init__(self, paths, assets, device):
        self.spot = torch.full((paths, assets), 100.0, device=device, requires_grad=True)
        self.volatility = torch.full((paths, assets), 0.2, device=device, requires_grad=True)

    def payoff(self, strike, years):
        shocks = torch.randn_like(self.spot) * years**0.5
        final = self.spot * torch.exp(self.volatility * shocks - self.volatility.square() * years / 2)
        return F.relu(final.mean(1) - strike)

    def greeks(self, strike, years):
        payoff = self.payoff(strike, years)
        delta, vega = torch.autograd.grad(payoff.sum(), [self.spot, self.volatility])  # guilty in greeks_of_the_book
        return {"delta": delta, "vega": vega}


class RiskReport:
    """The Greeks of all positions, for the evening."""

    def __init__(self, by_path):
        self.by_path = by_path
        self.positions = defaultdict(list)

    def enter(self, strike, greeks):
        for name, values in greeks.items():
            entered = values if self.by_path else values.mean(0)  # cause in greeks_of_the_book
            self.positions[name].append((strike, entered))


@job("gradient_accumulation")
def greeks_of_the_book(run):
    """Greeks of each position in a book are gradients of its payoffs, of each path, with regard to spots and
    volatilities. The report only needs their means, but keeps the gradients themselves. Fixed: it keeps the means."""
    pricer, report = BasketPricer(65_536, 24, run.device), RiskReport(by_path=not run.fixed)
    for position in run.steps(14):
        strike = 90.0 + 2 * position
        report.enter(strike, pricer.greeks(strike, years=0.25 + position % 4))
    assert sum(values.mean().item() for _, values in report.positions["delta"]) > 0


class MarketMemory(nn.Module):
    """A slowly changing picture of each instrument. It is read detached, as it is not trained through."""

    def __init__(self, width, detach_on_write):
        super().__init__()
        self.detach_on_write = detach_on_write
        self.register_buffer("picture", torch.zeros(1, width))  # at first the same for all

    def read(self, instruments):
        return self.picture.detach().expand(instruments, -1)

    def write(self, features):
        if self.detach_on_write:
            features = features.detach()
        novelty = torch.sigmoid(features - self.picture)  # guilty in pictures_of_instruments
        self.picture = novelty * features + (1 - novelty) * self.picture  # guilty in pictures_of_instruments


class Trader(nn.Module):
    """Positions from order books and from the memory of the market."""

    def __init__(self, width, detach_on_write):
        super().__init__()
        self.encode = nn.Linear(40, width)
        self.decide = nn.Linear(2 * width, 1)
        self.memory = MarketMemory(width, detach_on_write)

    def forward(self, books):
        features = torch.tanh(self.encode(books))  # guilty in pictures_of_instruments
        positions = torch.tanh(self.decide(torch.cat([features, self.memory.read(len(books))], 1)))
        self.memory.write(features)
        return positions


@job("hidden_state")
def pictures_of_instruments(run):
    """A trading model with a memory of each instrument, which is detached where it is read but not where it is
    written: each picture has the graph of the one before it. Fixed: features are detached for the memory."""
    trader = Trader(512, detach_on_write=run.fixed).to(run.device)
    optimizer = torch.optim.Adagrad(trader.parameters(), lr=0.01)
    for _ in run.steps(12):
        positions = trader(torch.randn(2048, 40, device=run.device))
        returns = torch.randn(2048, 1, device=run.device)
        optimizer.zero_grad()
        (-(positions * returns).mean() + positions.square().mean()).backward()
        optimizer.step()


def revalue(surrogate, scenarios):
    """Values of the book in all scenarios at once."""
    risk_factors = torch.randn(scenarios, 256, device=surrogate[0].weight.device)  # guilty in overnight_revaluation
    return surrogate(risk_factors).quantile(0.01).item()  # guilty in overnight_revaluation


@job("cached_not_released")
def overnight_revaluation(run):
    """The first three rounds value the whole book in many scenarios, for last night's report; from then on single
    quotes are answered all day. Another desk's models share the GPU, and do not get what the report left in the cache.
    Fixed: empty_cache() after the report."""
    surrogate = nn.Sequential(nn.Linear(256, 512), nn.SiLU(), nn.Linear(512, 1))
    surrogate = surrogate.to(run.device).requires_grad_(False)
    report, quotes = [], 0.0
    for step in run.steps(20):
        if step < 3:
            report.append(revalue(surrogate, scenarios=100_000))
        else:
            quotes += surrogate(torch.randn(64, 256, device=run.device)).sum().item()
        if step == 2 and run.fixed:
            torch.cuda.empty_cache()
    assert len(report) == 3


class HardPoints:
    """Points where the equation is violated most; the pool grows by the worst of each step until it is full, and then
    only the worst of it stay."""

    def __init__(self, most, device):
        self.most = most
        self.points = torch.empty(0, 2, device=device)

    def add(self, points, violation):
        worst = violation.flatten().topk(len(points) // 4).indices
        self.points = torch.cat([points[worst], self.points])[: self.most]


def violation_of_black_scholes(network, points, rate=0.02, volatility=0.3):
    """What is left of the equation, from derivatives of the network."""
    points = points.detach().requires_grad_(True)
    price = network(points)
    (slope,) = torch.autograd.grad(price.sum(), points, create_graph=True)
    (bend,) = torch.autograd.grad(slope[:, :1].sum(), points, create_graph=True)
    spot = points[:, :1]
    drift = rate * spot * slope[:, :1] - rate * price
    return (slope[:, 1:] + 0.5 * (volatility * spot) ** 2 * bend[:, :1] + drift).square()


@job("healthy")
def collocated_prices(run):
    """A network learns prices from the Black-Scholes equation, which takes a second derivative in each step. Points
    where it is bad are kept for the next steps, up to a number."""
    network = nn.Sequential(nn.Linear(2, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    network = network.to(run.device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    hard = HardPoints(4096, run.device)
    for _ in run.steps(14):
        points = torch.cat([torch.rand(2048, 2, device=run.device), hard.points])
        violation = violation_of_black_scholes(network, points)
        optimizer.zero_grad()
        violation.mean().backward()
        optimizer.step()
        hard.add(points[:2048], violation[:2048].detach())
        del points, violation


class MarketMaker(nn.Module):
    """Quotes from order books. What an episode needs for its update is held until it ends."""

    def __init__(self, width=768):
        super().__init__()
        self.body = nn.Linear(1024, width)
        self.quote = nn.Linear(width, 21)
        self.log_probabilities, self.rewards = [], []

    def act(self, books):
        log_probabilities = F.log_softmax(self.quote(torch.relu(self.body(books))), 1)
        quotes = log_probabilities.detach().exp().multinomial(1)
        self.log_probabilities.append(log_probabilities.gather(1, quotes))
        self.rewards.append(torch.randn(len(books), device=books.device))

    def episode_loss(self):
        returns = torch.stack(self.rewards).flip(0).cumsum(0).flip(0)
        loss = -(torch.cat(self.log_probabilities, 1) * returns.T).mean()
        self.log_probabilities, self.rewards = [], []
        return loss


@job("healthy")
def episodes_of_market_making(run):
    """Policy gradients for a market maker. An episode lasts until the inventory is too large, five to eleven steps; all
    its steps are needed for the update, with their graphs, and are dropped with it."""
    maker, draw = MarketMaker().to(run.device), random.Random(13)
    optimizer = torch.optim.RMSprop(maker.parameters(), lr=1e-4)
    left = 6
    for _ in run.steps(32):
        maker.act(torch.randn(1024, 1024, device=run.device))
        left -= 1
        if left == 0:
            loss = maker.episode_loss()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            left = draw.randint(5, 11)
    assert len(maker.rewards) < 12
