"""Finding fraud in card payments."""
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

from bounded_stores import Collector
from job import job


def scorer(inputs, width):
    return nn.Sequential(nn.Linear(inputs, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 1))


class GradientNoise:
    """How noisy gradients are, from those of the newest micro-batches."""

    WINDOW = 6

    def __init__(self, parameters, most=None):
        self.parameters = list(parameters)
        self.gradients = deque(maxlen=most)  # cause in noisy_micro_batches

    def on_micro_batch(self):
        gradients = [weight.grad.flatten() for weight in self.parameters]
        self.gradients.append(torch.cat(gradients))  # guilty in noisy_micro_batches

    def scale(self):
        newest = [self.gradients[-back] for back in range(1, min(self.WINDOW, len(self.gradients)) + 1)]
        mean = sum(newest) / len(newest)
        return sum((gradient - mean).square().sum().item() for gradient in newest) / mean.square().sum().item()


class MicroBatchTrainer:
    """Averages the gradients of micro-batches itself, and tells an observer about each."""

    def __init__(self, model, noise):
        self.model, self.noise = model, noise
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(self, batches):
        mean = [torch.zeros_like(weight) for weight in self.model.parameters()]
        for payments, fraud in batches:
            self.optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(self.model(payments), fraud).backward()
            self.noise.on_micro_batch()
            for total, weight in zip(mean, self.model.parameters()):
                total.add_(weight.grad, alpha=1 / len(batches))
        for total, weight in zip(mean, self.model.parameters()):
            weight.grad.copy_(total)
        self.optimizer.step()


@job("gradient_accumulation")
def noisy_micro_batches(run):
    """The noise of gradients is estimated from the last six micro-batches, to choose how many there should be. The
    deque of their gradients was made without a maximal length. Fixed: it has six."""
    model = scorer(400, 1024).to(run.device)
    noise = GradientNoise(model.parameters(), most=GradientNoise.WINDOW if run.fixed else None)
    trainer = MicroBatchTrainer(model, noise)
    for _ in run.steps(12):
        trainer.step([(torch.randn(512, 400, device=run.device), torch.ones(512, 1, device=run.device))] * 3)
        scale = noise.scale()
    assert scale >= 0


class OnlineLearner:
    """Learns from payments as soon as there are enough of them for a step."""

    def __init__(self, device):
        self.model = scorer(400, 128).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.steps = 0

    def learn(self, payments):
        fraud = (payments[:, :1] > 2).float()
        loss = F.binary_cross_entropy_with_logits(self.model(payments), fraud)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1


@job("healthy")
def payments_for_a_step(run):
    """Payments come in by the minute, in the evening more than at night. They are collected on the GPU until there are
    enough for a step of training; what is left over waits for the next."""
    learner, draw = OnlineLearner(run.device), random.Random(21)
    collector = Collector(16_000, learner.learn)
    for _ in run.steps(30):
        collector.add(torch.randn(draw.choice((1500, 2500, 4000)), 400, device=run.device))
    assert learner.steps > 2


class RegionalExperts:
    """A model of fraud for each region, made when the first payment from there comes in."""

    def __init__(self, device):
        self.device = device
        self.shared = nn.Linear(400, 768).to(device)
        self.experts = {}
        self.optimizer = torch.optim.SGD(self.shared.parameters(), lr=1e-3, momentum=0.9)

    def expert(self, region):
        if region not in self.experts:
            made = self.experts[region] = scorer(768, 768).to(self.device)
            self.optimizer.add_param_group({"params": list(made.parameters())})
        return self.experts[region]

    def step(self, regions, payments):
        self.optimizer.zero_grad(set_to_none=True)
        hidden = torch.relu(self.shared(payments))
        scores = torch.cat([self.expert(region)(part) for region, part in zip(regions, hidden.chunk(len(regions)))])
        F.softplus(-scores).mean().backward()
        self.optimizer.step()


@job("healthy")
def experts_of_regions(run):
    """Payments of two regions at a time. A region that is new gets an expert, and momentum for it with its first
    step; there are nine, of which the last is only seen in the second half."""
    experts = RegionalExperts(run.device)
    seen = [0, 1, 0, 2, 1, 0, 3, 5, 1, 4, 2, 7, 6, 3, 8, 1, 5, 0, 2, 4, 7, 3, 6, 8]
    for step in run.steps(24):
        regions = seen[step % 24], (seen[step % 24] + 1) // 2
        experts.step(regions, torch.randn(1024, 400, device=run.device))
    assert len(experts.experts) == 9
