"""Agents: policies, critics, replay."""
import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def perceptron(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


@job("retained_graph")
def critic_log(run):
    """An actor's training that logs the critic's values of each rollout as they come, with their graph. Fixed:
    .detach(), and to the CPU."""
    actor = perceptron(128, 512, 16).to(run.device)
    critic = perceptron(128, 1024, 1024, 1).to(run.device)
    optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
    log = []
    for _ in run.steps(12):
        observations = torch.randn(2048, 128, device=run.device)
        actions = torch.distributions.Categorical(logits=actor(observations))
        values = critic(observations).squeeze(1)  # guilty
        advantage = torch.randn(2048, device=run.device) - values.detach()
        loss = -(actions.log_prob(actions.sample()) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append(values.detach().cpu() if run.fixed else values)  # cause


@job("hidden_state")
def recurrent_agent(run):
    """A recurrent policy acts in its environment; its state goes from step to step with the graph of all steps
    before. Fixed: .detach() after each step."""
    encode = perceptron(256, 1024, 512).to(run.device)
    cell = nn.GRUCell(512, 1024).to(run.device)
    policy = nn.Linear(1024, 12).to(run.device)
    state = torch.zeros(512, 1024, device=run.device)
    for _ in run.steps(25):
        observation = torch.randn(512, 256, device=run.device)
        state = cell(encode(observation), state)  # guilty
        action = policy(state).argmax(1).tolist()
        if run.fixed:
            state = state.detach()
    assert len(action) == 512


@job("healthy")
def replay_buffer(run):
    """Deep Q-learning with the last 12 chunks of transitions on the GPU: the buffer fills, then it is bounded."""
    network, target = (perceptron(512, 512, 8).to(run.device) for _ in range(2))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    buffer = deque(maxlen=12)
    chooser = random.Random(1)
    for step in run.steps(25):
        observations = torch.randn(2, 2048, 512, device=run.device)
        buffer.append((observations, torch.randint(8, (2048, 1), device=run.device)))
        (now, after), actions = chooser.choice(buffer)
        with torch.no_grad():
            wanted = 0.99 * target(after).amax(1, keepdim=True)
        loss = F.smooth_l1_loss(network(now).gather(1, actions), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 7:
            target.load_state_dict(network.state_dict())
        del now, after, actions


@job("healthy")
def rollout_storage(run):
    """Proximal policy optimization: a storage for one rollout, allocated once, written and read in each epoch."""
    actor, critic = perceptron(256, 512, 512, 8).to(run.device), perceptron(256, 512, 512, 1).to(run.device)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4)
    storage = torch.empty(4, 4096, 256, device=run.device)
    for _ in run.steps(6):
        with torch.no_grad():
            for place in range(4):
                storage[place] = torch.randn(4096, 256, device=run.device)
                old = torch.log_softmax(actor(storage[place]), 1)
        for place in range(4):
            ratio = (torch.log_softmax(actor(storage[place]), 1) - old).exp()
            loss = ratio.clamp(0.8, 1.2).mean() + critic(storage[place]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@job("healthy")
def actor_learner(run):
    """Two models: an actor with a copy of the learner's weights that is refreshed every fourth iteration."""
    learner = perceptron(256, 1024, 1024, 16).to(run.device)
    actor = perceptron(256, 1024, 1024, 16).to(run.device).requires_grad_(False)
    optimizer = torch.optim.RMSprop(learner.parameters(), lr=1e-4)
    rewards = []
    for step in run.steps(12):
        if step % 4 == 0:
            actor.load_state_dict(learner.state_dict())
        observations = torch.randn(1024, 256, device=run.device)
        actions = torch.softmax(actor(observations), 1).multinomial(1)
        loss = -torch.log_softmax(learner(observations), 1).gather(1, actions).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rewards.append(loss.item())
