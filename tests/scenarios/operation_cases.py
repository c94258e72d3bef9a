"""What record_truth.py records as `operations`: operations one at a time, the twins of patterns/operations.lua.

A case is a label, the inputs and the call. Inputs are shapes of tensors that require a gradient, and functions
that make a module or a tensor.
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


def indices(*sizes):
    """Zeros: which rows they choose does not matter to the memory."""
    return lambda: torch.zeros(*sizes, dtype=torch.int64)


def last(new):
    """A module with its weights on the device, the channels last."""
    return lambda: new().cuda().to(memory_format=torch.channels_last)


def of_last(m, a):
    return m(a.to(memory_format=torch.channels_last))


FLAT, IMAGE, HEADS = (640, 300), (16, 64, 32, 32), (8, 64, 12, 32)

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
    ("bmm heads moved", [HEADS, HEADS], lambda a, b: a.transpose(1, 2) @ b.transpose(1, 2).transpose(2, 3)),
    ("bmm columns", [(64, 60, 40), (64, 50, 40)], lambda a, b: torch.bmm(a, b.transpose(1, 2))),
    ("bmm innermost", [(60, 40, 64), (50, 40, 64)], lambda a, b: torch.bmm(a.permute(2, 0, 1), b.permute(2, 1, 0))),
    ("matmul matrix", [(32, 60, 40), (40, 50)], torch.matmul),
    ("linear columns", [lambda: nn.Linear(300, 500), (300, 640)], lambda m, a: m(a.t())),
    ("linear moved", [lambda: nn.Linear(300, 500), (20, 32, 300)], lambda m, a: m(a.transpose(0, 1))),
    ("linear part", [lambda: nn.Linear(300, 500), (20, 32, 600)], lambda m, a: m(a[:, :, :300])),
    ("softmax columns", [FLAT], lambda a: a.t().softmax(-1)),
    ("log_softmax columns", [FLAT], lambda a: a.t().log_softmax(-1)),
    ("layer norm columns", [lambda: nn.LayerNorm(640), FLAT], lambda m, a: m(a.t())),
    ("group norm columns", [lambda: nn.GroupNorm(8, 64), IMAGE], lambda m, a: m(a.transpose(2, 3))),
    ("batch norm columns", [lambda: nn.BatchNorm2d(64), IMAGE], lambda m, a: m(a.transpose(2, 3))),
    ("ce columns", [FLAT], lambda a: F.cross_entropy(a.t(), torch.randint(0, 640, (300,), device="cuda"))),
    ("gelu columns", [FLAT], lambda a: F.gelu(a.t()).contiguous()),
    ("add columns", [FLAT, (300, 640)], lambda a, b: (a.t() + b).contiguous()),
    ("mul other columns", [FLAT, (300, 640)], lambda a, b: b * a.t()),
    ("mul in place", [FLAT, FLAT], lambda a, b: (a * 1).mul_(b)),
    ("avg pool columns", [IMAGE], lambda a: F.avg_pool2d(a.transpose(2, 3), 2)),
    ("lstm batch of one", [lambda: nn.LSTM(256, 256, batch_first=True), (1, 200, 256)], lambda m, a: m(a)[0]),
    ("lstm batch", [lambda: nn.LSTM(256, 256, batch_first=True), (8, 100, 256)], lambda m, a: m(a)[0]),
    ("lstm twice", [lambda: nn.LSTM(256, 256, batch_first=True), (8, 100, 256)], lambda m, a: m(m(a)[0])[0]),
    ("index select", [FLAT, indices(200)], lambda a, i: a.index_select(0, i)),
    ("index select columns", [FLAT, indices(200)], lambda a, i: a.index_select(1, i)),
    ("gather", [FLAT, indices(100, 300)], lambda a, i: a.gather(0, i)),
    ("scatter add", [FLAT, indices(100, 300)], lambda a, i: a.scatter_add(0, i, torch.rand(100, 300, device="cuda"))),
    ("embedding", [(5000, 256), indices(64, 100)], lambda a, i: F.embedding(i, a)),
    ("masked fill", [FLAT], lambda a: a.masked_fill(a > 0.5, 0)),
    ("where", [FLAT, FLAT], lambda a, b: torch.where(a > 0.5, a, b)),
    ("where number", [FLAT], lambda a: torch.where(a > 0.5, a, 0.0)),
    ("tril", [FLAT], torch.tril),
    ("cumsum", [FLAT], lambda a: a.cumsum(0)),
    ("cumsum last", [FLAT], lambda a: a.cumsum(1)),
    ("cumsum flat", [(192000,)], lambda a: a.cumsum(0)),
    ("amp cumsum", [FLAT], amp(lambda x: x.cumsum(0))),
    ("sort", [FLAT], lambda a: a.sort()[0]),
    ("sort long", [(4, 50000)], lambda a: a.sort()[0]),
    ("sort many", [(1000, 5000)], lambda a: a.sort()[0]),
    ("topk", [FLAT], lambda a: a.topk(10)[0]),
    ("topk long", [(4, 50000)], lambda a: a.topk(10)[0]),
    ("min dim", [FLAT], lambda a: a.min(1)[0]),
    ("argmax", [FLAT], lambda a: a.argmax(1)),
    ("var", [FLAT], lambda a: a.var(1)),
    ("var all", [(4000, 2000)], lambda a: a.var()),
    ("std", [FLAT], lambda a: a.std(1)),
    ("abs", [FLAT], torch.abs),
    ("sin", [FLAT], torch.sin),
    ("cos", [FLAT], torch.cos),
    ("rsqrt", [FLAT], torch.rsqrt),
    ("clamp", [FLAT], lambda a: a.clamp(0.2, 0.8)),
    ("conv transpose", [lambda: nn.ConvTranspose2d(64, 32, 2, 2), IMAGE], lambda m, a: m(a)),
    ("conv transpose 3", [lambda: nn.ConvTranspose2d(64, 64, 3, 2, 1, 1), IMAGE], lambda m, a: m(a)),
    ("instance norm", [lambda: nn.InstanceNorm2d(64), IMAGE], lambda m, a: m(a)),
    ("instance norm affine", [lambda: nn.InstanceNorm2d(64, affine=True), IMAGE], lambda m, a: m(a)),
    ("lstm cell", [lambda: nn.LSTMCell(300, 300), FLAT], lambda m, a: m(a)[0]),
    ("lstm dropout", [lambda: nn.LSTM(256, 256, 2, dropout=0.3), (50, 32, 256)], lambda m, a: m(a)[0]),
    ("gru dropout", [lambda: nn.GRU(256, 256, 3, dropout=0.3), (50, 32, 256)], lambda m, a: m(a)[0]),
    ("last conv", [last(lambda: nn.Conv2d(64, 64, 3, padding=1)), IMAGE], of_last),
    ("last conv 1", [last(lambda: nn.Conv2d(64, 128, 1)), IMAGE], of_last),
    ("last conv transpose", [last(lambda: nn.ConvTranspose2d(64, 32, 2, 2)), IMAGE], of_last),
    ("last batch norm", [last(lambda: nn.BatchNorm2d(64)), IMAGE], of_last),
    ("last group norm", [last(lambda: nn.GroupNorm(8, 64)), IMAGE], of_last),
    ("last relu", [last(nn.ReLU), IMAGE], of_last),
    ("last max pool", [last(lambda: nn.MaxPool2d(2)), IMAGE], of_last),
    ("last avg pool", [last(lambda: nn.AvgPool2d(2)), IMAGE], of_last),
    ("last adaptive pool", [last(lambda: nn.AdaptiveAvgPool2d(7)), IMAGE], of_last),
    ("last upsample", [last(lambda: nn.Upsample(scale_factor=2)), IMAGE], of_last),
    ("last weights only", [last(lambda: nn.Conv2d(64, 64, 3, padding=1)), IMAGE], lambda m, a: m(a)),
]
