"""Forecasts of wind farms with PyTorch Lightning."""
import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from job import job

HOURS = 96


class Forecaster(pl.LightningModule):
    def __init__(self, keep_forecasts=None):
        super().__init__()
        self.recurrent = nn.GRU(24, 512, num_layers=2, batch_first=True)
        self.head = nn.Linear(512, 512)
        self.keep_forecasts = keep_forecasts
        self.forecasts = []

    def forward(self, weather):
        return self.head(self.recurrent(weather)[0])  # guilty in forecasts_until_the_epoch_ends

    def training_step(self, batch, index):
        weather, power = batch
        forecast = self(weather)
        loss = F.l1_loss(forecast.mean(-1), power)
        if self.keep_forecasts == "tensors":
            self.forecasts.append(forecast)  # cause in forecasts_until_the_epoch_ends
        elif self.keep_forecasts == "numbers":
            self.forecasts.append(forecast.mean().item())
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", F.l1_loss(self(batch[0]).mean(-1), batch[1]))

    def on_train_epoch_end(self):
        self.forecasts.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-4)


class Steps(pl.Callback):
    """An iteration for each batch of the trainer."""

    def __init__(self, run, count):
        self.steps = run.steps(count)

    def on_train_batch_start(self, trainer, module, batch, index):
        next(self.steps, None)

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if trainer.global_step >= trainer.max_steps:
            next(self.steps, None)


def hours(count, batch=48):
    data = TensorDataset(torch.randn(count, HOURS, 24), torch.rand(count, HOURS))
    return DataLoader(data, batch_size=batch, drop_last=True)


def trainer_for(run, count, *callbacks, **more):
    return pl.Trainer(max_steps=count, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                      default_root_dir="/tmp", callbacks=[*callbacks, Steps(run, count)], **more)


@job("retained_graph")
def forecasts_until_the_epoch_ends(run):
    """The training step appends the forecasts of each batch to a list of the module, to be looked at when the epoch
    ends, which has many batches. Fixed: the mean of each as a number."""
    module = Forecaster(keep_forecasts="numbers" if run.fixed else "tensors")
    trainer = trainer_for(run, 13, limit_val_batches=0)
    trainer.fit(module, hours(48 * 40))


class GradientBook(pl.Callback):
    """Writes down the gradients after each backward()."""

    def __init__(self, norms):
        self.norms = norms
        self.pages = []

    def on_after_backward(self, trainer, module):
        page = {}
        for name, weight in module.named_parameters():
            if self.norms:
                page[name] = weight.grad.norm().item()
            else:
                page[name] = weight.grad.detach().clone()  # guilty in gradient_book
        self.pages.append(page)  # cause in gradient_book


@job("gradient_accumulation")
def gradient_book(run):
    """A callback of Lightning clones the gradients of all weights after each backward() for a film of the training.
    Fixed: their norms."""
    module = Forecaster()
    trainer = trainer_for(run, 12, GradientBook(norms=run.fixed), limit_val_batches=0)
    trainer.fit(module, hours(48 * 14))


@job("healthy")
def several_batches_a_step(run):
    """Lightning validates every fourth batch, clips gradients and keeps the average of the weights in a callback."""

    class Average(pl.Callback):
        weights = None

        @torch.no_grad()
        def on_train_batch_end(self, trainer, module, outputs, batch, index):
            if index == 5:
                self.weights = {name: weight.detach().clone() for name, weight in module.named_parameters()}
            elif self.weights:
                for name, weight in module.named_parameters():
                    self.weights[name].lerp_(weight, 0.01)

    module = Forecaster()
    trainer = trainer_for(run, 14, Average(), gradient_clip_val=1.0, val_check_interval=4, limit_val_batches=2)
    trainer.fit(module, hours(48 * 16), hours(96))
