"""Robots that fetch goods in a warehouse."""
import random

import torch
import torch.nn.functional as F
from torch import nn

from job import job


class MotionModel(nn.Module):
    """Where a robot really goes when it is told to go somewhere."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 16)
        self.second = nn.Linear(16, 4)

    def forward(self, state):
        hidden = torch.tanh(self.first(state))  # guilty in particles_on_the_floor
        return 0.1 * self.second(hidden)


class ParticleFilter:
    """Where a robot may be: many guesses that move with it and are drawn again according to what its camera sees."""

    def __init__(self, motion, count, device, keep_graph):
        self.motion = motion
        self.particles = torch.rand(count, 4, device=device)
        self.keep_graph = keep_graph

    def move(self, command):
        with torch.set_grad_enabled(self.keep_graph):  # cause in particles_on_the_floor
            moved = self.particles + command  # guilty in particles_on_the_floor
            self.particles = moved + self.motion(moved) + 0.01 * torch.randn_like(moved)

    def see(self, place):
        error = (self.particles.detach()[:, :2] - place).square().sum(1)
        chances = torch.softmax(-error, 0)
        chosen = torch.multinomial(chances, len(error), replacement=True)  # guilty in particles_on_the_floor
        self.particles = self.particles[chosen]

    def pose(self):
        return self.particles.mean(0).tolist()


@job("hidden_state")
def particles_on_the_floor(run):
    """A particle filter moves its particles by a model that is trained beside it. Each state is computed from the last
    one, with gradients that nobody asked for, since only the training needs them. Fixed: they are off."""
    motion = MotionModel().to(run.device)
    optimizer = torch.optim.SGD(motion.parameters(), lr=0.01)
    robot = ParticleFilter(motion, 262_144, run.device, keep_graph=not run.fixed)
    poses = []
    for step in run.steps(12):
        robot.move(torch.tensor([0.1, 0.02 * step, 0.0, 0.0], device=run.device))
        robot.see(torch.tensor([0.1 * step, 0.5], device=run.device))
        poses.append(robot.pose())
        measured, moved = torch.rand(2, 20_000, 4, device=run.device)
        loss = F.smooth_l1_loss(measured + motion(measured), moved)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class TopK:
    """Sends the largest entries of a gradient to the other robots; what was left out is added to the next one."""

    def __init__(self, share=0.02):
        self.share = share
        self.left_out = {}

    def compress(self, key, gradient):
        whole = gradient + self.left_out.get(key, 0.0)
        flat = whole.flatten()
        largest = flat.abs().topk(max(1, int(self.share * len(flat)))).indices
        sent = torch.zeros_like(flat).index_copy_(0, largest, flat[largest]).view_as(whole)
        self.left_out[key] = whole - sent  # guilty in compressed_gradients
        return sent


def grasp_network():
    return nn.Sequential(nn.Linear(768, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 7))


@job("gradient_accumulation")
def compressed_gradients(run):
    """Robots exchange the largest entries of their gradients and remember the rest for the next time, in a dictionary
    whose keys are the gradients, which are new tensors in each step. Fixed: the keys are the names of the weights."""
    network = grasp_network().to(run.device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    exchange = TopK()
    for _ in run.steps(12):
        loss = F.mse_loss(network(torch.randn(256, 768, device=run.device)), torch.rand(256, 7, device=run.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # guilty
        for name, weight in network.named_parameters():
            gradient = weight.grad
            weight.grad = exchange.compress(name if run.fixed else gradient, gradient)  # cause
        optimizer.step()


class Order:
    """Goods to be fetched, and what the robot's camera has seen on the way."""

    def __init__(self, stops):
        self.stops = stops
        self.views = []


class Dispatcher:
    """Orders on their way, at most one for each robot. A completed one tells the planner how long it took."""

    def __init__(self, robots, planner, device):
        self.robots = robots
        self.planner = planner
        self.device = device
        self.optimizer = torch.optim.RMSprop(planner.parameters(), lr=1e-4)
        self.on_the_way = {}

    def accept(self, number, stops):
        if len(self.on_the_way) < self.robots:
            self.on_the_way[number] = Order(stops)

    def advance(self):
        for order in self.on_the_way.values():
            order.views.append(torch.rand(512, 640, device=self.device))
        done = [number for number, order in self.on_the_way.items() if len(order.views) == order.stops]
        for number in done:
            self.complete(number)

    def complete(self, number):
        views = torch.stack(self.on_the_way.pop(number).views)
        loss = (self.planner(views).mean() - len(views)).square()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


@job("healthy")
def orders_on_the_way(run):
    """Ten robots carry out orders of three to nine stops. What a robot sees is kept until its order is complete, and
    then goes to the planner at once."""
    draw = random.Random(21)
    planner = nn.Sequential(nn.Linear(640, 128), nn.ReLU(), nn.Linear(128, 1)).to(run.device)
    dispatcher = Dispatcher(10, planner, run.device)
    for step in run.steps(26):
        for new in range(draw.choice((0, 1, 1, 3))):
            dispatcher.accept((step, new), stops=draw.randrange(3, 10))
        dispatcher.advance()
