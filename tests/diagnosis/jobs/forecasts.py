"""Signals and forecasts."""
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job

CYCLES = 40_000_000  # about 20 ms on a GPU of 2 GHz


class Correlator:
    """Correlates the antennas' blocks on a stream of its own; `calibration` is the slow part of it."""

    def __init__(self, antennas, channels, device):
        self.stream = torch.cuda.Stream()
        self.sum = torch.zeros(channels, antennas, antennas, dtype=torch.complex64, device=device)
        self.done = deque()

    def submit(self, spectra):
        """The caller may drop its spectra at once."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(CYCLES)
            self.sum.baddbmm_(spectra, spectra.conj().transpose(1, 2))
        spectra.record_stream(self.stream)  # cause in radio_blocks
        self.done.append(self.stream.record_event())

    def throttle(self, depth):
        while len(self.done) > depth:
            self.done.popleft().synchronize()


def antenna_blocks(count, samples, device):
    """What the receivers deliver: channel by antenna by time."""
    generator = torch.Generator(device=device).manual_seed(1)
    while True:
        voltage = torch.randn(count, samples, 256, device=device, generator=generator)
        yield torch.fft.rfft(voltage)[:, :, :128].permute(2, 0, 1).contiguous()  # guilty in radio_blocks


@job("cross_stream_pending")
def radio_blocks(run):
    """Spectra of an array of antennas are handed to a correlator with a stream of its own, which is slower than the
    receivers; nothing stops the receivers. Fixed: at most one block is left to be correlated."""
    correlator = Correlator(16, 128, run.device)
    blocks = antenna_blocks(16, 1024, run.device)
    correlator.submit(next(blocks))
    correlator.stream.synchronize()
    for _ in run.steps(12):
        correlator.submit(next(blocks))
        if run.fixed:
            correlator.throttle(1)


class Smoother:
    """Convolution with a long filter by overlap-add; the tail of a block is added to the next."""

    def __init__(self, taps, channels, device):
        self.filter = torch.hann_window(taps, device=device).expand(channels, taps)
        self.tail = torch.zeros(channels, taps - 1, device=device)

    def __call__(self, block):
        length, extra = block.shape[1], self.tail.shape[1]
        size = 1 << (length + extra - 1).bit_length()
        full = torch.fft.irfft(torch.fft.rfft(block, size) * torch.fft.rfft(self.filter, size), size)
        full[:, :extra] += self.tail
        self.tail = full[:, length : length + extra].clone()
        return full[:, :length]


@job("healthy")
def overlap_add(run):
    """A stream of blocks is smoothed by FFT; the results are put together on the host."""
    smoother = Smoother(4097, 32, run.device)
    finished = []
    with torch.no_grad():
        for step in run.steps(16):
            block = torch.randn(32, 28_000, device=run.device)
            if step % 5 == 4:
                block = block[:, :9000]
            finished.append(smoother(block).cpu())
    assert len(torch.cat(finished, 1)) == 32


class Forecaster(nn.Module):
    """The next day of many series from the days before."""

    def __init__(self, days, width=384):
        super().__init__()
        self.core = nn.GRU(24, width, batch_first=True)
        self.head = nn.Linear(width, 24)
        self.days = days

    def forward(self, history):
        return self.head(self.core(history[:, -self.days :])[0][:, -1])

    def fit(self, series, rounds):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        for _ in range(rounds):
            loss = F.l1_loss(self(series[:, :-1]), series[:, -1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return self


@job("healthy")
def monthly_refit(run):
    """A backtest: for each month a new model is fitted to the days before, the old one is dropped; the forecasts are
    kept on the host, and the best model's weights as well."""
    series = torch.randn(512, 60, 24, device=run.device).cumsum(1)
    errors, best = [], None
    for month in run.steps(10):
        model = Forecaster(days=28).to(run.device).fit(series[:, month : month + 36], rounds=3)
        with torch.inference_mode():
            error = (model(series[:, month + 8 : month + 36]) - series[:, month + 36]).abs().mean().item()
        if not errors or error < min(errors):
            best = {name: value.cpu() for name, value in model.state_dict().items()}
        errors.append(error)
    assert best
