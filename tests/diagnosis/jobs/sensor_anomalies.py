"""Anomalies in the data of sensors."""
import gc

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class EchoState(nn.Module):
    """A reservoir of random recurrent connections that are not trained, and a readout that is."""

    def __init__(self, sensors, width):
        super().__init__()
        self.enter = nn.Linear(sensors, width)
        self.recur = nn.Linear(width, width, bias=False)
        self.readout = nn.Linear(width, sensors)

    def advance(self, reading, state):
        return torch.tanh(self.enter(reading) + self.recur(state))  # guilty in echo_of_the_plant

    def forward(self, readings, state):
        errors = []
        for reading, after in zip(readings[:-1], readings[1:]):
            state = self.advance(reading, state)
            errors.append(F.mse_loss(self.readout(state.detach()), after))
        return torch.stack(errors), state


@job("hidden_state")
def echo_of_the_plant(run):
    """An echo state network on an endless stream of readings. Only its readout is trained, on the detached state, but
    the state itself goes on with its graph through the reservoir's parameters. Fixed: the state is detached after
    each piece of the stream."""
    model = EchoState(16, 1024).to(run.device)
    optimizer = torch.optim.SGD(model.readout.parameters(), lr=0.01, momentum=0.9)
    state = torch.zeros(1024, 1024, device=run.device)  # guilty
    alarms = 0
    for _ in run.steps(15):
        readings = torch.randn(6, 1024, 16, device=run.device)  # guilty
        errors, state = model(readings, state)
        optimizer.zero_grad()
        errors.mean().backward()
        optimizer.step()
        alarms += int(errors.amax() > 5)
        if run.fixed:
            state = state.detach()
    assert alarms >= 0


class SiteDetector:
    """An autoencoder for one site; it watches its own codes by means of a hook."""

    def __init__(self, sensors, device):
        encoder = nn.Sequential(nn.Linear(sensors, 2048), nn.ReLU(), nn.Linear(2048, 256))
        decoder = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, sensors))
        self.encoder = encoder.to(device)  # guilty in fitted_sites
        self.decoder = decoder.to(device)  # guilty in fitted_sites
        self.hook = self.encoder.register_forward_hook(self.watch)  # cause in fitted_sites
        self.codes = None

    def watch(self, module, inputs, output):
        self.codes = output.detach()

    def fit(self, readings, rounds=3):
        weights = [*self.encoder.parameters(), *self.decoder.parameters()]
        optimizer = torch.optim.Adam(weights, lr=1e-3)
        for _ in range(rounds):
            optimizer.zero_grad(set_to_none=True)
            loss = F.mse_loss(self.decoder(self.encoder(readings)), readings)  # guilty in fitted_sites
            loss.backward()
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def close(self):
        self.hook.remove()


@job("reference_cycle", fixed_contested="the first detector and its optimizer still wait for the collector")
def fitted_sites(run):
    """One detector after another is fitted, for all the sites of a company. The hook in the encoder is a method of the
    detector that owns the encoder, and the collector's thresholds have been raised to make the fits faster. Fixed: the
    hook is removed when a detector is done."""
    gc.set_threshold(200_000, 100, 100)
    limits = []
    for _ in run.steps(14):
        readings = torch.randn(2048, 1024, device=run.device)
        detector = SiteDetector(1024, run.device)
        limits.append(3 * detector.fit(readings))
        if run.fixed:
            detector.close()
        del detector


class FeatureBank:
    """Features of normal operation, hour by hour, never more hours than the bound."""

    def __init__(self, bound):
        self.bound = bound
        self.hours = []

    def add(self, features):
        self.hours.append(features)
        if len(self.hours) > self.bound:
            some = features[::16, :64]
            gaps = [torch.cdist(hour[:, :64], some).amin(1).mean() for hour in self.hours[:-1]]
            self.hours.pop(torch.stack(gaps).argmin().item())

    def score(self, readings):
        return torch.stack([torch.cdist(readings, hour).amin(1) for hour in self.hours]).amin(0)


@job("healthy")
def normal_operation(run):
    """A bank of features of normal operation, against which readings are compared: it grows until it is full, and then
    the hour that is most like the newest makes room."""
    backbone = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024)).to(run.device).eval()
    bank = FeatureBank(8)
    with torch.no_grad():
        for _ in run.steps(14):
            bank.add(backbone(torch.randn(2048, 256, device=run.device)))
            score = bank.score(backbone(torch.randn(64, 256, device=run.device))).cpu()
    assert score.shape == (64,)


@job("healthy")
def drift_calibration(run):
    """The drift of sensors is fitted by LBFGS, whose history of steps and gradients grows up to its bound and belongs
    to the optimizer."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.Tanh(), nn.Linear(1024, 512)).to(run.device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3, history_size=12)
    readings = torch.randn(1024, 512, device=run.device)
    reference = readings.roll(1, 1) * 0.9

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(readings), reference)
        loss.backward()
        return loss

    for _ in run.steps(10):
        optimizer.step(closure)
