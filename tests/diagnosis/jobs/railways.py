"""Looking after railway tracks."""
import contextlib
import queue
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch import nn

from job import job


class TrackNetwork(nn.Module):
    """Finds cracks, missing bolts and plants in pictures of the track."""

    def __init__(self, width=16, faults=5):
        super().__init__()
        self.look = nn.Conv2d(3, width, 5, stride=2, padding=2)
        self.again = nn.Conv2d(width, width, 3, padding=1)
        self.faults = nn.Conv2d(width, faults, 1)

    def forward(self, pictures):
        seen = F.relu(self.look(pictures))  # guilty in inspected_by_threads
        seen = F.relu(self.again(seen))  # guilty in inspected_by_threads
        return self.faults(seen)  # guilty in inspected_by_threads


class Inspection:
    """Goes through the pictures of a test run with several threads."""

    def __init__(self, model, quiet):
        self.model = model
        self.quiet = quiet
        self.pool = ThreadPoolExecutor(2)
        self.scores = []

    def inspect(self, pictures):
        with torch.no_grad() if self.quiet else contextlib.nullcontext():
            return self.model(pictures).amax((2, 3))

    def test_run(self, batches):
        self.model.eval()
        with torch.no_grad():  # cause in inspected_by_threads
            self.scores.extend(self.pool.map(self.inspect, batches))
        self.model.train()


@job("eval_graph")
def inspected_by_threads(run):
    """A test run is inspected by a pool of threads, from within no_grad(). That holds for the thread that says so: the
    others build graphs, and the scores keep them. Fixed: no_grad() in the function that the threads run."""
    model = TrackNetwork().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inspection = Inspection(model, quiet=run.fixed)
    for _ in run.steps(10):
        pictures = torch.rand(4, 3, 96, 512, device=run.device)
        loss = F.binary_cross_entropy_with_logits(model(pictures).amax((2, 3)), torch.ones(4, 5, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        inspection.test_run([torch.rand(4, 3, 96, 512, device=run.device) for _ in range(4)])  # guilty
    inspection.pool.shutdown()


class Camera:
    """Pictures from below a train. The slower it goes the more lines has a picture."""

    def __init__(self, device, lines=None):
        self.device = device
        self.frames = torch.empty(10, lines, 1024, device=device) if lines else None

    def shoot(self, lines):
        if self.frames is None:
            return [torch.rand(lines, 1024, device=self.device) for _ in range(10)]  # guilty in braking_train
        return [frame[:lines].uniform_() for frame in self.frames]


class Album:
    """Every second picture; those between overlap with them and only serve to measure the speed."""

    def __init__(self, pages=None):
        self.pages = pages
        self.used = 0
        self.pictures = []

    def add(self, pictures):
        shift = torch.stack([(one[:64] - two[:64]).abs().mean() for one, two in zip(pictures, pictures[1:])])
        for picture in pictures[::2]:
            self.pictures.append(picture if self.pages is None else self.copy(picture))  # cause in braking_train
        return shift.mean().item()

    def copy(self, picture):
        self.used += len(picture)
        return self.pages[self.used - len(picture) : self.used].copy_(picture)


@job("fragmentation")
def braking_train(run):
    """A train brakes, and its pictures of the track become longer. Every second of ten pictures is kept; the others
    leave gaps in which none of the longer ones fits. Fixed: pictures are taken into memory for the longest, and those
    to be kept are copied into one album."""
    lines = [int(560 * 1.13**stretch) for stretch in range(12)]
    camera, album = Camera(run.device), Album()
    if run.fixed:
        camera, album = Camera(run.device, lines[-1]), Album(torch.empty(5 * sum(lines), 1024, device=run.device))
    for stretch in run.steps(12):
        assert album.add(camera.shoot(lines[stretch])) > 0


class ReviewDesk:
    """Doubtful places wait for an inspector. While one is there, they are all looked at, and the model learns."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.waiting = queue.Queue()

    def submit(self, pictures, doubts):
        for number in doubts.topk(3).indices.tolist():
            self.waiting.put((number, pictures[number].clone()))

    def some_waiting(self, at_most):
        while at_most and not self.waiting.empty():
            yield self.waiting.get()
            at_most -= 1

    def inspector_arrives(self):
        while not self.waiting.empty():
            numbers, pictures = zip(*self.some_waiting(at_most=6))
            faults = self.model(torch.stack(pictures)).amax((2, 3))
            loss = F.cross_entropy(faults, torch.tensor(numbers, device=faults.device) % 5)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


@job("healthy")
def places_to_review(run):
    """The most doubtful places of each picture wait on the GPU until an inspector has time, after anything between one
    and nine iterations."""
    desk = ReviewDesk(TrackNetwork().to(run.device))
    present = {2, 3, 12, 17, 20, 29}
    for step in run.steps(32):
        pictures = torch.rand(6, 3, 256, 512, device=run.device)
        with torch.no_grad():
            doubts = 1 - desk.model(pictures).amax((1, 2, 3))
        desk.submit(pictures, doubts)
        if step in present:
            desk.inspector_arrives()


class Headquarters:
    """Waits until each depot has sent a gradient, or sent another one in its place, and then makes a step."""

    def __init__(self, model, depots):
        self.model = model
        self.depots = depots
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.received = {}

    def receive(self, depot, gradients):
        self.received[depot] = gradients
        if len(self.received) == self.depots:
            self.step()

    def step(self):
        for weight, *gradients in zip(self.model.parameters(), *self.received.values()):
            weight.grad = torch.stack(gradients).mean(0)
        self.received.clear()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


@job("healthy")
def gradients_of_depots(run):
    """Six depots train one model of wear. Each sends gradients when it has some. They are kept until all depots have
    sent theirs, which takes six iterations or several more."""
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).to(run.device)
    headquarters = Headquarters(model, depots=6)
    order = (0, 1, 2, 3, 4, 5, 0, 0, 1, 3, 1, 2, 4, 3, 5, 2, 1, 2, 0, 3, 5, 4, 1, 1, 2, 0, 2, 5, 0, 4)
    for step in run.steps(30):
        worn = torch.randn(512, 512, device=run.device)
        loss = F.mse_loss(model(worn), worn.roll(1, 1))
        headquarters.receive(order[step], torch.autograd.grad(loss, list(model.parameters())))
