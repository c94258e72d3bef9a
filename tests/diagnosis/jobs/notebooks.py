"""Notebooks that became scripts, and searches for hyper-parameters."""
import gc

import torch
from torch import nn
from torch.nn import functional as F

from job import job

# %% search space
WIDTHS = [1024, 1280, 1536, 1152, 1408, 1024, 1280, 1536, 1152, 1408]
RATES = [1e-2, 3e-3, 1e-3, 3e-4]


# %% model
def make_model(width, device):
    model = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))
    return model.to(device)  # guilty in watched_trials


def watch(model, statistics):
    """Records how many units of each layer are dead; the fraction is relative to the size of the whole model."""
    handles = []
    for layer in model:
        if isinstance(layer, nn.ReLU):
            def hook(module, inputs, output):
                total = sum(weight.numel() for weight in model.parameters())
                statistics.append((output == 0).float().mean().item() * output[0].numel() / total)

            handles.append(layer.register_forward_hook(hook))  # cause in watched_trials
    return handles


def fit(model, rate, device, batches=3):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(batches):
        inputs = torch.randn(512, 256, device=device)
        loss = F.cross_entropy(model(inputs), (inputs.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()  # guilty in watched_trials
        optimizer.step()
    return loss.item()


# %% search
@job("reference_cycle", fixed_contested="the first trial still waits for the collector")
def watched_trials(run):
    """A search over widths. The hooks on each trial's model are closures that see the model: it hangs on itself, and
    finished trials stay until the collector runs, which freeze() and a high threshold put off. Fixed: the hooks are
    removed at the end of the trial."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    results = []
    for trial in run.steps(10):
        statistics = []
        model = make_model(WIDTHS[trial], run.device)
        handles = watch(model, statistics)
        score = fit(model, RATES[trial % 4], run.device)
        results.append((score, WIDTHS[trial], RATES[trial % 4], sum(statistics)))
        if run.fixed:
            for handle in handles:
                handle.remove()
        del model, handles
    print(min(results))


# %% the same search, with larger models each time
@job("healthy", contested="the large trials' memory stays reserved while small ones end the search")
def widening_trials(run):
    """A search over growing widths: each trial has more weights and more state than the one before and leaves only
    numbers; after the largest ones it goes on with small ones."""
    results = {}
    for trial in run.steps(14):
        width = 512 + 256 * min(trial, 8) if trial < 11 else 1024
        for rate in RATES[:2]:
            model = make_model(width, run.device)
            results[width, rate] = fit(model, rate, run.device, batches=3)
            del model
    print(min(results, key=results.get))
