"""Reinforcement learning: policy gradients, actor and critic, self-play."""
import gc
import random
from collections import deque
from copy import deepcopy

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def mlp(*sizes):
    parts = []
    for inside, outside in zip(sizes, sizes[1:]):
        parts += [nn.Linear(inside, outside), nn.Tanh()]
    return nn.Sequential(*parts[:-1])


class TraceAgent:
    """Actor and critic with eligibility traces: a step goes along all gradients so far, the older the weaker."""

    def __init__(self, device, decay=0.9, running=False):
        self.device = device
        self.network = mlp(128, 1536, 1536, 9).to(device)
        self.decay = decay
        self.running = running
        self.past = []

    def gradient(self, state):
        with torch.enable_grad():
            output = self.network(state)
            objective = output[:, 0].mean() + F.log_softmax(output[:, 1:], 1).amax(1).mean()
        return torch.autograd.grad(objective, list(self.network.parameters()))  # guilty in eligibility_traces

    def trace(self, state):
        fresh = self.gradient(state)
        if self.running and self.past:
            trace = [old.mul_(self.decay).add_(new) for old, new in zip(self.past, fresh)]
            self.past = trace
            return trace
        if self.running:
            self.past = list(fresh)
            return self.past
        self.past.append(fresh)  # cause in eligibility_traces
        weights = [self.decay**age for age in range(len(self.past))][::-1]
        return [sum(w * g for w, g in zip(weights, grads)) for grads in zip(*self.past)]

    @torch.no_grad()
    def learn(self, state, error):
        for weight, trace in zip(self.network.parameters(), self.trace(state)):
            weight.add_(trace, alpha=1e-3 * error)


@job("gradient_accumulation")
def eligibility_traces(run):
    """An agent in a task without episodes computes its eligibility trace from a list of all gradients so far, which
    only the end of an episode would empty. Fixed: the trace is one running sum."""
    agent = TraceAgent(run.device, running=run.fixed)
    for step in run.steps(15):
        agent.learn(torch.randn(64, 128, device=run.device), error=1.0 - 0.05 * step)


class Moment:
    """One step of an episode, with its neighbours."""

    def __init__(self, observation, reward, previous=None):
        self.observation = observation
        self.reward = reward
        self.previous = previous
        self.next = None
        if previous is not None:
            previous.next = self  # cause in linked_episodes


def play(policy, device, moments=6):
    """An episode as a linked list; its first moment."""
    first = last = None
    observation = torch.randn(768, 1024, device=device)
    for _ in range(moments):
        action = policy(observation).argmax(1, keepdim=True)
        observation = torch.roll(observation, 1, 1) + 0.01 * action  # guilty in linked_episodes
        last = Moment(observation, action.float().mean().item(), last)
        first = first or last
    return first


@job("reference_cycle")
def linked_episodes(run):
    """The steps of an episode are linked in both directions. The collector is off, since its pauses made the
    environment miss frames, and nobody ever calls it. Fixed: the links are cut after the episode was learned from."""
    policy = mlp(1024, 256, 12).to(run.device)
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-4)
    gc.disable()
    for _ in run.steps(12):
        with torch.no_grad():
            moment = play(policy, run.device)
        optimizer.zero_grad()
        while moment is not None:
            loss = -moment.reward * F.log_softmax(policy(moment.observation), 1).amax(1).mean()
            loss.backward()
            following = moment.next
            if run.fixed:
                moment.previous = moment.next = None
            moment = following
        optimizer.step()


class BoardNetwork(nn.Module):
    def __init__(self, width=256, moves=361):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(361, width), nn.ReLU(), nn.Linear(width, 4 * width), nn.ReLU(),
                                  nn.Linear(4 * width, width), nn.ReLU())
        self.policy = nn.Linear(width, moves)
        self.value = nn.Linear(width, 1)

    def forward(self, boards):
        hidden = self.body(boards)  # guilty in self_play
        return self.policy(hidden).softmax(1), self.value(hidden).tanh()  # guilty in self_play


class SelfPlay:
    """Games of a network against itself; the positions are the examples for the next round of training."""

    def __init__(self, network, phase):
        self.network = network
        self.phase = phase
        self.examples = []

    def game(self, boards, moves=4):
        torch.set_grad_enabled(self.phase != "self-play")
        try:
            for _ in range(moves):
                policy, value = self.network(boards)
                move = policy.argmax(1)
                self.examples.append((boards.cpu(), move.cpu(), value))
                boards = boards.scatter(1, move[:, None], 1.0)  # guilty in self_play
        finally:
            torch.set_grad_enabled(True)


@job("eval_graph")
def self_play(run):
    """Self-play before a round of training; gradients ought to be off in this phase, but the phase is called by
    another name than where it is compared, and each example's value has its graph. Fixed: the same name."""
    phase = "self-play" if run.fixed else "selfplay"  # cause
    arena = SelfPlay(BoardNetwork().to(run.device).eval(), phase)
    for _ in run.steps(10):
        arena.game(torch.randint(-1, 2, (1024, 361), device=run.device).float())  # guilty


