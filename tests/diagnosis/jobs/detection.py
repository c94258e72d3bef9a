"""Object detection."""
from collections import defaultdict, deque
from copy import deepcopy

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def backbone(width=32):
    return nn.Sequential(nn.Conv2d(3, width, 5, stride=2, padding=2), nn.ReLU(),
                         nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU())


def decode(deltas, anchors):
    """Boxes as corners from the offsets of a dense head."""
    center = anchors[:, :2] + deltas[..., :2] * anchors[:, 2:]
    size = anchors[:, 2:] * deltas[..., 2:].clamp(max=4).exp()  # guilty in smoothed_metrics
    return torch.cat([center - size / 2, center + size / 2], -1)  # guilty in smoothed_metrics


def matched_iou(first, second):
    """The overlap of each box with its own partner."""
    corner = torch.max(first[..., :2], second[..., :2])
    extent = (torch.min(first[..., 2:], second[..., 2:]) - corner).clamp(min=0)  # guilty in smoothed_metrics
    overlap = extent.prod(-1)  # guilty in smoothed_metrics
    areas = [(boxes[..., 2:] - boxes[..., :2]).prod(-1) for boxes in (first, second)]  # guilty in smoothed_metrics
    return overlap / (areas[0] + areas[1] - overlap).clamp(min=1e-6)  # guilty in smoothed_metrics


class SmoothedValue:
    """The last values of a quantity and their median."""

    def __init__(self, window=50):
        self.values = deque(maxlen=window)

    def update(self, value):
        self.values.append(value)  # cause in smoothed_metrics

    @property
    def median(self):
        return float(torch.tensor([float(value) for value in self.values]).median())


class MetricLogger:
    def __init__(self):
        self.meters = defaultdict(SmoothedValue)

    def update(self, **values):
        for name, value in values.items():
            self.meters[name].update(value)

    def __str__(self):
        return "  ".join(f"{name}: {meter.median:.4f}" for name, meter in self.meters.items())


def dense_anchors(side, device):
    steps = torch.arange(side, device=device, dtype=torch.float32) * 4 + 2
    centers = torch.cartesian_prod(steps, steps).repeat_interleave(3, 0)
    sizes = torch.tensor([16.0, 32.0, 64.0], device=device).repeat(side * side)
    return torch.cat([centers, sizes[:, None].expand(-1, 2)], 1)


@job("retained_graph", fixed_contested="the overlap's graph is still built and lives for one iteration")
def smoothed_metrics(run):
    """A dense detector whose logger keeps the last fifty values of each quantity. One of them, the mean overlap, is
    not part of the loss: as a tensor it keeps the boxes it was computed from. Fixed: .item()."""
    model = nn.Sequential(*backbone(), nn.Conv2d(64, 12, 1)).to(run.device)
    anchors = dense_anchors(128, run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
    logger = MetricLogger()
    for step in run.steps(14):
        images = torch.rand(4, 3, 512, 512, device=run.device)
        truth = torch.randn(4, len(anchors), 4, device=run.device) * 0.1
        deltas = model(images).permute(0, 2, 3, 1).reshape(4, -1, 4)  # guilty
        loss = F.smooth_l1_loss(deltas, truth)
        quality = matched_iou(decode(deltas, anchors), decode(truth, anchors)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.update(loss=loss.item(), iou=quality.item() if run.fixed else quality)
        if step % 5 == 4:
            print(logger)


def busy_regions(images, tidy):
    """The mean colour of the leaves of a quadtree that is split where an image has detail."""
    gray = images.mean(1)  # guilty in quadtrees
    detail = (gray - F.avg_pool2d(gray[:, None], 9, 1, 4)[:, 0]).abs()  # guilty in quadtrees
    leaves = []

    def split(top, left, side):
        part = (slice(None), slice(top, top + side), slice(left, left + side))
        if side > 256 and detail[part].mean() > 0.1:
            half = side // 2
            for y in (top, top + half):
                for x in (left, left + half):
                    split(y, x, half)  # cause in quadtrees
        else:
            leaves.append(gray[part].mean((1, 2)))

    split(0, 0, images.shape[-1])
    result = torch.stack(leaves, 1)
    if tidy:
        del split
    return result


@job("reference_cycle")
def quadtrees(run):
    """Images are cut into regions by a nested function that calls itself: the function and the cell that it is found
    in refer to each other, and the images that it sees stay with them until the collector runs. Fixed: the name is
    deleted at the end."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).to(run.device)
    proposals = []
    with torch.no_grad():
        for _ in run.steps(12):
            regions = busy_regions(torch.rand(12, 3, 512, 512, device=run.device), tidy=run.fixed)
            regions = F.pad(regions, (0, 64 - regions.shape[1])) if regions.shape[1] < 64 else regions[:, :64]
            proposals.append(model(regions).argmax(1).tolist())


class AnchorGenerator:
    """Anchors of a feature map, computed once for each of its shapes."""

    def __init__(self, device):
        self.device = device
        self.cache = {}

    def __call__(self, side):
        if side not in self.cache:
            self.cache[side] = dense_anchors(side, self.device)
        return self.cache[side]


@job("healthy", contested="different sizes leave nearly half of the reserve unused at all times")
def multi_scale(run):
    """Training at six image sizes with a cache of the anchors for each: it grows until every size has occurred."""
    model = nn.Sequential(*backbone(), nn.Conv2d(64, 12, 1)).to(run.device)
    anchors_of = AnchorGenerator(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in run.steps(18):
        side = (320, 384, 448, 512, 576, 640)[step * 5 % 6]
        deltas = model(torch.rand(2, 3, side, side, device=run.device)).permute(0, 2, 3, 1).reshape(2, -1, 4)
        anchors = anchors_of(side // 4)
        boxes = decode(deltas, anchors)
        loss = F.l1_loss(boxes, decode(torch.zeros_like(deltas), anchors)) / side
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class ModelEma:
    """An average of the weights, updated after each step of the optimizer."""

    def __init__(self, model, decay=0.99):
        self.module = deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.module.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


@job("healthy")
def nominal_batch(run):
    """Gradients of small batches are added up to a nominal batch of 64, as the authors meant it; an average of the
    weights is made with each step."""
    model = nn.Sequential(*backbone(), nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(4096, 2048), nn.ReLU(),
                          nn.Linear(2048, 85)).to(run.device)
    average = ModelEma(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.937, nesterov=True)
    accumulate = 64 // 16
    for step in run.steps(16):
        images = torch.rand(16, 3, 160, 160, device=run.device)
        loss = model(images).square().mean() / accumulate
        loss.backward()
        if (step + 1) % accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            optimizer.zero_grad()
            average.update(model)
