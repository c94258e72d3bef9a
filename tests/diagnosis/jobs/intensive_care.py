"""Monitoring patients in intensive care."""
import random
import weakref
from collections import defaultdict, deque

import torch
import torch.nn.functional as F
from torch import nn

from job import job


class DeteriorationModel(nn.Module):
    """A recurrent model of the state of patients, window after window."""

    def __init__(self, signals=120, width=384):
        super().__init__()
        self.embed = nn.Linear(signals, width)
        self.cell = nn.GRUCell(width, width)
        self.alarm = nn.Linear(width, 1)

    def forward(self, window, state):
        embedded = torch.tanh(self.embed(window))  # guilty in stays_window_by_window
        return self.cell(embedded, state)  # guilty in stays_window_by_window


class StayTrainer:
    """Follows the stays of many patients, and learns from their outcomes when they are discharged."""

    def __init__(self, model, truncate_after=None):
        self.model = model
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
        self.truncate_after = truncate_after
        self.state, self.windows = None, 0

    def window(self, signals):
        if self.truncate_after and self.windows and self.windows % self.truncate_after == 0:
            self.state = self.state.detach()
        self.state = self.model(signals, self.state)  # cause in stays_window_by_window
        self.windows += 1

    def discharge(self, worse):
        loss = F.binary_cross_entropy_with_logits(self.model.alarm(self.state), worse)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.state, self.windows = None, 0


@job("hidden_state", contested="discharge() learns from the graph of the whole stay: through time in full, healthy")
def stays_window_by_window(run):
    """Stays in intensive care are followed window by window. The state is carried along with its graph until the
    discharge, which is far away. Fixed: the state is detached after every other window."""
    trainer = StayTrainer(DeteriorationModel().to(run.device), truncate_after=2 if run.fixed else None)
    for _ in run.steps(14):
        trainer.window(torch.randn(1536, 120, device=run.device))  # guilty
    trainer.discharge(torch.zeros(1536, 1, device=run.device))


class EarlyStopping:
    """Tells its trainer to stop when the loss no longer falls."""

    def __init__(self, trainer):
        self.trainer = trainer
        self.best = float("inf")

    def on_epoch_end(self, loss):
        self.trainer.stopped = loss > self.best
        self.best = min(self.best, loss)


class WardTrainer:
    """Learns an autoencoder, with the same weights both ways, of the patients of one ward."""

    def __init__(self, records, weak):
        self.records = records
        self.encode = nn.Linear(records.shape[1], 2048)
        self.encode.to(records.device)  # guilty in wards_in_turn
        self.optimizer = torch.optim.Adam(self.encode.parameters(), lr=1e-3)
        self.stopped = False
        self.callbacks = [EarlyStopping(weakref.proxy(self) if weak else self)]  # cause in wards_in_turn

    def epoch(self):
        decoded = torch.sigmoid(self.encode(self.records)) @ self.encode.weight
        loss = F.mse_loss(decoded, self.records)
        self.optimizer.zero_grad()
        loss.backward()  # guilty in wards_in_turn
        self.optimizer.step()  # guilty in wards_in_turn
        return loss.item()

    def fit(self, epochs):
        for _ in range(epochs):
            loss = self.epoch()
            for callback in self.callbacks:
                callback.on_epoch_end(loss)
            if self.stopped:
                break
        return loss


@job("reference_cycle")
def wards_in_turn(run):
    """Each ward gets a model with a trainer of its own. The trainer has its callbacks, one of which has the trainer; so
    neither it nor what it trains is freed when the next ward begins. Fixed: the callback has a weak reference."""
    losses = []
    for _ in run.steps(12):
        records = torch.randn(4096, 512, device=run.device)  # guilty
        losses.append(WardTrainer(records, weak=run.fixed).fit(epochs=2))
        del records
    assert len(losses) == 12


def concordance(risks, times, rows):
    """The share of pairs of patients in which the one with the higher risk dies first, and how sure of it the model
    is, with so many rows of pairs at a time."""
    right, pairs = 0.0, 0
    for risk, time in zip(risks.split(rows), times.split(rows)):
        earlier = time[:, None] < times  # guilty in concordant_pairs
        higher = risk[:, None] - risks  # guilty in concordant_pairs
        sure = torch.sigmoid(higher)  # guilty in concordant_pairs
        right += (sure * earlier).sum().item()
        pairs += earlier.sum().item()
        del earlier, higher, sure
    return right / pairs


@job("true_capacity")
def concordant_pairs(run):
    """The concordance of predicted risks compares all pairs of patients. That is no problem in single hospitals, but in
    the whole registry pairs do not fit. Fixed: some rows of pairs at a time."""
    run.cap(512)
    model = nn.Linear(200, 1).to(run.device).requires_grad_(False)
    cohorts = [2000, 3100, 2500, 4000, 3600, 2200, 9000, 9000]
    for step in run.steps(len(cohorts)):
        patients = torch.randn(cohorts[step % len(cohorts)], 200, device=run.device)  # guilty
        times = torch.rand(len(patients), device=run.device)
        agreement = concordance(model(patients)[:, 0], times, rows=500 if run.fixed else len(patients))
    assert 0 < agreement < 1


class BedHistory:
    """What was measured at each bed in the last hours. Beds are measured at irregular times; a patient who leaves is
    forgotten."""

    def __init__(self, hours):
        self.hours = hours
        self.beds = defaultdict(deque)

    def measure(self, bed, hour, waveform):
        self.beds[bed].append((hour, waveform))
        self.forget_before(hour - self.hours)

    def forget_before(self, hour):
        for history in self.beds.values():
            while history and history[0][0] < hour:
                history.popleft()

    def discharge(self, bed):
        history = self.beds.pop(bed, ())
        return [waveform.amax().item() for _, waveform in history]


@job("healthy")
def waveforms_of_the_last_hours(run):
    """Waveforms of eight beds are kept on the GPU for six hours. They come at irregular times, so now and then many are
    too old at once; and those of a patient who leaves are dropped."""
    history, draw = BedHistory(hours=6.0), random.Random(4)
    hour, peaks = 0.0, []
    for _ in run.steps(40):
        hour += draw.choice((0.1, 0.2, 0.5, 3.0))
        for bed in draw.sample(range(8), draw.randint(1, 4)):
            waveform = torch.randn(64, 16_384, device=run.device)
            history.measure(bed, hour, torch.fft.irfft(torch.fft.rfft(waveform) * 0.9))
        if draw.random() < 0.15:
            peaks += history.discharge(draw.randrange(8))
    assert all(peak > 0 for peak in peaks)
