"""Bayesian networks, ensembles, continual and meta-learning."""
import copy
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def regressor(inputs=64, width=1024, outputs=8, dropout=0.0):
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width), nn.ReLU(),
                         nn.Dropout(dropout), nn.Linear(width, outputs))


class DiagonalLaplace:
    """Fits a Gaussian to the posterior: its precision is the sum of the squared gradients of all batches."""

    def __init__(self, model, sum_at_once):
        self.model, self.sum_at_once = model, sum_at_once
        self.gradients = []
        self.precision = [torch.ones_like(weight) for weight in model.parameters()]

    def observe(self, inputs, targets):
        self.model.zero_grad()
        F.mse_loss(self.model(inputs), targets).backward()
        if self.sum_at_once:
            for total, weight in zip(self.precision, self.model.parameters()):
                total.addcmul_(weight.grad, weight.grad)
        else:
            self.gradients.append([weight.grad.clone() for weight in self.model.parameters()])  # guilty in laplace_fit

    def finish(self):
        for grads in self.gradients:
            for total, grad in zip(self.precision, grads):
                total.addcmul_(grad, grad)


@job("gradient_accumulation")
def laplace_fit(run):
    """A Laplace approximation that collects the gradients of all batches and sums their squares when it is done.
    Fixed: they are summed batch by batch."""
    model = regressor(width=1536).to(run.device)
    laplace = DiagonalLaplace(model, sum_at_once=run.fixed)
    for _ in run.steps(14):
        laplace.observe(torch.randn(256, 64, device=run.device), torch.randn(256, 8, device=run.device))
    laplace.finish()


def disagreement(model, batch, passes):
    """The variance of predictions with dropout."""
    torch.no_grad()  # cause in pool_scores
    votes = torch.stack([model(batch) for _ in range(passes)])  # guilty in pool_scores
    return votes.var(0).mean(1)  # guilty in pool_scores


@job("eval_graph")
def pool_scores(run):
    """Active learning: the unlabelled pool is scored by Monte Carlo dropout; torch.no_grad() is called, but not with
    `with`, and does nothing. Fixed: with no_grad()."""
    model = regressor(dropout=0.2).to(run.device).train()
    scores = []
    for _ in run.steps(10):
        batch = torch.randn(512, 64, device=run.device)
        if run.fixed:
            with torch.no_grad():
                scores.append(disagreement(model, batch, 4))
        else:
            scores.append(disagreement(model, batch, 4))  # guilty


class LearnedOptimizer(nn.Module):
    """An LSTM that turns the gradient of each coordinate into its step."""

    def __init__(self, width=16):
        super().__init__()
        self.cell = nn.LSTMCell(1, width)
        self.out = nn.Linear(width, 1)

    def forward(self, grad, state):
        hidden, cell = self.cell(grad.reshape(-1, 1), state)  # guilty in learned_optimizer
        return 0.01 * self.out(hidden).view_as(grad), (hidden, cell)  # guilty in learned_optimizer


class Learner:
    """A problem whose weights are moved by a learned optimiser."""

    def __init__(self, rule, device, truncate):
        self.rule, self.truncate = rule, truncate
        self.theta = torch.randn(128, 256, device=device)
        count = self.theta.numel()
        self.state = (torch.zeros(count, 16, device=device), torch.zeros(count, 16, device=device))

    def step(self, data):
        probe = self.theta.detach().requires_grad_()
        loss = (data @ probe).square().mean()
        (grad,) = torch.autograd.grad(loss, probe)
        update, self.state = self.rule(grad, self.state)
        self.theta = self.theta - update  # guilty in learned_optimizer
        if self.truncate:
            self.theta = self.theta.detach()
            self.state = tuple(part.detach() for part in self.state)
        return loss.item()


@job("hidden_state")
def learned_optimizer(run):
    """A learned optimiser is applied to a new problem: its LSTM's state and the weights it moves carry the graph of
    all steps. Fixed: both are detached after each step."""
    rule = LearnedOptimizer().to(run.device)
    learner = Learner(rule, run.device, truncate=run.fixed)
    curve = []
    for _ in run.steps(12):
        curve.append(learner.step(torch.randn(64, 128, device=run.device)))  # guilty


