"""What machines of a factory sound like: spectrograms by torchaudio."""
from collections import deque

import torch
import torchaudio
from torch import nn
from torch.nn import functional as F

from job import job

RATE = 16_000


class MachineNetwork(nn.Module):
    def __init__(self, kinds=12):
        super().__init__()
        self.spectrogram = torchaudio.transforms.MelSpectrogram(RATE, n_fft=1024, hop_length=512, n_mels=64)
        self.layers = nn.Sequential(nn.Conv2d(1, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU())
        self.head = nn.Linear(32, kinds)

    def forward(self, sound):
        image = self.spectrogram(sound).clamp(min=1e-5).log()[:, None]
        return self.head(self.layers(image).mean((2, 3)))


class SlowExpert:
    """A large network of a colleague, on a stream of its own."""

    def __init__(self, device):
        self.stream = torch.cuda.Stream()
        self.weight = torch.randn(4096, 4096, device=device) / 64
        self.opinions = []

    def listen(self, sound, ordered):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            hidden = sound.view(-1, 4096)[:2048]
            for _ in range(40):
                hidden = torch.tanh(hidden @ self.weight)
            self.opinions.append(hidden.mean())
        if ordered:
            torch.cuda.current_stream().wait_stream(self.stream)
        else:
            sound.record_stream(self.stream)  # cause in opinion_of_an_expert


@job("cross_stream_pending")
def opinion_of_an_expert(run):
    """Each minute of sound goes to an expert network on another stream, with record_stream(), and is dropped here. The
    expert is slower than the sounds come, which wait for it. Fixed: this stream waits for the expert."""
    expert = SlowExpert(run.device)
    for _ in run.steps(14):
        sound = torch.randn(512, RATE, device=run.device)  # guilty
        sound.mul_(0.1)
        expert.listen(sound, ordered=run.fixed)
        del sound
    assert len(expert.opinions) == 14


@job("gradient_accumulation")
def where_the_network_listens(run):
    """Saliency: the gradient of the score with respect to the sound, for each batch. The gradients are collected on
    the GPU, for a report. Fixed: their mean over time."""
    model = MachineNetwork().to(run.device).eval()
    saliency = []
    for _ in run.steps(12):
        sound = torch.randn(96, 2 * RATE, device=run.device, requires_grad=True)
        model(sound).max(1).values.sum().backward()  # guilty
        saliency.append(sound.grad.abs().mean(1).tolist() if run.fixed else sound.grad)  # cause
        model.zero_grad()
    assert len(saliency) == 12


@job("healthy")
def last_minutes_of_each_machine(run):
    """The sounds of the last five rounds stay on the GPU for comparison; older ones go."""
    model = MachineNetwork().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    rounds = deque(maxlen=5)
    for _ in run.steps(14):
        rounds.append(torch.randn(64, 2 * RATE, device=run.device))
        for sound in list(rounds)[-2:]:
            loss = F.cross_entropy(model(sound), torch.randint(12, (64,), device=run.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
