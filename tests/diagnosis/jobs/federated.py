"""Federated and continual learning."""
import gc
import weakref
from copy import deepcopy
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def classifier(width=1024, classes=10):
    return nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, classes))


def batch_of(device, rows=256):
    return torch.randn(rows, 512, device=device), torch.randint(10, (rows,), device=device)


@dataclass
class TaskRecord:
    """What elastic weight consolidation needs to know of a finished task."""

    name: str
    samples: list = field(default_factory=list)

    def importance(self):
        return [sum(g.square() for g in grads) / len(self.samples) for grads in zip(*self.samples)]


class Consolidation:
    def __init__(self, model, average):
        self.model = model
        self.average = average
        self.tasks = []

    def sample(self, record, inputs):
        scores = self.model(inputs).log_softmax(1).amax(1).mean()
        grads = torch.autograd.grad(scores, list(self.model.parameters()))  # guilty in consolidated_tasks
        if self.average:
            record.samples = [[g.square().mean().item() for g in grads]]
        else:
            record.samples.append(grads)  # cause in consolidated_tasks

    def finish(self, record):
        self.tasks.append(record)


@job("gradient_accumulation")
def consolidated_tasks(run):
    """Elastic weight consolidation: the gradients of a few samples of each task are recorded for the importance of
    the weights, and the samples stay in the task's record. Fixed: only one number for each weight matrix is kept."""
    model = classifier().to(run.device)
    consolidation = Consolidation(model, average=run.fixed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for task in run.steps(12):
        for _ in range(3):
            inputs, classes = batch_of(run.device)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), classes).backward()
            optimizer.step()
        record = TaskRecord(f"task {task}")
        for _ in range(3):
            consolidation.sample(record, batch_of(run.device, 32)[0])
        consolidation.finish(record)


class Client:
    """A participant with a model of its own, which exchanges only its last layer."""

    def __init__(self, number, device):
        self.number = number
        self.device = device
        self.model = classifier(1536).to(device)

    def train(self, passes=3):
        total = 0.0
        for _ in range(passes):
            self.model.zero_grad(set_to_none=True)
            inputs, classes = batch_of(self.device, 128)
            loss = F.cross_entropy(self.model(inputs), classes)
            loss.backward()  # guilty in personal_models
            with torch.no_grad():
                for weight in self.model.parameters():
                    weight -= 0.05 * weight.grad
            total += loss.item()
        return total / passes

    def release(self):
        self.model.zero_grad(set_to_none=True)


@job("gradient_accumulation")
def personal_models(run):
    """Clients with personal models are simulated on one GPU, one after the other. Each clears its gradients when it
    begins and leaves those of its last pass on its model. Fixed: they are cleared when it has finished."""
    clients = [Client(number, run.device) for number in range(14)]
    history = []
    for turn in run.steps(14):
        history.append(clients[turn].train())
        if run.fixed:
            clients[turn].release()


class Callback:
    def __init__(self, trainer):
        self.trainer = trainer  # cause in client_trainers
        self.losses = []

    def after_batch(self, loss):
        self.losses.append((self.trainer.steps, loss))


class LocalTrainer:
    """Trains a copy of the server's model on one client's data."""

    def __init__(self, model, rate, weak):
        self.model = deepcopy(model)  # guilty in client_trainers
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate)
        self.steps = 0
        self.callbacks = [Callback(weakref.proxy(self) if weak else self)]

    def fit(self, data):
        for inputs, classes in data:
            loss = F.cross_entropy(self.model(inputs), classes)
            self.optimizer.zero_grad()
            loss.backward()  # guilty in client_trainers
            self.optimizer.step()  # guilty in client_trainers
            self.steps += 1
            for callback in self.callbacks:
                callback.after_batch(loss.item())
        return [weight.detach().cpu() for weight in self.model.parameters()]


