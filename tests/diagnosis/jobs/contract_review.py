"""Reading contracts: what their clauses are about, and what is wrong with them."""
import random

import torch
import torch.nn.functional as F
from torch import nn

from job import job

TOKENS = 8000


class ClauseModel(nn.Module):
    """Says what kind of clause a text is, and how risky it is."""

    def __init__(self, width=384, kinds=41):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, width)
        self.mix = nn.Linear(width, width)
        self.kind = nn.Linear(width, kinds)
        self.risk = nn.Linear(width, 1)

    def forward(self, tokens):
        embedded = self.embed(tokens)  # guilty in clauses_of_an_epoch
        mixed = torch.tanh(self.mix(embedded))  # guilty in clauses_of_an_epoch
        pooled = (mixed * embedded.softmax(1)).sum(1)  # guilty in clauses_of_an_epoch
        return self.kind(pooled), self.risk(pooled)


class EpochScores:
    """What was predicted in an epoch, for the scores at its end."""

    def __init__(self, detach):
        self.detach = detach
        self.predicted, self.labels = [], []

    def on_batch_end(self, logits, labels):
        self.predicted.append(logits.detach() if self.detach else logits)  # cause in clauses_of_an_epoch
        self.labels.append(labels)

    def on_epoch_end(self):
        right = torch.cat(self.predicted).argmax(1) == torch.cat(self.labels)
        self.predicted.clear()
        self.labels.clear()
        return right.float().mean().item()


@job("retained_graph")
def clauses_of_an_epoch(run):
    """Two losses of one model, each with backward(retain_graph=True), as an answer in a forum said. The logits of the
    epoch are kept for its scores, and with them their graphs, which backward() left alone. Fixed: detached logits."""
    model, scores = ClauseModel().to(run.device), EpochScores(detach=run.fixed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for _ in run.steps(12):
        tokens = torch.randint(TOKENS, (48, 128), device=run.device)
        kinds = torch.randint(41, (48,), device=run.device)
        logits, risk = model(tokens)
        optimizer.zero_grad()
        F.cross_entropy(logits, kinds).backward(retain_graph=True)
        F.softplus(risk).mean().backward(retain_graph=True)
        optimizer.step()
        scores.on_batch_end(logits, kinds)
        del logits, risk
    assert 0 <= scores.on_epoch_end() <= 1


class BundleMemory:
    """A representation of the sections of each bundle of contracts, from when it was last read."""

    def __init__(self, bundles, in_place=None):
        self.in_place = in_place is not None
        self.representations = list(in_place) if self.in_place else [None] * bundles

    def remember(self, bundle, hidden):
        sections = hidden.unflatten(0, (1024, -1))
        if self.in_place:
            torch.mean(sections, 1, out=self.representations[bundle])
        else:
            self.representations[bundle] = sections.mean(1)  # guilty in longest_bundle_first


@job("fragmentation")
def longest_bundle_first(run):
    """Bundles are read in the order of their lengths, the longest first, so that a lack of memory shows at once. What
    is remembered of each settles in the space of longer ones, where the longest bundle finds no place in the second
    round. Fixed: what is remembered has one tensor, made at the beginning."""
    bundles, width = 12, 1024
    words = torch.randn(TOKENS, width, device=run.device)
    memory = BundleMemory(bundles, torch.empty(bundles, 1024, width, device=run.device) if run.fixed else None)
    for step in run.steps(2 * bundles):
        bundle = step % bundles
        tokens = torch.randint(TOKENS, (1024 * (50 - 3 * bundle),), device=run.device)
        hidden = words[tokens]
        memory.remember(bundle, hidden)
        del hidden
    assert memory.representations[-1].shape == (1024, width)


class ContractReader:
    """Reads the clauses of a contract one by one. At its end they are compared with each other, for contradictions."""

    def __init__(self, device):
        self.encode = nn.Sequential(nn.Linear(640, 1024), nn.GELU(), nn.Linear(1024, 1024)).to(device)
        self.clauses, self.reviews = [], []

    def read(self, clause):
        self.clauses.append(self.encode(clause))

    def finish(self):
        contract, self.clauses = torch.stack([clause.mean(0) for clause in self.clauses]), []
        contradictions = contract @ contract.T
        self.reviews.append(contradictions.tril(-1).amax().item())


@job("healthy")
def clauses_until_the_end(run):
    """Contracts of four to thirteen clauses are read clause by clause; the words of all clauses stay on the GPU until
    the contract ends; then they are averaged, compared, and dropped."""
    reader, draw = ContractReader(run.device), random.Random(17)
    left = 7
    with torch.inference_mode():
        for _ in run.steps(40):
            reader.read(torch.randn(1536, 640, device=run.device))
            left -= 1
            if left == 0:
                reader.finish()
                left = draw.randint(4, 13)
    assert reader.reviews


class DraftReviewer:
    """Reviews drafts of a contract under negotiation. A clause that was in the draft before is not encoded again, and
    one that was struck out is forgotten."""

    def __init__(self, encode):
        self.encode = encode
        self.encoded = {}

    def clause(self, number, device):
        known = self.encoded.get(number)
        return self.encode(torch.randn(1024, 512, device=device)) if known is None else known

    def review(self, draft, device):
        self.encoded = {number: self.clause(number, device) for number in draft}
        return max(encoded.amax().item() for encoded in self.encoded.values())


def drafts(draw, count):
    """Numbers of the clauses in each draft. A negotiation adds some and strikes some out, and then another begins."""
    following, draft = 0, []
    for _ in range(count):
        if draw.random() < 0.1:
            draft = []
        draft = [clause for clause in draft if draw.random() > 0.12]
        added = draw.randint(2, 6)
        draft += range(following, following + added)
        following += added
        yield list(draft)


@job("healthy")
def negotiated_drafts(run):
    """Each draft of a contract has some new clauses, and lacks some of the draft before it. Clauses of the newest draft
    are kept encoded, so memory follows its length, until the next negotiation begins."""
    reviewer = DraftReviewer(nn.Linear(512, 1024).to(run.device).requires_grad_(False))
    negotiation = drafts(random.Random(8), 28)
    for _ in run.steps(28):
        risk = reviewer.review(next(negotiation), run.device)
    assert risk > 0
