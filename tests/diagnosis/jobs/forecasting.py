"""Forecasts of time series."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


class OnlineForecaster(nn.Module):
    """Learns from windows of history, and meanwhile follows the live series with a state of its own."""

    def __init__(self, series=64, width=512):
        super().__init__()
        self.cell = nn.GRU(series, width, batch_first=True)
        self.out = nn.Linear(width, series)
        self.state = None

    def fit_loss(self, window):
        hidden, _ = self.cell(window[:, :-1])
        return F.huber_loss(self.out(hidden), window[:, 1:])

    def observe(self, values):
        """The forecast of the next values; the state moves on."""
        hidden, self.state = self.cell(values, self.state)  # guilty in live_forecasts
        return self.out(hidden[:, -1])

    def settle(self):
        self.state = self.state.detach()


@job("hidden_state", fixed_contested="the forecast's graph lives, unused, while the model is trained")
def live_forecasts(run):
    """A forecaster that is trained on history between observations of live series. The state with which it follows
    them is an attribute, and each observation adds its graph. Fixed: the state is detached after each observation."""
    model = OnlineForecaster().to(run.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    alarms = 0
    for _ in run.steps(14):
        live = torch.randn(128, 32, 64, device=run.device)  # guilty
        forecast = model.observe(live)
        alarms += int((forecast.detach() - live[:, -1]).abs().amax() > 4)
        if run.fixed:
            model.settle()
        loss = model.fit_loss(torch.randn(32, 25, 64, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy", contested="outgrown sizes stay reserved, more than is ever allocated")
def expanding_window(run):
    """Backtesting with a window that takes in another month each time until it has two years; then it slides."""
    model = nn.Sequential(nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    months, errors = [], []
    for _ in run.steps(24):
        months.append(torch.randn(720, 2048, device=run.device))
        months = months[-12:]
        history = torch.cat(months[:-1] or months)
        loss = F.mse_loss(model(history), history[:, :256])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            errors.append(F.l1_loss(model(months[-1]), months[-1][:, :256]).item())
    print(f"mean absolute error {sum(errors) / len(errors):.3f}")


class Stack(nn.Module):
    """Blocks that each explain part of the series, as in N-BEATS."""

    def __init__(self, length, horizon, width, blocks):
        super().__init__()
        self.length = length
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(length, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                          nn.Linear(width, length + horizon)) for _ in range(blocks))

    def forward(self, past):
        forecast = 0
        for block in self.blocks:
            back, ahead = block(past).tensor_split([self.length], 1)
            past = past - back
            forecast = forecast + ahead
        return forecast


@job("healthy")
def ensemble_of_horizons(run):
    """One model for each length of history, trained one after the other; the finished ones go to the CPU."""
    finished = {}
    for step in run.steps(9):
        length = 24 * (step + 2)
        model = Stack(length, 24, 768, blocks=4).to(run.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(5):
            series = torch.randn(1024, length + 24, device=run.device)
            loss = F.smooth_l1_loss(model(series[:, :length]), series[:, length:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        finished[length] = {name: value.cpu() for name, value in model.state_dict().items()}
