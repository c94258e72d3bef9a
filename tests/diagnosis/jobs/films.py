"""Video understanding: readers of clips, classification."""
import contextlib
import gc
from collections import deque

import torch
from torch import nn

from job import job


class ClipReader:
    """Frames of a film, averaged over a window; it goes on reading where it was."""

    def __init__(self, device, length=60, window=8):
        self.device = device
        self.length = length
        self.window = window
        self.averages = self._averages()  # cause in early_decisions

    def _averages(self):
        frames = deque(maxlen=self.window)
        for _ in range(self.length):
            frames.append(torch.rand(3, 360, 640, device=self.device))  # guilty in early_decisions
            yield sum(frames) / len(frames)

    def read(self):
        return next(self.averages)

    def close(self):
        self.averages.close()


def decide(reader, model, enough):
    """Reads until the classes are clear enough."""
    score = torch.zeros(5, device=reader.device)
    for _ in range(enough):
        score = score + model(reader.read()[None])[0].softmax(0)
    return score.argmax().item()


@job("reference_cycle", fixed_contested="as recorded, close() does not free the frames: it grows like the leak")
def early_decisions(run):
    """Films are classified by their first frames. A reader has the generator it reads from as an attribute, and the
    generator, which never comes to its end, the reader; the collector is switched off as in many loaders. Fixed: the
    reader is closed."""
    gc.disable()
    model = nn.Sequential(nn.Conv2d(3, 8, 9, stride=8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(8, 5)).to(run.device).eval()
    with torch.no_grad():
        for step in run.steps(14):
            reader = ClipReader(run.device)
            with contextlib.closing(reader) if run.fixed else contextlib.nullcontext():
                decide(reader, model, enough=9 + step % 3)
            del reader


class FrameFeatures(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 7, stride=4, padding=3), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU(),
                                  nn.AdaptiveAvgPool2d(4), nn.Flatten())

    def forward(self, frames):
        return self.body(frames)


@job("healthy")
def features_of_clips(run):
    """A frozen network turns clips into features, which all go to the host; a classifier trains on the last few."""
    frozen = FrameFeatures().to(run.device).eval()
    head = nn.GRU(1024, 256, batch_first=True).to(run.device)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    store = {}
    for step in run.steps(10):
        with torch.no_grad():
            clip = torch.rand(24, 3, 224, 224, device=run.device)
            store[step] = frozen(clip).cpu()
            del clip
        recent = torch.stack([store[k] for k in range(max(0, step - 3), step + 1)]).to(run.device)
        optimizer.zero_grad(set_to_none=True)
        head(recent)[1].square().mean().backward()
        optimizer.step()
