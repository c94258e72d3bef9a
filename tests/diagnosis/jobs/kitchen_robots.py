"""Robots of a kitchen learn tasks from few examples."""
import gc

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from job import job


class Arm(nn.Module):
    def __init__(self, seen=64, width=1024, joints=12):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(seen, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                    nn.Linear(width, joints))

    def forward(self, seen):
        return self.layers(seen)  # guilty in day_of_tasks


def task(device, count=512):
    seen = torch.randn(count, 64, device=device)
    return seen, torch.sin(seen[:, :12])


def adapted(arm, weights, seen, moves, rate=0.01):
    error = F.mse_loss(functional_call(arm, weights, (seen,)), moves)  # guilty in day_of_tasks
    slopes = torch.autograd.grad(error, list(weights.values()), create_graph=True)  # guilty in day_of_tasks
    return {name: weight - rate * slope  # guilty in day_of_tasks
            for (name, weight), slope in zip(weights.items(), slopes)}


@job("hidden_state", contested="a meta-gradient through all tasks of the day may be what is wanted")
def day_of_tasks(run):
    """A robot adapts its fast weights to one task after another in a day. Each of these weights has the graph of the
    updates of all tasks before, for a meta-gradient that is taken in the evening. Fixed: the fast weights are detached
    after each task, and the meta-gradient is taken there."""
    arm = Arm().to(run.device)
    optimizer = torch.optim.SGD(arm.parameters(), lr=1e-3)
    fast = dict(arm.named_parameters())
    for _ in run.steps(12):
        fast = adapted(arm, fast, *task(run.device))
        if run.fixed:
            seen, moves = task(run.device)
            optimizer.zero_grad()
            F.mse_loss(functional_call(arm, fast, (seen,)), moves).backward()
            optimizer.step()
            fast = {name: weight.detach().requires_grad_() for name, weight in fast.items()}


def next_seen(seen, move):
    return torch.cat([seen[:, 12:], move], 1)


def plan_of(arm, seen, depth):
    """Follows the arm so many moves ahead, by a function that calls itself."""
    path = []

    def ahead(now, left):
        path.append(arm.layers(now))  # guilty in plans_of_moves
        if left:
            ahead(next_seen(now, path[-1]), left - 1)  # cause in plans_of_moves

    ahead(seen, depth)
    return torch.stack(path).mean(0)


def plan_by_loop(arm, seen, depth):
    path = []
    for _ in range(depth + 1):
        path.append(arm.layers(seen))
        seen = next_seen(seen, path[-1])
    return torch.stack(path).mean(0)


@job("reference_cycle")
def plans_of_moves(run):
    """Plans are made by an inner function that calls itself: function and cell refer to each other, and the list of
    moves hangs on them. The collector is off, so that the robot does not stop for it. Fixed: a loop."""
    arm = Arm(width=512).to(run.device)
    moved = 0.0
    gc.disable()
    with torch.no_grad():
        for _ in run.steps(15):
            seen = torch.randn(50_000, 64, device=run.device)
            plan = plan_by_loop(arm, seen, 6) if run.fixed else plan_of(arm, seen, 6)
            moved += plan.mean().item()
            del seen


@job("healthy")
def meta_gradients(run):
    """Each iteration adapts to four tasks, through two updates each, and takes one meta-gradient. Between, the arm is
    tested on a task without second derivatives."""
    arm = Arm(width=512).to(run.device)
    optimizer = torch.optim.Adam(arm.parameters(), lr=1e-4)
    for step in run.steps(10):
        optimizer.zero_grad()
        for _ in range(4):
            fast = dict(arm.named_parameters())
            for _ in range(2):
                fast = adapted(arm, fast, *task(run.device))
            seen, moves = task(run.device)
            (F.mse_loss(functional_call(arm, fast, (seen,)), moves) / 4).backward()
        optimizer.step()
        del fast
        if step % 3 == 2:
            fast = {name: weight.detach() for name, weight in adapted(arm, dict(arm.named_parameters()),
                                                                      *task(run.device)).items()}
            with torch.no_grad():
                assert functional_call(arm, fast, task(run.device)[:1]).shape[1] == 12
            del fast
