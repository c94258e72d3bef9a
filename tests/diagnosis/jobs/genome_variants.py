"""Variants in genomes: their effects, their ancestry, their statistics over many people."""
import gc

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def windows(run, count, length=1000):
    """Sequences around the variants, one of four channels is 1."""
    base = torch.randint(4, (count, 1, length), device=run.device)
    return torch.zeros(count, 4, length, device=run.device).scatter_(1, base, 1.0)  # guilty in effects_of_variants


def mutated(reference):
    """The same with another base in the middle."""
    alternative = reference.clone()  # guilty in effects_of_variants
    middle = reference.shape[2] // 2
    alternative[:, :, middle] = reference[:, :, middle].roll(1, 1)
    return alternative


class EffectScorer:
    """How much a variant changes what the network predicts."""

    def __init__(self, model):
        self.model = model
        self.model.eval()
        self.effects = {}

    def score(self, name, reference):
        before = self.model(reference)  # guilty in effects_of_variants
        after = self.model(mutated(reference))  # guilty in effects_of_variants
        self.effects[name] = (after - before).abs().amax(1)  # cause in effects_of_variants


@job("eval_graph")
def effects_of_variants(run):
    """The effects of variants by gene, predicted in eval() mode but with gradients enabled, kept in a dictionary.
    Fixed: no_grad()."""
    model = nn.Sequential(
        nn.Conv1d(4, 48, 9, padding=4), nn.ReLU(), nn.MaxPool1d(4), nn.Conv1d(48, 48, 5), nn.ReLU(),
        nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Dropout(0.3), nn.Linear(384, 100),
    )
    scorer = EffectScorer(model.to(run.device))
    with torch.set_grad_enabled(not run.fixed):
        for step in run.steps(12):
            scorer.score(f"gene {step}", windows(run, 32))
    assert len(scorer.effects) == 12


def ancestry_by_closure(leaves, mutation):
    """The likelihood of a tree of haplotypes, from its leaves to the root (Felsenstein)."""

    def below(first, last):  # cause in haplotype_trees
        if last - first == 1:
            return leaves[first]
        middle = (first + last) // 2
        return (below(first, middle) @ mutation) * (below(middle, last) @ mutation)

    return below(0, len(leaves)).mean().item()


def ancestry(leaves, mutation):
    """The same as a function that is given all it needs."""
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    return (ancestry(leaves[:middle], mutation) @ mutation) * (ancestry(leaves[middle:], mutation) @ mutation)


@job("reference_cycle")
def haplotype_trees(run):
    """A recursive inner function refers to itself by its closure, which also holds the leaves of the tree; the
    collector is off, since the reader makes millions of small objects. Fixed: a function of the module."""
    gc.disable()
    mutation = torch.full((4, 4), 0.01, device=run.device) + 0.96 * torch.eye(4, device=run.device)
    for _ in run.steps(14):
        leaves = [torch.rand(131_072, 4, device=run.device) for _ in range(8)]  # guilty
        if run.fixed:
            likelihood = ancestry(leaves, mutation).mean().item()
        else:
            likelihood = ancestry_by_closure(leaves, mutation)
        assert likelihood >= 0
        del leaves


def read_chunk(run, number):
    """The genotypes of some people at 300,000 sites."""
    generator = torch.Generator(run.device).manual_seed(number)
    return torch.randn(300_000, 8, device=run.device, generator=generator)


def panel_summaries(run, count):
    """The mean of each chunk at each site, less the mean of all: all chunks are read first."""
    chunks, means = [], []
    for number in range(count):
        chunks.append(read_chunk(run, number))  # cause in panel_in_chunks
        means.append(chunks[-1].mean(1))  # guilty in panel_in_chunks
    overall = sum(chunk.mean() for chunk in chunks) / count
    for mean in means:
        mean -= overall
    return means


def panel_summaries_in_turn(run, count):
    means = [read_chunk(run, number).mean(1) for number in range(count)]
    overall = sum(mean.mean() for mean in means) / count
    for mean in means:
        mean -= overall
    return means


@job("fragmentation")
def panel_in_chunks(run):
    """While a panel is read, large chunks and small summaries alternate; the chunks go, the summaries stay, one in
    almost each segment. The batches of the training fit in none of the gaps and end out of memory. Fixed: a chunk
    goes before the next is read."""
    run.cap(700)
    means = panel_summaries_in_turn(run, 60) if run.fixed else panel_summaries(run, 60)
    model = nn.Sequential(nn.Linear(60, 128), nn.ReLU(), nn.Linear(128, 1)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in run.steps(8):
        sites = torch.randint(300_000, (100_000,), device=run.device)
        loss = model(torch.stack([mean[sites] for mean in means], 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class ChromosomeCache:
    """The genotypes of a chromosome stay on the GPU once they were read."""

    def __init__(self, run):
        self.run = run
        self.known = {}

    def __getitem__(self, number):
        if number not in self.known:
            sites = 12_000 - 800 * number
            self.known[number] = torch.randint(3, (1000, sites), dtype=torch.uint8, device=self.run.device)
        return self.known[number]


@job("healthy")
def chromosomes_on_gpu(run):
    """In the first epoch each chromosome's genotypes are put on the GPU for good; the second and third epoch find
    them there."""
    genotypes = ChromosomeCache(run)
    model = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in run.steps(18):
        chromosome = genotypes[step % 6]
        for first in range(0, 4096, 512):
            sample = chromosome[:, first : first + 512].float() - 1
            loss = F.mse_loss(model(sample).squeeze(1), sample.mean(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
