"""Recommendation: click models, embedding tables, federated learning."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


def click_network(run, width=2048):
    layers = [nn.Linear(512, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)]
    return nn.Sequential(*layers).to(run.device)


@job("gradient_accumulation", contested="zero_grad(set_to_none=False) keeps the gradients' memory on purpose; "
     "by design.md section 8 (gradients kept across iterations) it is this class")
def click_model(run):
    """zero_grad(set_to_none=False) in each iteration: the gradients are zero, and stay in memory in each forward
    pass. Fixed: set_to_none=True, after the step."""
    model = click_network(run)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in run.steps(10):
        users = torch.randn(1024, 512, device=run.device)
        loss = F.softplus(model(users)).mean()
        loss.backward()  # guilty
        optimizer.step()
        optimizer.zero_grad(set_to_none=run.fixed)


@job("gradient_accumulation")
def federated_rounds(run):
    """A server collects the gradients of its clients and averages those of this round, in a list that is never
    emptied. Fixed: emptied after each round."""
    model = click_network(run, 1024)
    updates = []
    for step in run.steps(8):
        for _ in range(3):
            clicks = torch.rand(256, 1, device=run.device).round()
            loss = F.binary_cross_entropy_with_logits(model(torch.randn(256, 512, device=run.device)), clicks)
            loss.backward()  # guilty
            updates.append([weight.grad for weight in model.parameters()])  # cause
            model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for weight, *grads in zip(model.parameters(), *updates[-3:]):
                weight -= 0.01 * sum(grads) / 3
        del weight, grads
        if run.fixed:
            updates.clear()


@job("fragmentation", fixed_contested="what is loaded stays, on purpose: memory grows for as long as tables are loaded")
def table_shards(run):
    """Shards of embedding tables are loaded, the rarely used ones among them evicted; each step's shards are larger
    than those before and do not fit in their places. Fixed: what stays has a memory pool of its own."""
    lasting = torch.cuda.MemPool() if run.fixed else None
    kept = []
    for step in run.steps(10):
        rows = int(300_000 * 1.25**step)
        evicted = []
        for shard in range(8):
            if shard % 2:
                evicted.append(torch.zeros(rows, device=run.device))  # guilty
            elif run.fixed:
                with torch.cuda.use_mem_pool(lasting):
                    kept.append(torch.zeros(rows, device=run.device))
            else:
                kept.append(torch.zeros(rows, device=run.device))  # guilty
        del evicted


@job("healthy")
def sparse_embeddings(run):
    """Large embedding tables with sparse gradients and a dense network on top."""
    tables = nn.ModuleList(nn.EmbeddingBag(100_000, 64, mode="sum", sparse=True) for _ in range(4)).to(run.device)
    network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1)).to(run.device)
    sparse = torch.optim.SGD(tables.parameters(), lr=0.01)
    dense = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in run.steps(8):
        picked = torch.randint(100_000, (4, 2048, 20), device=run.device)
        vectors = torch.cat([table(indices) for table, indices in zip(tables, picked)], 1)
        loss = F.softplus(network(vectors)).mean()
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()


@job("healthy")
def near_the_limit(run):
    """Batches of all sizes on a GPU that they nearly fill: the allocator gives cached segments back and goes on."""
    run.cap(640)
    model = click_network(run)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in run.steps(12):
        users = torch.randn((1500, 9000, 4000, 7000, 2500, 9500)[step % 6], 512, device=run.device)
        loss = F.softplus(model(users)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
