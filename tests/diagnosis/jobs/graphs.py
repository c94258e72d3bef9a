"""Graph networks and physics-informed networks."""
import functools

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def random_edges(run, nodes, edges):
    return torch.randint(nodes, (2, edges), device=run.device)  # guilty in molecule_epochs


class MeanConvolution(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.own = nn.Linear(inside, outside)
        self.others = nn.Linear(inside, outside, bias=False)

    def forward(self, nodes, edges):
        source, target = edges
        messages = self.others(nodes)[source]  # guilty in molecule_epochs
        summed = torch.zeros(len(nodes), messages.shape[1], device=nodes.device).index_add(0, target, messages)
        return F.gelu(self.own(nodes) + summed)  # guilty in molecule_epochs


@job("retained_graph")
def molecule_epochs(run):
    """A graph network whose losses are added up over the epoch, with a single backward pass after the last batch: the
    graphs of all batches wait for it. Fixed: a backward pass and a step for each batch."""
    layers = nn.ModuleList([MeanConvolution(32, 128), MeanConvolution(128, 128)]).to(run.device)
    readout = nn.Linear(128, 1).to(run.device)
    optimizer = torch.optim.Adam([*layers.parameters(), *readout.parameters()], lr=1e-3)
    epoch_loss = 0.0
    for _ in run.steps(12):
        nodes = torch.randn(20_000, 32, device=run.device)  # guilty
        edges = random_edges(run, 20_000, 50_000)
        for layer in layers:
            nodes = layer(nodes, edges)
        loss = readout(nodes).square().mean()  # guilty
        if run.fixed:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        else:
            epoch_loss = epoch_loss + loss  # cause
    if not run.fixed:
        epoch_loss.backward()
        optimizer.step()


class NodeMemory(nn.Module):
    """What a temporal network remembers of each node: a gated mean of its events."""

    def __init__(self, nodes, width, detach_at_write):
        super().__init__()
        self.encode = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.detach_at_write = detach_at_write
        self.register_buffer("memory", torch.zeros(nodes, width), persistent=False)

    def forward(self, events):
        candidate = torch.tanh(self.encode(events))  # guilty in temporal_memory
        gate = torch.sigmoid(self.gate(events))
        updated = gate * self.memory.detach() + (1 - gate) * candidate
        self.write(gate, candidate)
        return updated

    def write(self, gate, candidate):
        memory = torch.lerp(self.memory, candidate, 1 - gate)  # guilty in temporal_memory
        self.memory = memory.detach() if self.detach_at_write else memory  # cause in temporal_memory


@job("hidden_state")
def temporal_memory(run):
    """A network for a stream of events between nodes. The loss reads the memory of the nodes detached, but what is
    written to it is not: each batch's gates hang on the memory after it. Fixed: detached when it is written."""
    memory = NodeMemory(10_000, 256, detach_at_write=run.fixed).to(run.device)
    score = nn.Linear(256, 1).to(run.device)
    optimizer = torch.optim.Adam([*memory.parameters(), *score.parameters()], lr=1e-4)
    for _ in run.steps(12):
        state = memory(torch.randn(10_000, 256, device=run.device))
        source, target = random_edges(run, 10_000, 1000)
        loss = F.softplus(-score(state[source] * state[target])).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del state, loss


@job("hidden_state")
def pushed_forward(run):
    """A network learns one step of a flow, starting where its own last step ended: for the loss the field is
    detached, and then a second call moves it on, with its graph. Fixed: the second call is made under no_grad()."""
    stepper = nn.Sequential(nn.Conv2d(2, 24, 5, padding=2, padding_mode="circular"), nn.Tanh(),
                            nn.Conv2d(24, 2, 5, padding=2, padding_mode="circular")).to(run.device)
    optimizer = torch.optim.Adam(stepper.parameters(), lr=1e-3)
    field = torch.randn(4, 2, 192, 192, device=run.device)
    for step in run.steps(15):
        start = field.detach()
        reference = torch.roll(start, 1, -1) * 0.99
        loss = F.mse_loss(start + 0.1 * stepper(start), reference)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.set_grad_enabled(not run.fixed):
            field = field + 0.1 * stepper(field)  # guilty


@functools.lru_cache(maxsize=None)  # cause in sampled_neighbours
def normalized(edges, nodes):
    """The symmetrically normalized adjacency matrix of a sampled neighbourhood."""
    matrix = torch.zeros(nodes, nodes, device=edges.device)  # guilty in sampled_neighbours
    matrix[edges[0], edges[1]] = 1.0
    matrix.fill_diagonal_(1.0)
    scale = matrix.sum(1).rsqrt()
    return matrix.mul_(scale[:, None]).mul_(scale)


@job("checkpoint_cache", contested="no activations: a function's results are memoized, none is recomputed")
def sampled_neighbours(run):
    """The normalized adjacency matrix is memoized, which was right as long as there was one graph. By now each batch
    samples its own neighbourhood, a new tensor, which is never asked for again. Fixed: it is computed anew."""
    adjacency = normalized.__wrapped__ if run.fixed else normalized
    first, second = nn.Linear(64, 256).to(run.device), nn.Linear(256, 16).to(run.device)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
    for _ in run.steps(14):
        edges = random_edges(run, 2048, 20_000)  # guilty
        features = torch.randn(2048, 64, device=run.device)
        for _ in range(2):
            matrix = adjacency(edges, 2048)
            output = matrix @ second(torch.relu(matrix @ first(features)))
            loss = F.cross_entropy(output, torch.randint(16, (2048,), device=run.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def walk_encoding(edges, nodes, steps=6):
    """Probabilities of a random walk to be back after 1, 2, ... steps, for each node."""
    walk = torch.zeros(nodes, nodes, device=edges.device)  # guilty in walks_then_training
    walk.index_put_((edges[0], edges[1]), torch.ones(edges.shape[1], device=edges.device), accumulate=True)
    walk = walk / walk.sum(1, keepdim=True).clamp(min=1)  # guilty in walks_then_training
    power, back = walk, []
    for _ in range(steps):
        back.append(power.diagonal().cpu())
        power = power @ walk  # guilty in walks_then_training
    return torch.stack(back, 1).to(edges.device)


@job("cached_not_released")
def walks_then_training(run):
    """Positional encodings need dense powers of a graph's walk matrix, in the first iteration only; all that follows
    is a small network on sampled edges. Fixed: empty_cache() once the encodings are there."""
    nodes = 5000
    edges = random_edges(run, nodes, 40_000)
    model = nn.Sequential(nn.Linear(12, 128), nn.ReLU(), nn.Linear(128, 1)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    encoding = None
    for _ in run.steps(12):
        if encoding is None:
            encoding = walk_encoding(edges, nodes)
            if run.fixed:
                torch.cuda.empty_cache()
        sampled = edges[:, torch.randint(edges.shape[1], (2048,), device=run.device)]
        logits = model(encoding[sampled].permute(1, 0, 2).flatten(1))
        loss = F.binary_cross_entropy_with_logits(logits, torch.ones_like(logits))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def historical_embeddings(run):
    """Training on parts of a large graph; the last known embeddings of all nodes stand in a table that is allocated
    once, and are written after each part, detached."""
    nodes, width = 60_000, 256
    table = torch.zeros(nodes, width, device=run.device)
    layer, head = MeanConvolution(width, width).to(run.device), nn.Linear(width, 40).to(run.device)
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-3)
    for step in run.steps(12):
        part = torch.arange(step % 6 * 10_000, (step % 6 + 1) * 10_000, device=run.device)
        inputs = torch.randn(len(part), width, device=run.device) + table[part]
        hidden = layer(inputs, random_edges(run, len(part), 30_000))
        loss = F.cross_entropy(head(hidden), torch.randint(40, (len(part),), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        table[part] = hidden.detach()


def residual(network, points):
    """Of Burgers' equation at the points (t, x)."""
    points.requires_grad_()
    u = network(points)
    first = torch.autograd.grad(u.sum(), points, create_graph=True)[0]
    second = torch.autograd.grad(first[:, 1].sum(), points, create_graph=True)[0][:, 1:]
    return first[:, :1] + u * first[:, 1:] - 0.01 * second


@job("healthy")
def adam_then_lbfgs(run):
    """A network for a differential equation: a few iterations of Adam, then L-BFGS, whose history of ten pairs fills
    while it runs."""
    network = nn.Sequential(nn.Linear(2, 768), nn.Tanh(), nn.Linear(768, 768), nn.Tanh(), nn.Linear(768, 1))
    network = network.to(run.device)
    adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    lbfgs = torch.optim.LBFGS(network.parameters(), lr=0.1, max_iter=2, history_size=10)

    def closure():
        points = torch.rand(2000, 2, device=run.device)
        lbfgs.zero_grad()
        loss = residual(network, points).square().mean()
        loss.backward()
        return loss

    for step in run.steps(16):
        if step < 5:
            closure()
            adam.step()
        else:
            lbfgs.step(closure)
