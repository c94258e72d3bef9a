"""Agents that learn from simulated environments."""
import copy
from collections import deque
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Arena:
    """Many copies of a partially observed environment, stepped at once."""

    def __init__(self, count, width, device):
        self.shape = (count, width)
        self.device = device

    def observe(self):
        return torch.randn(self.shape, device=self.device)  # guilty in cell_memory

    def reward(self):
        return torch.randn(self.shape[0], device=self.device)


class RecurrentCritic(nn.Module):
    """Values of states from all that has been seen so far."""

    def __init__(self, seen=256, width=512):
        super().__init__()
        self.encoder = nn.Linear(seen, width)
        self.cell = nn.LSTMCell(width, width)
        self.value = nn.Linear(width, 1)

    def start(self, count, device):
        return tuple(torch.zeros(2, count, self.cell.hidden_size, device=device).unbind())  # guilty in cell_memory

    def forward(self, seen, memory):
        features = torch.relu(self.encoder(seen))  # guilty in cell_memory
        hidden, cell = self.cell(features, memory)  # guilty in cell_memory
        return self.value(hidden).squeeze(1), (hidden, cell)


def cut(memory, both):
    """The memory for the next step, from where no gradient goes back."""
    hidden, cell = memory
    return hidden.detach(), cell.detach() if both else cell  # cause in cell_memory


@job("hidden_state")
def cell_memory(run):
    """A critic with an LSTM learns online; its gradients are summed over an episode. Only the first half of the LSTM's
    state is detached, and retain_graph=True silences the error. Fixed: both halves are detached."""
    arena = Arena(2048, 256, run.device)
    critic = RecurrentCritic().to(run.device)
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
    memory = critic.start(2048, run.device)
    before = None
    for _ in run.steps(14):
        value, memory = critic(arena.observe(), memory)
        if before is not None:
            F.smooth_l1_loss(value, before + arena.reward()).backward(retain_graph=not run.fixed)
        before = value.detach()
        memory = cut(memory, both=run.fixed)
    optimizer.step()


class Transition(NamedTuple):
    state: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    following: torch.Tensor


class Learner:
    """Double Q-learning from the last few batches of play."""

    def __init__(self, device, width=1024, actions=18):
        self.online = nn.Sequential(nn.Linear(width, 2048), nn.ReLU(), nn.Linear(2048, actions)).to(device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-4)
        self.recent = deque(maxlen=7)

    @torch.no_grad()
    def expected(self, transition):
        choice = self.online(transition.following).argmax(1, keepdim=True)
        return transition.reward + 0.99 * self.target(transition.following).gather(1, choice).squeeze(1)

    def learn(self):
        for transition in self.recent:
            value = self.online(transition.state).gather(1, transition.action[:, None]).squeeze(1)
            loss = F.smooth_l1_loss(value, self.expected(transition))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def synchronise(self):
        self.target.load_state_dict(self.online.state_dict())


@job("healthy")
def batches_of_play(run):
    """Q-learning from the last seven batches of play, which are all used in each iteration; the store fills up at
    first, and the target network is renewed in every fourth."""
    learner = Learner(run.device)
    state = torch.randn(2048, 1024, device=run.device)
    for step in run.steps(13):
        with torch.no_grad():
            action = learner.online(state).argmax(1)
            following = state + 0.1 * torch.randn_like(state)
        learner.recent.append(Transition(state, action, following.mean(1), following))
        state = following
        learner.learn()
        if step % 4 == 3:
            learner.synchronise()
