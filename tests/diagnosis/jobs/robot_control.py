"""Robots: controllers, planners, world models, experience."""
import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def policy_net(inputs, outputs, width=1024):
    return nn.Sequential(nn.Linear(inputs, width), nn.ELU(), nn.Linear(width, width), nn.ELU(),
                         nn.Linear(width, outputs))


class SmoothController:
    """Runs a policy and smooths its actions, so that the motors do not jump."""

    def __init__(self, policy, joints, robots, device, detach):
        self.policy, self.detach = policy, detach
        self.smoothed = torch.zeros(robots, joints, device=device)
        self.limit = nn.Parameter(torch.ones(joints, device=device))

    def act(self, observation):
        wanted = torch.tanh(self.policy(observation)) * self.limit  # guilty in smoothed_actions
        blended = torch.lerp(self.smoothed, wanted, 0.2)  # guilty in smoothed_actions
        self.smoothed = blended.detach() if self.detach else blended  # cause in smoothed_actions
        return self.smoothed


@job("hidden_state")
def smoothed_actions(run):
    """A controller drives simulated arms; its exponential average of the actions goes from step to step with the
    policy's graph of all steps. Fixed: the average is detached."""
    policy = policy_net(96, 14).to(run.device)
    controller = SmoothController(policy, 14, 2048, run.device, detach=run.fixed)
    angles = torch.zeros(2048, 14, device=run.device)
    track = []
    for _ in run.steps(18):
        observation = torch.cat([angles, torch.randn(2048, 82, device=run.device)], 1)
        action = controller.act(observation)
        angles = angles + 0.05 * action.detach()
        track.append(angles.abs().amax().item())


class EliteStore:
    """The best episodes; each has its observations and its return."""

    def __init__(self, keep, arena=None):
        self.keep, self.arena = keep, arena
        self.episodes = deque(maxlen=keep)

    def select(self, episodes):
        for index, (score, observations) in enumerate(episodes):
            if score <= 0:
                continue
            if self.arena is None:
                self.episodes.append((score, observations))
            else:
                row = self.arena[(len(self.episodes) + index) % self.keep][: observations.numel()]
                row.copy_(observations.flatten())
                self.episodes.append((score, row))


def collect(device, robots, length):
    """An episode for each robot; those that started upright, every second one, succeed."""
    return [(1.0 if robot % 2 else -1.0, torch.zeros(length, 512, device=device))  # guilty in growing_episodes
            for robot in range(robots)]


@job("fragmentation")
def growing_episodes(run):
    """Episodes become longer as the robots learn; every second one is kept, and the places of the others are too small
    for the episodes of the next round. Fixed: those that are kept are copied into an arena."""
    arena = torch.zeros(48, 4700 * 512, device=run.device) if run.fixed else None
    store = EliteStore(48, arena)
    for step in run.steps(9):
        episodes = collect(run.device, 10, int(900 * 1.22**step))
        store.select(episodes)
        del episodes


class Imagination(nn.Module):
    """A recurrent world model with a reward head."""

    def __init__(self, width=512, actions=8):
        super().__init__()
        self.cell = nn.GRUCell(64 + actions, width)
        self.prior = nn.Linear(width, 64)
        self.reward = nn.Linear(width, 1)

    def forward(self, state, latent, action):
        state = self.cell(torch.cat([latent, action], 1), state)
        latent = torch.tanh(self.prior(state))
        return state, latent, self.reward(state)


@job("healthy")
def dreamed_returns(run):
    """An actor trained through eight imagined steps of a world model; the graph of the dream ends with the
    iteration, and the state that is carried on is detached."""
    world, actor = Imagination().to(run.device), policy_net(64, 8, 256).to(run.device)
    optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
    world.requires_grad_(False)
    state, latent = torch.zeros(512, 512, device=run.device), torch.zeros(512, 64, device=run.device)
    for _ in run.steps(12):
        dream, returns = (state, latent), 0.0
        for horizon in range(8):
            *dream, reward = world(*dream, torch.tanh(actor(dream[1])))
            returns = returns + 0.95**horizon * reward.mean()
        optimizer.zero_grad()
        (-returns).backward()
        run.middle()
        optimizer.step()
        state, latent = (part.detach() for part in dream)
        del dream, returns, reward


@job("healthy")
def cross_entropy_planner(run):
    """Model-predictive control: thousands of rollouts are scored in each step and all but the mean of the best are
    dropped."""
    world = Imagination().to(run.device).eval()
    mean = torch.zeros(6, 8, device=run.device)
    with torch.no_grad():
        for _ in run.steps(8):
            for _ in range(2):
                plans = mean + torch.randn(2048, 6, 8, device=run.device)
                state, latent = torch.zeros(2048, 512, device=run.device), torch.zeros(2048, 64, device=run.device)
                total = torch.zeros(2048, device=run.device)
                for action in plans.unbind(1):
                    state, latent, reward = world(state, latent, action)
                    total += reward.squeeze(1)
                mean = plans[total.topk(64).indices].mean(0)
            mean = mean.roll(-1, 0)


class SequenceReplay:
    """Episodes on the GPU up to a number of steps; the oldest go first."""

    def __init__(self, steps):
        self.steps, self.stored, self.episodes = steps, 0, deque()

    def add(self, episode):
        self.episodes.append(episode)
        self.stored += len(episode)
        while self.stored > self.steps:
            self.stored -= len(self.episodes.popleft())

    def sample(self, draw, count, length):
        pieces = []
        for _ in range(count):
            episode = draw.choice(self.episodes)
            start = draw.randrange(len(episode) - length)
            pieces.append(episode[start : start + length])
        return torch.stack(pieces, 1)


@job("healthy")
def sequence_replay(run):
    """A world model learns from a replay of episodes of many lengths; it fills to its limit and then turns over."""
    draw = random.Random(2)
    model = nn.GRU(256, 256).to(run.device)
    head = nn.Linear(256, 256).to(run.device)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4, eps=1e-5)
    replay = SequenceReplay(60_000)
    for _ in run.steps(20):
        replay.add(torch.randn(draw.randint(6_000, 9_000), 256, device=run.device))
        window = replay.sample(draw, 64, 13)
        output, _ = model(window[:-1])
        loss = F.mse_loss(head(output), window[1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 100)
        optimizer.step()