class KernelRegression:
    """A Gaussian process with an exact solution."""

    def fit(self, inputs, targets, noise=1e-1):
        distance = torch.cdist(inputs, inputs)  # guilty in exact_process
        kernel = torch.exp(-0.5 * distance.square())  # guilty in exact_process
        kernel.diagonal().add_(noise)
        self.inputs = inputs
        factor = torch.linalg.cholesky(kernel)  # guilty in exact_process
        self.weights = torch.cholesky_solve(targets, factor)

    def predict(self, inputs):
        return torch.exp(-0.5 * torch.cdist(inputs, self.inputs).square()) @ self.weights


@job("cached_not_released")
def exact_process(run):
    """A Gaussian process on 5,000 points: the kernel matrices of the fit are gone, their memory stays with PyTorch
    while the predictions run beside a simulator on the same GPU. Fixed: empty_cache() after the fit."""
    process = KernelRegression()
    process.fit(torch.randn(5000, 16, device=run.device), torch.randn(5000, 2, device=run.device))
    if run.fixed:
        torch.cuda.empty_cache()
    means = []
    for _ in run.steps(15):
        means.append(process.predict(torch.randn(128, 16, device=run.device)).mean().item())


@job("true_capacity")
def joint_ensemble(run):
    """Twenty networks of an ensemble in one backward pass: the activations of all of them do not fit together.
    Fixed: one member after the other."""
    run.cap(640)
    members = [regressor(width=512).to(run.device) for _ in range(20)]
    optimizer = torch.optim.SGD([weight for member in members for weight in member.parameters()], lr=0.01)
    for _ in run.steps(8):
        inputs, targets = torch.randn(9000, 64, device=run.device), torch.randn(9000, 8, device=run.device)
        optimizer.zero_grad()
        if run.fixed:
            for member in members:
                F.mse_loss(member(inputs), targets).backward()
        else:
            outputs = [member(inputs) for member in members]  # guilty
            sum(F.mse_loss(output, targets) for output in outputs).backward()
        optimizer.step()


@job("healthy")
def swag_posterior(run):
    """SWAG: mean, mean of squares, and the last five deviations of the weights, which come one an epoch."""
    model = regressor(256, 1536).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    mean = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    square, deviations = mean.square(), deque(maxlen=5)
    for epoch in run.steps(14):
        for _ in range(2):
            loss = model(torch.randn(256, 256, device=run.device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        now = nn.utils.parameters_to_vector(model.parameters()).detach()
        mean.lerp_(now, 1 / (epoch + 2))
        square.lerp_(now.square(), 1 / (epoch + 2))
        deviations.append(now - mean)


class BayesLinear(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.mean = nn.Parameter(0.02 * torch.randn(after, before))
        self.rho = nn.Parameter(torch.full((after, before), -4.0))

    def forward(self, inputs):
        scale = F.softplus(self.rho)
        self.divergence = (self.mean.square() + scale.square() - 2 * scale.log()).sum()
        return F.linear(inputs, self.mean + scale * torch.randn_like(scale))


@job("healthy")
def bayes_by_backprop(run):
    """Four samples of all weights an iteration, one backward pass over all of them; the layers keep their divergence,
    with its graph, until the next forward pass."""
    model = nn.Sequential(BayesLinear(256, 1024), nn.ReLU(), BayesLinear(1024, 512)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(10):
        inputs, loss = torch.randn(512, 256, device=run.device), 0.0
        for _ in range(4):
            output = model(inputs)
            loss = loss + output.square().mean() + 1e-6 * (model[0].divergence + model[2].divergence)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def reptile(run):
    """Reptile: a copy of the model with an optimizer of its own for each of three tasks; the copies are dropped."""
    model = regressor(128, 1024).to(run.device)
    for _ in run.steps(9):
        moved = [torch.zeros_like(weight) for weight in model.parameters()]
        for _ in range(3):
            clone = copy.deepcopy(model)
            inner = torch.optim.Adam(clone.parameters(), lr=1e-3, betas=(0.0, 0.999))
            for _ in range(2):
                inner.zero_grad()
                clone(torch.randn(256, 128, device=run.device)).square().mean().backward()
                inner.step()
            with torch.no_grad():
                for change, new, old in zip(moved, clone.parameters(), model.parameters()):
                    change += (new - old) / 3
            del clone, inner
        with torch.no_grad():
            for weight, change in zip(model.parameters(), moved):
                weight.add_(change, alpha=0.5)
        del moved, change, new, old
