"""Citations between patents, with attention over graphs (PyTorch Geometric)."""
import gc

import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, global_mean_pool

from job import job


class PatentNetwork(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.first = GATConv(128, width, heads=heads)
        self.second = GATConv(width * heads, 8)

    def forward(self, features, edges):
        hidden = F.elu(self.first(features, edges))  # guilty in patents_of_a_later_year
        return self.second(hidden, edges)  # guilty in patents_of_a_later_year


def patents(count, cited, device):
    features = torch.randn(count, 128, device=device)  # guilty in search_for_prior_art
    return features, torch.randint(count, (2, cited), device=device)


@job("eval_graph")
def patents_of_a_later_year(run):
    """After each epoch the patents of a later year are classified, and the scores are put in a list for a curve that
    is drawn at the end. The model is in eval(); gradients are on. Fixed: torch.no_grad()."""
    model = PatentNetwork().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scores = []
    for _ in run.steps(12):
        features, edges = patents(2000, 8000, run.device)
        loss = F.cross_entropy(model(features, edges), torch.randint(8, (2000,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.set_grad_enabled(not run.fixed):
            scores.append(model(*patents(2500, 12_000, run.device)).log_softmax(1))  # cause
        model.train()


class PriorArt:
    """Goes back through citations step by step, as far as it is asked to."""

    def __init__(self, features, edges):
        self.features = features
        self.edges = edges
        self.walk = self.steps()  # cause in search_for_prior_art

    def steps(self):
        seen = self.features.clone()  # guilty in search_for_prior_art
        source, target = self.edges
        while True:
            seen = seen.index_add(0, target, self.features[source], alpha=0.1)  # guilty in search_for_prior_art
            yield seen.norm(dim=1).argmax().item()

    def close(self):
        self.walk.close()
        self.walk = None


@job("reference_cycle")
def search_for_prior_art(run):
    """Each search keeps the generator of its steps, whose frame has the search and its tensors. Two steps are usually
    enough, so that the generator never ends. The collector is asked to come rarely. Fixed: the generator is closed."""
    gc.set_threshold(50_000, 20, 100)
    found = []
    for _ in run.steps(15):
        search = PriorArt(*patents(12_000, 60_000, run.device))  # guilty
        found.append([next(search.walk) for _ in range(2)])
        if run.fixed:
            search.close()
        del search
    assert len(found) == 15


@job("healthy")
def families_of_patents(run):
    """Batches of small graphs, of a different number of nodes each time, are trained on; all predictions of an epoch
    are collected on the GPU and go when the epoch ends."""
    model = PatentNetwork().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    predictions = []
    for step in run.steps(18):
        graphs = []
        for size in torch.randint(20, 200, (24,)).tolist():
            features, edges = patents(size, 4 * size, "cpu")
            graphs.append(Data(x=features, edge_index=edges))
        batch = Batch.from_data_list(graphs).to(run.device)
        scores = global_mean_pool(model(batch.x, batch.edge_index), batch.batch)
        loss = F.cross_entropy(scores, torch.randint(8, (24,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        predictions.append(model(batch.x, batch.edge_index).detach().softmax(1))
        if step % 6 == 5:
            assert len(torch.cat(predictions)) > 0
            predictions.clear()
