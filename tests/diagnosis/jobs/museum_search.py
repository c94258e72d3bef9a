"""Search in the collections of a museum: towers for pictures and texts, an index of vectors."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


def tower(seen, width=1024):
    return nn.Sequential(nn.Linear(seen, width), nn.GELU(), nn.Linear(width, 512))


class GradientCache:
    """Trains with a batch whose activations do not fit: vectors first, their gradients, then parts of the batch."""

    def __init__(self, towers, parts, forget):
        self.towers = towers
        self.parts = parts
        self.forget = forget
        self.slopes = []

    def step(self, *inputs):
        with torch.no_grad():
            vectors = [tower(seen) for tower, seen in zip(self.towers, inputs)]
        leaves = [vector.requires_grad_() for vector in vectors]
        first, second = (F.normalize(leaf, dim=1) for leaf in leaves)
        same = torch.arange(len(first), device=first.device)
        F.cross_entropy(first @ second.T / 0.05, same).backward()  # guilty in vectors_and_their_slopes
        self.slopes.append([leaf.grad for leaf in leaves])  # cause in vectors_and_their_slopes
        for tower, seen, slope in zip(self.towers, inputs, self.slopes[-1]):
            for part, known in zip(seen.chunk(self.parts), slope.chunk(self.parts)):
                tower(part).backward(known)
        if self.forget:
            self.slopes.clear()


@job("gradient_accumulation")
def vectors_and_their_slopes(run):
    """Large batches with a cache for the gradients of their vectors, to which each step appends. Fixed: it is cleared
    at the end of the step."""
    towers = [tower(768).to(run.device), tower(384).to(run.device)]
    optimizer = torch.optim.AdamW([*towers[0].parameters(), *towers[1].parameters()], lr=1e-4)
    cache = GradientCache(towers, parts=4, forget=run.fixed)
    for _ in run.steps(14):
        optimizer.zero_grad()
        cache.step(torch.randn(3000, 768, device=run.device), torch.randn(3000, 384, device=run.device))
        optimizer.step()


class BackgroundIndex:
    """Sorts vectors into an index, on a stream of its own."""

    def __init__(self, device):
        self.stream = torch.cuda.Stream()
        self.centres = torch.randn(4096, 512, device=device)
        self.sizes = torch.zeros(4096, device=device)

    def insert(self, vectors):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(24):
                nearest = (vectors @ self.centres.T).argmax(1)
                self.sizes.index_add_(0, nearest, torch.ones_like(nearest, dtype=torch.float))
            vectors.record_stream(self.stream)  # cause in collections_are_indexed


@job("cross_stream_pending")
def collections_are_indexed(run):
    """Vectors of one collection after another go to an index on another stream, which is much slower than the tower
    that makes them. Fixed: the index is waited for before the next collection."""
    model, index = tower(384).to(run.device).eval(), BackgroundIndex(run.device)
    with torch.no_grad():
        for _ in run.steps(15):
            texts = torch.randn(16_000, 384, device=run.device)
            vectors = model(texts)  # guilty
            index.insert(vectors)
            if run.fixed:
                index.stream.synchronize()
            del texts, vectors


class Catalogue:
    """All vectors in one tensor, which is replaced by a larger one when a hall comes in; and thumbnails of halls."""

    def __init__(self, device, room=0):
        self.vectors = torch.empty(room, 512, device=device)
        self.used = 0
        self.thumbnails = []
        self.device = device

    def add_hall(self, works):
        if self.used + works > len(self.vectors):
            larger = torch.empty(self.used + works, 512, device=self.device)  # guilty in halls_come_in
            larger[: self.used] = self.vectors[: self.used]
            self.vectors = larger
        self.vectors[self.used : self.used + works].normal_()
        self.used += works

    def add_thumbnails(self, count):
        self.thumbnails.append(torch.rand(count, 3, 32, 32, device=self.device))  # guilty in halls_come_in


@job("fragmentation", fixed_contested="the thumbnails that it keeps on the GPU are more with each hall")
def halls_come_in(run):
    """A catalogue of vectors is copied to a larger tensor for each hall that comes in. Thumbnails of the hall take a
    part of the memory that the smaller one had, and the rest is too small for the next. Fixed: the catalogue has room
    for all halls from the start."""
    catalogue = Catalogue(run.device, room=10_000 + 13 * 2500 if run.fixed else 0)
    catalogue.add_hall(10_000)
    for hall in run.steps(13):
        catalogue.add_hall(2500)
        catalogue.add_thumbnails(950 + 225 * hall)


@job("healthy")
def index_is_renewed(run):
    """Two towers are trained; every fifth iteration the index of all works is made anew beside the old one, which
    it replaces."""
    pictures, texts = tower(768).to(run.device), tower(384).to(run.device)
    optimizer = torch.optim.AdamW([*pictures.parameters(), *texts.parameters()], lr=1e-4)
    works, index = torch.randn(20_000, 768, device=run.device), None
    for step in run.steps(16):
        rows = torch.randint(20_000, (512,), device=run.device)
        first = F.normalize(pictures(works[rows]), dim=1)
        second = F.normalize(texts(torch.randn(512, 384, device=run.device)), dim=1)
        loss = F.cross_entropy(first @ second.T / 0.05, torch.arange(512, device=run.device))
        if index is not None:
            hard = (second.detach() @ index.T).topk(2).indices[:, 1]
            loss = loss + (second * pictures(works[hard])).sum(1).mean() / 100
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            with torch.no_grad():
                new = torch.cat([F.normalize(pictures(part), dim=1) for part in works.split(4000)])
            index = new
            del new
