"""What record_truth.py records as `operations`: operations one at a time, the twins of patterns/operations.lua.

A case is a label, the inputs and the call. Inputs are shapes of tensors that require a gradient, and functions
that make a module.
"""
import torch
from torch import nn
from torch.nn import functional as F


def amp(call, dtype=torch.bfloat16):
    """The call under autocast, its first input converted by hand."""

    def run(a, *others):
        with torch.autocast("cuda", dtype=dtype):
            return call(a.to(dtype), *others)

    return run


def amp_module(call=lambda m, a: m(a)):
    def run(m, a):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return call(m, a)

    return run


def narrow(m, a):
    return m(a.bfloat16())


FLAT, IMAGE = (640, 300), (16, 64, 32, 32)

OPERATIONS = [
    ("amp square", [FLAT], amp(torch.square)),
    ("amp exp", [FLAT], amp(torch.exp)),
    ("amp log", [FLAT], amp(torch.log)),
    ("amp pow", [FLAT], amp(lambda x: x ** 3)),
    ("amp number div", [FLAT], amp(lambda x: 3 / x)),
    ("amp sqrt", [FLAT], amp(torch.sqrt)),
    ("amp sum", [FLAT], amp(lambda x: x.sum())),
    ("amp sum dim", [FLAT], amp(lambda x: x.sum(1))),
    ("amp mean", [FLAT], amp(lambda x: x.mean())),
    ("amp softmax", [FLAT], amp(lambda x: x.softmax(-1))),
    ("amp softmax half", [FLAT], amp(lambda x: x.softmax(-1), torch.float16)),
    ("amp log_softmax", [FLAT], amp(lambda x: x.log_softmax(-1))),
    ("amp log_softmax half", [FLAT], amp(lambda x: x.log_softmax(-1), torch.float16)),
    ("amp square mean", [FLAT], amp(lambda x: x.square().mean())),
    ("amp mse", [FLAT, FLAT], amp(F.mse_loss)),
    ("amp bce", [FLAT, FLAT], amp(lambda x, b: F.binary_cross_entropy_with_logits(x, b.detach()))),
    ("amp kl", [FLAT, FLAT], amp(lambda x, b: F.kl_div(x, b.detach(), reduction="batchmean"))),
    ("amp ce classes", [FLAT], amp(lambda x: F.cross_entropy(x, torch.randint(0, 300, (640,), device="cuda")))),
    ("amp ce probabilities", [FLAT, FLAT], amp(lambda x, b: F.cross_entropy(x, b.detach()))),
    ("amp linear", [lambda: nn.Linear(300, 500), FLAT], amp_module()),
    ("amp conv1d", [lambda: nn.Conv1d(64, 128, 5), (32, 64, 200)], amp_module()),
    ("amp layer norm", [lambda: nn.LayerNorm(300), FLAT], amp_module(narrow)),
    ("amp group norm", [lambda: nn.GroupNorm(8, 64), IMAGE], amp_module(narrow)),
    ("amp rms norm", [lambda: nn.RMSNorm(300), FLAT], amp_module(narrow)),
    ("amp upsample", [lambda: nn.Upsample(scale_factor=2), IMAGE], amp_module(narrow)),
    ("amp gru cell", [lambda: nn.GRUCell(300, 300), FLAT], amp_module(lambda m, a: m(a, a))),
    ("amp lstm", [lambda: nn.LSTM(256, 256), (20, 32, 256)], amp_module(lambda m, a: m(a)[0])),
]
