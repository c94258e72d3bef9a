"""What programs of twins use besides torch: compositions that scripts have as modules."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint as torch_checkpoint

import truth_models
from record_truth import GPT, Block as GPTBlock, CausalBlock, Recorder, ResNet50, Seq2Seq


class Node:
    """An object with attributes."""


class Residual(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return x + self.body(x)


def checkpoint(module, x):
    return torch_checkpoint(module, x, use_reentrant=False)


class Checkpointed(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return checkpoint(self.body, x)


class MultiheadAttention(nn.Module):
    """Gives the result alone; `need_weights` is said when it is made."""

    def __init__(self, features, heads, need_weights=True, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(features, heads, **options)
        self.need_weights = need_weights

    def forward(self, query, key, value):
        return self.attention(query, key, value, need_weights=self.need_weights)[0]


def attention(query, key, value, backend, **options):
    """By one kernel."""
    with truth_models.sdpa_kernel(truth_models.BACKENDS[backend]):
        return F.scaled_dot_product_attention(query, key, value, **options)


def resnet50(classes=1000):
    return ResNet50(classes)


def gpt(vocabulary, features, heads, layers, positions=0, causal=False, checkpoint=False):
    return GPT(vocabulary, features, layers, heads, CausalBlock if causal else GPTBlock, positions,
               False if checkpoint else None)


def seq2seq(vocabulary, features, hidden):
    return Seq2Seq(vocabulary, features, hidden)


def parameters_of(*things):
    """The parameters of modules, tensors and lists of them, in order."""
    for thing in things:
        if isinstance(thing, (list, tuple)):
            yield from parameters_of(*thing)
        elif isinstance(thing, nn.Module):
            yield from thing.parameters()
        else:
            yield thing


def params(*things):
    return list(parameters_of(*things))


class Draws:
    """The random numbers of a scenario, from its seed (base/gmd_random.h)."""

    def __init__(self, seed=0):
        self.state = seed

    def below(self, bound):
        whole = (1 << 64) - 1
        self.state = z = (self.state + 0x9e3779b97f4a7c15) & whole
        z = ((z ^ z >> 30) * 0xbf58476d1ce4e5b9) & whole
        z = ((z ^ z >> 27) * 0x94d049bb133111eb) & whole
        return (z ^ z >> 31) % bound

    def random(self, first, last):
        return first + self.below(last - first + 1)

    def choice(self, choices):
        return choices[self.below(len(choices))]


def names():
    """A new namespace for a program."""
    return {key: value for key, value in globals().items() if not key.startswith("_")}
