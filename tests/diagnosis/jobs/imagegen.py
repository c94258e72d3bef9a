"""Generative models of images."""
import math
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Autoencoder(nn.Module):
    def __init__(self, channels=32, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, channels, 4, stride=4), nn.ReLU(), nn.Conv2d(channels, 2 * latent, 1))
        self.decoder = nn.Sequential(nn.ConvTranspose2d(latent, channels, 4, stride=4), nn.ReLU(),
                                     nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(),
                                     nn.Conv2d(channels, 3, 3, padding=1))

    def losses(self, image):
        mean, logvar = self.encoder(image).chunk(2, 1)
        latent = mean + torch.randn_like(mean) * (0.5 * logvar).exp()  # guilty in two_backward_passes
        restored = self.decoder(latent)  # guilty in two_backward_passes
        reconstruction = F.mse_loss(restored, image)  # guilty in two_backward_passes
        divergence = 0.5 * (mean.square() + logvar.exp() - 1 - logvar).mean()
        return reconstruction, divergence


@job("retained_graph", fixed_contested="the last decoder graph lives during the next forward pass")
def two_backward_passes(run):
    """A variational autoencoder with a backward pass for each of its two losses; the first keeps the graph, for the
    second, which never enters the decoder. Both losses are stored in a history as they are. Fixed: as numbers."""
    model = Autoencoder().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history = defaultdict(list)
    for _ in run.steps(12):
        reconstruction, divergence = model.losses(torch.rand(8, 3, 128, 128, device=run.device))  # guilty
        optimizer.zero_grad()
        reconstruction.backward(retain_graph=True)
        (0.1 * divergence).backward()
        optimizer.step()
        for name, loss in (("reconstruction", reconstruction), ("divergence", divergence)):
            history[name].append(loss.item() if run.fixed else loss)  # cause


class HalfPrecisionStash:
    """Saves what a graph needs in half precision: hooks for torch.autograd.graph.saved_tensors_hooks()."""

    def __init__(self, forget):
        self.saved = {}
        self.forget = forget

    def pack(self, tensor):
        if not tensor.is_floating_point() or tensor.numel() < 4096:
            return tensor
        key = len(self.saved) if not self.forget else max(self.saved, default=0) + 1
        self.saved[key] = tensor.detach().half()  # guilty in compressed_activations
        return key, tensor.dtype

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        key, dtype = packed
        half = self.saved.pop(key) if self.forget else self.saved[key]  # cause in compressed_activations
        return half.to(dtype)


@job("checkpoint_cache", contested="nothing is recomputed: what the graph saved is kept")
def compressed_activations(run):
    """Training of a denoiser that saves its activations in half precision in a table, from which the backward pass
    reads them and does not take them out. Fixed: it takes them out."""
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.SiLU(), nn.Conv2d(32, 32, 3, padding=1), nn.SiLU(),
                          nn.Conv2d(32, 3, 3, padding=1)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    stash = HalfPrecisionStash(forget=run.fixed)
    for _ in run.steps(12):
        clean = torch.randn(8, 3, 96, 96, device=run.device)
        noise = torch.randn_like(clean)
        level = torch.rand(8, 1, 1, 1, device=run.device)
        with torch.autograd.graph.saved_tensors_hooks(stash.pack, stash.unpack):
            loss = F.mse_loss(model((1 - level) * clean + level * noise), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Pipeline:
    """Text encoder and denoiser, which take turns on the GPU."""

    def __init__(self, device):
        self.device = device
        self.text_encoder = nn.Sequential(nn.EmbeddingBag(60_000, 1024), *(nn.Linear(1024, 4096) if i % 2 == 0 else
                                          nn.Linear(4096, 1024) for i in range(6))).requires_grad_(False)
        self.denoiser = nn.Conv2d(4, 4, 3, padding=1).requires_grad_(False).to(device)

    def encode(self, prompts):
        self.text_encoder.to(self.device)  # guilty in offloaded_encoder
        embeddings = self.text_encoder(prompts.to(self.device))
        self.text_encoder.to("cpu")
        return embeddings

    def denoise(self, latent, embedding, number):
        condition = embedding[:, :4, None, None]
        return latent - 0.05 * (self.denoiser(latent) + condition) / math.sqrt(number + 1)


@job("cached_not_released")
def offloaded_encoder(run):
    """A text encoder is moved to the CPU after the prompts of the session were encoded, to make room on a shared GPU;
    its memory stays in the allocator's cache while the images are made. Fixed: empty_cache() after the move."""
    pipeline = Pipeline(run.device)
    embeddings = pipeline.encode(torch.randint(60_000, (16, 40)))
    if run.fixed:
        torch.cuda.empty_cache()
    images = []
    with torch.no_grad():
        for picture in run.steps(10):
            latent = torch.randn(1, 4, 96, 96, device=run.device)
            for number in range(12):
                latent = pipeline.denoise(latent, embeddings[picture : picture + 1], number)
            images.append(latent.cpu())


@job("cross_stream_pending")
def saved_samples(run):
    """Samples are scaled to bytes and packed for saving on a second stream, with every intermediate tensor handed
    over by record_stream(); packing takes longer than the sampling. Fixed: the loop waits until the samples
    are packed."""
    generator = nn.Linear(128, 3 * 128 * 128).to(run.device).requires_grad_(False)
    packing, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weights = torch.randn(3, 2048, 2048, device=run.device)
    checksum = torch.zeros(2048, 2048, device=run.device)
    packed = torch.zeros(64, 3 * 128 * 128, dtype=torch.uint8, device=run.device)
    packing.wait_stream(main)
    for _ in run.steps(15):
        images = generator(torch.randn(64, 128, device=run.device))  # guilty
        scaled = images.sigmoid()  # guilty
        packing.wait_stream(main)
        with torch.cuda.stream(packing):
            for _ in range(6):
                for weight in weights:
                    torch.mm(weight, weight, out=checksum)
            packed.copy_(scaled.mul_(255))
        for tensor in (images, scaled):
            tensor.record_stream(packing)  # cause
        if run.fixed:
            packing.synchronize()
        del images, scaled, tensor


@job("healthy")
def critic_iterations(run):
    """A Wasserstein GAN: several steps of the critic, with a penalty that is differentiated twice, to one of the
    generator, whose backward pass leaves gradients on the critic until its next step."""
    generator = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 3072), nn.Tanh()).to(run.device)
    critic = nn.Sequential(nn.Linear(3072, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 1)).to(run.device)
    for_generator = torch.optim.RMSprop(generator.parameters(), lr=5e-5)
    for_critic = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
    for _ in run.steps(12):
        for _ in range(3):
            real = torch.rand(256, 3072, device=run.device) * 2 - 1
            fake = generator(torch.randn(256, 128, device=run.device)).detach()
            mixed = torch.lerp(real, fake, torch.rand(256, 1, device=run.device)).requires_grad_()
            slope, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
            loss = critic(fake).mean() - critic(real).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()
            for_critic.zero_grad()
            loss.backward()
            for_critic.step()
        for_generator.zero_grad()
        (-critic(generator(torch.randn(256, 128, device=run.device))).mean()).backward()
        for_generator.step()
