"""Batches of examples that arrive one by one; used by several of the programs."""


class TokenBudget:
    """Keeps texts until they have so many tokens in all."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.waiting = []

    def add(self, text):
        """The batch that is complete with this text, or nothing."""
        self.waiting.append(text)
        if sum(len(each) for each in self.waiting) < self.tokens:
            return []
        return self.flush()

    def flush(self):
        texts, self.waiting = sorted(self.waiting, key=len), []
        return texts


class ByteBudget:
    """A dictionary of tensors that forgets the older half of them when they take more memory than it may."""

    def __init__(self, limit):
        self.limit = limit
        self.tensors = {}

    def __getitem__(self, key):
        return self.tensors[key]

    def put(self, key, tensor):
        self.tensors.pop(key, None)
        self.tensors[key] = tensor
        if sum(each.numel() * each.element_size() for each in self.tensors.values()) > self.limit:
            self.forget()

    def forget(self):
        for key in list(self.tensors)[: len(self.tensors) // 2]:
            del self.tensors[key]
