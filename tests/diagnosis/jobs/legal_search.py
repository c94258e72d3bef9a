"""Search in rulings and statutes: encoders of texts, late interaction, an index."""
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F

from job import job

WORDS = 8000


class TextEncoder(nn.Module):
    """A text as one vector of length 1."""

    def __init__(self, width=256):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.up = nn.Linear(width, 2 * width)

    def forward(self, words):
        hidden = self.embed(words)  # guilty in margins_in_tracker
        hidden = self.up(hidden)  # guilty in margins_in_tracker
        return F.normalize(F.gelu(hidden).mean(1), dim=1)  # guilty in margins_in_tracker


def texts(run, count, length):
    return torch.randint(WORDS, (count, length), device=run.device)


class MetricTracker:
    """Collects metrics by name until the end of the epoch."""

    def __init__(self):
        self.values = defaultdict(list)

    def update(self, **metrics):
        for name, value in metrics.items():
            self.values[name].append(value)  # cause in margins_in_tracker

    def means(self):
        return {name: sum(float(value) for value in values) / len(values) for name, values in self.values.items()}


@job("retained_graph")
def margins_in_tracker(run):
    """The loss has negatives from the batch; the margin to rulings of the same court is only a metric, but encoded
    with gradients, and the tracker keeps it as it is. Fixed: no_grad() for the metric, kept as a number."""
    encoder = TextEncoder().to(run.device)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    tracker = MetricTracker()
    for _ in run.steps(10):
        question, ruling = encoder(texts(run, 64, 24)), encoder(texts(run, 64, 192))
        loss = F.cross_entropy(question @ ruling.t() / 0.05, torch.arange(64, device=run.device))
        with torch.set_grad_enabled(not run.fixed):
            same_court = encoder(texts(run, 64, 192))
            margin = (question * (ruling - same_court)).sum(1).mean()
        tracker.update(loss=loss.item(), margin=margin.item() if run.fixed else margin)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert len(tracker.means()) == 2


def best_matches(question, ruling, blank):
    """For each question and ruling the sum of each question word's best match (late interaction)."""
    match = torch.einsum("qwd,rvd->qrwv", question, ruling)  # guilty in matched_words
    match = match.masked_fill(blank[None, :, None, :], -1e4)
    return match.amax(3).sum(2)


@job("true_capacity")
def matched_words(run):
    """Late interaction: all words of 64 questions with all words of 64 rulings, in one tensor, do not fit. Fixed: four
    questions at a time."""
    run.cap(480)
    project = nn.Sequential(nn.Embedding(WORDS, 128), nn.Linear(128, 64)).to(run.device)
    optimizer = torch.optim.SGD(project.parameters(), lr=0.1)
    for _ in run.steps(5):
        question, ruling = texts(run, 64, 64), texts(run, 64, 256)
        blank = ruling < 400
        optimizer.zero_grad()
        target = torch.arange(64, device=run.device)
        if run.fixed:
            for some, wanted in zip(question.split(4), target.split(4)):
                score = best_matches(project(some), project(ruling), blank)
                (F.cross_entropy(score, wanted) / 16).backward()
        else:
            score = best_matches(project(question), project(ruling), blank)  # guilty
            F.cross_entropy(score, target).backward()
        optimizer.step()


class RulingIndex:
    """All rulings as vectors of half precision, by year."""

    def __init__(self):
        self.years = {}

    def add(self, year, vectors):
        self.years[year] = vectors.half()

    def search(self, question):
        found = []
        for year, vectors in self.years.items():
            score, place = (vectors.float() @ question).max(0)
            found.append((score.item(), year, place.item()))
        return max(found)


@job("healthy")
def rulings_by_year(run):
    """The index of all rulings is built on the GPU, year by year, and searched there: it grows, as it is meant to,
    and has no graphs."""
    encoder = TextEncoder(512).to(run.device).eval()
    index = RulingIndex()
    with torch.no_grad():
        for step in run.steps(12):
            parts = [encoder(texts(run, 512, 12)) for _ in range(10)]
            index.add(2000 + step, torch.cat(parts))
            best = index.search(encoder(texts(run, 1, 20))[0])
    assert best[1] >= 2000


@job("healthy")
def mined_negatives(run):
    """Every fourth step the corpus is encoded again without gradients, and the new vectors replace the old; between,
    training takes the hardest negatives from them."""
    encoder = TextEncoder().to(run.device)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
    corpus = texts(run, 2048, 64)
    for step in run.steps(14):
        if step % 4 == 0:
            with torch.no_grad():
                vectors = torch.cat([encoder(part) for part in corpus.split(256)])
        question = encoder(texts(run, 64, 24))
        hardest = (question.detach() @ vectors.t()).topk(4, 1).indices[:, -1]
        negative, positive = encoder(corpus[hardest]), encoder(texts(run, 64, 64))
        loss = F.relu(0.2 + (question * (negative - positive)).sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
