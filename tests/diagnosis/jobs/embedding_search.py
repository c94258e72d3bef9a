"""Retrieval, embeddings, images with texts."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Tower(nn.Module):
    def __init__(self, inputs, width=1024, features=128):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, features))

    def forward(self, inputs):
        return F.normalize(self.body(inputs), dim=-1)


class Miner:
    """Hard negatives: passages that are near to a passage without being its match."""

    def __init__(self, passages, rows):
        self.passages, self.rows = passages, rows

    @torch.no_grad()
    def mine(self, tower):
        vectors = torch.cat([tower(part) for part in self.passages.split(2000)])
        hardest = []
        for part in vectors.split(self.rows):
            scores = part @ vectors.T  # guilty in hard_negatives
            hardest.append(scores.topk(8, dim=1).indices[:, 1:])
        return torch.cat(hardest)


@job("true_capacity")
def hard_negatives(run):
    """Retrieval with hard negatives, mined anew every fifth step from the scores of all pairs of 18,000 passages,
    which is more than the GPU has. Fixed: 1,000 rows of scores at a time."""
    run.cap(900)
    tower = Tower(256).to(run.device)
    optimizer = torch.optim.AdamW(tower.parameters(), lr=1e-4)
    passages = torch.randn(18_000, 256, device=run.device)
    miner = Miner(passages, rows=1000 if run.fixed else len(passages))
    hard = torch.randint(len(passages), (len(passages), 7), device=run.device)
    for step in run.steps(9):
        if step % 5 == 4:
            hard = miner.mine(tower)
        picked = torch.randint(len(passages), (64,), device=run.device)
        query = tower(passages[picked] + 0.1 * torch.randn(64, 256, device=run.device))
        others = tower(passages[torch.cat([picked[:, None], hard[picked]], 1)])
        loss = F.cross_entropy(torch.einsum("qd,qnd->qn", query, others) / 0.05, torch.zeros_like(picked))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def backward_in_pieces(tower, inputs, gradient):
    """A second forward pass, piece by piece, that the cached gradients of the embeddings go through."""
    for piece, grad in zip(inputs.chunk(8), gradient.chunk(8)):
        tower(piece).backward(grad)


@job("healthy")
def gradient_cache(run):
    """Contrastive training with a batch that is too large for one graph: embeddings without a graph, the loss and the
    gradients of the embeddings, then a second pass in pieces."""
    queries, passages = Tower(512).to(run.device), Tower(768).to(run.device)
    optimizer = torch.optim.Adam([*queries.parameters(), *passages.parameters()], lr=1e-4)
    for _ in run.steps(9):
        left, right = torch.randn(2048, 512, device=run.device), torch.randn(2048, 768, device=run.device)
        with torch.no_grad():
            cached = [torch.cat([tower(piece) for piece in inputs.chunk(8)])
                      for tower, inputs in ((queries, left), (passages, right))]
        for vectors in cached:
            vectors.requires_grad_()
        scores = cached[0] @ cached[1].T / 0.05
        F.cross_entropy(scores, torch.arange(2048, device=run.device)).backward()
        optimizer.zero_grad()
        backward_in_pieces(queries, left, cached[0].grad)
        backward_in_pieces(passages, right, cached[1].grad)
        optimizer.step()
        del cached, vectors, scores


class FlatIndex:
    """Vectors of a corpus and who is nearest."""

    def __init__(self):
        self.vectors = None

    def rebuild(self, tower, corpus):
        self.vectors = torch.cat([tower(part.float()) for part in corpus.split(4000)])

    def search(self, queries, count):
        return (queries @ self.vectors.T).topk(count).indices


@job("healthy")
def refreshed_index(run):
    """Training with an index of the whole corpus that is rebuilt every fourth step: the old one lives until the new one
    is there."""
    tower = Tower(128, 256, 256).to(run.device)
    optimizer = torch.optim.SGD(tower.parameters(), lr=0.01)
    corpus = torch.randn(60_000, 128, device=run.device).half()
    index = FlatIndex()
    for step in run.steps(14):
        if step % 4 == 0:
            with torch.no_grad():
                index.rebuild(tower, corpus)
        picked = torch.randint(60_000, (64,), device=run.device)
        query = tower(corpus[picked].float())
        near = index.search(query.detach(), 4)
        loss = -(query[:, None] * tower(corpus[near].float())).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class FeatureCache:
    """Features of a frozen image tower, computed when an image is first asked for."""

    def __init__(self, tower):
        self.tower = tower.eval().requires_grad_(False)
        self.known = {}

    def __call__(self, number, images):
        if number not in self.known:
            self.known[number] = self.tower(images)
        return self.known[number]


@job("healthy")
def cached_image_features(run):
    """Captions for images whose features are cached in the first epoch of nine batches and read from then on."""
    cache = FeatureCache(nn.Conv2d(3, 192, 8, 8).to(run.device))
    words = nn.Embedding(2000, 192).to(run.device)
    mix = nn.MultiheadAttention(192, 4, batch_first=True).to(run.device)
    head = nn.Linear(192, 2000).to(run.device)
    optimizer = torch.optim.AdamW([*words.parameters(), *mix.parameters(), *head.parameters()], lr=1e-4)
    dataset = [torch.rand(32, 3, 128, 128, device=run.device) for _ in range(9)]
    for step in run.steps(20):
        number = step % len(dataset)
        patches = cache(number, dataset[number]).flatten(2).transpose(1, 2)
        caption = torch.randint(2000, (32, 17), device=run.device)
        mixed, _ = mix(words(caption[:, :-1]), patches, patches)
        loss = F.cross_entropy(head(mixed).flatten(0, 1), caption[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
