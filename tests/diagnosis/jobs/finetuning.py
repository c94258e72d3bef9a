"""Fine-tuning of language models: adapters, preferences, feedback."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job

WORDS = 4000


@dataclass
class Arguments:
    steps: int = 14
    rate: float = 2e-4
    max_norm: float = 1.0
    log_gradients: bool = True


class GradientProbe:
    """A callback that notes how gradients change in the course of the training."""

    def __init__(self, numbers_only):
        self.numbers_only = numbers_only
        self.history = []

    def on_step(self, step, model):
        named = [(name, p) for name, p in model.named_parameters() if p.grad is not None]
        if self.numbers_only:
            self.history.append({name: p.grad.norm().item() for name, p in named})
        else:
            self.history.append({name: p.grad for name, p in named})  # cause in probed_training


class Trainer:
    def __init__(self, model, arguments, callbacks):
        self.model = model
        self.arguments = arguments
        self.callbacks = callbacks
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.rate, foreach=False)

    def compute_loss(self, text):
        logits = self.model(text[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())

    def training_step(self, step, text):
        loss = self.compute_loss(text)
        loss.backward()  # guilty in probed_training
        nn.utils.clip_grad_norm_(self.model.parameters(), self.arguments.max_norm)
        self.optimizer.step()
        for callback in self.callbacks:
            callback.on_step(step, self.model)
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


@job("gradient_accumulation")
def probed_training(run):
    """A trainer with a callback that stores the gradients of each step by name. zero_grad() lets go of them, the
    callback's history does not. Fixed: their norms are stored."""
    arguments = Arguments()
    model = nn.Sequential(nn.Embedding(WORDS, 256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256),
                          nn.Linear(256, WORDS)).to(run.device)
    trainer = Trainer(model, arguments, [GradientProbe(numbers_only=run.fixed)])
    running = torch.zeros((), device=run.device)
    for step in run.steps(arguments.steps):
        running += trainer.training_step(step, torch.randint(WORDS, (8, 65), device=run.device))
    print(f"mean loss {running.item() / arguments.steps:.3f}")


class Segment(torch.autograd.Function):
    """Runs a part of a network without a graph; backward() runs it once more, from the input that was put by."""

    stash = {}

    @staticmethod
    def forward(ctx, hidden, part, number, *weights):
        ctx.part, ctx.number, ctx.weights = part, number, weights
        Segment.stash[number] = hidden.detach()  # cause in rollouts_and_updates
        return part(hidden)  # guilty in rollouts_and_updates

    @staticmethod
    def backward(ctx, grad):
        hidden = Segment.stash.pop(ctx.number).requires_grad_()
        with torch.enable_grad():
            output = ctx.part(hidden)
        grads = torch.autograd.grad(output, [hidden, *ctx.weights], grad)
        return grads[0], None, None, *grads[1:]


class SegmentedModel(nn.Module):
    def __init__(self, width=768, segments=4, skip_without_grad=False):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.parts = nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
                                   for _ in range(segments))
        self.skip_without_grad = skip_without_grad
        self.number = 0

    def forward(self, text):
        hidden = self.embed(text)  # guilty in rollouts_and_updates
        for part in self.parts:
            if self.skip_without_grad and not torch.is_grad_enabled():
                hidden = part(hidden)
            else:
                self.number += 1
                hidden = Segment.apply(hidden, part, self.number, *part.parameters())
        return hidden


