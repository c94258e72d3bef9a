"""Cows of a dairy farm, recognized by their coats: metric learning, galleries, cameras of a milking hall."""
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class CoatBlock(nn.Module):
    def __init__(self, width, stride):
        super().__init__()
        self.spatial = nn.Conv2d(width, width, 3, stride=stride, padding=1, groups=width, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.mixed = nn.Conv2d(width, 2 * width, 1)

    def forward(self, coats):
        return F.relu(self.mixed(self.norm(self.spatial(coats))))  # guilty in herd_of_a_farm


class CoatNet(nn.Module):
    """Vectors of coats; those of one cow are to be close."""

    def __init__(self, width=16, dimensions=128):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(CoatBlock(width, 1), CoatBlock(2 * width, 2), CoatBlock(4 * width, 2))
        self.head = nn.Linear(8 * width, dimensions)

    def forward(self, coats):
        hidden = self.blocks(F.relu(self.stem(coats)))  # guilty in herd_of_a_farm
        return F.normalize(self.head(hidden.mean((2, 3))), dim=1)


def coats(count, device, pixels=96):
    return torch.rand(count, 3, pixels, pixels, device=device)  # guilty in herd_of_a_farm


class Herd:
    """The gallery: a vector for each picture of each cow."""

    def __init__(self, model):
        self.model = model
        self.vectors, self.cows = [], []

    def enroll(self, pictures, cows):
        self.vectors.append(self.model(pictures))
        self.cows.append(cows)

    @torch.no_grad()
    def enroll_for_inference(self, pictures, cows):
        self.enroll(pictures, cows)

    def who(self, picture):
        vectors = torch.cat([part.detach() for part in self.vectors])
        return torch.cat(self.cows)[(vectors @ self.model(picture).detach()[0]).argmax()].item()


@job("eval_graph")
def herd_of_a_farm(run):
    """The cows of a farm are enrolled: the gallery has a vector for each of their pictures, with the graph of the
    network that is in evaluation mode. Fixed: a method with no_grad() for it."""
    model = CoatNet().to(run.device).eval()
    herd = Herd(model)
    for step in run.steps(12):
        pictures, cows = coats(32, run.device), torch.arange(8, device=run.device).repeat(4) + 8 * step
        if run.fixed:
            herd.enroll_for_inference(pictures, cows)
        else:
            herd.enroll(pictures, cows)  # cause
        run.middle()
        del pictures
    assert herd.who(coats(1, run.device)) < 96


class HallCamera:
    """Decodes frames of a milking hall on a stream of its own."""

    def __init__(self, device):
        self.device = device
        self.stream = torch.cuda.Stream()

    def frames(self):
        with torch.cuda.stream(self.stream):
            raw = torch.randint(256, (24, 3, 360, 640), dtype=torch.uint8, device=self.device)
            return raw.half() / 255  # guilty in milking_hall


@job("cross_stream_pending")
def milking_hall(run):
    """A camera decodes frames on its stream for a recognizer on another, slower one, that Python has not to wait for.
    Frames are dropped as soon as they are handed over, and stay taken until the recognizer comes to them. Fixed: the
    recognizer has finished before the next frames are decoded."""
    camera = HallCamera(run.device)
    recognizer = torch.cuda.Stream()
    weight = torch.randn(3072, 3072, device=run.device) / 55
    torch.cuda.synchronize()
    with torch.no_grad():
        for _ in run.steps(14):
            frames = camera.frames()
            recognizer.wait_stream(camera.stream)
            with torch.cuda.stream(recognizer):
                hidden = frames.flatten()[: 5000 * 3072].view(5000, 3072).float()
                for _ in range(20):
                    hidden = torch.relu_(hidden @ weight)
                del hidden
            frames.record_stream(recognizer)  # cause
            del frames
            if run.fixed:
                recognizer.synchronize()
    torch.cuda.synchronize()


class BatchMemory:
    """Vectors of so many past batches, to compare with; the oldest goes when another one comes."""

    def __init__(self, batches):
        self.vectors, self.cows = deque(maxlen=batches), deque(maxlen=batches)

    def add(self, vectors, cows):
        self.vectors.append(vectors.detach())
        self.cows.append(cows)

    def contrast(self, vectors, cows, margin=0.5):
        known, owners = torch.cat(list(self.vectors)), torch.cat(list(self.cows))
        likeness = vectors @ known.T
        same = cows[:, None] == owners
        return ((1 - likeness) * same).mean() + (F.relu(likeness - margin) * ~same).mean()


@job("healthy")
def coats_against_a_memory(run):
    """Vectors are compared with those of the last seven batches, which are large: memory grows with each batch until
    the seventh, and not after it."""
    model = CoatNet(width=12, dimensions=2048).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    memory = BatchMemory(batches=7)
    for _ in run.steps(17):
        pictures, cows = coats(512, run.device, 32), torch.randint(60, (512,), device=run.device)
        vectors = model(pictures)
        memory.add(vectors, cows)
        loss = memory.contrast(vectors, cows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
