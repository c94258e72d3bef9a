"""Learning on graphs."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


def random_adjacency(run, nodes, degree):
    edges = torch.randint(nodes, (2, nodes * degree), device=run.device)
    weights = torch.full((edges.shape[1],), 1 / degree, device=run.device)
    return torch.sparse_coo_tensor(edges, weights, (nodes, nodes)).coalesce()


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)

    def forward(self, adjacency, features):
        return torch.sparse.mm(adjacency, self.linear(features))  # guilty in annealed_divergence


class LinkModel(nn.Module):
    """A variational graph autoencoder."""

    def __init__(self, inputs=64, hidden=128, latent=256):
        super().__init__()
        self.first = Convolution(inputs, hidden)
        self.mean = Convolution(hidden, latent)
        self.log_variance = Convolution(hidden, latent)

    def forward(self, adjacency, features):
        hidden = torch.relu(self.first(adjacency, features))
        mean, log_variance = self.mean(adjacency, hidden), self.log_variance(adjacency, hidden)
        return mean + torch.randn_like(mean) * (0.5 * log_variance).exp(), mean, log_variance


def divergence(mean, log_variance):
    return -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean()  # guilty in annealed_divergence


class Progress:
    """Averages of whatever a training reports."""

    def __init__(self):
        self.values = {}

    def report(self, **named):
        for name, value in named.items():
            self.values.setdefault(name, []).append(value)

    def summary(self):
        return {name: float(sum(values)) / len(values) for name, values in self.values.items()}


@job("retained_graph")
def annealed_divergence(run):
    """The divergence of a graph autoencoder has the weight 0 until the end of the warm-up and is left out of the loss,
    but reported; the report's tensor keeps its part of the graph. Fixed: a number is reported."""
    adjacency = random_adjacency(run, 12_000, 6)
    features = torch.randn(12_000, 64, device=run.device)
    model = LinkModel().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    progress = Progress()
    for epoch in run.steps(15):
        latent, mean, log_variance = model(adjacency, features)
        kl = divergence(mean, log_variance)
        left, right = latent[torch.randint(12_000, (2, 2048), device=run.device)]
        loss = F.softplus(-(left * right).sum(1)).mean()
        if epoch >= 50:
            loss = loss + 0.01 * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.report(loss=loss.item(), divergence=kl.item() if run.fixed else kl)  # cause
    assert progress.summary()["divergence"] > 0


class Snapshots:
    """Node states of a network that grows from week to week, for a model of their changes. `room` and `scratch`:
    the memory that the states and the messages go to."""

    def __init__(self, room=None, scratch=None):
        self.room = room
        self.scratch = scratch
        self.used = 0
        self.states = []

    def strengths(self, nodes, edges, values):
        """For each node the sum of its messages' sizes."""
        if self.scratch is None:
            messages = values[:, None].expand(-1, 128).contiguous()  # guilty in weekly_network
        else:
            messages = self.scratch[: len(values)].copy_(values[:, None])
        totals = messages.mean(1)
        return torch.zeros(nodes, device=values.device).index_add_(0, edges, totals)

    def add(self, nodes, edges, values):
        strengths = self.strengths(nodes, edges, values)
        if self.room is None:
            state = torch.zeros(nodes, 256, device=values.device)  # guilty in weekly_network
        else:
            state = self.room[self.used : self.used + nodes].zero_()
            self.used += nodes
        state[:, 0] = strengths
        self.states.append(state)


@job("fragmentation")
def weekly_network(run):
    """A network becomes larger each week; a week's states, which are wanted later, go to where its messages have just
    been, and what is left there is too small for the next week. Fixed: memory for both is set aside."""
    weeks = [(int(16_000 * 1.15**week), int(60_000 * 1.15**week)) for week in range(10)]
    snapshots = Snapshots()
    if run.fixed:
        room = torch.empty(sum(nodes for nodes, _ in weeks), 256, device=run.device)
        snapshots = Snapshots(room, torch.empty(weeks[-1][1], 128, device=run.device))
    for week in run.steps(len(weeks)):
        nodes, count = weeks[week]
        edges = torch.randint(nodes, (count,), device=run.device)
        snapshots.add(nodes, edges, torch.rand(count, device=run.device))


class EdgeAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.score = nn.Linear(2 * width, 1)

    def forward(self, features, edges):
        features = self.transform(features)  # guilty in citation_network
        source = features[edges[0]]  # guilty in citation_network
        ends = torch.cat([source, features[edges[1]]], 1)  # guilty in citation_network
        weight = torch.sigmoid(self.score(ends))
        return torch.zeros_like(features).index_add(0, edges[1], weight * source)


@job("true_capacity")
def citation_network(run):
    """Attention over all edges of a citation network at once: the features of both ends of 420,000 edges do not fit.
    Fixed: some of the edges are drawn for each step."""
    run.cap(832)
    model = EdgeAttention(256).to(run.device)
    features = torch.randn(10_000, 256, device=run.device)
    edges = torch.randint(10_000, (2, 420_000), device=run.device)
    for _ in run.steps(8):
        used = edges
        if run.fixed:
            used = edges[:, torch.randint(420_000, (30_000,), device=run.device)]
        loss = model(features, used).square().mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight.sub_(weight.grad, alpha=0.1)


class Propagation:
    """Powers of the adjacency matrices of some graphs, each made when its graph is first met."""

    def __init__(self, graphs):
        self.graphs = graphs
        self.powers = {}

    def __getitem__(self, number):
        if number not in self.powers:
            dense = self.graphs[number].to_dense()
            dense = dense / dense.sum(1, keepdim=True).clamp(min=1e-6)
            self.powers[number] = 0.5 * dense + 0.5 * dense @ dense
        return self.powers[number]


@job("healthy")
def propagation_matrices(run):
    """Six small graphs, drawn at random; a graph's propagation matrix is made once and used from then on."""
    propagation = Propagation([random_adjacency(run, 2000, 5) for _ in range(6)])
    features = torch.randn(6, 2000, 128, device=run.device)
    model = nn.Sequential(nn.Linear(128, 512), nn.ELU(), nn.Linear(512, 40)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=5e-4)
    for step in run.steps(20):
        number = (step * step + step // 5) % 6
        logits = propagation[number] @ model(features[number])
        loss = F.cross_entropy(logits, torch.randint(40, (2000,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
