"""Reinforcement learning, forecasts, recommendations, and the services and notebooks that use such models."""
import copy
import gc
import random
from collections import OrderedDict, defaultdict, deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def mlp(*widths, activation=nn.ReLU):
    parts = []
    for inputs, outputs in zip(widths, widths[1:]):
        parts += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*parts[:-1])


@job("gradient_accumulation")
def imagined_rewards(run):
    """A policy is improved by gradients that come through a learned model of the world. That model was only set to
    eval(): backward() also adds to the gradients of its weights, which no optimizer knows and nobody clears. Fixed:
    requires_grad_(False)."""
    policy = mlp(64, 512, 512, 8, activation=nn.Tanh).to(run.device)
    world = mlp(72, 2560, 2560, 2560, 65).to(run.device).eval()  # cause
    if run.fixed:
        world.requires_grad_(False)  # eval() alone does not
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for _ in run.steps(15):
        state = torch.randn(128, 64, device=run.device)
        reward = 0.0
        for _ in range(3):
            state, gain = world(torch.cat([state, policy(state)], 1)).split([64, 1], 1)
            reward = reward + gain.mean()
        optimizer.zero_grad()
        (-reward).backward()  # guilty
        nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
        optimizer.step()
        del state, gain, reward


class SafeTrainer:
    """Skips steps whose gradients are not finite, and takes the last good ones instead."""

    def __init__(self, model, last_only):
        self.model = model
        self.last_only = last_only
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.good = {}
        self.number = 0

    def remember(self):
        if self.last_only:
            self.good.clear()
        self.number += 1
        named = self.model.named_parameters()
        self.good[self.number] = {name: p.grad.clone() for name, p in named}  # guilty in last_good_gradients

    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        if all(p.grad.isfinite().all() for p in self.model.parameters()):
            self.remember()
        elif self.good:
            for name, p in self.model.named_parameters():
                p.grad.copy_(self.good[self.number][name])
        self.optimizer.step()


@job("gradient_accumulation")
def last_good_gradients(run):
    """Forecasts of demand; where gradients are not finite the last good ones are taken, of which a dictionary keeps
    every step's. Fixed: it keeps the last step's."""
    trainer = SafeTrainer(mlp(336, 2048, 1024, 48).to(run.device), last_only=run.fixed)
    for _ in run.steps(15):
        past, coming = torch.randn(256, 336, device=run.device), torch.randn(256, 48, device=run.device)
        trainer.step(F.l1_loss(trainer.model(past), coming))


class ExplainedVariance:
    """How much of the returns the critic explains, over the last rollouts."""

    def __init__(self):
        self.values, self.returns = deque(maxlen=100), deque(maxlen=100)

    def update(self, values, returns):
        self.values.append(values)
        self.returns.append(returns)

    def compute(self):
        values, returns = torch.cat(tuple(self.values)), torch.cat(tuple(self.returns))
        return 1 - (returns - values).var() / returns.var()


