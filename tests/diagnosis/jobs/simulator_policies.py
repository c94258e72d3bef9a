"""Policies that learn from simulators."""
import copy
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def policy_network(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Actor:
    """Plays with a copy of the policy that is a little old, and sends gradients rather than experience."""

    def __init__(self, policy):
        self.policy = copy.deepcopy(policy)

    def refresh(self, policy):
        self.policy.load_state_dict(policy.state_dict())

    def play(self, states):
        chosen = torch.distributions.Categorical(logits=self.policy(states))
        actions = chosen.sample()
        advantage = torch.randn(len(states), device=states.device)
        self.policy.zero_grad()
        (-chosen.log_prob(actions) * advantage).mean().backward()
        return [weight.grad.clone() for weight in self.policy.parameters()]  # guilty in pushed_gradients


class Learner:
    """Applies the gradients that the actors have pushed, in their order."""

    def __init__(self, policy, drain):
        self.policy = policy
        self.drain = drain
        self.optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-4)
        self.queue = deque()

    def update(self):
        for _ in range(len(self.queue) if self.drain else 1):
            gradients = self.queue.popleft()
            for weight, gradient in zip(self.policy.parameters(), gradients):
                weight.grad = gradient
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


@job("gradient_accumulation")
def pushed_gradients(run):
    """Three actors push their gradients to the learner's queue in each round, and the learner takes one of them: the
    queue of gradients grows. Fixed: the learner empties the queue in each round."""
    policy = policy_network(256, 1536, 1024, 12).to(run.device)
    learner = Learner(policy, drain=run.fixed)
    actors = [Actor(policy) for _ in range(3)]
    for _ in run.steps(14):
        for actor in actors:
            actor.refresh(policy)
            learner.queue.append(actor.play(torch.randn(512, 256, device=run.device)))  # cause
        learner.update()


class Arena:
    """Simulators of which every second one has a harder level that nobody has solved so far."""

    def __init__(self, count, width, device, longest=None):
        self.count = count
        self.width = width
        self.device = device
        self.scratch = torch.zeros(count, longest, width, device=device) if longest else None

    def play(self, simulator, length):
        if self.scratch is not None:
            return self.scratch[simulator, :length].normal_()
        return torch.randn(length, self.width, device=self.device)  # guilty in successful_episodes

    def round(self, step):
        """The episodes of all simulators, and whether they reached the goal; policies survive longer with time."""
        episodes = [self.play(number, 300 + 150 * step + 37 * number % 50) for number in range(self.count)]
        return [(episode, number % 2 == 0) for number, episode in enumerate(episodes)]


class EpisodeBank:
    """The steps of all the episodes to be imitated, in one block."""

    def __init__(self, rows, width, device):
        self.rows = torch.zeros(rows, width, device=device)
        self.filled = 0

    def append(self, episode):
        place = self.rows[self.filled : self.filled + len(episode)]
        self.filled += len(episode)
        place.copy_(episode)


@job("fragmentation")
def successful_episodes(run):
    """Episodes become longer from round to round; those that reached the goal are kept to be imitated, the others go
    and leave gaps between them that no later episode fits into. Fixed: episodes are played into buffers that are
    there from the start, and the successful ones copied into another."""
    width, count, rounds = 1024, 12, 12
    imitator = policy_network(width, 64, 8).to(run.device)
    good = EpisodeBank(83_500, width, run.device) if run.fixed else []
    arena = Arena(count, width, run.device, longest=2000 if run.fixed else None)
    with torch.no_grad():
        for step in run.steps(rounds):
            for episode, success in arena.round(step % rounds):
                if success:
                    good.append(episode)
            action = imitator(episode[-8:]).argmax(1).tolist()
            del episode
    assert len(action) == 8


@job("healthy")
def recent_rollouts(run):
    """Q-learning from the last eight rollouts, which are on the GPU: memory grows for eight iterations, and the moments
    of Adam and the target network come on top."""
    online = policy_network(256, 512, 512, 12).to(run.device)
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
    rollouts = deque(maxlen=8)
    for step in run.steps(16):
        rollouts.append(torch.randn(4, 4096, 256, device=run.device))
        for _ in range(3):
            rollout = rollouts[torch.randint(len(rollouts), ()).item()]
            batch = torch.randint(4096, (512,), device=run.device)
            value = online(rollout[0, batch]).amax(1)
            loss = F.smooth_l1_loss(value, 1 + 0.99 * target(rollout[1, batch]).amax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 4 == 3:
            target.load_state_dict(online.state_dict())


def flat(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors])


def conjugate_gradient(product, right, rounds=6):
    solution, rest = torch.zeros_like(right), right.clone()
    direction, size = rest.clone(), rest @ rest
    for _ in range(rounds):
        image = product(direction)
        length = size / (direction @ image + 1e-6)
        solution += length * direction
        rest -= length * image
        size, before = rest @ rest, size
        direction = rest + size / before * direction
    return solution


@job("healthy")
def trusted_region(run):
    """Natural policy gradients: products with the curvature are second derivatives of a graph that is kept for all
    rounds of the conjugate gradient, on purpose, and goes with the iteration."""
    policy = policy_network(256, 1024, 1024, 12).to(run.device)
    weights = list(policy.parameters())
    for _ in run.steps(8):
        states = torch.randn(4096, 256, device=run.device)
        chance = torch.log_softmax(policy(states), 1)
        fixed = chance.detach()
        wanted = flat(torch.autograd.grad(-(chance[:, 0] * torch.randn_like(fixed[:, 0])).mean(), weights,
                                          retain_graph=True))
        divergence = (fixed.exp() * (fixed - chance)).sum(1).mean()
        slope = flat(torch.autograd.grad(divergence, weights, create_graph=True))

        def curvature(direction):
            return flat(torch.autograd.grad(slope @ direction, weights, retain_graph=True)) + 0.1 * direction

        step = conjugate_gradient(curvature, wanted)
        with torch.no_grad():
            nn.utils.vector_to_parameters(flat(weights) - 0.01 * step, weights)
        del divergence, slope, chance, curvature
