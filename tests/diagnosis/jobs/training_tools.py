"""Training frameworks of one's own: trainers, callbacks, hooks, loggers, optimisers written by hand."""
import gc
import io
from collections import defaultdict
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def mlp(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.GELU()]
    return nn.Sequential(*layers[:-1])


class PrivateSGD:
    """Differentially private SGD: clips the gradient of each sample and adds noise."""

    def __init__(self, parameters, lr, clip, keep_samples):
        self.parameters = list(parameters)
        self.lr = lr
        self.clip = clip
        self.keep_samples = keep_samples

    def add_sample(self, loss):
        grads = torch.autograd.grad(loss, self.parameters)  # guilty in private_training
        for weight, grad in zip(self.parameters, grads):
            if getattr(weight, "grad_samples", None) is None:
                weight.grad_samples = []
            weight.grad_samples.append(grad)  # cause in private_training

    @torch.no_grad()
    def step(self, count):
        for weight in self.parameters:
            recent = torch.stack(weight.grad_samples[-count:])
            norms = recent.flatten(1).norm(dim=1).clamp(min=self.clip)
            weight.sub_(torch.einsum("s,s...->...", self.clip / norms, recent), alpha=self.lr / count)

    def zero_grad(self):
        for weight in self.parameters:
            weight.grad = None
            if not self.keep_samples:
                weight.grad_samples = None


@job("gradient_accumulation")
def private_training(run):
    """DP-SGD that gathers per-sample gradients in an attribute of each weight; zero_grad() clears .grad only. Fixed: it
    clears both."""
    model = mlp(256, 1024, 512, 10).to(run.device)
    optimizer = PrivateSGD(model.parameters(), lr=0.1, clip=1.0, keep_samples=not run.fixed)
    for _ in run.steps(9):
        optimizer.zero_grad()
        features = torch.randn(4, 256, device=run.device)
        labels = torch.randint(10, (4,), device=run.device)
        for one, label in zip(features, labels):
            optimizer.add_sample(F.cross_entropy(model(one[None]), label[None]))
        optimizer.step(len(features))


@dataclass
class Scalars:
    """What a training run logs."""
    values: dict = field(default_factory=lambda: defaultdict(list))

    def log(self, **values):
        for name, value in values.items():
            self.values[name].append(value)


def penalty_of(loss, parameters):
    slopes = torch.autograd.grad(loss, parameters, create_graph=True)  # guilty in gradient_norm_log
    return torch.stack([slope.square().sum() for slope in slopes]).sum()  # guilty in gradient_norm_log


@job("retained_graph")
def gradient_norm_log(run):
    """A gradient penalty that is switched on after a warm-up; until then it is logged only, as a tensor, with the
    graph of the second derivatives. Fixed: .item() in the log."""
    model = mlp(128, 512, 512, 10).to(run.device)
    parameters = list(model.parameters())
    optimizer = torch.optim.RMSprop(parameters, lr=1e-4)
    scalars = Scalars()
    for step in run.steps(12):
        labels = torch.randint(10, (2048,), device=run.device)
        loss = F.cross_entropy(model(torch.randn(2048, 128, device=run.device)), labels)  # guilty
        penalty = penalty_of(loss, parameters)
        total = loss + 0.1 * penalty if step >= 500 else loss
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        scalars.log(loss=loss.item(), penalty=penalty.item() if run.fixed else penalty)  # cause


class Module(nn.Module):
    """The base of models for Fit: steps and their ends."""

    def __init__(self):
        super().__init__()
        self.body = mlp(512, 1024, 1024, 20)
        self.validation_step_outputs = []

    def training_step(self, batch):
        return F.cross_entropy(self.body(batch[0]), batch[1])

    def validation_step(self, batch):
        loss = F.cross_entropy(self.body(batch[0]), batch[1])  # guilty in validation_outputs
        self.validation_step_outputs.append({"val_loss": loss})  # cause in validation_outputs

    def on_validation_epoch_end(self):
        return sum(out["val_loss"].item() for out in self.validation_step_outputs) / len(self.validation_step_outputs)


