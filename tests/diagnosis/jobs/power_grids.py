"""Power grids: control of generators, security of the network, forecasts of the load."""
import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional as F

from job import job


class SwingEquation:
    """The angles and frequencies of the generators of many copies of a grid."""

    def __init__(self, copies, generators, device):
        self.coupling = torch.rand(generators, generators, device=device) / generators
        self.angles = torch.zeros(copies, generators, device=device)
        self.speeds = torch.zeros(copies, generators, device=device)

    def observe(self):
        return torch.cat([self.angles, self.speeds], dim=1).detach()

    def step(self, power, interval=0.05):
        differences = self.angles[:, :, None] - self.angles[:, None]  # guilty in generators_in_swing
        flows = (self.coupling * differences.sin()).sum(2)
        self.speeds = self.speeds + interval * (power - flows - 0.1 * self.speeds)
        self.angles = self.angles + interval * self.speeds
        return -self.speeds.square().mean(1)


@job("hidden_state")
def generators_in_swing(run):
    """Policy gradients on a simulated grid. The actions are drawn with rsample(), which is differentiable, and the
    state of the simulator strings all steps together. Fixed: sample()."""
    grid = SwingEquation(256, 120, run.device)
    policy = nn.Sequential(nn.Linear(240, 256), nn.Tanh(), nn.Linear(256, 120)).to(run.device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for _ in run.steps(14):
        choice = Normal(policy(grid.observe()), 0.1)
        power = choice.sample() if run.fixed else choice.rsample()  # cause
        reward = grid.step(power) + grid.step(power)
        advantage = (reward - reward.mean()).detach()
        loss = -(choice.log_prob(power.detach()).sum(1) * advantage).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


def overloaded_lines(lines, hours, device):
    """For each line that may fail, the hours in which another line is overloaded then."""
    flows = torch.randn(lines, hours, device=device)
    shifted = torch.randn(lines, lines, device=device) / lines ** 0.5
    redistributed = shifted.T[:, :, None] * flows[:, None]  # guilty in screened_contingencies
    after = redistributed + flows  # guilty in screened_contingencies
    return (after.abs() > 3).any(1).sum(1).tolist()  # guilty in screened_contingencies


@job("cached_not_released")
def screened_contingencies(run):
    """All single failures are screened once, then a small forecaster is trained for hours; what the screening took
    stays reserved, which the load-flow solver on the same device would need. Fixed: empty_cache() in between."""
    critical = overloaded_lines(720, 128, run.device)
    if run.fixed:
        torch.cuda.empty_cache()
    forecaster = nn.Sequential(nn.Linear(168, 512), nn.ReLU(), nn.Linear(512, 24)).to(run.device)
    optimizer = torch.optim.Adam(forecaster.parameters(), lr=1e-3)
    for _ in run.steps(24):
        load = torch.randn(1024, 192, device=run.device)
        loss = F.l1_loss(forecaster(load[:, :168]), load[:, 168:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    assert len(critical) == 720


class LoadForecaster(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.encoder = nn.GRU(16, width, batch_first=True)
        self.hours = nn.Linear(width, 24)

    def forward(self, history):
        return self.hours(self.encoder(history)[0][:, -1])


def fit_zone(zone, device, epochs=2):
    """The weights, on the host, of a model for one zone, and how well it does."""
    model = LoadForecaster().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        history, following = torch.randn(1024, 12, 16, device=device), torch.randn(1024, 24, device=device)
        loss = F.mse_loss(model(history), following + zone)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return {name: weight.cpu() for name, weight in model.state_dict().items()}, loss.item()


@job("healthy")
def zones_of_the_grid(run):
    """A model is trained for each zone in turn; its weights are kept on the host."""
    zones = {}
    for zone in run.steps(12):
        zones[zone] = fit_zone(zone, run.device)


@job("healthy")
def backtested_load(run):
    """Training and, in each epoch, a backtest on growing history, whose forecasts are collected on the host and as
    numbers."""
    model = LoadForecaster(256).to(run.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9)
    forecasts, errors = [], []
    for epoch in run.steps(16):
        model.train()
        history, following = torch.randn(2048, 12, 16, device=run.device), torch.randn(2048, 24, device=run.device)
        loss = F.huber_loss(model(history), following)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.inference_mode():
            forecast = model(torch.randn(2048, 8 + epoch // 4, 16, device=run.device))
            forecasts.append(forecast.cpu())
            errors.append(forecast.abs().mean().item())
