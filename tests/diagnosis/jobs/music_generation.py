"""Music that is composed and sounds that are made by networks."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Composer(nn.Module):
    """The next note of a piece: its pitch, its duration, and who plays it."""

    def __init__(self, width=256):
        super().__init__()
        self.embed = nn.Embedding(512, width)
        self.first = nn.Linear(width, 4 * width)
        self.second = nn.Linear(4 * width, width)
        self.heads = nn.ModuleDict({"pitch": nn.Linear(width, 128), "duration": nn.Linear(width, 32),
                                    "player": nn.Linear(width, 64)})

    def forward(self, notes):
        hidden = self.embed(notes)  # guilty in notes_with_three_heads
        inner = self.first(hidden)  # guilty in notes_with_three_heads
        hidden = hidden + self.second(F.gelu(inner))  # guilty in notes_with_three_heads
        return {name: head(hidden) for name, head in self.heads.items()}

    def losses(self, notes, following):
        losses = {}
        for name, scores in self(notes).items():
            truth = following[name].flatten()
            losses[name] = F.cross_entropy(scores.flatten(0, 1), truth)  # guilty in notes_with_three_heads
        return losses


@job("retained_graph")
def notes_with_three_heads(run):
    """Three heads on one trunk, each with a backward pass of its own and retain_graph=True, the last one as well; the
    losses are kept as tensors for a plot, and so is all that the graphs have saved. Fixed: one pass for their sum,
    and numbers for the plot."""
    model = Composer().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    curves = []
    for _ in run.steps(14):
        notes = torch.randint(512, (16, 256), device=run.device)
        following = {name: torch.randint(head.out_features, notes.shape, device=run.device)
                     for name, head in model.heads.items()}
        losses = model.losses(notes, following)
        optimizer.zero_grad()
        if run.fixed:
            sum(losses.values()).backward()
            curves.append({name: loss.item() for name, loss in losses.items()})
        else:
            for loss in losses.values():
                loss.backward(retain_graph=True)  # cause
            curves.append(losses)  # cause
        optimizer.step()


class LoudnessMeter:
    """Measures the loudness of what a model produces on a stream of its own, beside training."""

    def __init__(self, device, training_waits):
        self.stream = torch.cuda.Stream()
        self.level = torch.zeros((), device=device)
        self.training_waits = training_waits

    def measure(self, sound):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(40_000_000)  # filters and gates over all frequencies
            self.level.lerp_(sound.square().mean(), 0.1)
        if self.training_waits:
            torch.cuda.current_stream().wait_stream(self.stream)
        else:
            sound.record_stream(self.stream)  # cause in loudness_meter


@job("cross_stream_pending")
def loudness_meter(run):
    """The loudness of each batch of generated sound is measured on a second stream, which is slower than training and
    falls behind; the sounds wait for it. Fixed: training waits for the measurement, and nothing is recorded."""
    model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 4096)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    meter = LoudnessMeter(run.device, training_waits=run.fixed)
    for _ in run.steps(16):
        sound = model(torch.randn(1536, 128, device=run.device))  # guilty
        loss = (sound - 0.1).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.measure(sound.detach())
        del sound, loss


class WaveCritic(nn.Module):
    """Says how real a sound is, by its wave at three resolutions."""

    def __init__(self):
        super().__init__()
        self.views = nn.ModuleList(
            nn.Sequential(nn.Conv1d(1, 32, 15, 4), nn.LeakyReLU(0.2), nn.Conv1d(32, 1, 15, 4)) for _ in range(3))

    def forward(self, sound):
        return sum(view(F.avg_pool1d(sound, 2**scale)).mean(2) for scale, view in enumerate(self.views))


def gradient_penalty(critic, real, fake):
    mix = torch.lerp(real, fake, torch.rand(len(real), 1, 1, device=real.device)).requires_grad_(True)
    slope, = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


@job("healthy")
def adversarial_vocoder(run):
    """A vocoder against a critic with a gradient penalty, that is, second derivatives; the generator is trained in
    every second iteration, and its weights are averaged from the fifth on."""
    generator = nn.Sequential(nn.Linear(80, 1024), nn.GELU(), nn.Linear(1024, 8192)).to(run.device)
    critic = WaveCritic().to(run.device)
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.5, 0.9)) for model in (generator, critic)]
    average = None
    for step in run.steps(14):
        real = torch.randn(128, 1, 8192, device=run.device)
        with torch.no_grad():
            fake = generator(torch.randn(128, 80, device=run.device))[:, None]
        loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake)
        optimizers[1].zero_grad()
        loss.backward()
        optimizers[1].step()
        if step % 2:
            critic.requires_grad_(False)
            loss = -critic(generator(torch.randn(128, 80, device=run.device))[:, None]).mean()
            optimizers[0].zero_grad()
            loss.backward()
            optimizers[0].step()
            critic.requires_grad_(True)
        if step == 4:
            average = copy.deepcopy(generator).requires_grad_(False)
        elif step > 4:
            with torch.no_grad():
                for mean, weight in zip(average.parameters(), generator.parameters()):
                    mean.lerp_(weight, 0.02)
