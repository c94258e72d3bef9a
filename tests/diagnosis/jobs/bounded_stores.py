"""Stores that several programs of this folder keep tensors in for a while. There is no job in this file."""
import torch


class FlushedStore:
    """Tensors by key, up to a number of bytes. When that is reached, all of them are dropped at once."""

    def __init__(self, most):
        self.most = most
        self.kept = {}
        self.bytes = 0

    def get(self, key, make):
        if key not in self.kept:
            self.put(key, make())
        return self.kept[key]

    def put(self, key, tensor):
        size = tensor.numel() * tensor.element_size()
        if self.bytes + size > self.most:
            self.kept, self.bytes = {}, 0
        self.kept[key] = tensor
        self.bytes += size


class Collector:
    """Collects tensors until they have so many rows, then hands on as many, and keeps the rest for the next time."""

    def __init__(self, rows, hand_on):
        self.rows = rows
        self.hand_on = hand_on
        self.waiting = []

    def add(self, tensor):
        self.waiting.append(tensor)
        if sum(map(len, self.waiting)) >= self.rows:
            self.hand_on(self.take())

    def take(self):
        last = self.waiting.pop()
        room = self.rows - sum(map(len, self.waiting))
        taken, self.waiting = torch.cat([*self.waiting, last[:room]]), [last[room:].clone()]
        return taken
