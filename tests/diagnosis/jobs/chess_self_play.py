"""Chess engines that learn by playing against themselves."""
import copy
import weakref
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Node:
    """A position in the search, as a hidden state for each of the games that are played at once."""

    def __init__(self, hidden, parent=None, weak=False):
        self.hidden = hidden
        self.parent = weakref.proxy(parent) if weak and parent else parent  # cause in tree_for_each_move
        self.children = []
        self.visits = 0

    def expand(self, dynamics, moves, weak):
        for move in range(moves):
            hidden = torch.tanh(dynamics(self.hidden).add_(move))  # guilty in tree_for_each_move
            self.children.append(Node(hidden, self, weak))

    def back_up(self):
        self.visits += 1
        if self.parent:
            self.parent.back_up()


def best_move(representation, dynamics, boards, weak):
    root = Node(torch.tanh(representation(boards)), weak=weak)  # guilty in tree_for_each_move
    root.expand(dynamics, 4, weak)
    best = max(root.children, key=lambda child: child.hidden.mean().item())
    best.expand(dynamics, 3, weak)
    for leaf in best.children:
        leaf.back_up()
    return root.children.index(best)


@job("reference_cycle")
def tree_for_each_move(run):
    """A new search tree for each move; its nodes know their parents and their children, and the old trees wait for the
    collector. Fixed: a weak reference to the parent."""
    representation = nn.Linear(832, 1024).to(run.device)
    dynamics = nn.Linear(1024, 1024).to(run.device)
    game = []
    with torch.inference_mode():
        for _ in run.steps(14):
            boards = torch.randn(1024, 832, device=run.device)
            game.append(best_move(representation, dynamics, boards, weak=run.fixed))


def block(before, after):
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())


class Judge(nn.Module):
    """Move probabilities and the expected result of a position."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(block(19, 256), block(256, 256), block(256, 256), block(256, 256))
        self.moves = nn.Linear(256 * 64, 128)
        self.result = nn.Linear(256 * 64, 1)

    def forward(self, planes):
        features = self.body(planes).flatten(1)  # guilty in transposition_table
        return self.moves(features).softmax(1), self.result(features).tanh()


class TranspositionTable:
    """What the network said about positions, for when they come again by another order of moves."""

    def __init__(self, network):
        self.network = network.eval()
        self.entries = {}

    def look_up(self, key, planes):
        if key not in self.entries:
            moves, result = self.network(planes)
            self.entries[key] = (*moves.topk(4), result)  # cause in transposition_table
        return self.entries[key]


@job("eval_graph")
def transposition_table(run):
    """Self-play with a table of evaluated positions; the network is in eval mode, yet gradients are on, and each entry
    carries the graph of its evaluation. Fixed: no_grad()."""
    table = TranspositionTable(Judge().to(run.device))
    for move in run.steps(14):
        planes = torch.randn(64, 19, 8, 8, device=run.device)  # guilty
        with torch.set_grad_enabled(not run.fixed):
            moves, indices, _ = table.look_up(move, planes)
        assert indices[0, moves[0].argmax()].item() < 128


class TwoHeads(nn.Module):
    def __init__(self, width=2048, moves=4672):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(832, width), nn.ReLU())
        self.policy = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, moves))
        self.value = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 1), nn.Tanh())

    def forward(self, boards):
        shared = self.trunk(boards)  # guilty in policy_loss_curve
        return self.policy(shared), self.value(shared)  # guilty in policy_loss_curve


def policy_loss(logits, visits):
    expected = visits / visits.sum(1, keepdim=True)  # guilty in policy_loss_curve
    return -(expected * logits.log_softmax(1)).sum(1).mean()  # guilty in policy_loss_curve


@job("retained_graph")
def policy_loss_curve(run):
    """The losses of the two heads go backward one after the other, the first with retain_graph=True as they share a
    trunk; the first is kept for the curve, with all of the policy head's graph. Fixed: .item()."""
    model = TwoHeads().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    curve = []
    for _ in run.steps(12):
        boards = torch.randn(1024, 832, device=run.device)
        visits = torch.rand(1024, 4672, device=run.device)
        results = torch.randint(-1, 2, (1024, 1), device=run.device).float()
        logits, values = model(boards)
        first, second = policy_loss(logits, visits), F.mse_loss(values, results)
        optimizer.zero_grad(set_to_none=True)
        first.backward(retain_graph=True)
        second.backward()
        optimizer.step()
        curve.append((first.item() if run.fixed else first, second.item()))  # cause


@job("healthy")
def past_opponents(run):
    """Plays against copies of itself from earlier on; every second game one is made, and the four latest are kept."""
    model = TwoHeads().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    opponents = deque([copy.deepcopy(model)], maxlen=4)
    for game in run.steps(16):
        boards = torch.randn(256, 832, device=run.device)
        with torch.no_grad():
            visits = opponents[game % len(opponents)](boards)[0].softmax(1)
        logits, values = model(boards)
        loss = policy_loss(logits, visits) + values.square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if game % 2:
            opponents.append(copy.deepcopy(model).requires_grad_(False))
