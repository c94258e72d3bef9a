"""Medical signals and volumes: electrocardiograms, computed tomography."""
from dataclasses import dataclass, field
from typing import Optional, Tuple

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class HeartMonitor(nn.Module):
    """A pretrained, frozen LSTM between a calibration of the leads and a classifier of beats, which are trained."""

    def __init__(self, leads=12, width=384):
        super().__init__()
        self.calibration = nn.Linear(leads, 64)
        self.rhythm = nn.LSTM(64, width, batch_first=True).requires_grad_(False)
        self.beats = nn.Linear(width, 5)

    def forward(self, signal, state):
        calibrated = self.calibration(signal)  # guilty in ward_monitor
        rhythm, state = self.rhythm(calibrated, state)  # guilty in ward_monitor
        return self.beats(rhythm[:, -1]), state


@dataclass
class Ward:
    """What is known about the patients who are monitored together."""

    careful: bool
    state: Optional[Tuple[torch.Tensor, torch.Tensor]] = None
    alarms: list = field(default_factory=list)

    def remember(self, state):
        hidden, cell = state
        self.state = (hidden.detach(), cell.detach() if self.careful else cell)  # cause in ward_monitor


@job("hidden_state")
def ward_monitor(run):
    """A monitor is calibrated while the signals come in. Of the LSTM's state that is carried over only one half is
    detached; through the cell state each minute's graph is part of the next one's, and retain_graph=True was put
    against the error. Fixed: both are detached."""
    monitor = HeartMonitor().to(run.device)
    trained = [*monitor.calibration.parameters(), *monitor.beats.parameters()]
    optimizer = torch.optim.Adam(trained, lr=1e-3)
    ward = Ward(careful=run.fixed)
    for _ in run.steps(10):
        signal = torch.randn(16, 250, 12, device=run.device)  # guilty
        logits, state = monitor(signal, ward.state)
        loss = F.cross_entropy(logits, torch.randint(5, (16,), device=run.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward(retain_graph=not run.fixed)
        optimizer.step()
        ward.remember(state)
        ward.alarms.append(int((logits.argmax(1) == 4).sum()))
        del state


class OrganSegmentation(nn.Module):
    """Convolutions at the full resolution of a volume."""

    def __init__(self, width=16, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Conv3d(width if k else 1, width, 3, padding=1) for k in range(depth))
        self.head = nn.Conv3d(width, 3, 1)

    def forward(self, volume):
        for block in self.blocks:
            volume = torch.tanh(block(volume))  # guilty in full_volume
        return self.head(volume)


def octants(volume):
    """The eight parts of a volume, one after the other."""
    for slab in volume.chunk(2, 2):
        for rows in slab.chunk(2, 3):
            yield from rows.chunk(2, 4)


@job("true_capacity")
def full_volume(run):
    """Training on whole volumes at full resolution, whose activations do not fit on a GPU of 384 MiB. Fixed: the
    gradients are summed over eight parts of the volume."""
    run.cap(384)
    model = OrganSegmentation().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in run.steps(3):
        volume = torch.randn(1, 1, 96, 128, 128, device=run.device)  # guilty
        for part in octants(volume) if run.fixed else [volume]:
            labels = torch.zeros(1, *part.shape[2:], dtype=torch.long, device=run.device)  # guilty
            loss = F.cross_entropy(model(part), labels)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


class MaskedSignals(nn.Module):
    """Reconstructs the parts of a signal that were masked."""

    def __init__(self, leads=12, width=96):
        super().__init__()
        self.down = nn.Conv1d(leads, width, 8, stride=4, padding=2)
        self.mix = nn.Conv1d(width, width, 9, padding=4)
        self.up = nn.ConvTranspose1d(width, leads, 8, stride=4, padding=2)

    def forward(self, signal, share=0.4):
        mask = (torch.rand_like(signal[:, :1]) < share).to(signal.dtype)
        hidden = F.silu(self.mix(F.silu(self.down(signal * (1 - mask)))))
        return ((self.up(hidden) - signal).square() * mask).sum() / mask.sum().clamp_min(1)


@job("healthy")
def masked_cardiograms(run):
    """Self-supervision with gradients summed over four windows on purpose; every third iteration validates on long
    recordings, in one large batch without graphs, and peaks higher."""
    model = MaskedSignals().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    validation = []
    for step in run.steps(12):
        for _ in range(4):
            (model(torch.randn(32, 12, 2000, device=run.device)) / 4).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 3 == 2:
            with torch.inference_mode():
                validation.append(model(torch.randn(64, 12, 3000, device=run.device)).item())
