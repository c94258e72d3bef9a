"""Pose estimation, tracking, anomaly detection."""
import heapq
import itertools
import random
from collections import defaultdict, deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class EventStorage:
    """All scalars of a run, by name."""

    def __init__(self):
        self.history = defaultdict(deque)

    def put_scalars(self, **scalars):
        for name, value in scalars.items():
            self.history[name].append(value)


class KeypointHead(nn.Module):
    """Heat maps of the joints, and whether each can be seen."""

    def __init__(self, width=32, joints=17):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 2, 1)
        self.heat = nn.Conv2d(width, joints, 1)
        self.visible = nn.Conv2d(width, width, 3, 1, 1)
        self.score = nn.Linear(width, joints)

    def losses(self, images, joints, seen):
        features = torch.relu(self.stem(images))  # guilty in loss_dictionary
        heat = F.mse_loss(self.heat(features), joints)
        visible = torch.relu(self.visible(features))  # guilty in loss_dictionary
        pooled = F.silu(visible).mean((2, 3))  # guilty in loss_dictionary
        return {"loss_heat": heat, "seen": F.binary_cross_entropy_with_logits(self.score(pooled), seen)}


@job("retained_graph")
def loss_dictionary(run):
    """Keypoints with a dictionary of losses; only those named loss_... are summed and go through backward(), and the
    storage of events takes all of them as they are. Fixed: it takes numbers."""
    model = KeypointHead().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    storage = EventStorage()
    for _ in run.steps(12):
        images = torch.rand(8, 3, 192, 160, device=run.device)
        joints = torch.rand(8, 17, 96, 80, device=run.device)
        seen = torch.rand(8, 17, device=run.device).round()
        losses = model.losses(images, joints, seen)
        total = sum(value for name, value in losses.items() if name.startswith("loss_"))
        run.middle()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        if run.fixed:
            losses = {name: value.item() for name, value in losses.items()}
        storage.put_scalars(**losses)  # cause


class Camera:
    """A camera whose pictures are decoded on a stream of its own."""

    def __init__(self, device, height=1080, width=1920):
        self.device, self.shape = device, (3, height, width)
        self.stream = torch.cuda.Stream()

    def read(self):
        with torch.cuda.stream(self.stream):
            raw = torch.randint(255, self.shape, dtype=torch.uint8, device=self.device)
            return raw.float().div_(255)  # guilty in three_cameras


class Detector:
    def __init__(self, device):
        self.net = nn.Sequential(*(nn.Linear(1920, 1920) for _ in range(30))).to(device).requires_grad_(False)
        self.main = torch.cuda.current_stream()

    def __call__(self, camera, picture):
        self.main.wait_stream(camera.stream)
        hidden = self.net(picture.flatten(0, 1))
        picture.record_stream(self.main)  # cause in three_cameras
        return hidden.amax(1)


@job("cross_stream_pending")
def three_cameras(run):
    """Three cameras, each with a stream for decoding, and one detector on the main stream that cannot keep up with
    them. Fixed: the boxes are read before the next pictures are decoded."""
    cameras = [Camera(run.device) for _ in range(3)]
    detector = Detector(run.device)
    for _ in run.steps(14):
        for camera in cameras:
            picture = camera.read()
            boxes = detector(camera, picture)
            del picture
            if run.fixed:
                assert len(boxes.topk(10).values.tolist()) == 10


class Track:
    fresh = itertools.count()

    def __init__(self, feature):
        self.number = next(Track.fresh)
        self.features = deque([feature], maxlen=5)
        self.missed = 0


class Tracker:
    """Tracks with the features of their last five pictures; those that are missed too often are dropped."""

    def __init__(self, patience=3):
        self.tracks, self.patience = [], patience

    def update(self, features, matched):
        for track, found in zip(self.tracks, matched):
            track.missed = 0 if found else track.missed + 1
        for feature, track in zip(features, [track for track in self.tracks if not track.missed]):
            track.features.append(feature)
        self.tracks = [track for track in self.tracks if track.missed < self.patience]
        if len(self.tracks) < 10:
            self.tracks.append(Track(features[-1]))


@job("healthy")
def track_gallery(run):
    """A tracker whose gallery grows as people come and shrinks as they go."""
    draw = random.Random(5)
    net = nn.Conv2d(3, 64, 3, 2, 1).to(run.device)
    tracker = Tracker()
    with torch.no_grad():
        for _ in run.steps(30):
            crops = torch.rand(10, 3, 128, 64, device=run.device)
            features = [feature.clone() for feature in net(crops)]
            tracker.update(features, [draw.random() < 0.7 for _ in tracker.tracks])
    assert tracker.tracks


class HardExamples:
    """The images with the largest losses, at most `size` of them."""

    def __init__(self, size):
        self.size, self.heap, self.counter = size, [], itertools.count()

    def offer(self, image, loss):
        item = (loss, next(self.counter), image)
        if len(self.heap) < self.size:
            heapq.heappush(self.heap, item)
        elif loss > self.heap[0][0]:
            heapq.heapreplace(self.heap, item)

    def batch(self):
        return torch.stack([image for _, _, image in self.heap[-8:]])


@job("healthy")
def hard_example_pool(run):
    """An autoencoder for defects that trains again on its hardest images; a heap on the GPU keeps 40 of them."""
    model = nn.Sequential(nn.Conv2d(3, 32, 4, 4), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 4)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pool = HardExamples(40)
    for _ in run.steps(14):
        images = torch.rand(8, 3, 256, 256, device=run.device)
        errors = (model(images) - images).square().mean((1, 2, 3))
        optimizer.zero_grad()
        errors.mean().backward()
        optimizer.step()
        for image, error in zip(images, errors.tolist()):
            pool.offer(image.clone(), error)
        optimizer.zero_grad()
        hard = pool.batch()
        F.mse_loss(model(hard), hard).backward()
        optimizer.step()


@job("healthy")
def patch_memory(run):
    """Anomaly detection with a memory of normal patches: each batch's patches join it, and a random subset keeps it
    at its size."""
    backbone = nn.Sequential(nn.Conv2d(3, 128, 8, 8), nn.ReLU()).to(run.device).eval()
    memory = torch.empty(0, 128, device=run.device)
    with torch.inference_mode():
        for _ in run.steps(14):
            maps = backbone(torch.rand(32, 3, 256, 256, device=run.device))
            patches = maps.flatten(2).transpose(1, 2).reshape(-1, 128)
            memory = torch.cat([memory, patches])
            if len(memory) > 60_000:
                memory = memory[torch.randperm(len(memory), device=run.device)[:60_000]]
            run.middle()
        test = patches[:512]
        assert torch.cdist(test, memory[:20_000]).amin(1).max().item() >= 0