@job("reference_cycle", fixed_contested="the first trainer still waits for the collector")
def client_trainers(run):
    """Each round makes a trainer for a client; its callbacks know their trainer, and so model and optimizer wait for
    the collector, which was switched off for even step times. Fixed: callbacks have a weak reference."""
    gc.disable()
    server = classifier().to(run.device)
    for _ in run.steps(12):
        trainer = LocalTrainer(server, rate=1e-3, weak=run.fixed)
        update = trainer.fit([batch_of(run.device) for _ in range(2)])
        with torch.no_grad():
            for weight, new in zip(server.parameters(), update):
                weight.lerp_(new.to(run.device), 0.1)
        del trainer


class Uplink:
    """Sends updates over a slow line, on a stream of its own."""

    def __init__(self, size, in_order):
        self.stream = torch.cuda.Stream()
        self.host = torch.empty(size, dtype=torch.float16, pin_memory=True)
        self.in_order = in_order

    def send(self, update):
        if self.in_order:
            self.stream.synchronize()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(18_000_000)
            self.host.copy_(update, non_blocking=True)
        update.record_stream(self.stream)  # cause in slow_uplink

    def drain(self):
        if self.in_order:
            self.stream.synchronize()


def compress(model, reference):
    """The difference to the server's weights in half precision, as one vector."""
    with torch.no_grad():
        parts = [(mine - theirs).flatten() for mine, theirs in zip(model.parameters(), reference.parameters())]
        return torch.cat(parts).half()  # guilty in slow_uplink


@job("cross_stream_pending")
def slow_uplink(run):
    """After each local step the update goes to the server on a second stream, over a line that is slower than the
    training; the updates that are freed wait for the line. Fixed: training waits until an update was sent."""
    reference = classifier(2048).to(run.device).requires_grad_(False)
    model = classifier(2048).to(run.device)
    uplink = Uplink(sum(weight.numel() for weight in model.parameters()), in_order=run.fixed)
    for _ in run.steps(16):
        inputs, classes = batch_of(run.device, 64)
        model.zero_grad()
        F.cross_entropy(model(inputs), classes).backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight.sub_(weight.grad, alpha=0.01)
        uplink.send(compress(model, reference))
        uplink.drain()


@job("healthy")
def control_variates(run):
    """SCAFFOLD: each client gets a correction of the size of the model when it takes part for the first time; after
    that nothing is added."""
    server = classifier().to(run.device)
    shared = [torch.zeros_like(weight) for weight in server.parameters()]
    own = {}
    for turn in run.steps(18):
        client = turn * 3 % 8
        if client not in own:
            own[client] = [torch.zeros_like(weight) for weight in server.parameters()]
        model = deepcopy(server)
        for _ in range(3):
            inputs, classes = batch_of(run.device)
            grads = torch.autograd.grad(F.cross_entropy(model(inputs), classes), list(model.parameters()))
            with torch.no_grad():
                for weight, grad, all_of_them, mine in zip(model.parameters(), grads, shared, own[client]):
                    weight -= 0.05 * (grad - mine + all_of_them)
        with torch.no_grad():
            for new, old, mine in zip(model.parameters(), server.parameters(), own[client]):
                mine.copy_((old - new) / 0.15)
                old.lerp_(new, 0.2)


class Reservoir:
    """A sample of the stream so far, of at most so many batches."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.seen = 0
        self.kept = []

    def offer(self, batch):
        self.seen += 1
        if len(self.kept) < self.capacity:
            self.kept.append(batch)
        else:
            place = self.seen * 7919 % self.seen if self.seen < 3 else self.seen * 31 % (self.seen - 1)
            if place < self.capacity:
                self.kept[place] = batch


@job("healthy", contested="eight of the ten kept batches are never read")
def experience_replay(run):
    """Continual learning with a reservoir of earlier batches on the GPU, which fills during the first ten tasks."""
    model = classifier().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    reservoir = Reservoir(10)
    for _ in run.steps(24):
        batch = batch_of(run.device, 2048)
        for inputs, classes in [batch, *reservoir.kept[:2]]:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), classes).backward()
            optimizer.step()
        reservoir.offer(batch)
