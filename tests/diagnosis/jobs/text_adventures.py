"""Agents that play text adventures."""
import heapq
import itertools
import random
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from job import job

WORDS = 4000


class Reader(nn.Module):
    """Chooses one of 40 commands after reading the description of a room."""

    def __init__(self, width=192, commands=40):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.read = nn.Linear(width, 4 * width)
        self.understand = nn.Linear(4 * width, width)
        self.command = nn.Linear(width, commands)

    def forward(self, text):
        hidden = self.words(text)  # guilty in timed_out_quests
        hidden = F.gelu(self.read(hidden))  # guilty in timed_out_quests
        hidden = torch.tanh(self.understand(hidden)).mean(1)  # guilty in timed_out_quests
        return self.command(hidden)


class OutOfTurns(Exception):
    """The game ended the quest."""


@dataclass
class Quest:
    """What was done in a quest, for several copies of the game side by side."""

    log_probs: list = field(default_factory=list)
    rewards: list = field(default_factory=list)

    def loss(self):
        total, losses = 0.0, []
        for log_prob, reward in zip(reversed(self.log_probs), reversed(self.rewards)):
            total = reward + 0.97 * total
            losses.append(-(log_prob * total).mean())
        return torch.stack(losses).mean()


class Adventurer:
    """Policy gradients; a game allows five turns in a quest."""

    def __init__(self, device, forget):
        self.device = device
        self.reader = Reader().to(device)
        self.optimizer = torch.optim.RMSprop(self.reader.parameters(), lr=1e-4)
        self.forget = forget
        self.open = {}

    def act(self, quest):
        room = torch.randint(WORDS, (32, 64), device=self.device)
        choice = torch.distributions.Categorical(logits=self.reader(room))
        command = choice.sample()
        quest.log_probs.append(choice.log_prob(command))
        quest.rewards.append(random.random())

    def play(self, number, turns):
        self.open[number] = Quest()
        for turn in range(turns):
            if turn == 5:
                raise OutOfTurns
            self.act(self.open[number])

    def learn(self, number):
        loss = self.open.pop(number).loss()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def attempt(self, number, turns):
        try:
            self.play(number, turns)
        except OutOfTurns:
            if self.forget:
                del self.open[number]
            return  # cause in timed_out_quests
        self.learn(number)


@job("retained_graph")
def timed_out_quests(run):
    """The agent learns from a quest when it is completed, which removes it from the open ones. Quests that the game
    ends after five turns stay there with their log-probabilities. Fixed: they are removed, too."""
    draw = random.Random(3)
    adventurer = Adventurer(run.device, forget=run.fixed)
    numbers = itertools.count()
    for _ in run.steps(12):
        for _ in range(2):
            adventurer.attempt(next(numbers), turns=draw.choice((2, 3, 4, 8, 11)))


class Evaluating:
    """The model in evaluation mode, without gradients, for as long as the context lasts."""

    def __init__(self, model, restore):
        self.model = model
        self.restore = restore

    def __enter__(self):
        self.before = torch.is_grad_enabled(), self.model.training
        torch.set_grad_enabled(False)
        self.model.eval()

    def __exit__(self, *_):
        enabled, training = self.before if self.restore else (True, True)
        torch.set_grad_enabled(enabled)  # cause in graded_playthroughs
        self.model.train(training)


class StoryModel(nn.Module):
    """Grades each sentence of a playthrough: does it follow from what was said before?"""

    def __init__(self, width=128):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.blocks = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))
        self.grade = nn.Linear(width, 1)

    def forward(self, text):
        hidden = self.words(text).transpose(1, 2)  # guilty in graded_playthroughs
        for block in self.blocks:
            hidden = hidden + F.silu(block(hidden))  # guilty in graded_playthroughs
        return self.grade(hidden.mean(2)).squeeze(1)


class Jury:
    """Grades of playthroughs after each round, relative to those of nonsense."""

    def __init__(self, model, restore):
        self.model = model
        self.restore = restore
        self.rounds = []

    def nonsense(self, device):
        with Evaluating(self.model, self.restore):
            return self.model(torch.randint(WORDS, (32, 64), device=device)).mean()

    def convene(self, playthroughs):
        with Evaluating(self.model, self.restore):
            reference = self.nonsense(playthroughs.device)
            grades = [self.model(part) - reference for part in playthroughs.split(32)]
        self.rounds.append(torch.cat(grades))


@job("eval_graph")
def graded_playthroughs(run):
    """A context manager for evaluation enables gradients when it ends. The evaluation uses it twice, one inside the
    other, and the rest of the outer one has gradients, which the grades keep. Fixed: it restores what was before."""
    model = StoryModel().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    jury = Jury(model, restore=run.fixed)
    for _ in run.steps(10):
        for _ in range(3):
            text = torch.randint(WORDS, (32, 64), device=run.device)
            loss = F.softplus(model(text.flip(1)) - model(text)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        jury.convene(torch.randint(WORDS, (96, 64), device=run.device))


class TurnByTurn:
    """Learns from a quest as soon as it is over, and forgets it then."""

    def __init__(self, device):
        self.device = device
        self.reader = Reader().to(device)
        self.optimizer = torch.optim.Adam(self.reader.parameters(), lr=1e-4)
        self.quest = Quest()

    def turn(self):
        choice = torch.distributions.Categorical(logits=self.reader(torch.randint(WORDS, (48, 64), device=self.device)))
        command = choice.sample()
        self.quest.log_probs.append(choice.log_prob(command))
        self.quest.rewards.append(random.random() - 0.5)

    def quest_over(self):
        loss, self.quest = self.quest.loss(), Quest()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


@job("healthy")
def quests_of_any_length(run):
    """An iteration is one turn. Log-probabilities and their graphs are kept until the quest is over, after two to ten
    turns, when the agent learns from all of them."""
    agent = TurnByTurn(run.device)
    ends = {3, 5, 14, 17, 21, 30}
    for turn in run.steps(34):
        agent.turn()
        if turn in ends:
            agent.quest_over()


class Hall:
    """The best walkthroughs so far; a better one takes the place of the worst."""

    def __init__(self, places):
        self.places = places
        self.heap = []
        self.order = itertools.count()

    def offer(self, score, walkthrough):
        entry = (score, next(self.order), walkthrough)
        if len(self.heap) < self.places:
            heapq.heappush(self.heap, entry)
        else:
            heapq.heappushpop(self.heap, entry)


@job("healthy")
def best_walkthroughs(run):
    """Walkthroughs are gathered as vectors; the twelve best of all rounds stay and the agent imitates them. Which ones
    go and when depends on their scores."""
    draw = random.Random(8)
    agent = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(run.device)
    optimizer = torch.optim.Adagrad(agent.parameters(), lr=0.01)
    hall = Hall(places=12)
    for step in run.steps(22):
        with torch.no_grad():
            state = torch.randn(96, 256, device=run.device)
            for _ in range(4):
                visited = [state]
                for _ in range(draw.randrange(24, 33)):
                    visited.append(torch.tanh(agent(visited[-1])))
                hall.offer(draw.random() + 0.02 * step, torch.stack(visited))
        _, _, chosen = draw.choice(hall.heap)
        loss = F.mse_loss(agent(chosen[:-1]), chosen[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