class Fit:
    def __init__(self, module, optimizer, without_grad):
        self.module, self.optimizer, self.without_grad = module, optimizer, without_grad

    def train_epoch(self, batches):
        self.module.train()
        for batch in batches:
            self.optimizer.zero_grad()
            self.module.training_step(batch).backward()
            self.optimizer.step()

    def validate(self, batches):
        self.module.eval()
        with torch.set_grad_enabled(not self.without_grad):
            for batch in batches:
                self.module.validation_step(batch)
        return self.module.on_validation_epoch_end()


@job("eval_graph")
def validation_outputs(run):
    """A small framework after the model of a large one: validation steps collect their losses on the module, which
    are averaged at the end of the epoch, and never cleared; gradients are enabled. Fixed: no_grad() in validate()."""
    module = Module().to(run.device)
    fit = Fit(module, torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9), without_grad=run.fixed)
    data = [(torch.randn(1024, 512, device=run.device), torch.randint(20, (1024,), device=run.device))
            for _ in range(3)]
    curve = []
    for _ in run.steps(10):
        fit.train_epoch(data[:2])
        curve.append(fit.validate(data[1:]))


class EarlyStopping:
    """Callback: stops a trainer whose loss no longer falls."""

    def __init__(self, patience=3):
        self.patience, self.best, self.bad = patience, float("inf"), 0
        self.trainer = None

    def epoch_ended(self, loss):
        self.best, self.bad = (loss, 0) if loss < self.best else (self.best, self.bad + 1)
        return self.bad < self.patience


class FoldTrainer:
    def __init__(self, device, callbacks, bind):
        self.model = mlp(512, 1536, 1536, 8).to(device)  # guilty in cross_validation
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.callbacks = callbacks
        if bind:
            for callback in callbacks:
                callback.trainer = self  # cause in cross_validation

    def run(self, batches):
        for batch in batches:
            loss = self.model(batch).square().mean()
            self.optimizer.zero_grad()
            loss.backward()  # guilty in cross_validation
            self.optimizer.step()  # guilty in cross_validation
            if not all(callback.epoch_ended(loss.item()) for callback in self.callbacks):
                break
        return loss.item()


@job("reference_cycle")
def cross_validation(run):
    """One trainer for each fold; its callbacks know the trainer, which knows them. The collector is off for the sake
    of even step times. Fixed: callbacks get what they need as arguments."""
    gc.disable()
    scores = []
    for _ in run.steps(9):
        batches = [torch.randn(256, 512, device=run.device) for _ in range(2)]
        trainer = FoldTrainer(run.device, [EarlyStopping()], bind=not run.fixed)
        scores.append(trainer.run(batches))
        del trainer


class ActivationStatistics:
    """Forward hooks that gather activations for histograms, written every `every` steps."""

    def __init__(self, model, every, reduce):
        self.every, self.reduce, self.steps = every, reduce, 0
        self.gathered = defaultdict(list)
        for name, module in model.named_modules():
            if isinstance(module, nn.GELU):
                module.register_forward_hook(self.hook(name))

    def hook(self, name):
        def gather(_module, _inputs, output):
            output = output.detach()
            kept = (output.mean().item(), output.std().item()) if self.reduce else output
            self.gathered[name].append(kept)  # cause in activation_histograms
        return gather

    def step(self):
        self.steps += 1
        if self.steps % self.every == 0:
            self.gathered.clear()


