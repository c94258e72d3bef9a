"""Scripts of image competitions: folds, out-of-fold predictions, test-time augmentation."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from job import job


@dataclass
class Config:
    size: int = 128
    batch: int = 8
    classes: int = 6
    width: int = 48
    learning_rate: float = 1e-3


class Classifier(nn.Module):
    """A small separable network, as a quick baseline."""

    def __init__(self, config):
        super().__init__()
        width = config.width
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.pointwise = nn.Conv2d(width, 2 * width, 1)
        self.head = nn.Linear(2 * width, config.classes)

    def forward(self, pictures):
        hidden = F.gelu(self.stem(pictures))  # guilty in oof_predictions
        hidden = F.gelu(self.pointwise(self.depthwise(hidden)))  # guilty in oof_predictions
        return self.head(hidden.mean((2, 3)))


def load_pictures(config, device):
    return torch.rand(config.batch, 3, config.size, config.size, device=device)  # guilty in oof_predictions


def views(pictures):
    """What test-time augmentation averages over: the picture and its mirror image."""
    yield pictures
    yield pictures.flip(3)  # guilty in oof_predictions


class FoldPredictor:
    """Fills the rows of one fold in the table of out-of-fold predictions."""

    def __init__(self, model, table):
        self.model = model.eval()
        self.table = table

    def predict(self, rows, pictures):
        total = 0
        for view in views(pictures):
            total = total + self.model(view).softmax(1)
        self.table[rows] = total / 2  # cause in oof_predictions


@job("eval_graph")
def oof_predictions(run):
    """Out-of-fold predictions are written into the rows of a table that was allocated before. The model is in eval
    mode, but gradients are enabled: each assignment makes the batch's graph part of the table's. Fixed: the method
    runs under no_grad()."""
    config = Config()
    table = torch.zeros(12 * config.batch, config.classes, device=run.device)
    predictor = FoldPredictor(Classifier(config).to(run.device), table)
    predict = torch.no_grad()(predictor.predict) if run.fixed else predictor.predict
    for step in run.steps(12):
        rows = slice(step * config.batch, (step + 1) * config.batch)
        predict(rows, load_pictures(config, run.device))


class Fold:
    """Training and validation on one fold."""

    def __init__(self, config, device):
        self.config = config
        self.device = device
        self.model = Classifier(config).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.learning_rate)

    def batch(self):
        return load_pictures(self.config, self.device)

    def train_epoch(self, batches):
        self.model.train()
        losses = []
        for _ in range(batches):
            targets = torch.randint(self.config.classes, (self.config.batch,), device=self.device)
            loss = F.cross_entropy(self.model(self.batch()), targets, label_smoothing=0.1)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).mean().item()

    @torch.no_grad()
    def validate(self, batches):
        self.model.eval()
        return torch.cat([self.model(self.batch()).softmax(1) for _ in range(batches)])


@job("healthy")
def best_fold_epoch(run):
    """Each iteration is an epoch with its validation; predictions of the best epoch so far are kept, on the GPU, and
    all losses as numbers."""
    fold = Fold(Config(size=96), run.device)
    history, best, kept = [], float("inf"), None
    for _ in run.steps(8):
        history.append(fold.train_epoch(3))
        predictions = fold.validate(2)
        if history[-1] < best:
            best, kept = history[-1], predictions
    assert kept is not None and history
