"""Software of a newsroom: which articles belong to which story, what they are about, what to show."""
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

from batching import TokenBudget
from job import job


class ArticleEncoder(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.read = nn.Linear(300, 512)
        self.digest = nn.Linear(512, width)

    def forward(self, articles):
        hidden = F.relu(self.read(articles))
        return torch.tanh(self.digest(hidden))  # guilty in running_stories


class Stories:
    """What each running story is about: a vector that moves towards each new article, the more the better it fits."""

    def __init__(self, count, width, device, keep_graph):
        self.topics = torch.zeros(count, width, device=device)
        self.keep_graph = keep_graph

    def so_far(self):
        return self.topics.detach()

    def follow(self, articles):
        with torch.set_grad_enabled(self.keep_graph):  # cause in running_stories
            fit = torch.sigmoid((self.topics * articles).sum(1, keepdim=True) / 32)
            self.topics = self.topics + fit * (articles - self.topics)  # guilty in running_stories


@job("hidden_state")
def running_stories(run):
    """Each story has a vector that follows its articles. The classifier gets the vectors without their graphs; the
    next vectors are computed from those with them, so that the chain goes back to the first article. Fixed: the
    vectors are computed without gradients."""
    encoder, classify = ArticleEncoder().to(run.device), nn.Linear(2048, 14).to(run.device)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *classify.parameters()], lr=1e-4)
    stories = Stories(2048, 1024, run.device, keep_graph=not run.fixed)
    for _ in run.steps(13):
        articles = encoder(torch.randn(2048, 300, device=run.device))
        logits = classify(torch.cat([articles, stories.so_far()], 1))
        loss = F.cross_entropy(logits, torch.randint(14, (2048,), device=run.device))
        stories.follow(articles)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()


class ShardedLayer:
    """A layer whose weight lies in four parts; it is put together on the stream of the communication."""

    def __init__(self, width, device, communication):
        self.parts = [torch.randn(width // 4, width, device=device) / width**0.5 for _ in range(4)]
        self.communication = communication

    def gather(self, compute):
        with torch.cuda.stream(self.communication):
            weight = torch.cat(self.parts)  # guilty in gathered_layers
            gathered = self.communication.record_event()
        compute.wait_event(gathered)
        weight.record_stream(compute)  # cause in gathered_layers
        return weight


class ShardedModel:
    """Layer after layer is gathered, applied and forgotten."""

    def __init__(self, layers, width, device, ahead):
        communication = torch.cuda.Stream()
        self.layers = [ShardedLayer(width, device, communication) for _ in range(layers)]
        communication.wait_stream(torch.cuda.current_stream())
        self.ahead = ahead
        self.applied = deque()

    def apply(self, hidden):
        compute = torch.cuda.current_stream()
        for layer in self.layers:
            while self.ahead and len(self.applied) >= self.ahead:
                self.applied.popleft().synchronize()
            weight = layer.gather(compute)
            hidden = F.relu(hidden @ weight)
            torch.cuda._sleep(9_000_000)  # attention, which is left out here
            self.applied.append(compute.record_event())
            del weight
        return hidden


@job("cross_stream_pending")
def gathered_layers(run):
    """A headline model whose layers are sharded. The host is far ahead of the GPU and has the weights of later layers
    gathered while earlier ones are still in use. Fixed: two layers are gathered at a time."""
    model = ShardedModel(layers=5, width=2048, device=run.device, ahead=2 if run.fixed else None)
    tallied = torch.zeros(2048, device=run.device)
    for _ in run.steps(10):
        articles = torch.randn(128, 2048, device=run.device)
        tallied += model.apply(articles).mean(0)


@job("healthy")
def agency_wire(run):
    """Articles come over the wire, some more and some fewer each hour. They are kept until there are 12,000 tokens, a
    batch from which the model learns."""
    draw = random.Random(14)
    model = nn.Sequential(nn.Linear(384, 768), nn.GELU(), nn.Linear(768, 384)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    budget = TokenBudget(12_000)
    batches = 0
    for _ in run.steps(28):
        for _ in range(draw.choice((1, 2, 2, 5))):
            words = torch.randn(draw.randrange(800, 2000), 384, device=run.device)
            batch = budget.add(F.normalize(words, dim=1))
            if not batch:
                continue
            optimizer.zero_grad()
            for text in batch:
                loss = F.mse_loss(model(text[:-1]), text[1:], reduction="sum") / 12_000
                loss.backward()
            optimizer.step()
            batches += 1
    assert batches >= 5
