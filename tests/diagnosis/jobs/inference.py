"""Servers of language models."""
import random

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Conversation:
    """The keys and values of a conversation, longer with each turn."""

    def __init__(self, device, width, longest=None):
        self.width = width
        self.length = 0
        self.storage = torch.empty(longest, width, device=device) if longest else None
        self.cache = torch.empty(0, width, device=device)

    def extend(self, fresh):
        if self.storage is not None:
            self.storage[self.length : self.length + len(fresh)] = fresh
            self.cache = self.storage[: self.length + len(fresh)]
        else:
            self.cache = torch.cat([self.cache, fresh])  # guilty in chatting_sessions
        self.length += len(fresh)


@job("fragmentation")
def chatting_sessions(run):
    """A chat server for 36 conversations; a turn makes a conversation's cache longer, by concatenation. What its old
    cache leaves is too small for any other's new one, all of which become longer alike. Fixed: each conversation gets
    room for the longest one when it begins."""
    draw = random.Random(9)
    sessions = [Conversation(run.device, 1024, 2300 if run.fixed else None) for _ in range(36)]
    for turn in run.steps(12):
        order = draw.sample(range(36), 36)
        for index in order:
            sessions[index].extend(torch.randn(150 + draw.randrange(30), 1024, device=run.device))


@job("true_capacity")
def reserved_slots(run):
    """A server that allocates its key-value cache at the start, for the largest number of requests at the largest
    length: next to the weights that is more than the GPU has. Fixed: a quarter of the slots."""
    run.cap(800)
    slots, longest, width, depth = 8 if run.fixed else 32, 1024, 1024, 6  # cause
    layers = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth)).to(run.device).requires_grad_(False)
    cache = []
    for _ in range(depth):
        cache.append(torch.zeros(2, slots, longest, width, dtype=torch.float16, device=run.device))  # guilty
    with torch.inference_mode():
        for token in run.steps(16):
            hidden = torch.randn(slots, 1, width, device=run.device)
            for layer, (keys, values) in zip(layers, cache):
                query, keys[:, token : token + 1], values[:, token : token + 1] = layer(hidden).chunk(3, -1)
                past = keys[:, : token + 1].float(), values[:, : token + 1].float()
                hidden = hidden + F.scaled_dot_product_attention(query, *past)


class Request:
    def __init__(self, number, tokens, depth):
        self.number = number
        self.remaining = tokens
        self.cache = [None] * depth


class Engine:
    """Continuous batching: requests join while others are being answered and leave when they are done."""

    def __init__(self, device, width=1024, depth=3):
        self.layers = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth)).to(device).eval()
        self.device = device
        self.width = width
        self.active = []
        self.done = []

    def admit(self, number, tokens, prompt):
        request = Request(number, tokens, len(self.layers))
        self.active.append(request)
        self.forward(request, torch.randn(1, prompt, self.width, device=self.device))

    def forward(self, request, hidden):
        for index, layer in enumerate(self.layers):
            query, key, value = layer(hidden).chunk(3, -1)
            if request.cache[index] is not None:
                key, value = (torch.cat(pair, 1) for pair in zip(request.cache[index], (key, value)))
            request.cache[index] = (key, value)
            hidden = hidden + F.scaled_dot_product_attention(query, key, value)
        return hidden[:, -1:]

    @torch.inference_mode()
    def step(self):
        for request in self.active:
            self.forward(request, torch.randn(1, 1, self.width, device=self.device))
            request.remaining -= 1
        self.done += [request.number for request in self.active if request.remaining == 0]
        self.active = [request for request in self.active if request.remaining > 0]


@job("healthy")
def continuous_batching(run):
    """Requests of different lengths come and go; a request's keys and values go with it, so that memory rises until
    as many leave as come."""
    engine = Engine(run.device)
    draw = random.Random(4)
    for step in run.steps(24):
        with torch.inference_mode():
            engine.admit(step, tokens=5 + draw.randrange(3), prompt=400)
        engine.step()
    assert engine.done
