"""Search: dense retrieval, hard negatives, late interaction; text lines of scanned pages."""
import random

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class PassageEncoder(nn.Module):
    def __init__(self, words=8000, width=384, features=128):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, features)

    def forward(self, text):
        hidden = torch.tanh(self.mix(self.words(text)))  # guilty in passage_index
        return F.normalize(self.out(hidden.mean(1)), dim=1)  # guilty in passage_index


class Index:
    """Passages by their vectors."""

    def __init__(self, encoder):
        self.encoder = encoder
        self.vectors = []

    def add(self, text):
        self.encoder.eval()
        torch.no_grad()  # cause in passage_index
        self.vectors.append(self.encoder(text))

    def add_without_graph(self, text):
        self.encoder.eval()
        with torch.no_grad():
            self.vectors.append(self.encoder(text))

    def search(self, query, count):
        return (query @ torch.cat(self.vectors).t()).topk(count, 1).indices


@job("eval_graph")
def passage_index(run):
    """An index of passages is filled by a method that calls torch.no_grad() as if it were a switch; all vectors have
    the encoder's graph. Fixed: a with statement."""
    encoder = PassageEncoder().to(run.device)
    index = Index(encoder)
    add = index.add_without_graph if run.fixed else index.add
    for _ in run.steps(14):
        add(torch.randint(8000, (96, 100), device=run.device))


class NegativePool:
    """Token vectors of hard negatives, of as many passages as fit; a new one takes the place of any other."""

    def __init__(self, passages, width, device, slab=None):
        self.passages = [None] * passages
        self.width, self.device = width, device
        self.draw = random.Random(11)
        self.filled = 0
        self.slab = slab

    def place(self):
        if self.filled < len(self.passages):
            self.filled += 1
            return self.filled - 1
        return self.draw.randrange(len(self.passages))

    def add(self, length):
        at = self.place()
        if self.slab is None:
            self.passages[at] = torch.randn(length, self.width, device=self.device)  # guilty in lengthening_passages
        else:
            self.passages[at] = self.slab[at, :length].normal_()


@job("fragmentation")
def lengthening_passages(run):
    """A pool of hard negatives from which random ones are replaced, while the curriculum goes on to longer and longer
    passages: what is given back lies between passages that stay, and is too short for the next ones. Fixed: slots for
    the longest passage, allocated once."""
    draw = random.Random(5)
    slab = torch.empty(48, 21_300, 128, device=run.device) if run.fixed else None
    pool = NegativePool(48, 128, run.device, slab)
    query = nn.Linear(128, 128).to(run.device)
    optimizer = torch.optim.SGD(query.parameters(), lr=0.1)
    for step in run.steps(16):
        for _ in range(24):
            pool.add(6000 + 1000 * step + draw.randrange(300))
        scores = torch.stack([query(passage[:50]).square().mean() for passage in pool.passages[:8]])
        optimizer.zero_grad(set_to_none=True)
        scores.logsumexp(0).backward()
        optimizer.step()


class LateInteraction(nn.Module):
    """Each query token looks for its best passage token, for all queries with all passages of the batch."""

    def __init__(self, chunk):
        super().__init__()
        self.project = nn.Linear(256, 96)
        self.chunk = chunk

    def best(self, queries, passages):
        return torch.einsum("iqd,jpd->ijqp", queries, passages).max(3).values.sum(2)  # guilty in best_matching_tokens

    def forward(self, queries, passages):
        queries, passages = self.project(queries), self.project(passages)  # guilty in best_matching_tokens
        parts = passages.split(self.chunk or len(passages))
        return torch.cat([self.best(queries, part) for part in parts], 1)


@job("true_capacity")
def best_matching_tokens(run):
    """Late interaction of all queries with all passages of a batch at once: the similarities of all tokens need more
    than the GPU has. Fixed: passages in groups, of which only the maxima stay."""
    run.cap(512)
    model = LateInteraction(chunk=2 if run.fixed else None).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in run.steps(4):
        scores = model(torch.randn(56, 32, 256, device=run.device), torch.randn(56, 1600, 256, device=run.device))  # guilty
        loss = F.cross_entropy(scores, torch.arange(56, device=run.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        del scores


class LineReader(nn.Module):
    """Convolutions, a recurrent layer, and characters by connectionist temporal classification."""

    def __init__(self, characters=90, width=96):
        super().__init__()
        self.look = nn.Sequential(nn.Conv2d(1, 32, 3, stride=2, padding=1), nn.ReLU(),
                                  nn.Conv2d(32, width, 3, stride=2, padding=1), nn.ReLU())
        self.read = nn.GRU(width, width, batch_first=True)
        self.name = nn.Linear(width, characters)

    def forward(self, lines):
        columns = self.look(lines).mean(2).transpose(1, 2)
        return self.name(self.read(columns)[0]).log_softmax(2)


def buckets(draw, widths=(256, 512, 768)):
    """Batches of lines of equal width, in any order, with as many lines as make them equally large."""
    while True:
        width = draw.choice(widths)
        yield 32 * widths[-1] // width, width


@job("healthy")
def text_line_buckets(run):
    """A reader of text lines, in buckets by width: batches are wide or long, and alike in their memory."""
    model = LineReader().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _, (lines, width) in zip(run.steps(12), buckets(random.Random(2))):
        scores = model(torch.rand(lines, 1, 32, width, device=run.device))
        text = torch.randint(1, 90, (lines, 12), device=run.device)
        lengths = torch.full((lines,), scores.shape[1]), torch.full((lines,), 12)
        loss = F.ctc_loss(scores.transpose(0, 1), text, *lengths)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        del scores
