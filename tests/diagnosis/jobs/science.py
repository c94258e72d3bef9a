"""Scientific models: graphs, physics, meta-learning, second-order methods."""
import copy
import gc

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def perceptron(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class GraphLayer(nn.Module):
    """Each node gets the mean of its neighbours."""

    def __init__(self, before, after):
        super().__init__()
        self.linear = nn.Linear(2 * before, after)

    def forward(self, nodes, edges):
        source, target = edges
        degree = torch.zeros(len(nodes), 1, device=nodes.device).index_add(
            0, target, torch.ones(len(target), 1, device=nodes.device))
        mean = torch.zeros_like(nodes).index_add(0, target, nodes[source]) / degree.clamp(min=1)  # guilty in epoch_loss
        return torch.relu(self.linear(torch.cat([nodes, mean], 1)))  # guilty in epoch_loss


def random_graph(run, nodes, features):
    return torch.randn(nodes, features, device=run.device), torch.randint(nodes, (2, 4 * nodes), device=run.device)


@job("retained_graph")
def epoch_loss(run):
    """A graph network with backward(retain_graph=True), left from a trial, and a sum of the losses as a tensor: all
    graphs stay. Fixed: neither."""
    first, second = GraphLayer(64, 128).to(run.device), GraphLayer(128, 128).to(run.device)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    total = 0.0
    for _ in run.steps(9):
        nodes, edges = random_graph(run, 6000, 64)
        loss = second(first(nodes, edges), edges).square().mean()  # guilty
        optimizer.zero_grad()
        loss.backward(retain_graph=not run.fixed)
        optimizer.step()
        total += loss.item() if run.fixed else loss  # cause


@job("hidden_state")
def streamed_filter(run):
    """A learned filter over a stream of measurements: state and covariance go from chunk to chunk with their graph,
    and the sum of the errors is for one backward pass that never comes. Fixed: both are detached."""
    transition = nn.Linear(512, 512).to(run.device)
    gain = perceptron(1024, 512, 512).to(run.device)
    state = torch.zeros(1024, 512, device=run.device)
    for _ in run.steps(20):
        measured = torch.randn(1024, 512, device=run.device)
        predicted = torch.tanh(transition(state))  # guilty
        correction = gain(torch.cat([predicted, measured], 1))  # guilty
        state = predicted + correction * (measured - predicted)  # guilty
        if run.fixed:
            state = state.detach()


@job("reference_cycle")
def adapted_models(run):
    """Meta-learning that adapts a copy of the model for each task with backward(create_graph=True): each parameter
    of the copy and its gradient hold each other. Fixed: the gradients are cleared once the task is done."""
    model = perceptron(256, 1024, 1024, 16).to(run.device)
    for _ in run.steps(10):
        adapted = copy.deepcopy(model)  # guilty
        loss = adapted(torch.randn(512, 256, device=run.device)).square().mean()
        loss.backward(create_graph=True)  # guilty
        with torch.no_grad():
            for weight, shared in zip(adapted.parameters(), model.parameters()):
                shared -= 0.01 * weight.grad
        if run.fixed:
            adapted.zero_grad(set_to_none=True)
        del adapted, loss, weight


class Simulation:
    """A run of a solver; its observer is a method of its own."""

    def __init__(self, run, weak):
        self.field = torch.randn(2048, 2048, device=run.device)  # guilty in simulations
        self.flux = torch.zeros_like(self.field)  # guilty in simulations
        self.observer = None if weak else self.observe  # cause in simulations
        self.seen = 0

    def observe(self):
        self.seen += 1

    def advance(self):
        self.flux.copy_(self.field).mul_(0.1)
        self.field.add_(self.flux)
        (self.observer or self.observe)()


@job("reference_cycle")
def simulations(run):
    """Simulations with a bound method of their own as an attribute wait for the collector, which runs in every
    hundredth iteration only. Fixed: the method is looked up when it is called."""
    gc.disable()
    for step in run.steps(12):
        simulation = Simulation(run, weak=run.fixed)
        for _ in range(3):
            simulation.advance()
        if step % 100 == 99:
            gc.collect()
        del simulation


class Recomputed(torch.autograd.Function):
    """A physics step that is computed again on the way back; TABLE remembers what was computed."""

    @staticmethod
    def forward(ctx, field, weight, table, number):
        ctx.save_for_backward(field, weight)
        ctx.table, ctx.number = table, number
        return torch.tanh(field @ weight)

    @staticmethod
    def backward(ctx, grad):
        field, weight = ctx.saved_tensors
        if ctx.number not in ctx.table:
            ctx.table[ctx.number] = torch.tanh(field @ weight)  # guilty in recomputed_steps
        slope = grad * (1 - ctx.table[ctx.number].square())
        return slope @ weight.T, field.T @ slope, None, None


@job("checkpoint_cache")
def recomputed_steps(run):
    """A solver that recomputes its steps in backward() and remembers the result by the step's number, which is never
    the same again. Fixed: the table is cleared after each backward pass."""
    weight = torch.randn(1024, 1024, device=run.device, requires_grad=True)
    table = {}
    for step in run.steps(10):
        field = torch.randn(1024, 1024, device=run.device)
        for part in range(4):
            field = Recomputed.apply(field, weight, table, 4 * step + part)  # cause
        field.square().mean().backward()
        with torch.no_grad():
            weight -= 0.01 * weight.grad
        weight.grad = None
        if run.fixed:
            table.clear()


@job("true_capacity")
def optimizer_states(run):
    """A model that fits with its gradients; AdamW's two moments do not, so that the first step fails. Fixed: plain
    SGD."""
    run.cap(640)
    model = perceptron(2048, 4096, 4096, 4096, 2048).to(run.device)
    if run.fixed:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in run.steps(6):
        loss = model(torch.randn(256, 2048, device=run.device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # guilty


@job("true_capacity")
def largest_molecule(run):
    """Pairwise interactions in molecules of all sizes; the fifth is so large that its pairs do not fit. Fixed: rows
    of pairs in chunks."""
    run.cap(768)
    force = perceptron(3, 32, 1).to(run.device).requires_grad_(False)
    for step in run.steps(6):
        atoms = torch.randn((400, 650, 500, 700, 2600, 600)[step], 3, device=run.device)
        rows = 200 if run.fixed else len(atoms)
        energy = 0.0
        for part in atoms.split(rows):
            pairs = part[:, None] - atoms[None]  # guilty
            energy += force(pairs).sum().item()  # guilty


@job("cached_not_released")
def spectrum_then_fit(run):
    """The spectrum of a long signal is computed once, with intermediate results of hundreds of MiB, then a small
    model is fitted; another process on the GPU waits for memory. Fixed: empty_cache() after the first part."""
    signal = torch.randn(96, 1 << 18, device=run.device)
    power = torch.fft.rfft(signal).abs().square().unfold(1, 1024, 1024).mean(2)  # guilty
    del signal
    if run.fixed:
        torch.cuda.empty_cache()
    model = perceptron(128, 256, 128).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(10):
        loss = F.mse_loss(model(power), power)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def second_derivatives(run):
    """A physics-informed network: second derivatives by two nested calls of grad(create_graph=True)."""
    model = perceptron(2, 512, 512, 1).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(6):
        points = torch.rand(4096, 2, device=run.device, requires_grad=True)
        value = model(points)
        (slope,) = torch.autograd.grad(value.sum(), points, create_graph=True)
        (bend,) = torch.autograd.grad(slope[:, 0].sum(), points, create_graph=True)
        loss = (slope[:, 1] - bend[:, 0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def quasi_newton(run):
    """L-BFGS keeps the last six steps and gradients: memory grows for six iterations and no further."""
    model = perceptron(1024, 2048, 1024).to(run.device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=1, history_size=6)
    inputs = torch.randn(256, 1024, device=run.device)

    def closure():
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        return loss

    for _ in run.steps(15):
        optimizer.step(closure)


@job("healthy")
def meta_learning(run):
    """Two inner steps with torch.autograd.grad(create_graph=True); the graph through them ends with the iteration."""
    weights = [torch.randn(512, 1024, device=run.device), torch.randn(1024, 64, device=run.device)]
    weights = [(0.02 * weight).requires_grad_() for weight in weights]
    optimizer = torch.optim.SGD(weights, lr=0.01)

    def predict(inputs, first, second):
        return torch.tanh(inputs @ first) @ second

    for _ in run.steps(8):
        support, query = torch.randn(2, 1024, 512, device=run.device).unbind()
        adapted = weights
        for _ in range(2):
            loss = predict(support, *adapted).square().mean()
            slopes = torch.autograd.grad(loss, adapted, create_graph=True)
            adapted = [weight - 0.1 * slope for weight, slope in zip(adapted, slopes)]
        loss = predict(query, *adapted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def sharpness_aware(run):
    """Sharpness-aware minimization: two passes an iteration and a copy of all weights between them."""
    model = perceptron(1024, 2048, 2048, 16).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in run.steps(8):
        inputs = torch.randn(512, 1024, device=run.device)
        model(inputs).square().mean().backward()
        with torch.no_grad():
            saved = [weight.clone() for weight in model.parameters()]
            for weight in model.parameters():
                weight += 0.05 * weight.grad / (weight.grad.norm() + 1e-9)
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        with torch.no_grad():
            for weight, before in zip(model.parameters(), saved):
                weight.copy_(before)
        optimizer.step()
        optimizer.zero_grad()
        del saved


@job("healthy")
def graph_batches(run):
    """A graph network over mini-batches of quite different sizes."""
    first, second = GraphLayer(64, 128).to(run.device), GraphLayer(128, 128).to(run.device)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    for step in run.steps(10):
        nodes, edges = random_graph(run, (6000, 2500, 9000, 4000)[step % 4], 64)
        loss = second(first(nodes, edges), edges).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def weight_average(run):
    """The weights of the last four epochs are kept for an average at the end."""
    model = perceptron(512, 2048, 512).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    last = []
    for _ in run.steps(14):
        for _ in range(2):
            loss = model(torch.randn(1024, 512, device=run.device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        last.append({name: value.clone() for name, value in model.state_dict().items()})
        del last[:-4]


@job("healthy")
def recorded_graph(run):
    """Training captured as a CUDA graph: its private pool stays reserved between the replays, as it has to."""
    model = perceptron(512, 2048, 512).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.zeros(1024, 512, device=run.device)

    def train():
        optimizer.zero_grad(set_to_none=True)
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = train()
    for _ in run.steps(12):
        inputs.copy_(torch.randn(1024, 512, device=run.device))
        graph.replay()
        assert loss.item() >= 0
