"""Photos of products for a shop: duplicates, backgrounds, quality."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Catalogue:
    """Embeddings of all photos of the shop."""

    def __init__(self, photos, device):
        self.embeddings = F.normalize(torch.randn(photos, 256, device=device))

    def duplicates(self, threshold=0.95):
        """Pairs of photos of the same thing."""
        similar = self.embeddings @ self.embeddings.T  # guilty in duplicates_at_night
        similar = similar.triu(1)  # guilty in duplicates_at_night
        return (similar > threshold).sum().item()  # guilty in duplicates_at_night

    def nearest(self, photos, count=5):
        return (F.normalize(photos) @ self.embeddings.T).topk(count).indices.tolist()


@job("cached_not_released")
def duplicates_at_night(run):
    """Three passes look for duplicates among all pairs of photos; then the service answers small requests for the rest
    of the day, beside a renderer in another process. Fixed: empty_cache() after the last pass."""
    catalogue = Catalogue(10000, run.device)
    found = 0
    with torch.inference_mode():
        for step in run.steps(24):
            if step < 3:
                found += catalogue.duplicates()
            else:
                catalogue.nearest(torch.randn(16, 256, device=run.device))
            if step == 2 and run.fixed:
                torch.cuda.empty_cache()


def cut_out(channels=32):
    return nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, 1, 1))


class Stage:
    """A part of the training with photos of one size."""

    def __init__(self, size, parts):
        self.size = size
        self.parts = parts

    def step(self, model, optimizer, device):
        photos = torch.randn(8, 3, self.size, self.size, device=device)  # guilty in stages_of_zoom
        masks = torch.rand(8, 1, self.size, self.size, device=device).round()  # guilty in stages_of_zoom
        optimizer.zero_grad(set_to_none=True)
        for some, wanted in zip(photos.chunk(self.parts), masks.chunk(self.parts)):
            predicted = model(some)  # guilty in stages_of_zoom
            loss = F.binary_cross_entropy_with_logits(predicted, wanted) / self.parts
            loss.backward()
        optimizer.step()


@job("true_capacity")
def stages_of_zoom(run):
    """Background removal, trained on larger photos from stage to stage; eight of the last stage's do not fit.
    Fixed: batches of large photos go through in parts, whose gradients are added."""
    run.cap(900)
    model = cut_out().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    parts = (1, 2, 8) if run.fixed else (1, 1, 1)
    stages = [Stage(size, some) for size, some in zip((128, 256, 512), parts)]
    for step in run.steps(12):
        stages[min(step // 4, 2)].step(model, optimizer, run.device)


@torch.no_grad()
def blend(average, model, decay=0.99):
    for mine, other in zip(average.parameters(), model.parameters()):
        mine.lerp_(other, 1 - decay)


@job("healthy")
def averaged_after_warm_up(run):
    """A quality grader whose weights are averaged from the sixth step on; the copy is made then, and stays."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 1536), nn.SiLU(), nn.Linear(1536, 1024), nn.SiLU(),
                          nn.Linear(1024, 5)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    average = None
    for step in run.steps(20):
        photos = torch.rand(512, 3, 32, 32, device=run.device)
        grades = torch.randint(5, (512,), device=run.device)
        loss = F.cross_entropy(model(photos), grades)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step == 5:
            average = copy.deepcopy(model).requires_grad_(False)
        elif average:
            blend(average, model)
            with torch.inference_mode():
                average(photos).argmax(1).tolist()


@job("healthy")
def critic_of_photos(run):
    """Generated photos and a critic with a gradient penalty, that is with double backward, every fourth step; losses
    are logged as numbers."""
    painter = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 3072), nn.Tanh()).to(run.device)
    critic = nn.Sequential(nn.Linear(3072, 1024), nn.Softplus(), nn.Linear(1024, 1)).to(run.device)
    paints = torch.optim.Adam(painter.parameters(), lr=1e-4, betas=(0.5, 0.9))
    judges = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.5, 0.9))
    log = []
    for step in run.steps(24):
        photos = torch.rand(1024, 3072, device=run.device).requires_grad_()
        painted = painter(torch.randn(1024, 64, device=run.device))
        real = critic(photos)
        judged = critic(painted.detach()).mean() - real.mean()
        if step % 4 == 0:
            slope, = torch.autograd.grad(real.sum(), photos, create_graph=True)
            judged = judged + 10 * slope.square().sum(1).mean()
        judges.zero_grad(set_to_none=True)
        judged.backward()
        judges.step()
        fooled = -critic(painted).mean()
        paints.zero_grad(set_to_none=True)
        fooled.backward()
        paints.step()
        log.append((judged.item(), fooled.item()))
