"""Inference servers."""
from collections import OrderedDict

import torch
from torch import nn

from job import job


def network(run, width=1024, layers=4):
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*parts).to(run.device).eval()


@job("eval_graph")
def reply_cache(run):
    """A server that caches its last 100 replies, as tensors with their graphs: it runs with gradients enabled.
    Fixed: inference_mode()."""
    model = network(run)
    cache = OrderedDict()
    with torch.inference_mode(run.fixed):
        for step in run.steps(14):
            reply = model(torch.randn(1024, 1024, device=run.device))  # guilty
            cache[step] = reply[:, :8].clone()  # cause
            while len(cache) > 100:
                cache.popitem(last=False)


def examine(model, batch, keep):
    hidden = model(batch)  # guilty in failed_requests
    reason = ""
    try:
        if hidden.isfinite().all():
            raise ValueError("no such answer")
    except ValueError as problem:
        reason = problem if keep else str(problem)  # cause in failed_requests
    return f"{reason}"


@job("reference_cycle")
def failed_requests(run):
    """Requests that fail: a local variable holds the exception, its traceback the frame, the frame the variable and
    the batch. Fixed: only the text is kept."""
    model = network(run)
    with torch.no_grad():
        for _ in run.steps(12):
            batch = torch.randn(4096, 1024, device=run.device)  # guilty
            assert examine(model, batch, keep=not run.fixed)
            del batch


@job("healthy")
def padded_requests(run):
    """Requests of all sizes, padded to powers of two, answered under inference_mode()."""
    model = network(run)
    with torch.inference_mode():
        for step in run.steps(20):
            rows = 1 << (100 + 611 * step % 4000).bit_length()
            answer = model(torch.randn(rows, 1024, device=run.device)).argmax(1).tolist()
    assert len(answer) == rows


@job("healthy")
def recent_replies(run):
    """A server with a cache of its last six replies, without graphs: it grows for six requests."""
    model = network(run)
    cache = OrderedDict()
    with torch.inference_mode():
        for step in run.steps(16):
            cache[step] = model(torch.randn(2048, 1024, device=run.device))
            while len(cache) > 6:
                cache.popitem(last=False)
