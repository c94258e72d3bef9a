"""Completing source code."""
from collections import OrderedDict
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from job import job

TOKENS = 4000


@dataclass
class Completion:
    tokens: list
    log_probability: torch.Tensor


class Completer(nn.Module):
    """A recurrent model of tokens, and greedy decoding with it."""

    def __init__(self, width=384):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, TOKENS)

    def next_token(self, token, state):
        embedded = self.embed(token)  # guilty in greedy_completions
        state = self.cell(embedded, state)  # guilty in greedy_completions
        log_probabilities = F.log_softmax(self.head(state), 1)  # guilty in greedy_completions
        best, token = log_probabilities.max(1)
        return best, token, state

    def complete(self, token, length):
        state, tokens, total = None, [], 0.0
        for _ in range(length):
            best, token, state = self.next_token(token, state)
            tokens.append(token)
            total = total + best
        return Completion(torch.stack(tokens, 1).tolist(), total)


@job("eval_graph")
def greedy_completions(run):
    """A benchmark of completions. The model is in eval(), which does not switch gradients off, and each completion
    keeps its log-probability for the report, with the whole decoding behind it. Fixed: no_grad()."""
    model = Completer().to(run.device).eval()
    completions = []
    with torch.set_grad_enabled(not run.fixed):  # cause
        for _ in run.steps(12):
            prompts = torch.randint(TOKENS, (256,), device=run.device)
            completions.append(model.complete(prompts, length=6))
    report = torch.stack([completion.log_probability.detach() for completion in completions]).mean()
    assert float(report) < 0


class AttentionRecorder:
    """Attention maps by layer and step, for the entropies that are logged."""

    def __init__(self, ignore_recomputed):
        self.ignore_recomputed = ignore_recomputed
        self.recording = True
        self.step = 0
        self.maps = {}

    def record(self, layer, attention):
        if self.recording or not self.ignore_recomputed:
            self.maps[layer, self.step] = attention.detach()  # cause in attention_entropies

    def begin(self, step):
        self.step, self.recording = step, True

    def entropies(self, layers):
        self.recording = False
        taken = [self.maps.pop((layer, self.step)) for layer in range(layers)]
        return [-(attention * attention.clamp_min(1e-9).log()).sum(-1).mean() for attention in taken]


class CodeBlock(nn.Module):
    """Attention and a perceptron."""

    def __init__(self, layer, recorder, width=256, heads=4):
        super().__init__()
        self.layer, self.recorder, self.heads = layer, recorder, heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                        nn.Linear(4 * width, width))

    def forward(self, hidden):
        parts = self.project(hidden).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        attention = torch.softmax(query @ key.transpose(2, 3) / 8, -1)  # guilty in attention_entropies
        self.recorder.record(self.layer, attention)
        hidden = hidden + self.out((attention @ value).transpose(1, 2).flatten(2))
        return hidden + self.perceptron(hidden)


@job("checkpoint_cache")
def attention_entropies(run):
    """Checkpointed blocks record their attention maps, which are taken out after the forward pass to log entropies.
    The recomputation records them once more, under the number of the same step, and nobody takes them out. Fixed:
    the recorder takes nothing between the log and the next step."""
    recorder = AttentionRecorder(ignore_recomputed=run.fixed)
    embed, head = nn.Embedding(TOKENS, 256).to(run.device), nn.Linear(256, TOKENS).to(run.device)
    blocks = nn.ModuleList(CodeBlock(layer, recorder) for layer in range(3)).to(run.device)
    optimizer = torch.optim.AdamW([*embed.parameters(), *blocks.parameters(), *head.parameters()], lr=3e-4)
    for step in run.steps(10):
        recorder.begin(step)
        tokens = torch.randint(TOKENS, (4, 257), device=run.device)
        hidden = embed(tokens[:, :-1])
        for block in blocks:
            hidden = checkpoint(block, hidden, use_reentrant=False)
        loss = F.cross_entropy(head(hidden).flatten(0, 1), tokens[:, 1:].flatten())
        log = [float(entropy) for entropy in recorder.entropies(len(blocks))]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert len(log) == 3


class PrefixCache:
    """Keys and values of the files that are open in editors, least recently used first, up to a number of bytes."""

    def __init__(self, most):
        self.most = most
        self.files = OrderedDict()

    def bytes(self):
        return sum(kept.numel() * kept.element_size() for kept in self.files.values())

    def put(self, file, keys_and_values):
        self.files[file] = keys_and_values
        self.files.move_to_end(file)
        while self.bytes() > self.most:
            self.files.popitem(last=False)


@job("healthy")
def open_files(run):
    """A completion server that keeps keys and values of the files that its users have open, up to 120 MiB; it grows
    until that is reached, and then forgets the file that was used least recently."""
    project = nn.Linear(512, 1024).to(run.device).eval()
    cache = PrefixCache(120 << 20)
    with torch.inference_mode():
        for step in run.steps(20):
            file = step * 7 % 13
            if file in cache.files:
                cache.files.move_to_end(file)
            else:
                source = torch.randn(2048 + 512 * (file % 5), 512, device=run.device)
                cache.put(file, project(source))
            keys, values = cache.files[file].chunk(2, 1)
            cursor = torch.randn(1, 512, device=run.device)
            completion = torch.softmax(cursor @ keys.T / 512**0.5, 1) @ values
    assert completion.shape == (1, 512)


class RequestCache:
    """Keys and values of a batch of requests, with room for what they may become."""

    def __init__(self, room, width, device):
        self.table = torch.empty(16, room, width, device=device)
        self.used = 0

    def extend(self, projected):
        self.table[:, self.used : self.used + projected.shape[1]] = projected
        self.used += projected.shape[1]
        return self.table[:, : self.used]


@job("healthy")
def draft_and_verify(run):
    """A small model drafts four tokens at a time, a large one verifies them at once. Each has a cache for the request,
    with room for its longest completion, which goes with the request."""
    draft, large = (nn.Linear(width, 2 * width).to(run.device) for width in (128, 1024))
    with torch.inference_mode():
        for request in run.steps(12):
            prompt = (224, 64, 160, 192, 96)[request % 5]
            drafted = RequestCache(prompt + 64, 256, run.device)
            verified = RequestCache(prompt + 64, 2048, run.device)
            drafted.extend(draft(torch.randn(16, prompt, 128, device=run.device)))
            verified.extend(large(torch.randn(16, prompt, 1024, device=run.device)))
            for _ in range(4 + request * 5 % 9):
                for _ in range(4):
                    drafted.extend(draft(torch.randn(16, 1, 128, device=run.device)))
                verified.extend(large(torch.randn(16, 4, 1024, device=run.device)))
            assert drafted.used == verified.used
            del drafted, verified
