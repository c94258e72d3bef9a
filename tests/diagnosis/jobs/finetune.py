"""Fine-tuning of language models with trainers of one's own; distillation; curricula."""
import random
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job

VOCABULARY = 6000


class Callback:
    def after_backward(self, trainer):
        pass


class GradientAngle(Callback):
    """The angle between the gradients of one step and of the one before."""

    def __init__(self, keep):
        self.keep = keep
        self.past = []
        self.cosines = []

    def after_backward(self, trainer):
        now = [weight.grad for weight in trainer.model.parameters()]
        if self.past:
            product = sum((one * other).sum() for one, other in zip(now, self.past[-1]))
            self.cosines.append(product.item())
        self.past.append(now)  # cause in gradient_angles
        if self.keep:
            del self.past[: -self.keep]


class Trainer:
    """The usual one, in small."""

    def __init__(self, model, optimizer, callbacks=()):
        self.model = model
        self.optimizer = optimizer
        self.callbacks = callbacks

    def compute_loss(self, batch):
        words, labels = batch
        return F.cross_entropy(self.model(words), labels)

    def training_step(self, batch):
        loss = self.compute_loss(batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # guilty in gradient_angles
        for callback in self.callbacks:
            callback.after_backward(self)
        self.optimizer.step()
        return loss.item()


def labelled_words(device, rows=64, length=50):
    return torch.randint(VOCABULARY, (rows, length), device=device), torch.randint(20, (rows,), device=device)


@job("gradient_accumulation")
def gradient_angles(run):
    """A callback compares each step's gradients with the last step's and holds on to all of them; zero_grad() only
    takes them away from the parameters. Fixed: it keeps the last ones only."""
    model = nn.Sequential(nn.EmbeddingBag(VOCABULARY, 512), nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 1024),
                          nn.GELU(), nn.Linear(1024, 20)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    trainer = Trainer(model, optimizer, [GradientAngle(keep=1 if run.fixed else 0)])
    for _ in run.steps(12):
        trainer.training_step(labelled_words(run.device))


class SparsityTap:
    """Which neurons fire, by layer."""

    def __init__(self, as_numbers):
        self.values = defaultdict(list)
        self.as_numbers = as_numbers

    def see(self, name, neurons):
        fire = neurons.detach()
        self.values[name].append((fire > 0).float().mean().item() if self.as_numbers else fire)  # cause in firing_rates


class FeedForward(nn.Module):
    def __init__(self, name, width, tap):
        super().__init__()
        self.name, self.tap = name, tap
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, hidden):
        neurons = F.relu(self.up(self.norm(hidden)))  # guilty in firing_rates
        if torch.is_grad_enabled():  # not in evaluation
            self.tap.see(self.name, neurons)
        return hidden + self.down(neurons)


class CheckpointedModel(nn.Module):
    def __init__(self, width, layers, tap):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(FeedForward(f"layer {k}", width, tap) for k in range(layers))
        self.head = nn.Linear(width, 20)

    def forward(self, words):
        hidden = self.words(words)
        for layer in self.layers:
            hidden = checkpoint(layer, hidden, use_reentrant=True)
        return self.head(hidden.mean(1))


@job("checkpoint_cache")
def firing_rates(run):
    """The neurons of checkpointed layers are recorded for a report on sparsity, where gradients are enabled: that is
    when a layer runs again in backward(), and what it computes there is kept. Fixed: the share of those that fire is
    kept."""
    model = CheckpointedModel(384, 3, SparsityTap(as_numbers=run.fixed)).to(run.device)
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in run.steps(9):
        trainer.training_step(labelled_words(run.device, 32, 80))


@job("healthy")
def gradual_unfreezing(run):
    """Every second iteration one more layer is trained, from the last to the first: gradients and AdamW's moments are
    added until all layers have them."""
    layers = [nn.Linear(1280, 1280) for _ in range(6)]
    model = nn.Sequential(nn.EmbeddingBag(VOCABULARY, 1280), *layers, nn.Linear(1280, 20))
    model = model.to(run.device).requires_grad_(False)
    optimizer = torch.optim.AdamW(model[-1].requires_grad_(True).parameters(), lr=1e-4)
    trainer = Trainer(model, optimizer)
    for step in run.steps(16):
        if step % 2 and layers:
            optimizer.add_param_group({"params": list(layers.pop().requires_grad_(True).parameters())})
        trainer.training_step(labelled_words(run.device))


