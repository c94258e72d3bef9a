"""Speech: speaker recognition, features, keyword spotting."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


def time_delay_network(run, classes):
    frames = [nn.Conv1d(80, 256, 5), nn.ReLU(), nn.Conv1d(256, 256, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(4)]
    utterance = [nn.Flatten(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, classes)]
    return nn.Sequential(*frames, *utterance).to(run.device)


@job("gradient_accumulation")
def speaker_network(run):
    """A network for 20,000 speakers, trained without zero_grad(). Fixed: with it, after each step."""
    model = time_delay_network(run, 20_000)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    for _ in run.steps(10):
        speech = torch.randn(32, 80, 300, device=run.device)
        loss = F.cross_entropy(model(speech), torch.randint(20_000, (32,), device=run.device))
        loss.backward()  # guilty
        optimizer.step()
        if run.fixed:
            optimizer.zero_grad()


@job("fragmentation")
def features_then_train(run):
    """Recordings are loaded and their features computed, one after the other; once all are there the recordings are
    dropped. Each segment still has features in it, and what lies between is too small for a batch. Fixed: each
    recording is dropped before the next one."""
    raw, features = [], []
    for _ in range(60):
        recording = torch.zeros(2 << 20, device=run.device)  # guilty
        features.append(recording.view(-1, 4).amax(1))  # guilty
        if not run.fixed:
            raw.append(recording)
    del raw, recording
    model = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 40)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in run.steps(8):
        batch = torch.stack(features[6 * step : 6 * step + 8]).view(-1, 512)
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def keyword_spotting(run):
    """The whole job, recorded to its end: a classifier that is trained, with accuracies as numbers."""
    model = time_delay_network(run, 35)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    accuracy = []
    for _ in run.steps(10):
        speech = torch.randn(256, 80, 100, device=run.device)
        words = torch.randint(35, (256,), device=run.device)
        logits = model(speech)
        loss = F.cross_entropy(logits, words)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy.append((logits.argmax(1) == words).float().mean().item())


@job("healthy")
def batch_warm_up(run):
    """The batch grows for the first six iterations and then stays, as in training with large batches."""
    model = time_delay_network(run, 35)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in run.steps(14):
        speech = torch.randn(64 * min(step + 1, 6), 80, 100, device=run.device)
        loss = model(speech).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
