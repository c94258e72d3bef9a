"""Billiards: shots that are planned through a learned model of the table, play that is learned from."""
import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class TableModel(nn.Module):
    """How the balls go on, a moment at a time; it was learned before and is not changed."""

    def __init__(self, width=256):
        super().__init__()
        self.into = nn.Linear(width + 4, 2 * width)
        self.out = nn.Linear(2 * width, width)
        self.requires_grad_(False)

    def forward(self, balls, shot, moments=12):
        for _ in range(moments):
            inner = torch.tanh(self.into(torch.cat([balls, shot], 1)))  # guilty in shot_after_shot
            balls = balls + 0.1 * torch.tanh(self.out(inner))  # guilty in shot_after_shot
        return balls


@job("hidden_state")
def shot_after_shot(run):
    """Each shot is planned by three steps of gradient descent through a model of the table, whose weights are frozen,
    and then played in the model. Where the balls lie after it is where the next one begins, with the graph of all
    shots before. Fixed: that is detached."""
    table = TableModel().to(run.device)
    balls = torch.randn(512, 256, device=run.device)
    wanted = torch.randn(512, 256, device=run.device)
    for _ in run.steps(13):
        shot = torch.zeros(512, 4, device=run.device, requires_grad=True)
        for _ in range(3):
            loss = F.mse_loss(table(balls, shot), wanted)
            (slope,) = torch.autograd.grad(loss, shot)
            shot = (shot - 0.1 * slope).detach().requires_grad_()
        balls = table(balls, shot)  # cause
        if run.fixed:
            balls = balls.detach()
        del loss, slope


class Player(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.policy = nn.Linear(width, 12)
        self.value = nn.Linear(width, 1)

    def forward(self, balls):
        hidden = self.body(balls)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


class Matches:
    """What was played in the last matches, on the GPU."""

    def __init__(self, most):
        self.played = deque(maxlen=most)

    def play(self, player, shots, device):
        balls = torch.randn(shots, 64, 256, device=device)
        with torch.no_grad():
            tried = torch.distributions.Categorical(logits=player(balls)[0]).sample()
        self.played.append((balls, tried, torch.rand(shots, 64, device=device)))

    def some(self, chooser):
        return chooser.choice(self.played)


@job("healthy")
def learned_from_matches(run):
    """A player learns from the matches of the past, of which eight are kept on the GPU: memory grows for eight
    iterations. A second network, whose values are aimed at, is copied from the first one after each fifth."""
    player, target = Player().to(run.device), Player().to(run.device)
    optimizer = torch.optim.Adam(player.parameters(), lr=3e-4)
    matches, chooser = Matches(most=8), random.Random(1)
    for step in run.steps(18):
        matches.play(player, 200, run.device)
        for _ in range(2):
            balls, tried, points = matches.some(chooser)
            logits, values = player(balls)
            with torch.no_grad():
                aim = points + 0.99 * target(balls)[1].roll(-1, 0)
            chosen = logits.log_softmax(-1).gather(-1, tried[..., None]).squeeze(-1)
            loss = F.smooth_l1_loss(values, aim) - (chosen * (aim - values.detach())).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        del logits, values, chosen, loss, aim, balls
        if step % 5 == 4:
            target.load_state_dict(player.state_dict())
