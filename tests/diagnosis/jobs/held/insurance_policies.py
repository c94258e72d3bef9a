"""Tables of insurance policies: transformers of columns, scaling and clusters on the GPU."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job

COLUMNS = 48


class ColumnTransformer(nn.Module):
    def __init__(self, width=192, layers=3):
        super().__init__()
        self.columns = nn.Parameter(torch.randn(COLUMNS, width) / 10)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.mix = nn.TransformerEncoder(layer, layers)
        self.risk = nn.Linear(width, 2)

    def forward(self, table):
        return self.risk(self.mix(table[:, :, None] * self.columns).mean(1))


class NoiseScale:
    """Estimates how noisy gradients are, from their sums and the sums of their squares, or from all of them."""

    def __init__(self, parameters, running):
        self.parameters = list(parameters)
        self.running = running
        self.samples = []
        self.sum, self.squares, self.count = 0.0, 0.0, 0

    def add(self):
        norms = [p.grad.square().sum() for p in self.parameters]
        if self.running:
            self.sum, self.squares = self.sum + sum(norms), self.squares + sum(norms) ** 2
        else:
            self.samples.append([p.grad for p in self.parameters])  # cause in noise_of_policies
        self.count += 1


@job("gradient_accumulation")
def noise_of_policies(run):
    """The noise of the gradients is estimated over the training from all of them; zero_grad() gives each step new
    ones. Fixed: running sums of norms."""
    model = ColumnTransformer(width=256).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    noise = NoiseScale(model.parameters(), running=run.fixed)
    for _ in run.steps(14):
        loss = F.cross_entropy(model(torch.randn(64, COLUMNS, device=run.device)),
                               torch.randint(2, (64,), device=run.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # guilty
        noise.add()
        optimizer.step()
    assert noise.count == 14


def clusters_of(policies, count, rounds):
    centres = policies[:count].clone()
    for _ in range(rounds):
        distances = torch.cdist(policies, centres)  # guilty in clusters_before_training
        nearest = F.one_hot(distances.argmin(1), count).float()  # guilty in clusters_before_training
        centres = nearest.T @ policies / nearest.sum(0).clamp(min=1)[:, None]
    return centres


@job("cached_not_released")
def clusters_before_training(run):
    """Policies are clustered on the GPU to begin with. Their distances to all centres need far more than the training
    that follows, and stay cached. Fixed: empty_cache() after it."""
    centres = clusters_of(torch.randn(60_000, COLUMNS, device=run.device), 512, 3)
    if run.fixed:
        torch.cuda.empty_cache()
    model = ColumnTransformer(width=64, layers=1).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in run.steps(16):
        table = torch.randn(32, COLUMNS, device=run.device)
        shifted = table - centres[torch.cdist(table, centres).argmin(1)]
        loss = F.cross_entropy(model(shifted), torch.randint(2, (32,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Quote:
    """The premium of a portfolio, and the steps that lead to it."""

    def __init__(self, table, bound):
        self.table = table
        self.steps = {}
        if bound:
            self.steps = {"scale": self.scale, "sum": self.total}  # cause in quotes_with_their_steps

    def scale(self):
        self.table = (self.table - self.table.mean(0)) / self.table.std(0)  # guilty in quotes_with_their_steps
        return self.table

    def total(self):
        return self.table.sum().item()


@job("reference_cycle")
def quotes_with_their_steps(run):
    """A quote keeps a table of its own bound methods, which is a cycle with the portfolio in it. Fixed: the methods are
    called by name."""
    totals = []
    for _ in run.steps(16):
        quote = Quote(torch.rand(80_000, COLUMNS, device=run.device), bound=not run.fixed)
        for name, method in (("scale", Quote.scale), ("sum", Quote.total)):
            result = method(quote) if run.fixed else quote.steps[name]()
        totals.append(result)
        del quote
    assert len(totals) == 16


@job("healthy")
def policies_in_folds(run):
    """Cross-validation: each fold has a model and an optimizer of its own, which replace those of the fold before.
    The best model so far is kept, too."""
    best, least, model, optimizer = None, float("inf"), None, None
    for step in run.steps(16):
        if step % 4 == 0:
            model = ColumnTransformer().to(run.device)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        loss = F.cross_entropy(model(torch.randn(128, COLUMNS, device=run.device)),
                               torch.randint(2, (128,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3 and loss.item() < least:
            least = loss.item()
            best = {name: value.clone() for name, value in model.state_dict().items()}
    assert best
