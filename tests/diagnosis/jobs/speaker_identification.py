"""Who is speaking: embeddings of voices."""
from collections import defaultdict, deque

import torch
import torch.nn.functional as F
from torch import nn

from job import job


@job("hidden_state")
def long_interviews(run):
    """An LSTM goes through interviews in chunks, with a loss for each. The state is handed on as it is; backward()
    then wanted retain_graph=True, and got it, and goes through all chunks each time. Fixed: the state is detached."""
    voices = nn.LSTM(40, 256, batch_first=True).to(run.device)
    classify = nn.Linear(256, 50).to(run.device)
    optimizer = torch.optim.Adam([*voices.parameters(), *classify.parameters()], lr=1e-3)
    speakers = torch.randint(50, (64,), device=run.device)
    state = None
    for _ in run.steps(10):
        chunk = torch.randn(64, 60, 40, device=run.device)  # guilty
        frames, state = voices(chunk, state)  # guilty
        loss = F.cross_entropy(classify(frames.mean(1)), speakers)
        if run.fixed:
            loss.backward()
            state = tuple(part.detach() for part in state)
        else:
            loss.backward(retain_graph=True)  # cause
        del frames
    optimizer.step()


class GradientHistograms:
    """Shows how the gradients of the weights are distributed, from hooks on the weights."""

    def __init__(self, model, bins_only):
        self.bins_only = bins_only
        self.collected = defaultdict(list)
        for name, weight in model.named_parameters():
            weight.register_hook(self.hook(name))

    def hook(self, name):
        def collect(gradient):
            kept = gradient.histc(64).cpu() if self.bins_only else gradient
            self.collected[name].append(kept)  # cause in distributed_gradients

        return collect

    def report(self):
        return {name: torch.stack([(g if self.bins_only else g.histc(64).cpu()) for g in gradients]).sum(0)
                for name, gradients in self.collected.items()}


@job("gradient_accumulation")
def distributed_gradients(run):
    """Hooks on the weights collect their gradients; the histograms of them are made when the training has ended. Fixed:
    the hooks make the histograms."""
    model = nn.Sequential(nn.Linear(400, 2048), nn.ReLU(), nn.Linear(2048, 512), nn.Linear(512, 3000)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    histograms = GradientHistograms(model, bins_only=run.fixed)
    for _ in run.steps(12):
        frames = torch.randn(256, 400, device=run.device)
        loss = F.cross_entropy(model(frames), torch.randint(3000, (256,), device=run.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # guilty
        optimizer.step()
    assert histograms.report()


class Prefetcher:
    """Uploads the next utterances, and noise to add, while these are used."""

    def __init__(self, device):
        self.device = device
        self.stream = torch.cuda.Stream()
        self.host = {name: torch.randn(64, 32_000).pin_memory() for name in ("speech", "noise")}
        self.upload()

    def upload(self):
        with torch.cuda.stream(self.stream):
            self.following = {name: waves.to(self.device, non_blocking=True)  # guilty in noisy_utterances
                              for name, waves in self.host.items()}

    def next(self):
        main = torch.cuda.current_stream()
        main.wait_stream(self.stream)
        batch = self.following
        for waves in batch.values():
            waves.record_stream(main)  # cause in noisy_utterances
        self.upload()
        return batch


@job("cross_stream_pending")
def noisy_utterances(run):
    """The usual prefetcher uploads utterances and noise on its own stream. Nothing in the loop waits for the GPU any
    more, uploads are faster than the network, and batches that were dropped long ago wait for it. Fixed: the loop
    waits for the iteration before."""
    extract = nn.Conv1d(1, 32, 400, stride=160).to(run.device).requires_grad_(False)
    prefetcher = Prefetcher(run.device)
    steps_under_way = deque()
    mean = torch.zeros(32, device=run.device)
    for _ in run.steps(14):
        batch = prefetcher.next()
        noisy = batch["speech"].add(batch["noise"], alpha=0.1)
        features = extract(noisy[:, None])
        torch.cuda._sleep(16_000_000)  # the large network
        mean.lerp_(features.mean((0, 2)), 0.1)
        batch = noisy = None
        steps_under_way.append(torch.cuda.current_stream().record_event())
        if run.fixed and len(steps_under_way) > 1:
            steps_under_way.popleft().synchronize()


@job("healthy")
def calibrated_scores(run):
    """A transformation of embeddings is fitted by LBFGS, whose history of steps and gradients grows until it has eight
    of each."""
    embeddings = torch.randn(4096, 768, device=run.device)
    same = torch.arange(4096, device=run.device) // 8
    transform = nn.Linear(768, 1024, bias=False).to(run.device)
    centres = torch.randn(512, 1024, device=run.device)
    optimizer = torch.optim.LBFGS(transform.parameters(), lr=0.1, max_iter=1, history_size=8)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(F.normalize(transform(embeddings), dim=1) @ centres.T, same)
        loss.backward()
        return loss

    losses = []
    for _ in run.steps(16):
        losses.append(float(optimizer.step(closure)))