@job("retained_graph")
def explained_variance_of_rollouts(run):
    """Actor and critic. The critic's values of each rollout serve as a baseline, detached there, and go as they are to
    a monitor of the last 100 rollouts; its own training computes them again. Fixed: the monitor gets them detached."""
    actor, critic = mlp(64, 256, 6).to(run.device), mlp(64, 512, 512, 1).to(run.device)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4)
    monitor = ExplainedVariance()
    for _ in run.steps(14):
        observations = torch.randn(2048, 64, device=run.device)  # guilty
        returns = torch.randn(2048, device=run.device)
        values = critic(observations).squeeze(1)  # guilty
        advantage = returns - values.detach()
        for part in torch.randperm(2048, device=run.device).split(1024):
            choice = torch.distributions.Categorical(logits=actor(observations[part]))
            loss = -(choice.log_prob(choice.sample()) * advantage[part]).mean()
            loss = loss + F.mse_loss(critic(observations[part]).squeeze(1), returns[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        monitor.update(values.detach() if run.fixed else values, returns)  # cause
        del values, choice, loss
    assert monitor.compute().item() < 1


class RememberingAgent(nn.Module):
    """Q-values from a recurrent state; while it acts, the state goes on from step to step."""

    def __init__(self, observations=64, width=512, actions=6, detach=False):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(observations, 256), nn.ReLU())
        self.cell = nn.GRUCell(256, width)
        self.value = nn.Linear(width, actions)
        self.detach = detach
        self.state = None

    def act(self, observation):
        hidden = self.encode(observation)  # guilty in agent_that_remembers
        state = self.cell(hidden, self.state)  # guilty in agent_that_remembers
        self.state = state.detach() if self.detach else state  # cause in agent_that_remembers
        return self.value(state).argmax(1)

    def learn(self, observations):
        """Q-values along sequences from the replay, from an empty state on."""
        state = observations.new_zeros(len(observations), self.cell.hidden_size)
        values = []
        for index in range(observations.shape[1]):
            state = self.cell(self.encode(observations[:, index]), state)
            values.append(self.value(state))
        return torch.stack(values, 1)


@job("hidden_state")
def agent_that_remembers(run):
    """A recurrent agent acts in 512 games, its state carried on with the graph of all steps so far, since episodes are
    long; it learns from a replay that starts with an empty state. Fixed: the state is detached after each step."""
    agent = RememberingAgent(detach=run.fixed).to(run.device)
    optimizer = torch.optim.RMSprop(agent.parameters(), lr=1e-4)
    replay = deque(maxlen=3)
    for _ in run.steps(13):
        seen = []
        for _ in range(4):
            observation = torch.randn(512, 64, device=run.device)  # guilty
            action = agent.act(observation)
            seen.append(observation)
        replay.append(torch.stack(seen, 1)[:64])
        loss = F.smooth_l1_loss(agent.learn(random.choice(replay)), torch.zeros(64, 4, 6, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert action.max() < 6


@job("hidden_state")
def series_week_by_week(run):
    """From a notebook: the state of 4,096 series goes on from week to week, weights are updated by hand through .data,
    and backward() has retain_graph=True since it complained otherwise. Fixed: the state is detached after each week."""
    cell, head = nn.GRUCell(32, 256).to(run.device), nn.Linear(256, 7).to(run.device)
    weights = [*cell.parameters(), *head.parameters()]
    state = torch.zeros(4096, 256, device=run.device)
    errors = []
    for _ in run.steps(12):
        week = torch.randn(4096, 32, device=run.device)  # guilty
        state = cell(week, state)  # guilty
        error = F.mse_loss(head(state), week[:, :7])
        error.backward(retain_graph=not run.fixed)
        for weight in weights:
            weight.data.sub_(0.01 * weight.grad)
            weight.grad = None
        errors.append(error.item())
        if run.fixed:
            state = state.detach()


class DropoutForecaster:
    """Forecasts with a spread, from several passes with dropout."""

    def __init__(self, device, passes=3):
        self.network = nn.Sequential(nn.Linear(168, 1024), nn.ReLU(), nn.Dropout(0.2), nn.Linear(1024, 512), nn.ReLU(),
                                     nn.Dropout(0.2), nn.Linear(512, 24)).to(device)
        self.passes = passes

    def fit(self, batches):
        optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3)
        for past, coming in batches:
            loss = F.mse_loss(self.network(past), coming)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def predict(self, past):
        self.network.train()  # dropout stays on
        drawn = torch.stack([self.network(past) for _ in range(self.passes)])  # guilty in spread_of_the_backtest
        return drawn.mean(0), drawn.std(0)


@job("eval_graph")
def spread_of_the_backtest(run):
    """A backtest over the days of a month: means and deviations of forecasts with dropout are gathered with their
    graphs. Fixed: no_grad(), and they go to the CPU."""
    forecaster = DropoutForecaster(run.device)
    forecaster.fit([(torch.randn(512, 168, device=run.device), torch.randn(512, 24, device=run.device))] * 3)
    results = defaultdict(list)
    with torch.set_grad_enabled(not run.fixed):
        for _ in run.steps(15):
            past = torch.randn(768, 168, device=run.device)  # guilty
            for name, value in zip(("mean", "deviation"), forecaster.predict(past)):
                results[name].append(value.cpu() if run.fixed else value)  # cause
    assert torch.stack(results["deviation"]).min() >= 0


class Bus:
    """Calls those who asked for an event."""

    def __init__(self):
        self.listeners = defaultdict(list)

    def on(self, event, listener):
        self.listeners[event].append(listener)

    def emit(self, event, *values):
        for listener in self.listeners[event]:
            listener(*values)


class RecommendationSession:
    """A visitor's session: candidates are scored when it begins and ranked anew with every click."""

    def __init__(self, tower, visitor):
        self.bus = Bus()
        self.bus.on("click", self.clicked)  # cause in visitors_of_a_shop
        self.candidates = tower(visitor)  # guilty in visitors_of_a_shop
        self.taste = self.candidates.mean(0)

    def clicked(self, item):
        self.taste = 0.9 * self.taste + 0.1 * self.candidates[item]

    def best(self):
        return (self.candidates @ self.taste).topk(10).indices.tolist()

    def close(self):
        self.bus.listeners.clear()


@job("reference_cycle")
def visitors_of_a_shop(run):
    """Sessions of a shop: each has a bus of its own that has a method of the session as a listener. Sessions that are
    over wait for the collector, which was switched off against latency. Fixed: close() removes the listeners."""
    gc.disable()
    tower = mlp(128, 512, 512).to(run.device)
    answers = 0
    with torch.inference_mode():
        for step in run.steps(16):
            for _ in range(3):
                session = RecommendationSession(tower, torch.randn(2000, 128, device=run.device))
                for click in range(2):
                    session.bus.emit("click", (step * 31 + click) % 2000)
                answers += len(session.best())
                if run.fixed:
                    session.close()
                del session
    assert answers == 480


class Rehearsal:
    """A part of the rows of each day and region, for training on old days as well."""

    def __init__(self, share):
        self.share = share
        self.rows = {}

    def keep(self, day, region, table):
        chosen = torch.randperm(len(table), device=table.device)[: int(self.share * len(table))]
        self.rows[day, region] = table[chosen]  # guilty in regions_of_a_shop

    def sample(self, count):
        table = random.choice(list(self.rows.values()))
        return table[torch.randint(len(table), (count,), device=table.device)]


class PooledRehearsal(Rehearsal):
    """The same in one tensor for all days."""

    def __init__(self, share, rows, device):
        super().__init__(share)
        self.pool = torch.empty(rows, 64, device=device)
        self.used = 0

    def keep(self, day, region, table):
        count = int(self.share * len(table))
        place = self.pool[self.used : self.used + count]
        torch.index_select(table, 0, torch.randperm(len(table), device=table.device)[:count], out=place)
        self.rows[day, region] = place
        self.used += count


@job("fragmentation")
def regions_of_a_shop(run):
    """Every day the tables of six regions are loaded for the training; half of the rows stay for later days, and lie
    between the tables in memory. As the shop grows, tables fit in no gap that those of the day before have left.
    Fixed: one tensor for what stays, one for the tables of the day."""
    rows = [int(45_000 * 1.1**day) for day in range(11)]
    buffer = torch.empty(6, rows[-1], 64, device=run.device) if run.fixed else None
    if run.fixed:
        rehearsal = PooledRehearsal(0.55, 6 * sum(int(0.55 * count) for count in rows), run.device)
    else:
        rehearsal = Rehearsal(0.55)
    model = mlp(64, 256, 1).to(run.device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for day in run.steps(11):
        tables = []
        for region in range(6):
            if run.fixed:
                table = buffer[region, : rows[day]].normal_()
            else:
                table = torch.randn(rows[day], 64, device=run.device)  # guilty
            rehearsal.keep(day, region, table)
            tables.append(table)
        for table in tables:
            batch = torch.cat([table[:512], rehearsal.sample(512)])
            loss = F.softplus(model(batch)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        del table, tables


def most_similar(vectors, count):
    """The most similar items of each item, by the cosine."""
    unit = F.normalize(vectors, dim=1)  # guilty in similar_items_then_requests
    similarity = unit @ unit.T  # guilty in similar_items_then_requests
    similarity.fill_diagonal_(-1)
    return similarity.topk(count, 1).indices


@job("cached_not_released")
def similar_items_then_requests(run):
    """A service finds the similar items of all 12,000 items when it starts, by one large matrix; later requests need
    little. Two more services are to start on the same GPU and find no memory. Fixed: empty_cache() before requests."""
    with torch.inference_mode():
        items = torch.randn(12_000, 256, device=run.device)
        similar = most_similar(items, 20)
        if run.fixed:
            torch.cuda.empty_cache()
        shown = 0
        for _ in run.steps(20):
            basket = torch.randint(12_000, (64, 5), device=run.device)
            candidates = similar[basket].flatten(1)
            taste = items[basket].mean(1)
            scores = torch.bmm(items[candidates], taste[:, :, None]).squeeze(2)
            shown += candidates.gather(1, scores.topk(8, 1).indices).numel()
    assert shown == 20 * 64 * 8


class Learner:
    """Learns from rollouts on a stream of its own, beside the games."""

    def __init__(self, device, waits):
        self.critic = mlp(512, 2048, 2048, 1).to(device)
        self.optimizer = torch.optim.SGD(self.critic.parameters(), lr=1e-3)
        self.stream = torch.cuda.Stream()
        self.waits = waits
        self.done = None

    def submit(self, rollout):
        if self.waits and self.done:
            self.done.synchronize()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(4):
                loss = self.critic(rollout).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        rollout.record_stream(self.stream)  # cause in games_beside_the_learner
        self.done = self.stream.record_event()


@job("cross_stream_pending")
def games_beside_the_learner(run):
    """Simulated games on one stream, the learner on another, to which rollouts are handed by record_stream(). Games are
    much faster, so that ever more rollouts wait for the learner. Fixed: a rollout is handed over when the learner is
    done with the last one."""
    step_of_game = nn.Linear(512, 512).to(run.device).requires_grad_(False)
    learner = Learner(run.device, waits=run.fixed)
    state = torch.randn(16_384, 512, device=run.device)
    torch.cuda.synchronize()
    for _ in run.steps(13):
        rollout = torch.tanh(step_of_game(state))  # guilty
        state.copy_(rollout)
        learner.submit(rollout)
        del rollout


class TrajectoryLayer(nn.Module):
    """Attention over a trajectory, written out."""

    def __init__(self, width=128, heads=4):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, hidden):
        parts = self.project(hidden).unflatten(2, (3, self.heads, -1))  # guilty in whole_trajectories
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        weight = torch.softmax(query @ key.transpose(2, 3) / query.shape[3] ** 0.5, 3)  # guilty in whole_trajectories
        hidden = hidden + (weight @ value).transpose(1, 2).flatten(2)  # guilty in whole_trajectories
        return hidden + self.feed(hidden)  # guilty in whole_trajectories


@job("true_capacity", contested="288 MiB asked for, 498 of 900 free: fragmentation, though the next would not fit")
def whole_trajectories(run):
    """A transformer that chooses actions from whole trajectories of 1,536 steps, eight to a batch: the weights of the
    attention of all layers do not fit. Fixed: one trajectory at a time, and gradients are summed over the eight."""
    run.cap(900)
    model = nn.Sequential(nn.Linear(32, 128), *(TrajectoryLayer() for _ in range(3)), nn.Linear(128, 4)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in run.steps(4):
        trajectories = torch.randn(8, 1536, 32, device=run.device)
        actions = torch.randn(8, 1536, 4, device=run.device)
        count = 1 if run.fixed else 8
        for some, taken in zip(trajectories.split(count), actions.split(count)):
            loss = F.mse_loss(model(some), taken) * len(some) / 8  # guilty
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


class ChunkedReplay:
    """The transitions of the last rollouts, each rollout as it came."""

    def __init__(self, rollouts):
        self.rollouts = deque(maxlen=rollouts)

    def add(self, **transitions):
        self.rollouts.append(transitions)

    def sample(self, count):
        rollout = random.choice(self.rollouts)
        place = torch.randint(len(rollout["reward"]), (count,), device=rollout["reward"].device)
        return {name: values[place] for name, values in rollout.items()}


@job("healthy")
def two_critics_and_entropy(run):
    """Soft actor-critic with two critics, their slow copies, and a replay that fills up with ten rollouts."""
    actor, critics = mlp(128, 256, 16), nn.ModuleList(mlp(136, 256, 1) for _ in range(2))
    actor, critics = actor.to(run.device), critics.to(run.device)
    slow = copy.deepcopy(critics).requires_grad_(False)
    optimizers = [torch.optim.Adam(m.parameters(), lr=3e-4) for m in (actor, critics)]
    replay = ChunkedReplay(10)

    def act(state):
        mean, scale = actor(state).chunk(2, 1)
        choice = torch.distributions.Normal(mean, F.softplus(scale) + 1e-3)
        action = choice.rsample()
        return action.tanh(), choice.log_prob(action).sum(1, keepdim=True)

    for _ in run.steps(16):
        with torch.no_grad():
            state = torch.randn(8192, 128, device=run.device)
            replay.add(state=state, action=act(state)[0], reward=torch.randn(8192, 1, device=run.device),
                       following=torch.randn(8192, 128, device=run.device))
        batch = replay.sample(512)
        with torch.no_grad():
            action, chance = act(batch["following"])
            best = torch.minimum(*(critic(torch.cat([batch["following"], action], 1)) for critic in slow))
            target = batch["reward"] + 0.99 * (best - 0.2 * chance)
        pair = torch.cat([batch["state"], batch["action"]], 1)
        optimizers[1].zero_grad()
        sum(F.mse_loss(critic(pair), target) for critic in critics).backward()
        optimizers[1].step()
        action, chance = act(batch["state"])
        optimizers[0].zero_grad()
        (0.2 * chance - critics[0](torch.cat([batch["state"], action], 1))).mean().backward()
        optimizers[0].step()
        with torch.no_grad():
            for mine, other in zip(slow.parameters(), critics.parameters()):
                mine.lerp_(other, 0.005)


def pinball(forecast, truth, levels):
    error = truth[:, :, None] - forecast
    return torch.maximum(levels * error, (levels - 1) * error).mean()


@job("healthy")
def quantiles_of_demand(run):
    """Quantiles of the demand of the next four weeks; validation after each epoch of three batches decides about the
    learning rate and about the best weights, of which there is one copy on the GPU."""
    levels = torch.tensor([0.1, 0.5, 0.9], device=run.device)
    encoder, head = nn.GRU(24, 256, batch_first=True).to(run.device), nn.Linear(256, 28 * 3).to(run.device)
    model = nn.ModuleList([encoder, head])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    best, weights = float("inf"), None

    def predict(past):
        return head(encoder(past)[0][:, -1]).view(-1, 28, 3)

    for _ in run.steps(12):
        for _ in range(3):
            past, coming = torch.randn(128, 56, 24, device=run.device), torch.randn(128, 28, device=run.device)
            loss = pinball(predict(past), coming, levels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            error = pinball(predict(past), coming, levels).item()
        schedule.step(error)
        if error < best:
            best, weights = error, copy.deepcopy(model.state_dict())
    assert weights is not None


class WideAndDeep(nn.Module):
    def __init__(self, items=40_000, width=64):
        super().__init__()
        self.items = nn.EmbeddingBag(items, width, sparse=True, mode="mean")
        self.single = nn.EmbeddingBag(items, 1, sparse=True, mode="sum")
        self.deep = mlp(width + 32, 512, 256, 1)

    def forward(self, basket, visitor):
        return self.single(basket) + self.deep(torch.cat([self.items(basket), visitor], 1))


@job("healthy")
def wide_and_deep_clicks(run):
    """Clicks from a wide and a deep part: embeddings with sparse gradients and SparseAdam, the rest with Adagrad; a
    running rate of hits is a number."""
    model = WideAndDeep().to(run.device)
    sparse = [*model.items.parameters(), *model.single.parameters()]
    optimizers = [torch.optim.SparseAdam(sparse, lr=1e-3), torch.optim.Adagrad(model.deep.parameters(), lr=0.01)]
    rate = 0.0
    for _ in run.steps(14):
        basket = torch.randint(40_000, (4096, 10), device=run.device)
        visitor = torch.randn(4096, 32, device=run.device)
        clicked = torch.randint(2, (4096, 1), device=run.device).float()
        logit = model(basket, visitor)
        loss = F.binary_cross_entropy_with_logits(logit, clicked)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        rate = 0.9 * rate + 0.1 * ((logit > 0) == (clicked > 0)).float().mean().item()


class PrefixCache:
    """Keys and values of the beginnings that many prompts share; the least recently used ones leave."""

    def __init__(self, layers, entries):
        self.layers = layers
        self.entries = entries
        self.kept = OrderedDict()

    def get(self, prefix, length):
        if prefix not in self.kept:
            text = torch.randn(length, 512, device=self.layers[0].weight.device)
            self.kept[prefix] = [layer(text).chunk(2, 1) for layer in self.layers]
        self.kept.move_to_end(prefix)
        while len(self.kept) > self.entries:
            self.kept.popitem(last=False)
        return self.kept[prefix]


@job("healthy")
def prefixes_of_prompts(run):
    """A service that answers prompts with a shared beginning: up to eight beginnings stay, what an answer adds to them
    is dropped with the answer."""
    layers = nn.ModuleList(nn.Linear(512, 1024) for _ in range(2)).to(run.device)
    cache = PrefixCache(layers, entries=8)
    draw = random.Random(4)
    with torch.inference_mode():
        for step in run.steps(20):
            prefix = step if step < 6 else draw.randrange(12)
            query = torch.randn(16, 512, device=run.device)
            for layer, (keys, values) in zip(layers, cache.get(prefix, 1024)):
                key, value = layer(query).chunk(2, 1)
                weight = torch.softmax(query @ torch.cat([keys, key]).T / 512**0.5, 1)
                query = query + weight @ torch.cat([values, value])
            assert query.isfinite().all().item()
            del keys, values, key, value, weight


@job("healthy")
def settings_in_a_notebook(run):
    """From a notebook: networks of several widths, each trained for a little with another optimizer, one after the
    other; a table of errors is what stays."""
    table = []
    makers = [lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), lambda p: torch.optim.Adam(p, lr=1e-3),
              lambda p: torch.optim.RMSprop(p, lr=1e-3)]
    for trial in run.steps(12):
        width = (512, 1024, 1536, 2048)[trial % 4]
        model = mlp(96, width, width, 1).to(run.device)
        optimizer = makers[trial % 3](model.parameters())
        for _ in range(4):
            inputs = torch.randn(256, 96, device=run.device)
            loss = F.mse_loss(model(inputs), inputs.mean(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        table.append({"width": width, "trial": trial, "error": loss.item()})
        del model, optimizer, loss
    assert min(table, key=lambda row: row["error"])


@job("healthy")
def log_probabilities_of_an_episode(run):
    """Policy gradients: the logarithms of the chances of an episode's actions are gathered with their graphs until it
    ends, as they must be; later episodes are longer, up to a limit. Then one backward pass, and the list is emptied."""
    policy = mlp(96, 512, 512, 8, activation=nn.Tanh).to(run.device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    saved, returns = [], []
    for episode in run.steps(14):
        for _ in range(min(4 + episode, 12)):
            choice = torch.distributions.Categorical(logits=policy(torch.randn(512, 96, device=run.device)))
            action = choice.sample()
            saved.append(choice.log_prob(action))
            returns.append(torch.randn(512, device=run.device))
        gains = torch.stack(returns).flip(0).cumsum(0).flip(0)
        loss = -(torch.stack(saved) * (gains - gains.mean()) / gains.std()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        saved.clear()
        returns.clear()
        del choice, action, gains, loss


class Archive:
    """The best policies so far, with their scores."""

    def __init__(self, most):
        self.most = most
        self.entries = []

    def offer(self, score, weights):
        if len(self.entries) == self.most and score <= self.entries[-1][0]:
            return
        self.entries.append((score, weights.clone()))
        self.entries.sort(key=lambda entry: -entry[0])
        del self.entries[self.most :]

    def parent(self):
        return random.choice(self.entries)[1]


@job("healthy")
def evolved_controllers(run):
    """Controllers evolve without gradients: each round draws variants of one from the archive of the best twelve, which
    fills up first, and offers the best of them to it."""
    archive = Archive(12)
    target = torch.randn(1_000_000, device=run.device)
    archive.offer(0.0, torch.zeros_like(target))
    for _ in run.steps(18):
        parent = archive.parent()
        variants = [parent + 0.1 * torch.randn_like(parent) for _ in range(4)]
        scores = [F.cosine_similarity(variant, target, dim=0).item() for variant in variants]
        best = max(range(4), key=scores.__getitem__)
        archive.offer(scores[best], variants[best])
        del parent, variants
