"""Machine translation and summarisation."""
import random

import torch
from torch import nn
from torch.nn import functional as F

from job import job

WORDS = 6000


class Seq2Seq(nn.Module):
    """A recurrent encoder and decoder with attention."""

    def __init__(self, width=256):
        super().__init__()
        self.source = nn.Embedding(WORDS, width)
        self.target = nn.Embedding(WORDS, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRUCell(2 * width, width)
        self.out = nn.Linear(width, WORDS)

    def encode(self, text):
        return self.encoder(self.source(text))  # guilty in bleu_by_greedy_search

    def decode(self, word, state, memory):
        scores = torch.einsum("bd,btd->bt", state, memory).softmax(1)  # guilty in bleu_by_greedy_search
        context = torch.einsum("bt,btd->bd", scores, memory)
        state = self.decoder(torch.cat([self.target(word), context], 1), state)  # guilty in bleu_by_greedy_search
        return self.out(state).log_softmax(1), state  # guilty in bleu_by_greedy_search


class Translator:
    """Greedy search, with the score of each translation for a report of the worst ones."""

    def __init__(self, model, length):
        self.model = model
        self.length = length
        self.scored = []

    def translate(self, text):
        memory, state = self.model.encode(text)
        state = state[0]
        word = torch.ones(len(text), dtype=torch.long, device=text.device)
        total = torch.zeros(len(text), device=text.device)
        words = []
        for _ in range(self.length):
            logs, state = self.model.decode(word, state, memory)
            best, word = logs.max(1)
            total = total + best
            words.append(word)
        return torch.stack(words, 1), total / self.length

    def run(self, text):
        translation, score = self.translate(text)
        self.scored.append((score, translation.cpu()))  # cause in bleu_by_greedy_search


@job("eval_graph")
def bleu_by_greedy_search(run):
    """A validation set is translated by greedy search for BLEU, without no_grad(); the scores, kept to sort the
    translations by, hold the graph of all steps of the decoder. Fixed: torch.no_grad()."""
    model = Seq2Seq().to(run.device).eval()
    translator = Translator(model, length=12)
    with torch.set_grad_enabled(not run.fixed):
        for step in run.steps(10):
            translator.run(torch.randint(WORDS, (96, 24 + step), device=run.device))


def lengths_of(count, seed):
    """Sentences of a corpus: mostly short."""
    draw = random.Random(seed)
    return [int(min(120, 8 + draw.expovariate(1 / 14))) for _ in range(count)]


@job("true_capacity", fixed_contested="different sizes leave over a third of the reserve unused")
def longest_batch(run):
    """Batches of 64 sentences, padded to their longest. The one with a very long sentence in it needs more for its
    logits over the vocabulary than the GPU has. Fixed: batches of a number of tokens."""
    run.cap(800)
    vocabulary = 16_000
    model = nn.Sequential(nn.Embedding(vocabulary, 128), nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
    model = model.to(run.device)
    head = nn.Linear(128, vocabulary).to(run.device)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
    longest = (18, 22, 20, 25, 19, 110, 24, 21, 23, 20)
    for step in run.steps(10):
        length = longest[step]
        rows = min(64, 1000 // length) if run.fixed else 64  # cause
        text = torch.randint(vocabulary, (rows, length), device=run.device)
        logits = head(model(text))  # guilty
        loss = F.nll_loss(logits.log_softmax(-1).flatten(0, 1), text.flatten())  # guilty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del logits, loss


@job("healthy")
def token_budget(run):
    """Batches of about two thousand tokens, sorted by length: the number of rows and columns is different in each."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Embedding(WORDS, 256), nn.TransformerEncoder(layer, 2), nn.Linear(256, WORDS))
    model = model.to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) ** -0.5, (step + 1) * 4000**-1.5))
    lengths = sorted(lengths_of(10, seed=2))
    total = 0.0
    for step in run.steps(10):
        length = lengths[step]
        text = torch.randint(WORDS, (2000 // length, length), device=run.device)
        loss = F.cross_entropy(model(text).flatten(0, 1), text.flatten(), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warmup.step()
        total += loss.item()


class Summary:
    """A hypothesis: its words so far and its score, as Python numbers."""

    def __init__(self, words, score):
        self.words = words
        self.score = score

    def __lt__(self, other):
        return self.score / len(self.words) < other.score / len(other.words)


@job("healthy")
def n_best_summaries(run):
    """Beam search for summaries of articles: states of the decoder are reordered in each step, and the best few
    summaries of all articles are kept as lists of numbers."""
    model = Seq2Seq().to(run.device).eval()
    best = []
    with torch.inference_mode():
        for step in run.steps(6):
            article = torch.randint(WORDS, (1, 200 + 40 * step), device=run.device)
            memory, state = model.encode(article)
            memory, state = memory.repeat(32, 1, 1), state[0].repeat(32, 1)
            beam = [Summary([1], 0.0)] * 32
            for _ in range(10):
                words = torch.tensor([hypothesis.words[-1] for hypothesis in beam], device=run.device)
                logs, state = model.decode(words, state, memory)
                scores = torch.tensor([hypothesis.score for hypothesis in beam], device=run.device)
                top, place = (logs + scores[:, None]).flatten().topk(32)
                origin = torch.div(place, WORDS, rounding_mode="floor")
                state = state[origin]
                beam = [Summary([*beam[o].words, w], s)
                        for o, w, s in zip(origin.tolist(), (place % WORDS).tolist(), top.tolist())]
            best.append(sorted(beam)[-3:])