@job("checkpoint_cache")
def rollouts_and_updates(run):
    """Feedback from a reward: answers are rated under no_grad(), then the model is updated. Its own checkpointing
    puts the input of each segment by, and only backward() takes it out: what the rating put by stays. Fixed: without
    gradients segments are called as they are."""
    Segment.stash.clear()
    model = SegmentedModel(skip_without_grad=run.fixed).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in run.steps(12):
        text = torch.randint(WORDS, (16, 96), device=run.device)
        with torch.no_grad():
            reward = model(text).mean(-1).tanh()
        loss = -(model(text).logsumexp(-1) * reward).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def calibrate(layer, samples):
    """A Hessian of the layer's inputs in double precision, and weights rounded in the order of its diagonal."""
    inputs = samples.double()  # guilty in quantize_then_tune
    hessian = inputs.T @ inputs / len(inputs)  # guilty in quantize_then_tune
    order = hessian.diagonal().argsort(descending=True)
    scale = layer.weight.abs().amax(1, keepdim=True) / 7
    rounded = (layer.weight / scale).round().clamp(-8, 7)[:, order].to(torch.int8)
    return rounded, order, scale


@job("cached_not_released")
def quantize_then_tune(run):
    """Layers are quantized with calibration data in double precision; then a small adapter is tuned, beside a server
    that shares the GPU. The calibration's memory stays with this job. Fixed: empty_cache() before the tuning."""
    layers = [nn.Linear(1024, 1024).to(run.device).requires_grad_(False) for _ in range(3)]
    samples = torch.randn(48_000, 1024, device=run.device)  # guilty
    quantized = []
    with torch.no_grad():
        for layer in layers:
            quantized.append([part.cpu() for part in calibrate(layer, samples)])
            samples = torch.tanh(layer(samples))  # guilty
    del samples
    if run.fixed:
        torch.cuda.empty_cache()
    adapter = nn.Sequential(nn.Linear(1024, 16), nn.Linear(16, 1024)).to(run.device)
    optimizer = torch.optim.AdamW(adapter.parameters(), lr=1e-3)
    for _ in run.steps(14):
        hidden = torch.randn(256, 1024, device=run.device)
        for layer in layers:
            hidden = torch.tanh(layer(hidden))
        loss = F.mse_loss(adapter(hidden), hidden)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class AdaptedBlock(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.adapter = nn.Sequential(nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False))

    def forward(self, hidden):
        inputs = self.norm(hidden)
        return hidden + F.silu(self.base(inputs) + 2.0 * self.adapter(inputs))


@job("healthy")
def checkpointed_adapters(run):
    """Adapters on frozen layers with activation checkpointing and four micro-batches to a step; gradients stay between
    the micro-batches, as they should."""
    blocks = nn.ModuleList(AdaptedBlock(1280, 64) for _ in range(6)).to(run.device)
    trainable = [p for p in blocks.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=1e-3)
    for step in run.steps(16):
        hidden = torch.randn(8, 128, 1280, device=run.device, requires_grad=True)
        for block in blocks:
            hidden = checkpoint(block, hidden, use_reentrant=False)
        (hidden.square().mean() / 4).backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def answer_scores(model, text):
    logs = model(text[:, :-1]).log_softmax(-1)
    return logs.gather(2, text[:, 1:, None]).sum((1, 2))


@job("healthy")
def direct_preferences(run):
    """Preference optimization: the reference's scores of all pairs are computed first, kept on the CPU, and its copy
    of the weights is dropped; the rewards of all steps are logged as numbers."""
    def language_model():
        model = nn.Sequential(nn.Embedding(WORDS, 512), nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, WORDS))
        return model.to(run.device)

    pairs = [torch.randint(WORDS, (2, 8, 49)) for _ in range(12)]
    policy, reference = language_model(), language_model()
    reference.load_state_dict(policy.state_dict())
    with torch.no_grad():
        expected = [[answer_scores(reference, part.to(run.device)).cpu() for part in pair] for pair in pairs]
    del reference
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-5)
    log = []
    for step in run.steps(12):
        margins = [answer_scores(policy, part.to(run.device)) - before.to(run.device)
                   for part, before in zip(pairs[step], expected[step])]
        reward = 0.1 * (margins[0] - margins[1])
        optimizer.zero_grad()
        (-F.logsigmoid(reward)).mean().backward()
        optimizer.step()
        log.append({"margin": reward.mean().item(), "right": (reward > 0).float().mean().item()})
