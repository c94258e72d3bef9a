"""Reinforcement learning of a group of lifts: recurrent policies, rollouts, replay."""
import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job

BUILDINGS = 2048


class Dispatcher(nn.Module):
    """Decides which lift answers, from what it saw so far."""

    def __init__(self, width=512):
        super().__init__()
        self.see = nn.Linear(96, width)
        self.remember = nn.GRUCell(width, width)
        self.decide = nn.Linear(width, 8)

    def forward(self, calls, state):
        seen = F.relu(self.see(calls))  # guilty in a_day_of_calls
        state = self.remember(seen, state)  # guilty in a_day_of_calls
        return torch.distributions.Categorical(logits=self.decide(state)), state


@job("hidden_state")
def a_day_of_calls(run):
    """A trained policy runs through a day in the simulator; actions are only sampled, but its state takes the graph
    with it from call to call. Fixed: it is detached."""
    policy = Dispatcher().to(run.device).eval()
    state = torch.zeros(BUILDINGS, 512, device=run.device)
    waited = 0.0
    for _ in run.steps(14):
        calls = torch.rand(BUILDINGS, 96, device=run.device)
        decision, state = policy(calls, state)
        if run.fixed:
            state = state.detach()
        waited += decision.sample().float().mean().item()


class Replay:
    def __init__(self, most):
        self.transitions = deque(maxlen=most)

    def add(self, *transition):
        self.transitions.append(transition)

    def sample(self):
        return random.choice(self.transitions)


def critic_of_lifts():
    return nn.Sequential(nn.Linear(96, 768), nn.Tanh(), nn.Linear(768, 768), nn.Tanh(), nn.Linear(768, 1))


@job("retained_graph")
def values_in_the_replay(run):
    """The replay keeps the value that the critic gave to each observation, for priorities; it came with its graph.
    Fixed: it is detached."""
    critic = critic_of_lifts().to(run.device)
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    replay = Replay(10_000)
    for _ in run.steps(13):
        calls = torch.rand(BUILDINGS, 96, device=run.device)
        value = critic(calls)  # guilty
        if run.fixed:
            value = value.detach()
        replay.add(calls.cpu(), value, torch.rand(BUILDINGS, 1))  # cause
        old, predicted, reward = replay.sample()
        error = F.smooth_l1_loss(critic(old.to(run.device)), reward.to(run.device) + 0.9 * predicted.detach())
        optimizer.zero_grad()
        error.backward()
        optimizer.step()


@job("healthy")
def rollouts_of_six_days(run):
    """On-policy learning from the rollouts of the last six days, which stay on the GPU; then each new one replaces the
    oldest."""
    critic = critic_of_lifts().to(run.device)
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    days = deque(maxlen=6)
    for _ in run.steps(16):
        with torch.no_grad():
            calls = torch.rand(16_384, 96, device=run.device)
            days.append((calls, critic(calls) + torch.rand(16_384, 1, device=run.device)))
        for calls, returns in days:
            loss = F.mse_loss(critic(calls[:4096]), returns[:4096])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