@job("checkpoint_cache", contested="nothing is recomputed: they may as well be called outputs that are kept")
def activation_histograms(run):
    """Hooks keep each layer's activations for histograms that are written every thousand steps. Fixed: mean and
    deviation of each, as numbers."""
    model = mlp(256, 1024, 1024, 1024, 64).to(run.device)
    statistics = ActivationStatistics(model, every=1000, reduce=run.fixed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for _ in run.steps(12):
        loss = model(torch.randn(1024, 256, device=run.device)).square().mean()  # guilty
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        statistics.step()


@job("cached_not_released")
def resume_from_checkpoint(run):
    """A checkpoint of backbone and moments is loaded onto the GPU to take the weights from it; then only a head is
    trained. What the checkpoint took stays reserved. Fixed: map_location="cpu"."""
    backbone = mlp(1024, 4096, 4096, 1024).requires_grad_(False)
    state = backbone.state_dict()
    file = io.BytesIO()
    torch.save({"model": state, "exp_avg": {k: torch.zeros_like(v) for k, v in state.items()},
                "exp_avg_sq": {k: torch.zeros_like(v) for k, v in state.items()}}, file)
    file.seek(0)
    backbone.to(run.device)
    checkpoint = torch.load(file, map_location="cpu" if run.fixed else run.device)  # guilty
    backbone.load_state_dict(checkpoint["model"])
    del checkpoint, state
    head = nn.Linear(1024, 10).to(run.device)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    for _ in run.steps(14):
        with torch.no_grad():
            features = backbone(torch.randn(256, 1024, device=run.device))
        loss = F.cross_entropy(head(features), torch.randint(10, (256,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Preconditioner:
    """Inverse roots of gradient covariances, computed on a stream of its own while training goes on."""

    def __init__(self, width, device, skip_if_busy):
        self.stream = torch.cuda.Stream()
        self.root = torch.eye(width, device=device)
        self.work = torch.zeros(2, width, width, device=device)
        self.skip_if_busy = skip_if_busy
        self.last = None

    def refresh(self, grad):
        if self.skip_if_busy and self.last is not None and not self.last.query():
            return
        snapshot = grad.clone()  # guilty in background_preconditioner
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.mm(snapshot.T, snapshot, out=self.work[0])
            for index in range(60):
                torch.mm(self.work[index % 2], self.root, out=self.work[1 - index % 2])
        snapshot.record_stream(self.stream)  # cause in background_preconditioner
        self.last = self.stream.record_event()


@job("cross_stream_pending")
def background_preconditioner(run):
    """A hand-written second-order optimiser refreshes its preconditioner on a second stream in each step, from a copy
    of the gradient; the refreshes are slower than the steps. Fixed: no refresh while one is under way."""
    width = 2048
    weight = (0.02 * torch.randn(width, width, device=run.device)).requires_grad_()
    preconditioner = Preconditioner(width, run.device, skip_if_busy=run.fixed)
    for _ in run.steps(14):
        loss = torch.tanh(torch.randn(128, width, device=run.device) @ weight).square().mean()
        (grad,) = torch.autograd.grad(loss, weight)
        preconditioner.refresh(grad)
        with torch.no_grad():
            weight.sub_(grad, alpha=0.01)
        del grad, loss


class LookaheadLion(torch.optim.Optimizer):
    """Lion with slow weights; both states are made when a parameter is first stepped."""

    def __init__(self, parameters, lr=1e-4, beta=0.9, every=5):
        super().__init__(parameters, {"lr": lr, "beta": beta})
        self.every, self.count = every, 0

    @torch.no_grad()
    def step(self):
        self.count += 1
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(weight)
                update = state["momentum"].mul_(group["beta"]).add_(weight.grad, alpha=1 - group["beta"]).sign()
                weight.sub_(update, alpha=group["lr"])
                if self.count % self.every == 0:
                    slow = state.setdefault("slow", weight.clone())
                    weight.copy_(slow.lerp_(weight, 0.5))


@job("healthy")
def lookahead_lion(run):
    """An optimiser written by hand: its momentum appears in the first step, its slow weights in the fifth."""
    model = mlp(1024, 2048, 2048, 100).to(run.device)
    optimizer = LookaheadLion(model.parameters())
    for _ in run.steps(14):
        labels = torch.randint(100, (512,), device=run.device)
        loss = F.cross_entropy(model(torch.randn(512, 1024, device=run.device)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def sanity_check_hooks(run):
    """Hooks that keep all activations for a look at the first two batches, and are then removed with what they
    kept."""
    model = mlp(256, 1024, 1024, 64).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    seen = []
    handles = [layer.register_forward_hook(lambda _m, _i, output: seen.append(output.detach())) for layer in model]
    for step in run.steps(12):
        loss = model(torch.randn(1024, 256, device=run.device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1:
            assert all(activation.isfinite().all() for activation in seen)
            for handle in handles:
                handle.remove()
            seen.clear()