class EpisodeBuffer:
    """Episodes of any length, replaced at random once there are too many; optionally slices of one storage."""

    def __init__(self, device, episodes, longest, preallocated):
        self.draw = random.Random(11)
        self.device = device
        self.episodes = [None] * episodes
        self.filled = 0
        self.storage = torch.empty(episodes, longest, 128, device=device) if preallocated else None

    def slot(self):
        if self.filled < len(self.episodes):
            self.filled += 1
            return self.filled - 1
        return self.draw.randrange(len(self.episodes))

    def add(self, length):
        place = self.slot()
        if self.storage is not None:
            self.episodes[place] = self.storage[place, :length].normal_()
        else:
            self.episodes[place] = torch.randn(length, 128, device=self.device)  # guilty in longer_episodes


@job("fragmentation")
def longer_episodes(run):
    """A buffer of 48 episodes, replaced at random. As the agent improves its episodes become longer, and a new one
    never fits where an old one was. Fixed: the buffer is one tensor with a place for the longest."""
    draw = random.Random(5)
    buffer = EpisodeBuffer(run.device, 48, 19_200, preallocated=run.fixed)
    for step in run.steps(14):
        for _ in range(36):
            buffer.add(6000 + 1000 * step + draw.randrange(200))


class TrajectoryWriter:
    """Copies rollouts to pinned memory on its own stream, for a process that writes them to disk."""

    def __init__(self, shape, wait):
        self.stream = torch.cuda.Stream()
        self.host = torch.empty(shape, pin_memory=True)
        self.wait = wait

    def submit(self, rollout):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(12_000_000)  # the disk is not the fastest
            self.host.copy_(rollout, non_blocking=True)
        rollout.record_stream(self.stream)  # cause in rollout_writer
        if self.wait:
            self.stream.synchronize()


@job("cross_stream_pending")
def rollout_writer(run):
    """Rollouts are written by a stream that copies them to the host; they are made faster than they can be copied.
    Fixed: the writer waits for its copies."""
    policy = mlp(512, 64, 512).to(run.device).requires_grad_(False)
    writer = TrajectoryWriter((12, 2048, 512), wait=run.fixed)
    state = torch.randn(2048, 512, device=run.device)
    for _ in run.steps(12):
        rollout = torch.empty(12, 2048, 512, device=run.device)  # guilty
        for moment in range(12):
            state = policy(state)
            rollout[moment] = state
        writer.submit(rollout)
        del rollout


class RunningNorm:
    """Mean and deviation of the observations so far."""

    def __init__(self, width, device):
        self.mean = torch.zeros(width, device=device)
        self.square = torch.ones(width, device=device)

    @torch.no_grad()
    def __call__(self, batch):
        self.mean.lerp_(batch.mean(0), 0.05)
        self.square.lerp_(batch.square().mean(0), 0.05)
        return (batch - self.mean) / (self.square - self.mean.square()).clamp(min=1e-4).sqrt()


@job("healthy")
def proximal_updates(run):
    """Rollouts in a list of tensors, advantages computed backwards, two epochs of clipped updates each; old rollouts
    go when the next one starts."""
    actor, critic = mlp(256, 1024, 1024, 18).to(run.device), mlp(256, 1024, 1).to(run.device)
    optimizer = torch.optim.SGD([*actor.parameters(), *critic.parameters()], lr=3e-3, momentum=0.9)
    normalize = RunningNorm(256, run.device)
    for _ in run.steps(7):
        with torch.no_grad():
            states = [normalize(torch.randn(512, 256, device=run.device)) for _ in range(4)]
            old = [F.log_softmax(actor(state), 1) for state in states]
            values = [critic(state) for state in states]
            advantage, advantages = torch.zeros_like(values[0]), []
            for value in reversed(values):
                advantage = 1.0 - value + 0.95 * advantage
                advantages.insert(0, advantage)
        for _ in range(2):
            for state, before, gain, value in zip(states, old, advantages, values):
                ratio = (F.log_softmax(actor(state), 1) - before).amax(1, keepdim=True).exp()
                loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
                loss = loss + F.mse_loss(critic(state), gain + value)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


@job("healthy")
def league(run):
    """Self-play against earlier versions of the agent: a copy joins every second iteration, the last four remain."""
    agent = mlp(361, 1536, 1536, 362).to(run.device)
    optimizer = torch.optim.AdamW(agent.parameters(), lr=1e-4)
    opponents = deque(maxlen=4)
    draw = random.Random(1)
    for step in run.steps(16):
        if step % 2 == 0:
            opponents.append(deepcopy(agent).eval().requires_grad_(False))
        boards = torch.randint(-1, 2, (256, 361), device=run.device).float()
        with torch.inference_mode():
            reply = draw.choice(opponents)(boards).argmax(1)
        loss = F.cross_entropy(agent(boards), reply.clone())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