class Student(nn.Module):
    """Gives its features as well, for the distillation."""

    def __init__(self, width=768):
        super().__init__()
        self.first = nn.Linear(192, width)
        self.second = nn.Linear(width, width)
        self.head = nn.Linear(width, 50)

    def forward(self, batch):
        first = torch.tanh(self.first(batch))  # guilty in matched_features
        second = torch.tanh(self.second(first))  # guilty in matched_features
        return first, second, self.head(second)  # guilty in matched_features


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.total = self.total + value  # cause in matched_features
        self.count += 1


def distill(student, teacher, optimizer, meter, batch, fixed):
    """One step; each term of the loss goes back on its own, as their gradients once were looked at."""
    with torch.no_grad():
        targets = teacher(batch)
    terms = [F.mse_loss(feature, target) for feature, target in zip(student(batch), targets)]
    optimizer.zero_grad(set_to_none=True)
    if fixed:
        sum(terms).backward()
    else:
        for term in terms:
            term.backward(retain_graph=True)
    optimizer.step()
    meter.update(sum(terms).item() if fixed else sum(terms))


@job("retained_graph")
def matched_features(run):
    """Three terms of a distillation go back one by one with retain_graph=True, the last one as well, and the meter
    adds up losses as tensors: the graph of each step is kept whole. Fixed: one backward(), .item()."""
    teacher, student = Student().to(run.device).eval(), Student().to(run.device)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9)
    meter = Meter()
    for _ in run.steps(12):
        batch = torch.randn(1500, 192, device=run.device)  # guilty
        distill(student, teacher, optimizer, meter, batch, run.fixed)


class Distillation:
    """A student that has a teacher for the first steps."""

    def __init__(self, device, rate=0.01):
        self.student = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 512)).to(device)
        self.optimizer = torch.optim.SGD(self.student.parameters(), lr=rate)
        self.teacher = self.build_teacher(2048).to(device).requires_grad_(False)  # guilty in graduated_student
        self.device = device

    def build_teacher(self, width):
        middle = [layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())]
        return nn.Sequential(nn.Linear(512, width), nn.ReLU(), *middle, nn.Linear(width, 512))

    def step(self):
        batch = torch.randn(400, 512, device=self.device)
        target = batch if self.teacher is None else self.teacher(batch)
        loss = F.mse_loss(self.student(batch), target)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def graduate(self, release):
        self.teacher = None
        if release:
            torch.cuda.empty_cache()


@job("cached_not_released")
def graduated_student(run):
    """A student trains with a large teacher for five steps and alone from then on. The teacher's memory stays in the
    cache of this process, and the next training cannot start on this GPU. Fixed: empty_cache() when the teacher has
    gone."""
    distillation = Distillation(run.device)
    for step in run.steps(14):
        if step == 5:
            distillation.graduate(release=run.fixed)
        distillation.step()


class Features:
    """The outputs of some layers, caught by hooks; a context manager that takes the hooks away again."""

    def __init__(self, *layers):
        self.layers = layers
        self.caught = []

    def __enter__(self):
        self.handles = [layer.register_forward_hook(self.catch) for layer in self.layers]
        return self.caught

    def catch(self, module, inputs, output):
        self.caught.append(output)

    def __exit__(self, *problem):
        for handle in self.handles:
            handle.remove()
        self.caught.clear()


@job("healthy")
def hooked_teacher(run):
    """Distillation of features that hooks catch in teacher and student; they are dropped with the step."""
    teacher, student = Student(1024).to(run.device).requires_grad_(False), Student(1024).to(run.device)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    for _ in run.steps(10):
        batch = torch.randn(1024, 192, device=run.device)
        with Features(teacher.first, teacher.second) as wanted, Features(student.first, student.second) as given:
            teacher(batch)
            student(batch)
            loss = sum(F.mse_loss(one, other) for one, other in zip(given, wanted))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()


@job("healthy")
def competence_pool(run):
    """A curriculum: for ten iterations a harder part of the data is loaded and stays on the GPU, to be drawn from."""
    draw = random.Random(3)
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    pool = []
    for step in run.steps(18):
        if step < 10:
            pool.append(torch.randn(5000, 512, device=run.device) * (1 + step))
        for part in draw.choices(pool, k=2):
            loss = model(part[:1024]).logsumexp(1).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
