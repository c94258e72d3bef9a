"""Networks of interacting proteins, with PyTorch Geometric."""
import gc

import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv

from job import job

PROTEINS = 6000


def interactions(count, device, proteins=PROTEINS):
    return torch.randint(proteins, (2, count), device=device)


class ProteinMemory(nn.Module):
    """What is known of each protein, renewed with each month of publications."""

    def __init__(self, width=256):
        super().__init__()
        self.messages = SAGEConv(width, width)
        self.cell = nn.GRUCell(width, width)
        self.start = nn.Parameter(torch.randn(PROTEINS, width))

    def forward(self, memory, edges):
        gathered = self.messages(memory, edges).relu()  # guilty in months_of_publications
        return self.cell(gathered, memory)  # guilty in months_of_publications


@job("hidden_state")
def months_of_publications(run):
    """The memory of a temporal network goes on from month to month. The head that is trained gets it detached, but the
    memory itself keeps the graph of all months. Fixed: the memory is detached after each month."""
    memory_of, head = ProteinMemory().to(run.device), nn.Linear(256, 1).to(run.device)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    memory = memory_of.start
    for _ in run.steps(12):
        memory = memory_of(memory, interactions(20_000, run.device))
        if run.fixed:
            memory = memory.detach()
        source, target = interactions(4000, run.device)
        known = memory.detach()
        score = head(known[source] * known[target]).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(score, torch.randint(2, (4000,), device=run.device).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Complex:
    """Proteins that belong together, and the complexes that they are part of."""

    def __init__(self, graph, parent=None):
        self.graph = graph
        self.parent = parent
        self.parts = []

    def split(self, count, upwards):
        rows = len(self.graph.x) // count
        for part in range(count):
            features = self.graph.x[part * rows : (part + 1) * rows].clone()  # guilty in complexes_and_parts
            edges = interactions(2000, features.device, rows)
            whole = self if upwards else None  # cause in complexes_and_parts
            self.parts.append(Complex(Data(x=features, edge_index=edges), whole))
        return self.parts


@job("reference_cycle")
def complexes_and_parts(run):
    """A network is cut into complexes, each of which knows the one that it was cut from, and that its parts. The
    collector is off while the service runs, so that it answers in time. Fixed: parts do not know their whole."""
    model = GCNConv(512, 16).to(run.device).eval()
    gc.disable()
    with torch.no_grad():
        for _ in run.steps(12):
            whole = Complex(Data(x=torch.randn(PROTEINS, 512, device=run.device)))  # guilty
            answers = [model(part.graph.x, part.graph.edge_index).argmax(1).tolist()
                       for part in whole.split(4, upwards=not run.fixed)]
            assert len(answers) == 4


@job("healthy")
def cached_normalization(run):
    """A graph convolution with cached=True, on one large network: its normalized edges are there from the first
    iteration on."""
    first = GCNConv(128, 256, cached=True).to(run.device)
    second = GCNConv(256, 12, cached=True).to(run.device)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
    features = torch.randn(PROTEINS, 128, device=run.device)
    edges, classes = interactions(80_000, run.device), torch.randint(12, (PROTEINS,), device=run.device)
    for step in run.steps(12):
        scores = second(first(features, edges).relu(), edges)
        loss = F.cross_entropy(scores[: PROTEINS // 2], classes[: PROTEINS // 2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            with torch.no_grad():
                first.eval()
                accuracy = (second(first(features, edges).relu(), edges).argmax(1) == classes).float().mean().item()
                first.train()
                assert accuracy < 1
