"""Generators: adversarial networks, diffusion, flows, autoencoders, super-resolution."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def upscaler(width=48):
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 12, 3, padding=1),
                         nn.PixelShuffle(2))


def denoiser(width=64):
    layers = [nn.Conv2d(3, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1), nn.SiLU()]
    return nn.Sequential(*layers, nn.Conv2d(width, 3, 3, padding=1))


@job("retained_graph")
def running_quality(run):
    """Super-resolution with a running sum of a quality measure that is a tensor with its graph: each batch's error
    image stays. Fixed: .item()."""
    model = upscaler().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    quality = 0.0
    for _ in run.steps(12):
        sharp = torch.rand(8, 3, 256, 256, device=run.device)
        restored = model(F.avg_pool2d(sharp, 2))
        loss = F.l1_loss(restored, sharp)
        error = (restored - sharp).square().mean()  # guilty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        quality += error.item() if run.fixed else error  # cause


class Stabilized(torch.autograd.Function):
    """x * tanh(x) with a backward of its own."""

    @staticmethod
    def forward(ctx, x, save):
        gate = torch.tanh(x)
        result = x * gate  # guilty in own_gradient
        ctx.save = save
        if save:
            ctx.save_for_backward(x, result)
        else:
            ctx.x, ctx.result = x, result  # cause in own_gradient
        return result

    @staticmethod
    def backward(ctx, grad):
        x, result = ctx.saved_tensors if ctx.save else (ctx.x, ctx.result)
        gate = result / x
        return grad * (gate + x * (1 - gate * gate)), None


@job("reference_cycle")
def own_gradient(run):
    """An autograd function that keeps its result in ctx: the result knows its grad_fn, which is ctx, which knows the
    result. Fixed: save_for_backward()."""
    first, second = nn.Linear(512, 2048).to(run.device), nn.Linear(2048, 512).to(run.device)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    for _ in run.steps(12):
        hidden = Stabilized.apply(first(torch.randn(1024, 512, device=run.device)), run.fixed)  # guilty
        loss = second(hidden).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del hidden, loss


class Coupling(nn.Module):
    """A reversible step: its input is computed from its output instead of being kept."""

    def __init__(self, width):
        super().__init__()
        self.shift = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    def forward(self, left, right):
        return right, left + self.shift(right)

    def invert(self, left, right):
        return right - self.shift(left), left  # guilty in reversible_flow


class Reversible(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left, right, steps, trail, *weights):
        for step in steps:
            left, right = step(left, right)
        ctx.save_for_backward(left, right)
        ctx.steps, ctx.trail = steps, trail
        return left, right

    @staticmethod
    def backward(ctx, grad_left, grad_right):
        left, right = ctx.saved_tensors
        grads = []
        for step in reversed(ctx.steps):
            before = step.invert(left, right)  # guilty in reversible_flow
            with torch.enable_grad():
                inputs = [tensor.detach().requires_grad_() for tensor in before]
                outputs = step(*inputs)
                weights = list(step.parameters())
                found = torch.autograd.grad(outputs, [*inputs, *weights], [grad_left, grad_right])
            grad_left, grad_right, *rest = found
            grads = rest + grads
            left, right = before
            if ctx.trail is not None:
                ctx.trail.append(before)  # cause in reversible_flow
        return grad_left, grad_right, None, None, *grads


@job("checkpoint_cache")
def reversible_flow(run):
    """A reversible flow recomputes its activations on the way back and, for a check of the numerical error that is
    never made, keeps all of them. Fixed: it does not."""
    steps = nn.ModuleList(Coupling(512) for _ in range(4)).to(run.device)
    optimizer = torch.optim.SGD(steps.parameters(), lr=0.001)
    trail = None if run.fixed else []
    for _ in run.steps(8):
        left, right = torch.randn(2, 1024, 512, device=run.device, requires_grad=True).unbind()
        left, right = Reversible.apply(left, right, steps, trail, *steps.parameters())
        loss = (left - right).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("cached_not_released")
def latents_first(run):
    """All images are encoded once, in one large batch, the encoder is deleted, and a small prior is trained on the
    latents. What the encoder used stays reserved. Fixed: empty_cache() once the encoder is gone."""
    encoder = nn.Sequential(nn.Conv2d(3, 128, 4, 4), nn.ReLU(), nn.Conv2d(128, 16, 4, 4)).to(run.device)
    with torch.no_grad():
        latents = encoder(torch.rand(256, 3, 256, 256, device=run.device)).flatten(1).cpu()  # guilty
    del encoder
    if run.fixed:
        torch.cuda.empty_cache()
    prior = nn.Sequential(nn.Linear(4096, 512), nn.ReLU(), nn.Linear(512, 4096)).to(run.device)
    optimizer = torch.optim.Adam(prior.parameters(), lr=1e-3)
    for step in run.steps(10):
        batch = latents[16 * step : 16 * step + 16].to(run.device)
        loss = F.mse_loss(prior(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("eval_graph")
def sampling(run):
    """Previews by a diffusion model in eval(), with gradients enabled: each image of the gallery has the graph of
    all its steps. Fixed: no_grad()."""
    model = denoiser().to(run.device).eval()
    gallery = []
    with torch.set_grad_enabled(not run.fixed):
        for _ in run.steps(8):
            image = torch.randn(4, 3, 80, 80, device=run.device)
            for _ in range(3):
                image = 1.01 * image - 0.1 * model(image)  # guilty
            gallery.append(image)  # cause


@job("healthy")
def adversarial_pair(run):
    """A generator and a discriminator with two optimizers; the discriminator sees detached images."""
    generator = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 3072), nn.Tanh()).to(run.device)
    discriminator = nn.Sequential(nn.Linear(3072, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 1)).to(run.device)
    first = torch.optim.Adam(generator.parameters(), lr=2e-4)
    second = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
    for _ in run.steps(8):
        real = torch.rand(1024, 3072, device=run.device)
        fake = generator(torch.randn(1024, 64, device=run.device))
        loss = F.softplus(discriminator(fake.detach())).mean() + F.softplus(-discriminator(real)).mean()
        second.zero_grad()
        loss.backward()
        second.step()
        second.zero_grad()
        loss = F.softplus(-discriminator(fake)).mean()
        first.zero_grad()
        loss.backward()
        first.step()
        second.zero_grad()


@job("healthy")
def gradient_penalty(run):
    """A critic with a gradient penalty: a graph of gradients in each iteration, gone at its end."""
    critic = nn.Sequential(nn.Linear(3072, 1024), nn.Softplus(), nn.Linear(1024, 1)).to(run.device)
    optimizer = torch.optim.SGD(critic.parameters(), lr=1e-4)
    for _ in run.steps(8):
        mixed = torch.rand(2048, 3072, device=run.device, requires_grad=True)
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        loss = (slope.norm(dim=1) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def diffusion_training(run):
    """A denoiser with averaged weights and a preview, made under no_grad(), in each third iteration."""
    model = denoiser().to(run.device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in run.steps(9):
        clean = torch.rand(8, 3, 96, 96, device=run.device)
        noise = torch.randn_like(clean)
        loss = F.mse_loss(model(clean + noise), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters()):
                mean.lerp_(weight, 0.1)
            if step % 3 == 2:
                image = torch.randn(8, 3, 96, 96, device=run.device)
                for _ in range(6):
                    image = image - 0.1 * average(image)
                del image


@job("healthy")
def autoencoder(run):
    """A variational autoencoder that logs its losses as numbers."""
    encoder = nn.Sequential(nn.Linear(3072, 2048), nn.ReLU(), nn.Linear(2048, 128)).to(run.device)
    decoder = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 3072)).to(run.device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    log = []
    for _ in run.steps(10):
        images = torch.rand(1024, 3072, device=run.device)
        mean, scale = encoder(images).chunk(2, 1)
        restored = decoder(mean + scale.exp() * torch.randn_like(mean))
        divergence = (mean.square() + scale.exp() - scale).mean()
        loss = F.mse_loss(restored, images) + 0.01 * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append((loss.item(), divergence.item()))


@job("healthy")
def image_preview(run):
    """Diffusion sampling under inference_mode(); each step's image replaces the one before."""
    model = denoiser().to(run.device).eval()
    image = torch.randn(4, 3, 96, 96, device=run.device)
    with torch.inference_mode():
        for _ in run.steps(20):
            image = 1.01 * image - 0.1 * model(image)
