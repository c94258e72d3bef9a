"""Sparse matrices (COO, CSR) and sparse gradients of embeddings."""

import torch
from torch import nn

import case


def train():
    nodes, edges = 2000, 20_000
    places = torch.randint(0, nodes, (2, edges), device="cuda")
    adjacency = torch.sparse_coo_tensor(places, torch.ones(edges, device="cuda"), (nodes, nodes)).coalesce()
    rows = adjacency.to_sparse_csr()
    embedding, linear = nn.Embedding(nodes, 64, sparse=True).cuda(), nn.Linear(64, 4).cuda()
    sparse, dense = torch.optim.SparseAdam(embedding.parameters(), lr=0.05), torch.optim.Adam(linear.parameters())
    labels = torch.randint(0, 4, (nodes,), device="cuda")
    chosen = torch.randperm(nodes, device="cuda")[:1000]
    for _ in range(20):
        features = torch.zeros(nodes, 64, device="cuda").index_put((chosen,), embedding(chosen))
        hidden = torch.sparse.mm(adjacency, features)
        loss = nn.functional.cross_entropy(linear(hidden + features)[chosen], labels[chosen])
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        (rows @ features.detach()).sum()
        yield loss.item()


case.run_healthy(train)
