"""The recommender of a shop: training it, serving its pages, judging it offline."""
import gc
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class TasteModel(nn.Module):
    """Customers and articles in one space; the customers' vectors pass through a small network."""

    def __init__(self, customers=20_000, articles=16_000, width=64):
        super().__init__()
        self.customers = nn.Embedding(customers, width)
        self.articles = nn.Embedding(articles, width)
        self.tower = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, width))

    def forward(self, customers):
        return self.tower(self.customers(customers))


class Objective:
    """Softmax within the batch, and a penalty on recommending only bestsellers, which has a weight."""

    def __init__(self, popularity, penalty_weight=0.0):
        self.popularity = popularity
        self.penalty_weight = penalty_weight

    def __call__(self, model, customers, bought):
        taste = model(customers)
        labels = torch.arange(len(bought), device=bought.device)
        loss = F.cross_entropy(taste @ model.articles(bought).T, labels)
        exposure = torch.softmax(taste @ model.articles.weight.T, 1)  # guilty in penalty_switched_off
        penalty = (exposure.mean(0) * self.popularity).sum()
        if self.penalty_weight:
            loss = loss + self.penalty_weight * penalty
        return loss, {"loss": loss.detach(), "penalty": penalty}


@job("retained_graph", fixed_contested="the penalty's graph, unused, is still built and lives for one iteration")
def penalty_switched_off(run):
    """A penalty has weight zero in this experiment but is logged all the same: backward() never goes through it, and
    the log keeps the tensor with its graph. Fixed: the log takes .item()."""
    model = TasteModel().to(run.device)
    objective = Objective(torch.rand(16_000, device=run.device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    log = {"loss": [], "penalty": []}
    for _ in run.steps(12):
        customers = torch.randint(20_000, (1024,), device=run.device)
        bought = torch.randint(16_000, (1024,), device=run.device)
        loss, metrics = objective(model, customers, bought)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, value in metrics.items():
            log[name].append(value.item() if run.fixed else value)  # cause


class PageRequest:
    """One page for a group of visitors, made in stages that are registered in the order of the configuration."""

    def __init__(self, articles, visitors):
        self.articles = articles
        self.visitors = visitors
        self.stages = [self.retrieve, self.score, self.diversify]  # cause in page_requests

    def retrieve(self):
        found = torch.randint(len(self.articles), (len(self.visitors), 400), device=self.articles.device)
        self.candidates = self.articles[found]  # guilty in page_requests

    def score(self):
        self.scores = torch.bmm(self.candidates, self.visitors[:, :, None]).squeeze(2)

    def diversify(self):
        self.similarity = torch.bmm(self.candidates, self.candidates.transpose(1, 2))  # guilty in page_requests
        self.scores -= 0.1 * self.similarity.amax(2)

    def answer(self):
        for stage in self.stages:
            stage()
        return self.scores.topk(20).indices.tolist()


@job("reference_cycle")
def page_requests(run):
    """A server whose requests hold their own bound methods in a list, so that each is a cycle; the collector is off
    for even response times. Fixed: a request clears its list when it has been answered."""
    gc.disable()
    articles = torch.randn(50_000, 128, device=run.device)
    with torch.inference_mode():
        for _ in run.steps(15):
            request = PageRequest(articles, torch.randn(48, 128, device=run.device))
            page = request.answer()
            if run.fixed:
                request.stages.clear()
            del request
    assert len(page) == 48


@job("true_capacity")
def whole_assortment(run):
    """An embedding of every article with Adam: weights, gradients and two moments are four times the table, more than
    this GPU has. Fixed: vectors of half the width."""
    run.cap(1152)
    width = 64 if run.fixed else 128
    table = nn.Embedding(600_000, width).to(run.device)  # guilty
    head = nn.Linear(width, 1).to(run.device)
    optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()], lr=1e-3)
    for _ in run.steps(8):
        basket = torch.randint(600_000, (512, 20), device=run.device)
        loss = F.softplus(-head(table(basket).mean(1))).mean()
        optimizer.zero_grad()
        loss.backward()  # guilty
        optimizer.step()  # guilty


class ShelfCache:
    """Features of the shelves (groups of articles) that were looked at last, at most so many."""

    def __init__(self, encoder, bound):
        self.encoder = encoder
        self.bound = bound
        self.shelves = OrderedDict()

    def __getitem__(self, number):
        if number not in self.shelves:
            pictures = torch.randn(2048, 512, device=self.encoder[0].weight.device)
            self.shelves[number] = self.encoder(pictures)
        self.shelves.move_to_end(number)
        if len(self.shelves) > self.bound:
            self.shelves.popitem(last=False)
        return self.shelves[number]


@job("healthy")
def popular_shelves(run):
    """Features of shelves are cached when they are first asked for: the cache grows for most of the run, up to twelve
    shelves."""
    encoder = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 1024)).to(run.device).eval()
    cache = ShelfCache(encoder, 12)
    with torch.no_grad():
        for step in run.steps(22):
            visitors = torch.randn(256, 1024, device=run.device)
            for shelf in (step, step * step % 7):
                best = (visitors @ cache[shelf].T).topk(10).indices.cpu()
    assert best.shape == (256, 10)


def hit_rate(model, customers, bought):
    """How often what was bought is among the first hundred of all articles, in parts, with the ranks on the CPU."""
    ranks = []
    for some, article in zip(customers.split(256), bought.split(256)):
        scores = model(some) @ model.articles.weight.T
        own = scores.gather(1, article[:, None])
        ranks.append((scores > own).sum(1).cpu())
    return (torch.cat(ranks) < 100).float().mean().item()


@job("healthy")
def offline_metrics(run):
    """Training with an offline evaluation on all articles after every fifth iteration, without gradients
    and in parts; its results are numbers."""
    model = TasteModel().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rates = []
    for step in run.steps(16):
        customers = torch.randint(20_000, (2048,), device=run.device)
        bought = torch.randint(16_000, (2048,), device=run.device)
        labels = torch.arange(2048, device=run.device)
        loss = F.cross_entropy(model(customers) @ model.articles(bought).T, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            model.eval()
            with torch.no_grad():
                rates.append(hit_rate(model, customers, bought))
            model.train()
    assert rates
