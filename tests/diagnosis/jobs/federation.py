"""Bayesian inference, continual and federated learning."""
import copy
from collections import deque
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional as F

from job import job

CYCLES = 40_000_000  # about 20 ms on a GPU of 2 GHz


def classifier(device, width=1024):
    layers = [nn.Linear(512, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 20)]
    return nn.Sequential(*layers).to(device)


class BackgroundJudge:
    """Looks on a stream of its own how much of the old tasks a model still knows, snapshot by snapshot."""

    def __init__(self, device):
        self.stream = torch.cuda.Stream()
        self.drift = torch.zeros((), device=device)
        self.under_way = deque()

    @contextmanager
    def behind(self, *tensors):
        """What is called under it runs on the judge's stream; the tensors may be dropped afterwards."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            yield
            self.under_way.append(self.stream.record_event())
        for tensor in tensors:
            tensor.record_stream(self.stream)  # cause in forgetting_monitor

    def judge(self, model):
        snapshot = nn.utils.parameters_to_vector(model.parameters()).detach()  # guilty in forgetting_monitor
        with self.behind(snapshot):
            torch.cuda._sleep(CYCLES)
            self.drift.add_(snapshot.abs().mean())

    def wait(self, allowed):
        while len(self.under_way) > allowed:
            self.under_way.popleft().synchronize()


@job("cross_stream_pending")
def forgetting_monitor(run):
    """Continual learning with a judge that works on copies of the weights on another stream, and takes longer than a
    training step; copies that have been dropped wait for it. Fixed: training waits for all judgements but one."""
    model = classifier(run.device, width=2048)
    judge = BackgroundJudge(run.device)
    judge.judge(model)
    torch.cuda.synchronize()
    for _ in run.steps(14):
        loss = model(torch.randn(64, 512, device=run.device)).square().mean()
        for weight, slope in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters()))):
            weight.data.sub_(slope, alpha=0.01)
        judge.judge(model)
        if run.fixed:
            judge.wait(allowed=1)


class Diagonal:
    """A mass matrix that has only a diagonal."""

    def __init__(self, draws):
        self.scale = (draws.var(0) + 1e-3).sqrt()

    def momentum(self):
        return torch.randn_like(self.scale) / self.scale


class Dense:
    """A mass matrix that knows all correlations."""

    def __init__(self, draws):
        centred = draws - draws.mean(0)  # guilty in dense_mass_matrix
        covariance = (centred.T @ centred).div_(len(draws))  # guilty in dense_mass_matrix
        covariance.diagonal().add_(1e-3)
        self.root = torch.linalg.cholesky(covariance)  # guilty in dense_mass_matrix

    def momentum(self):
        noise = torch.randn(len(self.root), 1, device=self.root.device)
        return torch.linalg.solve_triangular(self.root.T, noise, upper=True)[:, 0]


@job("true_capacity")
def dense_mass_matrix(run):
    """Hamiltonian Monte Carlo for 10,000 weights with a dense mass matrix, whose Cholesky factor no longer fits beside
    it. Fixed: a diagonal mass matrix."""
    run.cap(640)
    draws = torch.randn(200, 10_000, device=run.device)
    place = draws[-1].clone()
    for step in run.steps(10):
        if step % 5 == 0:
            mass = Diagonal(draws) if run.fixed else Dense(draws)
        momentum = mass.momentum()
        for _ in range(8):
            momentum = momentum - 0.05 * place
            place = place + 0.05 * momentum
        draws[step] = place


class Posterior:
    """Some late samples of the weights, and a running average of what all of them predict."""

    def __init__(self, size):
        self.samples = deque(maxlen=size)
        self.mean = None
        self.count = 0

    @torch.no_grad()
    def add(self, model, inputs):
        self.samples.append({name: value.clone() for name, value in model.state_dict().items()})
        predicted = model(inputs).softmax(1)
        self.count += 1
        self.mean = predicted if self.mean is None else self.mean + (predicted - self.mean) / self.count


@job("healthy")
def langevin_chain(run):
    """Stochastic gradient Langevin dynamics by hand: each second sample is kept, six at most."""
    model = classifier(run.device)
    posterior = Posterior(6)
    test = torch.randn(4000, 512, device=run.device)
    for step in run.steps(20):
        inputs, labels = torch.randn(256, 512, device=run.device), torch.randint(20, (256,), device=run.device)
        model.zero_grad(set_to_none=True)
        F.cross_entropy(model(inputs), labels).backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(weight.grad, alpha=-1e-3).add_(torch.randn_like(weight), alpha=1e-4)
        if step % 2:
            posterior.add(model, test)
    assert len(posterior.samples) == 6


class Server:
    """Adam on the average of what the clients have changed."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def visit(self, client, device, clients):
        client.load_state_dict(self.model.state_dict())
        local = torch.optim.SGD(client.parameters(), lr=0.05)
        for _ in range(2):
            inputs, labels = torch.randn(128, 512, device=device), torch.randint(20, (128,), device=device)
            local.zero_grad()
            F.cross_entropy(client(inputs), labels).backward()
            local.step()
        for weight, changed in zip(self.model.parameters(), client.parameters()):
            change = (weight - changed).detach() / clients
            weight.grad = change if weight.grad is None else weight.grad.add_(change)

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


@job("healthy")
def rounds_with_server_adam(run):
    """Federated learning: what three clients have changed is summed up where gradients usually are, and the server's
    Adam makes its moments in the first round; one copy of the model serves all clients."""
    server = Server(classifier(run.device))
    client = copy.deepcopy(server.model)
    for _ in run.steps(9):
        for _ in range(3):
            server.visit(client, run.device, clients=3)
        server.update()
        client.zero_grad(set_to_none=True)
