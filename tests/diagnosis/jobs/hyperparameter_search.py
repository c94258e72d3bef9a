"""Which hyperparameters are best: trials, folds, populations."""
import copy
import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from job import job


@dataclass
class Trial:
    number: int
    learning_rate: float
    reports: list = field(default_factory=list)

    def report(self, value):
        self.reports.append(value)

    def best(self):
        return min(float(value) for value in self.reports)


class Objective:
    """Trains a model with the trial's hyperparameters and reports how good it is after each epoch."""

    def __init__(self, device, gradients):
        self.device = device
        self.gradients = gradients
        self.validation = torch.randn(8192, 64, device=device)

    def model(self):
        layers = nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 128), nn.Tanh(), nn.Linear(128, 1)
        return nn.Sequential(*layers).to(self.device)  # guilty in reported_trials

    def validate(self, model):
        model.eval()
        with torch.set_grad_enabled(self.gradients):  # cause in reported_trials
            return model(self.validation).square().mean()  # guilty in reported_trials

    def __call__(self, trial):
        model = self.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=trial.learning_rate)
        for _ in range(2):
            model.train()
            for _ in range(2):
                batch = torch.randn(256, 64, device=self.device)
                loss = (model(batch) - batch[:, :1]).square().mean()
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
            trial.report(self.validate(model))
        optimizer.zero_grad(set_to_none=True)


@job("eval_graph")
def reported_trials(run):
    """Each trial reports its validation losses to a study that keeps all trials. The validation runs with gradients
    enabled, and the losses are reported as they are. Fixed: no_grad()."""
    objective = Objective(run.device, gradients=not run.fixed)
    study = []
    for number in run.steps(14):
        trial = Trial(number, learning_rate=10 ** (-1 - number / 7))
        objective(trial)
        study.append(trial)
    assert min(study, key=Trial.best) in study


def throughput(model, rows, device):
    """Rows per second, forward and backward."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    model(torch.randn(rows, 128, device=device)).square().mean().backward()  # guilty in batch_size_probe
    torch.cuda.synchronize()
    model.zero_grad(set_to_none=True)
    return rows / (time.perf_counter() - begin)


@job("cached_not_released")
def batch_size_probe(run):
    """How many rows per second go through the network is measured for ever larger batches; then, since small ones
    generalise better, the training takes the smallest. What the largest needed stays reserved, and the preprocessing
    on the same GPU would like to have it. Fixed: empty_cache() after the probe."""
    layers = [layer for _ in range(7) for layer in (nn.Linear(128, 128), nn.SiLU())]
    model = nn.Sequential(*layers, nn.Linear(128, 8)).to(run.device)
    speeds = {rows: throughput(model, rows, run.device) for rows in (512, 4096, 16_384, 65_536)}
    chosen = min(speeds)
    if run.fixed:
        torch.cuda.empty_cache()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(14):
        rows = torch.randn(chosen, 128, device=run.device)
        loss = F.cross_entropy(model(rows), rows[:, :8].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def folds_of_a_grid(run):
    """Cross-validation for a grid of widths: a new model and optimizer for each fold, wider every third iteration;
    predictions for the fold that was left out go to a table on the GPU that is there from the beginning."""
    table = torch.randn(9000, 512, device=run.device)
    left_out = torch.zeros(5, 9000, device=run.device)
    for step in run.steps(15):
        width, fold = 256 * (1 + step // 3), step % 3
        model = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 1)).to(run.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        part = slice(3000 * fold, 3000 * (fold + 1))
        train = torch.cat([table[: part.start], table[part.stop :]])
        for batch in train.split(2000):
            optimizer.zero_grad()
            F.mse_loss(model(batch), batch[:, :1]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            left_out[step // 3, part] = model(table[part]).squeeze(1)
        del model, optimizer, train, batch


class Member:
    """One of a population: a model, its optimizer, and how good it is."""

    def __init__(self, device, momentum):
        self.model = nn.Sequential(nn.Linear(768, 1536), nn.ReLU(), nn.Linear(1536, 768)).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=momentum)
        self.score = float("-inf")

    def train(self, batch):
        loss = F.mse_loss(self.model(batch), batch)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.score = -loss.item()

    def become_like(self, other):
        self.model.load_state_dict(other.model.state_dict())
        self.optimizer.load_state_dict(copy.deepcopy(other.optimizer.state_dict()))


@job("healthy")
def population(run):
    """Population based training: one of six members is trained per iteration, and every sixth time the worst becomes
    like the best. The momentum of a member exists from its first turn on."""
    members = [Member(run.device, momentum=0.9 - 0.02 * number) for number in range(6)]
    for step in run.steps(18):
        members[step % 6].train(torch.randn(512, 768, device=run.device))
        if step % 6 == 5:
            ranked = sorted(members, key=lambda member: member.score)
            ranked[0].become_like(ranked[-1])
