"""Finding faulty parts: autoencoders, memory banks, GANs that paint faults."""
import random

import torch
import torch.nn.functional as F
from torch import nn

from job import job


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(1024, 2048)
        self.decode = nn.Linear(2048, 1024)

    def forward(self, parts):
        return self.decode(F.relu(self.encode(parts)))


class ProductInspector:
    """An autoencoder of one product; a hook on its code watches how large the code gets."""

    def __init__(self, device):
        self.model = Autoencoder().to(device)  # guilty in products_of_the_week
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-4)
        self.largest = 0.0
        self.handle = self.model.encode.register_forward_hook(self.watch)  # cause in products_of_the_week

    def watch(self, _module, _inputs, code):
        self.largest = max(self.largest, code.detach().abs().max().item())

    def fit(self, parts):
        for _ in range(2):
            loss = F.mse_loss(self.model(parts), parts)
            self.optimizer.zero_grad()
            loss.backward()  # guilty in products_of_the_week
            self.optimizer.step()  # guilty in products_of_the_week

    def close(self):
        self.handle.remove()


@job("reference_cycle")
def products_of_the_week(run):
    """Each product gets an autoencoder of its own, fitted and dropped. The hook is a method of the inspector, which has
    the model, which has the hook: none is freed when it is dropped. Fixed: the hook is removed after the fit."""
    thresholds = []
    for _ in run.steps(12):
        inspector = ProductInspector(run.device)
        inspector.fit(torch.randn(512, 1024, device=run.device))
        thresholds.append(1.1 * inspector.largest)
        if run.fixed:
            inspector.close()
        del inspector


class MemoryBank:
    """Patches of good parts; what is far from all of them is a fault."""

    def __init__(self, patches, size):
        self.patches = patches[self.spread(patches, size)]

    @staticmethod
    def spread(patches, size):
        """Patches that are far from each other, found greedily."""
        distances = torch.cdist(patches, patches)  # guilty in bank_of_patches
        chosen = [0]
        nearest = distances[0].clone()
        for _ in range(size - 1):
            chosen.append(int(nearest.argmax()))
            torch.minimum(nearest, distances[chosen[-1]], out=nearest)
        return chosen

    def score(self, patches):
        return torch.cdist(patches, self.patches).min(1).values.max()


@job("cached_not_released")
def bank_of_patches(run):
    """Once, before the inspection begins, the distances between all patches of good parts are computed for a memory
    bank of a few hundred. Their memory is never needed again, and the program of the cameras, on the same GPU, does not
    get it. Fixed: empty_cache() after the bank was made."""
    describe = nn.Conv2d(3, 64, 8, stride=8).to(run.device).requires_grad_(False)
    bank = MemoryBank(torch.randn(10_000, 64, device=run.device), 200)
    if run.fixed:
        torch.cuda.empty_cache()
    faulty = 0
    for _ in run.steps(14):
        picture = torch.rand(1, 3, 512, 512, device=run.device)
        faulty += int(bank.score(describe(picture).flatten(2)[0].T) > 20)


class ReviewGallery:
    """The more conspicuous half of each scan, for the people who look at them at the end of the shift."""

    def __init__(self, on_host):
        self.on_host = on_host
        self.halves = []

    def add(self, scan):
        half = max(scan.chunk(2), key=lambda part: part[::64, ::64].std().item())
        self.halves.append(half.cpu() if self.on_host else half.clone())  # guilty in review_gallery


@job("fragmentation", fixed_contested="outgrown scans stay reserved: 908 MiB at the end with nothing allocated")
def review_gallery(run):
    """Two line cameras scan the parts of a series, which begins with short and ends with long ones. A pair of scans is
    dropped, one after the other, when a half of each went to a gallery: halves settle where scans were, and longer
    scans do not fit beside them. Fixed: the gallery is on the host."""
    draw = random.Random(11)
    gallery = ReviewGallery(on_host=run.fixed)
    for part in run.steps(14):
        lengths = [4000 + 600 * part + draw.randint(0, 200) for _ in range(2)]
        scans = [torch.rand(lines, 1024, device=run.device) for lines in lengths]
        while scans:
            gallery.add(scans.pop())


def perceptron(inputs, width, outputs):
    return nn.Sequential(nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2),
                         nn.Linear(width, outputs))


@job("healthy")
def painted_faults(run):
    """A GAN that paints faults. The penalty on the critic's gradient, with a second derivative, is only computed in
    every fourth iteration, which needs more than the others; a copy of the generator follows it."""
    generator, average = (perceptron(64, 768, 3072).to(run.device) for _ in range(2))
    average.load_state_dict(generator.state_dict())
    average.requires_grad_(False)
    critic = perceptron(3072, 768, 1).to(run.device)
    paint = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.0, 0.99))
    judge = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.0, 0.99))
    for step in run.steps(16):
        faults = torch.rand(768, 3072, device=run.device)
        with torch.no_grad():
            painted = generator(torch.randn(768, 64, device=run.device))
        loss = F.softplus(critic(painted)).mean() + F.softplus(-critic(faults)).mean()
        if step % 4 == 0:
            faults.requires_grad_(True)
            (slope,) = torch.autograd.grad(critic(faults).sum(), faults, create_graph=True)
            loss = loss + 10.0 * slope.square().sum(1).mean()
        judge.zero_grad(set_to_none=True)
        loss.backward()
        judge.step()
        critic.requires_grad_(False)
        paint.zero_grad(set_to_none=True)
        F.softplus(-critic(generator(torch.randn(768, 64, device=run.device)))).mean().backward()
        paint.step()
        critic.requires_grad_(True)
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), generator.parameters()):
                mean.lerp_(weight, 0.02)
