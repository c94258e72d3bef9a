"""Jobs whose sizes differ from iteration to iteration, for `gmd advise`: whether one fits depends on how the
allocator lays blocks out. They leak nothing, so they are healthy."""
import random

import torch
import torch.nn.functional as F
from torch import nn

from job import job

VOCABULARY = 8000


def language_model(run, width, layers):
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(VOCABULARY, width), nn.TransformerEncoder(layer, layers),
                          nn.Linear(width, VOCABULARY))
    return model.to(run.device)


def train_on(model, optimizer, text):
    loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@job("healthy")
def sentences(run):
    """A language model on batches of any number of sentences of any length."""
    draw = random.Random(1)
    model = language_model(run, 512, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in run.steps(24):
        train_on(model, optimizer,
                 torch.randint(VOCABULARY, (draw.randint(8, 64), draw.randint(30, 160)), device=run.device))


@job("healthy")
def curriculum(run):
    """Sequences that grow from iteration to iteration: no free block is large enough for the next one."""
    model = language_model(run, 256, 6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in run.steps(24):
        train_on(model, optimizer, torch.randint(VOCABULARY, (48, 24 + 9 * step), device=run.device))


@job("healthy")
def photographs(run):
    """A deep perceptron over patches of photographs of many sizes."""
    draw = random.Random(2)
    model = nn.Sequential(nn.Linear(768, 1024), *(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)),
                          nn.Linear(1024, 100)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in run.steps(30):
        loss = model(torch.randn(16, draw.randint(100, 2500), 768, device=run.device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def conversations(run):
    """Decoding for sessions that come and go: keys and values of each grow by concatenation."""
    draw = random.Random(3)
    sessions = [None] * 24
    with torch.no_grad():
        for _ in run.steps(160):
            at = draw.randrange(len(sessions))
            new = torch.randn(8, draw.randint(64, 512), 2048, device=run.device)
            old = sessions[at]
            sessions[at] = new if old is None or old.shape[1] > 3000 else torch.cat([old, new], 1)
            del new, old


@job("healthy")
def graphs(run):
    """Message passing on graphs of any number of nodes and edges."""
    draw = random.Random(4)
    layers = nn.ModuleList(nn.Linear(256, 256) for _ in range(6)).to(run.device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    for _ in run.steps(30):
        nodes, edges = draw.randint(20_000, 120_000), draw.randint(40_000, 200_000)
        x = torch.randn(nodes, 256, device=run.device)
        source, target = torch.randint(nodes, (2, edges), device=run.device)
        for layer in layers:
            x = x + torch.zeros_like(x).index_add(0, target, F.relu(layer(x))[source])
        optimizer.zero_grad()
        x.square().mean().backward()
        optimizer.step()


@job("healthy")
def ensemble(run):
    """Models of several widths, each trained on batches of its own size, in any order."""
    draw = random.Random(5)
    models = [nn.Sequential(nn.Linear(512, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU(), nn.Linear(w, 10)).to(run.device)
              for w in (768, 1024, 1536, 2304, 3072)]
    for _ in run.steps(60):
        model = draw.choice(models)
        loss = model(torch.randn(draw.randint(2000, 24000), 512, device=run.device)).square().mean()
        for p, g in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters()))):
            p.data.add_(g, alpha=-0.01)
        del loss, g
