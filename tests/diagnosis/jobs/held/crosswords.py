"""Crosswords are solved by language models: one of the transformers library, and one whose blocks are recomputed."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import GPT2Config, GPT2LMHeadModel

from job import job

LETTERS = 2000


def solver(layers=2, width=256):
    config = GPT2Config(vocab_size=LETTERS, n_positions=256, n_embd=width, n_layer=layers, n_head=4)
    return GPT2LMHeadModel(config)


def clues(count, device, length=96):
    return torch.randint(LETTERS, (count, length), device=device)


class RunningMean:
    """The weighted mean of any figure."""

    def __init__(self):
        self.total, self.weight = 0.0, 0

    def update(self, value, weight):
        self.total = self.total + weight * value  # cause in sure_of_itself
        self.weight += weight

    def mean(self):
        return float(self.total) / self.weight


def entropy(logits):
    """How unsure a model is, on average."""
    chances = logits.softmax(-1)  # guilty in sure_of_itself
    return -(chances * (chances + 1e-9).log()).sum(-1).mean()  # guilty in sure_of_itself


@job("retained_graph")
def sure_of_itself(run):
    """A running mean has how unsure the model is of the letters, for the progress bar. It adds up tensors, and the
    entropy is no part of the loss: what it was computed from is never given back. Fixed: item()."""
    model = solver().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    unsure = RunningMean()
    for _ in run.steps(12):
        letters = clues(8, run.device)
        result = model(input_ids=letters, labels=letters, use_cache=False)
        figure = entropy(result.logits)
        unsure.update(figure.item() if run.fixed else figure, len(letters))
        optimizer.zero_grad()
        result.loss.backward()
        optimizer.step()
        del result, figure
    assert unsure.mean() > 0


class GridBlock(nn.Module):
    """Attention over a grid, written out; `maps` gets what the attention was."""

    def __init__(self, width, heads=4, maps=None):
        super().__init__()
        self.heads, self.maps = heads, maps
        self.norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, grid):
        parts = self.queries_keys_values(self.norm(grid)).chunk(3, -1)
        queries, keys, values = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        attention = (queries @ keys.transpose(2, 3) / queries.shape[-1] ** 0.5).softmax(3)  # guilty in maps_of_the_grid
        if self.maps is not None and torch.is_grad_enabled():
            self.maps.append(attention.detach())  # cause in maps_of_the_grid
        return grid + self.out((attention @ values).transpose(1, 2).flatten(2))


class GridModel(nn.Module):
    def __init__(self, width=192, blocks=3, maps=None):
        super().__init__()
        self.letters = nn.Embedding(30, width)
        self.blocks = nn.ModuleList(GridBlock(width, maps=maps) for _ in range(blocks))
        self.head = nn.Linear(width, 30)

    def forward(self, grid):
        hidden = self.letters(grid)
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant=True)
        return self.head(hidden)


@job("checkpoint_cache")
def maps_of_the_grid(run):
    """Blocks are checkpointed. Maps of the attention are to be drawn in the evaluation, but are collected where
    gradients are on, which is when a block is recomputed in backward(). Fixed: they are dropped after the step."""
    maps = []
    model = GridModel(maps=maps).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(12):
        grid = torch.randint(30, (10, 225), device=run.device)
        loss = F.cross_entropy(model(grid).flatten(0, 1), grid.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if run.fixed:
            maps.clear()


@job("healthy")
def four_puzzles_a_step(run):
    """Gradients of four batches are summed before a step is made; only the head and the norms of the model learn. Their
    gradients are there from the first batch on, and set to zero, not to None."""
    model = solver(layers=3)
    for name, weight in model.named_parameters():
        weight.requires_grad_("ln_" in name or "wte" in name)
    model = model.to(run.device)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=1e-4)
    for step in run.steps(16):
        letters = clues(6, run.device, 64 + 16 * (step % 3))
        (model(input_ids=letters, labels=letters, use_cache=False).loss / 4).backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
