"""Microphones in bee hives: recurrent models of a day, spectrograms, an archive beside the inference."""
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job

BANDS = 64


class HiveListener(nn.Module):
    """Follows a hive through the day; it remembers where it was."""

    def __init__(self, width=384):
        super().__init__()
        self.recurrent = nn.GRU(BANDS, width, batch_first=True)
        self.swarming = nn.Linear(width, 2)
        self.state = None

    def forward(self, bands):
        hidden, self.state = self.recurrent(bands, self.state)  # guilty in day_of_a_hive
        return self.swarming(hidden)


def plain_descent(model, rate):
    """A step as in a first lesson, on the data of the weights."""
    for weight in model.parameters():
        weight.data.add_(weight.grad, alpha=-rate)
        weight.grad = None


@job("hidden_state")
def day_of_a_hive(run):
    """The listener goes on from window to window with its state, and backward() keeps graphs because an error message
    asked for it: the loss of each window reaches back to the morning. Fixed: the state is detached after each window,
    and no graph is kept."""
    model = HiveListener().to(run.device)
    for _ in run.steps(12):
        bands = torch.randn(32, 128, BANDS, device=run.device)
        alarms = torch.randint(2, (32 * 128,), device=run.device)
        loss = F.cross_entropy(model(bands).flatten(0, 1), alarms)
        loss.backward(retain_graph=not run.fixed)
        plain_descent(model, 0.01)
        if run.fixed:
            model.state = model.state.detach()


def spectrograms(sound, window):
    spectrum = torch.stft(sound, 512, hop_length=128, window=window, return_complex=True)  # guilty in mean_of_a_season
    return spectrum.abs().clamp(min=1e-5).log()  # guilty in mean_of_a_season


class HiveNet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.first = nn.Conv1d(257, width, 5, padding=2)
        self.second = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.head = nn.Linear(width, 4)

    def forward(self, bands):
        hidden = F.silu(self.second(F.silu(self.first(bands))))
        return self.head(hidden.mean(2))


@job("cached_not_released")
def mean_of_a_season(run):
    """Mean and spread of the bands are taken from all recordings of a season in one piece. Then a small network is
    trained with eight short recordings at a time, and the memory of the season stays reserved and unused. Fixed:
    empty_cache() before the training."""
    window = torch.hann_window(512, device=run.device)
    with torch.no_grad():
        season = torch.randn(96, 160_000, device=run.device)
        bands = spectrograms(season, window)
        mean, spread = bands.mean((0, 2)), bands.std((0, 2))
        del season, bands
    if run.fixed:
        torch.cuda.empty_cache()
    model = HiveNet().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(14):
        bands = spectrograms(torch.randn(8, 32_000, device=run.device), window)
        bands = (bands - mean[:, None]) / spread[:, None]
        loss = F.cross_entropy(model(bands), torch.randint(4, (8,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Archive:
    """Codes sounds on a stream of its own, so that listening does not wait for it."""

    def __init__(self, device, most_waiting=None):
        self.stream = torch.cuda.Stream()
        self.basis = torch.randn(4096, 4096, device=device) / 64
        self.most_waiting = most_waiting
        self.coded = deque()
        self.sizes = []

    def put(self, sounds):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            codes = sounds
            for _ in range(30):
                codes = torch.tanh_(codes @ self.basis)
            self.sizes.append(codes.square().mean())
        sounds.record_stream(self.stream)  # cause in sounds_for_the_archive
        self.coded.append(self.stream.record_event())
        if self.most_waiting is not None and len(self.coded) > self.most_waiting:
            self.coded.popleft().synchronize()


@job("cross_stream_pending", fixed_contested="64 MiB of 228 wait for the archive's stream from the third iteration on")
def sounds_for_the_archive(run):
    """Sounds are listened to and given to an archive, which codes them on another stream, much slower than they come.
    The listener forgets them at once; they are freed when the archive is through with them. Fixed: the listener waits
    when more than one is not coded."""
    archive = Archive(run.device, most_waiting=1 if run.fixed else None)
    torch.cuda.current_stream().synchronize()
    queens = 0
    with torch.no_grad():
        for _ in run.steps(14):
            sounds = torch.randn(2048, 4096, device=run.device)  # guilty
            queens = queens + (sounds.amax(1) > 4).sum()
            archive.put(sounds)
            del sounds
    torch.cuda.synchronize()
    assert queens.item() >= 0


@job("healthy")
def apiary_after_each_lesson(run):
    """After each fifth lesson the network hears six batches of other hives; what it makes of their frames is kept on
    the GPU until the last of them, for one curve over all, and dropped."""
    model = HiveNet(256).to(run.device)
    frames = nn.Linear(256, 4).to(run.device)
    optimizer = torch.optim.AdamW([*model.parameters(), *frames.parameters()], lr=1e-3)
    curve = []
    for lesson in run.steps(15):
        model.train()
        bands = torch.randn(16, 257, 400, device=run.device)
        loss = F.cross_entropy(model(bands), torch.randint(4, (16,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if lesson % 5 == 4:
            model.eval()
            heard = []
            with torch.no_grad():
                for _ in range(6):
                    heard.append(F.silu(model.first(torch.randn(16, 257, 800, device=run.device))))
                chances = frames(torch.cat(heard).transpose(1, 2)).softmax(2)[..., 0].flatten()
                curve.append(chances.sort().values[:: len(chances) // 10].tolist())
            del heard, chances
    assert len(curve) == 3
