"""What programs of twins use besides torch: compositions that scripts have as modules."""
import copy
import functools
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import torch
from torch import nn
from torch.nn import functional as F
from torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
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


class LlamaBlock(nn.Module):
    """A block of a Llama-like decoder: RMSNorm, rotary embeddings, grouped keys, SwiGLU."""

    def __init__(self, features, heads, groups, hidden, length):
        super().__init__()
        self.heads, self.groups, self.depth = heads, groups, features // heads
        self.norm1 = nn.RMSNorm(features)
        self.q = nn.Linear(features, features, bias=False)
        self.k = nn.Linear(features, groups * self.depth, bias=False)
        self.v = nn.Linear(features, groups * self.depth, bias=False)
        self.o = nn.Linear(features, features, bias=False)
        self.norm2 = nn.RMSNorm(features)
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.down = nn.Linear(hidden, features, bias=False)
        self.register_buffer("cosine", torch.randn(length, self.depth))
        self.register_buffer("sine", torch.randn(length, self.depth))

    def by_heads(self, x, count):
        return x.view(x.size(0), x.size(1), count, self.depth).transpose(1, 2)

    def rotate(self, x, cosine, sine):
        first, second = x.chunk(2, -1)
        return x * cosine + torch.cat([-second, first], -1) * sine

    def attend(self, x):
        q, k, v = self.by_heads(self.q(x), self.heads), self.by_heads(self.k(x), self.groups), self.by_heads(self.v(x), self.groups)
        cosine, sine = self.cosine.to(x.dtype), self.sine.to(x.dtype)
        y = F.scaled_dot_product_attention(self.rotate(q, cosine, sine), self.rotate(k, cosine, sine), v, is_causal=True,
                                           enable_gqa=self.heads != self.groups)
        return self.o(y.transpose(1, 2).reshape(x.size(0), x.size(1), -1))

    def feed_forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


def init_process_group(world_size, rank):
    """This process as one of several whose collectives do nothing: what it allocates is the same."""
    import gc
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
    fully_shard(nn.Linear(8, 8).cuda())  # the first one of a process leaves a cycle behind that has its parameters
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


@functools.lru_cache(maxsize=None)
def device_mesh(replicas, shards):
    return init_device_mesh("cuda", (replicas, shards), mesh_dim_names=("replicate", "shard"))


def DistributedDataParallel(module, **options):
    """Its buckets are as they were after a reduction: that of such a process group gives no result."""
    model = nn.parallel.DistributedDataParallel(module, **options)
    model.register_comm_hook(None, noop_hook)
    return model


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
