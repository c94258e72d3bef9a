"""An assistant in the keyboard of a telephone: suggestions while one types, and models that adapt to a user."""
import random

import torch
import torch.nn.functional as F
from torch import nn

from job import job


class Suggestions:
    """One layer of attention over what was typed so far."""

    def __init__(self, width, device):
        self.project = torch.randn(width, 3 * width, device=device).div_(width**0.5)
        self.words = torch.randn(width, 4096, device=device)

    def read(self, chunk):
        return (chunk @ self.project).chunk(3, 1)

    def suggest(self, query, keys, values):
        attended = F.softmax(query[-1:] @ keys.T / 32, 1) @ values
        return (attended @ self.words).argmax().item()


class Typist:
    """A message on its way to being sent, with the keys and values of its words."""

    def __init__(self):
        self.keys, self.values = [], []

    def remember(self, keys, values):
        self.keys.append(keys.contiguous())
        self.values.append(values.contiguous())


class KeyboardServer:
    def __init__(self, model, device):
        self.model = model
        self.device = device
        self.typists = {}

    def typed(self, user):
        typist = self.typists.setdefault(user, Typist())
        query, keys, values = self.model.read(torch.randn(512, 1024, device=self.device))
        typist.remember(keys, values)
        return self.model.suggest(query, torch.cat(typist.keys), torch.cat(typist.values))

    def event(self, user, kind):
        if kind == "typed":
            self.typed(user)
        elif kind == "sent":
            self.typists.pop(user, None)
        else:
            self.typists.clear()


@job("healthy")
def messages_being_typed(run):
    """Keys and values of a message are kept while it is typed, and given up when it is sent. Now and then the service
    moves to another machine, and all messages with it."""
    draw = random.Random(6)
    server = KeyboardServer(Suggestions(1024, run.device), run.device)
    with torch.no_grad():
        for step in run.steps(36):
            for _ in range(draw.randrange(1, 4)):
                server.event(draw.randrange(8), draw.choices(("typed", "sent"), (5, 2))[0])
            if step in (15, 31):
                server.event(None, "moved")


class Adapter(nn.Module):
    """What a user's way of writing adds to the common model."""

    def __init__(self, width=1024):
        super().__init__()
        self.down = nn.Linear(width, 512)
        self.up = nn.Linear(512, width)

    def forward(self, words):
        return words + self.up(F.silu(self.down(words)))


class EarlyStopping:
    """Keeps the weights of the best validation; says when there was no better one for some time."""

    def __init__(self, patience):
        self.patience = patience
        self.best, self.weights, self.waited = float("inf"), None, 0

    def better(self, error, model):
        self.waited += 1
        if error < self.best:
            self.best, self.waited = error, 0
            self.weights = {name: weight.clone() for name, weight in model.state_dict().items()}
        return self.waited < self.patience


class UserTuning:
    """Tunes an adapter for one user after another; finished adapters go to the host."""

    def __init__(self, device):
        self.device = device
        self.finished = []
        self.next_user()

    def next_user(self):
        self.adapter = Adapter().to(self.device)
        self.optimizer = torch.optim.Adam(self.adapter.parameters(), lr=1e-3)
        self.stopping = EarlyStopping(patience=3)
        self.messages = []

    def step(self, error):
        words = torch.randn(512, 1024, device=self.device)
        self.messages.append(words)
        loss = torch.stack([F.mse_loss(self.adapter(old), old.roll(1, 0)) for old in self.messages]).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if not self.stopping.better(error, self.adapter):
            self.finished.append({name: weight.cpu() for name, weight in self.stopping.weights.items()})
            self.next_user()


@job("healthy")
def one_user_after_another(run):
    """An adapter is tuned on all messages of a user so far, and the best weights are kept, until validation has not
    improved three times. Then the next user's turn comes, with new weights and no messages."""
    errors = (9, 8, 8, 7, 7, 7, 7, 9, 9, 9, 9, 9, 8, 6, 5, 5, 4, 4, 3, 4, 5, 3, 7, 8, 6, 6, 5, 5, 6, 4, 4, 3, 2, 2)
    tuning = UserTuning(run.device)
    for step in run.steps(34):
        tuning.step(errors[step])
    assert len(tuning.finished) >= 3
