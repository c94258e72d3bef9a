"""Large language models in small: serving, evaluation, preferences, experts."""
import gc
from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from job import job

VOCABULARY = 3000


class Language(nn.Module):
    """The distribution of each token, given those before it."""

    def __init__(self, width=128):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.hidden = nn.Linear(width, 4 * width)
        self.head = nn.Linear(4 * width, VOCABULARY)

    def forward(self, text):
        count = torch.arange(1, text.shape[1] + 1, device=text.device)[:, None]
        history = self.embed(text).cumsum(1) / count  # guilty in harness_scores
        hidden = torch.relu(self.hidden(history))  # guilty in harness_scores
        return self.head(hidden)

    def log_probability(self, text):
        logits = self(text[:, :-1])
        return logits.log_softmax(-1).gather(2, text[:, 1:, None]).squeeze(2)  # guilty in harness_scores


class Score(NamedTuple):
    task: str
    likelihood: torch.Tensor
    tokens: int


class Harness:
    """Likelihoods of the answers of several tasks, task by task, as they are asked for."""

    def __init__(self, model, device, guard):
        self.model = model
        self.device = device
        self.guard = guard

    def documents(self, task):
        for number in range(4):
            text = torch.randint(VOCABULARY, (24, 33 + 8 * number), device=self.device)
            yield task, text

    def scores(self, tasks):
        for task in tasks:
            for name, text in self.documents(task):
                with self.guard():
                    likelihood = self.model.log_probability(text).sum(1)
                yield Score(name, likelihood, text.numel())

    def evaluate(self, tasks):
        with torch.no_grad():
            return self.scores(tasks)  # cause in harness_scores


@job("eval_graph")
def harness_scores(run):
    """An evaluation harness whose scores come from a generator: it is made under no_grad(), but runs when that is over.
    The job ends out of memory. Fixed: no_grad() inside the generator."""
    run.cap(320)
    model = Language().to(run.device).eval()
    guard = torch.no_grad if run.fixed else nullcontext
    scores = Harness(model, run.device, guard).evaluate(["arithmetic", "history", "law", "logic", "trivia", "verbs"])
    table = {}
    for _ in run.steps(24):
        score = next(scores)
        table.setdefault(score.task, []).append(score)


class Session:
    """A conversation with its keys and values."""

    def __init__(self, rows, device):
        self.keys = torch.zeros(4, rows, 512, device=device)  # guilty in answered_sessions
        self.values = torch.zeros_like(self.keys)  # guilty in answered_sessions
        self.length = 0

    def prefill(self, hidden):
        self.length = hidden.shape[1]
        self.keys[:, : self.length] = hidden
        self.values[:, : self.length] = hidden.tanh()
        return hidden[:, -1]

    def decode(self, hidden):
        self.keys[:, self.length] = hidden
        self.values[:, self.length] = hidden.tanh()
        self.length += 1
        keys, values = self.keys[:, : self.length], self.values[:, : self.length]
        share = torch.softmax(torch.einsum("lw,ltw->lt", hidden, keys), 1)
        return torch.einsum("lt,ltw->lw", share, values)

    def dispatch(self, phase, hidden):
        return getattr(self, phase)(hidden)


class TableSession(Session):
    """A session with a table of what it can do."""

    def __init__(self, rows, device):
        super().__init__(rows, device)
        self.phases = {"prefill": self.prefill, "decode": self.decode}  # cause in answered_sessions

    def dispatch(self, phase, hidden):
        return self.phases[phase](hidden)


def answer(session, prompt, words):
    hidden = session.dispatch("prefill", prompt)
    for _ in range(words):
        hidden = session.dispatch("decode", hidden)
    return hidden.argmax(1).tolist()


@job("reference_cycle")
def answered_sessions(run):
    """A server whose sessions have a table of their own bound methods, and so refer to themselves; the collector is off
    for the sake of latency. Fixed: methods are looked up by their names."""
    gc.disable()
    kind = Session if run.fixed else TableSession
    with torch.inference_mode():
        for step in run.steps(20):
            prompt = torch.randn(4, 300 + 20 * (step % 3), 512, device=run.device)
            assert len(answer(kind(1024, run.device), prompt, words=8)) == 4


class Pages:
    """Memory for keys and values in pages, made on demand up to a bound, and used again."""

    def __init__(self, bound, device):
        self.bound = bound
        self.device = device
        self.made = 0
        self.free = []

    def take(self):
        if self.free:
            return self.free.pop()
        if self.made == self.bound:
            return None
        self.made += 1
        return torch.empty(2, 16, 64, 1024, device=self.device)

    def give(self, pages):
        self.free.extend(pages)


@job("healthy")
def paged_attention(run):
    """A server with pages of keys and values: up to 40 of them are made while more and more is asked at once; an
    answer's pages go back to the free list."""
    pages = Pages(40, run.device)
    running = {}
    with torch.inference_mode():
        for step in run.steps(24):
            running[step] = []
            for number in list(running):
                page = pages.take()
                if page is not None:
                    page.fill_(number)
                    running[number].append(page)
                if len(running[number]) > 3 + number % 5 or page is None:
                    pages.give(running.pop(number))


class Pair(NamedTuple):
    chosen: torch.Tensor
    rejected: torch.Tensor
    margin: float


def preferences(reference, device, count):
    """Pairs of texts with the reference model's margin, on the host."""
    for _ in range(count):
        chosen, rejected = torch.randint(VOCABULARY, (2, 6, 48), device=device)
        with torch.no_grad():
            margin = reference.log_probability(chosen).sum(1) - reference.log_probability(rejected).sum(1)
        yield Pair(chosen.cpu(), rejected.cpu(), margin.mean().item())


@job("healthy")
def reference_margins(run):
    """Preference optimisation: the reference model's margins are computed beforehand as numbers, and it is dropped; the
    gradients of four micro-batches are summed for each step, and metrics are numbers."""
    reference = Language().to(run.device)
    data = list(preferences(reference, run.device, 16))
    del reference
    policy = Language().to(run.device)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4)
    metrics = []
    for step in run.steps(10):
        for micro in range(4):
            pair = data[(4 * step + micro) % len(data)]
            good, bad = (policy.log_probability(text.to(run.device)).sum(1) for text in pair[:2])
            loss = -F.logsigmoid(0.1 * (good - bad - pair.margin)).mean()
            (loss / 4).backward()
            metrics.append((loss.item(), (good > bad).float().mean().item()))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


class Experts(nn.Module):
    """Each token goes to the best of some experts."""

    def __init__(self, width, count):
        super().__init__()
        self.router = nn.Linear(width, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(count)
        )

    def forward(self, tokens):
        share = self.router(tokens).softmax(1)
        weight, choice = share.max(1)
        result = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            where = (choice == number).nonzero().squeeze(1)
            result = result.index_add(0, where, weight[where, None] * expert(tokens[where]))
        load = F.one_hot(choice, len(self.experts)).float().mean(0)
        return tokens + result, len(self.experts) * (load * share.mean(0)).sum(), load.tolist()


@job("healthy")
def balanced_experts(run):
    """A mixture of experts with different numbers of tokens in each iteration; the balance is a part of the loss, the
    loads are logged as numbers, and Adam's moments are made for the first step."""
    layers = nn.ModuleList(Experts(384, 3) for _ in range(2)).to(run.device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    loads = []
    for _ in run.steps(8):
        hidden = torch.randn(3000, 384, device=run.device)
        total = 0
        for layer in layers:
            hidden, balance, load = layer(hidden)
            total = total + 0.01 * balance
            loads.append(load)
        total = total + hidden.square().mean()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
