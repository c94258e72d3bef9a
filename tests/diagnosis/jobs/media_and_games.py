"""Films, music, games and robots: what restores, tracks, plays, renders and moves."""
import copy
import gc
import random
from collections import defaultdict, deque
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def dense(sizes, device, activation=nn.ReLU):
    """A plain network of linear layers."""
    layers = []
    for here, there in zip(sizes[:-1], sizes[1:]):
        layers.extend([nn.Linear(here, there), activation()])
    return nn.Sequential(*layers[:-1]).to(device)


class GradientScope:
    """Shows what reaches each layer in backward(), step by step."""

    def __init__(self, model, as_numbers):
        self.as_numbers = as_numbers
        self.traces = defaultdict(list)
        for name, layer in model.named_children():
            layer.register_full_backward_hook(partial(self._on_backward, name))

    def _on_backward(self, name, layer, grad_input, grad_output):
        (gradient,) = grad_output
        if self.as_numbers:
            gradient = gradient.norm().item()
        self.traces[name].append(gradient)  # cause in grasps_under_the_scope


@job("gradient_accumulation")
def grasps_under_the_scope(run):
    """A robot hand learns grasps by imitation. Backward hooks keep what comes to each layer's output, for a plot of
    vanishing gradients that was made with norms in mind and got the tensors. Fixed: norms as numbers."""
    policy = dense([256, 1024, 1024, 1024, 24], run.device, nn.ELU)
    scope = GradientScope(policy, as_numbers=run.fixed)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-4)
    for _ in run.steps(14):
        sight = torch.randn(1536, 256, device=run.device)
        shown = torch.rand(1536, 24, device=run.device)
        loss = F.mse_loss(policy(sight), shown)
        optimizer.zero_grad()
        loss.backward()  # guilty
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
    assert scope.traces


def first_operations(node, count=8):
    """The names of the operations on the way from a node to the leaves, by the first input."""
    names = []
    while node is not None and len(names) < count:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


class GraphAlbum:
    """How the figures of each step came about, for drawings after the run."""

    def __init__(self, draw_now):
        self.draw_now = draw_now
        self.pages = []

    def paste(self, title, figure):
        origin = figure.grad_fn
        self.pages.append((title, first_operations(origin) if self.draw_now else origin))  # cause in stems_of_a_mix


class Separator(nn.Module):
    """Splits a mix into stems by masks."""

    def __init__(self, stems=4, width=32):
        super().__init__()
        self.network = nn.Sequential(nn.Conv1d(1, width, 9, padding=4), nn.GELU(),
                                     nn.Conv1d(width, stems, 9, padding=4), nn.Sigmoid())

    def forward(self, mix):
        return self.network(mix) * mix  # guilty in stems_of_a_mix


class Loudness(nn.Module):
    """Loudness after a fixed weighting of the frequencies, in decibels."""

    def __init__(self, taps=65):
        super().__init__()
        self.register_buffer("filter", torch.randn(1, 1, taps) / taps)

    def forward(self, stems):
        heard = F.conv1d(stems.flatten(0, 1)[:, None], self.filter, padding="same")  # guilty in stems_of_a_mix
        return 10 * torch.log10(heard.square().mean(2) + 1e-8)


@job("retained_graph")
def stems_of_a_mix(run):
    """Music is separated into stems, learnt by the absolute error; the loudness is a figure that no one differentiates.
    An album for drawings of the graph keeps its grad_fn, step by step. Fixed: the album draws at once, and keeps names
    of operations."""
    separator, loudness = Separator().to(run.device), Loudness().to(run.device)
    optimizer = torch.optim.Adam(separator.parameters(), lr=1e-3)
    album = GraphAlbum(draw_now=run.fixed)
    for step in run.steps(13):
        truth = torch.randn(6, 4, 65_536, device=run.device)
        stems = separator(truth.sum(1, keepdim=True))
        loss = F.l1_loss(stems, truth)
        level = loudness(stems).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        album.paste(f"step {step}: {level.item():.1f} dB", level)
        del stems, loss, level


@dataclass
class Highlight:
    minute: int
    scores: torch.Tensor


class HighlightFinder:
    """How exciting each clip of a match is."""

    def __init__(self, device, really_without_grad):
        self.frames = nn.Sequential(nn.Conv3d(3, 16, (1, 5, 5), (1, 2, 2), (0, 2, 2)), nn.BatchNorm3d(16), nn.ReLU(),
                                    nn.Conv3d(16, 32, (3, 3, 3), (1, 2, 2), 1), nn.ReLU()).to(device)
        self.rank = nn.Linear(32, 1).to(device)
        self.really_without_grad = really_without_grad

    def watch(self, clips):
        self.frames.eval()
        torch.no_grad()  # cause in highlights_of_a_match
        if self.really_without_grad:
            torch.set_grad_enabled(False)
        features = self.frames(clips)  # guilty in highlights_of_a_match
        return self.rank(features.mean((2, 3, 4))).squeeze(1)


@job("eval_graph")
def highlights_of_a_match(run):
    """A match is watched clip by clip, and the best minutes are chosen in the end. The line torch.no_grad() stands
    alone, without `with`, and does nothing; the scores have their graphs. Fixed: set_grad_enabled(False)."""
    finder = HighlightFinder(run.device, really_without_grad=run.fixed)
    found = []
    for minute in run.steps(15):
        clips = torch.rand(4, 3, 8, 112, 112, device=run.device)  # guilty
        found.append(Highlight(minute, finder.watch(clips)))
        del clips
    best = max(found, key=lambda highlight: highlight.scores.max().item())
    assert 0 <= best.minute < 15


class LeggedRobots:
    """Many robots at once; the equations of their joints are written in PyTorch."""

    def __init__(self, robots, joints, device):
        self.angle = torch.zeros(robots, joints, device=device)
        self.speed = torch.zeros(robots, joints, device=device)

    def observe(self):
        return torch.cat([self.angle, self.speed], 1).detach()

    def step(self, torque, dt=0.02):
        for _ in range(2):
            pull = self.angle.sin()
            drag = self.speed * self.speed.abs()  # guilty in robots_that_walk_on
            self.speed = self.speed + dt * (torque - pull - 0.1 * drag)  # guilty in robots_that_walk_on
            self.angle = self.angle + dt * self.speed  # guilty in robots_that_walk_on
        return -self.angle.detach().square().mean(1)


@job("hidden_state")
def robots_that_walk_on(run):
    """Policy gradients in a simulator that is written in PyTorch. Actions are drawn by rsample(), so that the state of
    the robots, which goes on through the whole training, carries the graph of all steps. Fixed: sample()."""
    robots = LeggedRobots(16_384, 32, run.device)
    policy = dense([64, 256, 32], run.device, nn.Tanh)
    spread = nn.Parameter(torch.zeros(32, device=run.device))
    optimizer = torch.optim.Adam([*policy.parameters(), spread], lr=1e-3)
    for _ in run.steps(14):
        chances = torch.distributions.Normal(policy(robots.observe()), spread.exp())
        if run.fixed:
            action = chances.sample()
        else:
            action = chances.rsample()  # guilty
        reward = robots.step(action)
        gain = reward - reward.mean()
        loss = -(chances.log_prob(action.detach()).sum(1) * gain).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del chances, action, loss


class FilmArchive:
    """What a network saw in each scene of a film, for searching scenes later."""

    def __init__(self, network):
        self.network = network
        self.scenes = {}

    def store(self, name, seen):
        self.scenes[name] = seen

    def add_film(self, film, scenes, frames):
        preview = []
        for scene in range(scenes):
            clip = torch.rand(frames, 1024, device=self.network.weight.device)  # guilty in scenes_of_longer_films
            self.store((film, scene), self.network(clip))  # guilty in scenes_of_longer_films
            preview.append(clip)
        return torch.stack([clip.mean(0) for clip in preview])


class SlottedArchive(FilmArchive):
    """The same with one tensor for all scenes."""

    def __init__(self, network, frames):
        super().__init__(network)
        self.slots = torch.empty(frames, 1024, device=network.weight.device)
        self.used = 0

    def store(self, name, seen):
        self.scenes[name] = self.slots[self.used : self.used + len(seen)].copy_(seen)
        self.used += len(seen)


@job("fragmentation")
def scenes_of_longer_films(run):
    """Films go into an archive by age: the scenes of later ones are longer. The clips of a film stay until it is done,
    for a preview; what the network saw in them stays for ever, and in memory lies between the clips. No clip or feature
    of the next film fits where a clip was. Fixed: all features in one tensor."""
    lengths = [int(1100 * 1.03**film) for film in range(12)]
    network = nn.Linear(1024, 1024).to(run.device).requires_grad_(False)
    archive = SlottedArchive(network, 8 * sum(lengths)) if run.fixed else FilmArchive(network)
    shots = []
    for film in run.steps(12):
        shots.append(archive.add_film(film, 8, lengths[film]).cpu())
    assert len(archive.scenes) == 96


class PositionNetwork(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(362, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.value = nn.Linear(width, 1)

    def forward(self, positions):
        return self.body(positions)  # guilty in best_of_a_tournament


def knockout(network, features, first, last):
    """The best position between first and last, found like the winner of a tournament, with its value."""
    if last - first <= 512:
        value, place = network.value(features[first:last]).squeeze(1).max(0)
        return value.item(), first + place.item()
    middle = (first + last) // 2
    return max(knockout(network, features, first, middle), knockout(network, features, middle, last))


def nested_knockout(network, positions):
    """The same with a function inside, that needs fewer arguments."""
    features = network(positions)

    def play(first, last):  # cause in best_of_a_tournament
        if last - first <= 512:
            value, place = network.value(features[first:last]).squeeze(1).max(0)
            return value.item(), first + place.item()
        middle = (first + last) // 2
        return max(play(first, middle), play(middle, last))

    return play(0, len(positions))


@job("reference_cycle")
def best_of_a_tournament(run):
    """A program for board games looks for the best of many positions by a recursive function inside another: it refers
    to itself by its closure, where the features are too. The collector is off, as its pauses cost thinking time. Fixed:
    a function at the module's level, that is given what it needs."""
    gc.disable()
    network = PositionNetwork().to(run.device)
    chosen = []
    with torch.inference_mode():
        for _ in run.steps(16):
            for _ in range(2):
                positions = torch.randn(3072, 362, device=run.device)
                if run.fixed:
                    chosen.append(knockout(network, network(positions), 0, len(positions)))
                else:
                    chosen.append(nested_knockout(network, positions))
    assert all(0 <= place < 3072 for _, place in chosen)


class FilmWriter:
    """Takes frames to the host on a stream of its own, to those who encode the film, preview it, and archive it."""

    def __init__(self, shape, wait):
        self.readers = [torch.empty(shape, pin_memory=True) for _ in range(3)]
        self.stream = torch.cuda.Stream()
        self.wait = wait
        self.written = deque()

    def write(self, frame):
        if self.wait and len(self.written) > 1:
            self.written.popleft().synchronize()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for reader in self.readers:
                reader.copy_(frame, non_blocking=True)
        frame.record_stream(self.stream)  # cause in film_to_the_host
        self.written.append(self.stream.record_event())


@job("cross_stream_pending")
def film_to_the_host(run):
    """Noise becomes the frames of a large screen, which are copied to the host on a stream of their own. Copies are
    slower than the renderer, which nothing holds back; record_stream() lets each frame wait for its copies. Fixed: at
    most two frames are on their way."""
    colours = torch.rand(3, 1, 1, device=run.device)
    writer = FilmWriter((3, 2160, 3840), wait=run.fixed)
    torch.cuda.synchronize()
    for _ in run.steps(16):
        frame = torch.rand(3, 2160, 3840, device=run.device)  # guilty
        frame.mul_(colours).clamp_(0, 1)
        writer.write(frame)
        del frame


class SparringPool:
    """Earlier selves to play against, on the GPU; the oldest leaves when there are enough."""

    def __init__(self, most):
        self.members = deque(maxlen=most)

    def join(self, policy):
        self.members.append(copy.deepcopy(policy).requires_grad_(False))

    def draw(self):
        return random.choice(self.members)


@job("healthy")
def fencing_with_earlier_selves(run):
    """Self-play in a fencing game: every second round a copy of the policy joins the pool of opponents, until there are
    five; then the oldest leaves."""
    policy = dense([128, 1024, 1024, 16], run.device)
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-4)
    pool = SparringPool(5)
    for bout in run.steps(20):
        if bout % 2 == 0:
            pool.join(policy)
        stance = torch.randn(1024, 128, device=run.device)
        with torch.no_grad():
            parry = pool.draw()(stance).argmax(1)
        chances = torch.distributions.Categorical(logits=policy(stance))
        attack = chances.sample()
        gain = (attack != parry).float() - 0.5
        loss = -(chances.log_prob(attack) * gain).mean() - 0.01 * chances.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class SoundModel(nn.Module):
    """Sound effects code by code; keys and values of earlier codes are in a tensor that the first request makes."""

    def __init__(self, width=512, layers=3):
        super().__init__()
        self.codes = nn.Embedding(1024, width)
        self.project = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.leave = nn.Linear(width, 1024)
        self.memory = None

    def prepare(self, batch, length):
        if self.memory is None:
            shape = (len(self.project), 2, batch, length, self.codes.embedding_dim)
            self.memory = torch.zeros(shape, device=self.leave.weight.device)

    def forward(self, code, place):
        hidden = self.codes(code)
        for number, project in enumerate(self.project):
            query, key, value = project(hidden).chunk(3, 1)
            self.memory[number, 0, :, place], self.memory[number, 1, :, place] = key, value
            keys, values = self.memory[number, :, :, : place + 1]
            share = torch.einsum("bw,btw->bt", query, keys).mul(query.shape[1] ** -0.5).softmax(1)
            hidden = hidden + torch.einsum("bt,btw->bw", share, values)
        return self.leave(hidden)


@job("healthy")
def sound_effects_on_request(run):
    """Sound effects are generated code by code for a game studio. The first request makes the tensors for keys and
    values, for eight sounds of the greatest length; all others use them again. Codes go to the CPU."""
    model = SoundModel().to(run.device).eval()
    shelf = []
    with torch.inference_mode():
        for request in run.steps(12):
            model.prepare(8, 512)
            code = torch.randint(1024, (8,), device=run.device)
            said = []
            for place in range(3 + request % 4):
                code = torch.multinomial(model(code, place).softmax(1), 1).squeeze(1)
                said.append(code)
            shelf.append(torch.stack(said, 1).cpu())


class Restorer(nn.Module):
    """Restores a frame with the help of what it knows from the frames before."""

    def __init__(self, width=24):
        super().__init__()
        self.join = nn.Conv2d(3 + width, width, 3, padding=1)
        self.leave = nn.Conv2d(width, 3, 3, padding=1)
        self.width = width

    def forward(self, film):
        known = film.new_zeros(film.shape[0], self.width, *film.shape[3:])
        restored = []
        for frame in film.unbind(1):
            known = F.leaky_relu(self.join(torch.cat([frame, known], 1)), 0.1)
            restored.append(frame + self.leave(known))
        return torch.stack(restored, 1)


@job("healthy")
def old_films_restored(run):
    """A recurrent network restores old films. Clips begin with three frames and become longer up to nine; the state
    lives within a clip, and backward() goes through all of it."""
    restorer = Restorer().to(run.device)
    optimizer = torch.optim.Adam(restorer.parameters(), lr=1e-4, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    for step in run.steps(18):
        film = torch.rand(2, min(3 + step // 2, 9), 3, 128, 128, device=run.device)
        scratched = film * (torch.rand_like(film[:, :, :1]) > 0.1)
        loss = F.smooth_l1_loss(restorer(scratched), film)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        del film, scratched, loss


@job("healthy")
def arm_calibrated_by_lbfgs(run):
    """The table of corrections of a robot arm is fitted to measured places by LBFGS, one iteration per step. Its
    history grows by two vectors a step, up to the eight pairs that it may have."""
    table = nn.Parameter(torch.zeros(1024, 1024, device=run.device))
    measured = torch.randn(1024, 1024, device=run.device)
    stiffness = torch.rand(1024, 1, device=run.device) + 0.5
    optimizer = torch.optim.LBFGS([table], lr=0.3, max_iter=1, history_size=8, tolerance_grad=0, tolerance_change=0)

    def residual():
        optimizer.zero_grad()
        loss = (stiffness * (table + 0.1 * table.sin() - measured)).square().sum()
        loss.backward()
        return loss

    errors = []
    for _ in run.steps(16):
        errors.append(optimizer.step(residual).item())
    assert errors[-1] <= errors[0]


class AccumulatingTrainer:
    """Sums the gradients of a few micro-batches before each step of the optimizer."""

    def __init__(self, model, micro_batches):
        self.model = model
        self.micro_batches = micro_batches
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
        self.seen = 0

    def feed(self, inputs, target):
        loss = F.mse_loss(self.model(inputs), target) / self.micro_batches
        loss.backward()
        self.seen += 1
        if self.seen % self.micro_batches == 0:
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


@job("healthy")
def cloth_of_a_game_engine(run):
    """A network learns the cloth of a game engine. Batches would be too large, so gradients of four micro-batches are
    summed as intended; between two steps of the optimizer there are gradients, after a step there are none."""
    model = dense([384, 2048, 2048, 384], run.device, nn.SiLU)
    trainer = AccumulatingTrainer(model, micro_batches=4)
    errors = []
    for _ in run.steps(19):
        folds = torch.randn(256, 384, device=run.device)
        errors.append(trainer.feed(folds, folds.roll(1, 1)))


class DancerMemory:
    """What the tracked dancers looked like in their last frames; those who left the stage are forgotten."""

    def __init__(self, frames=6):
        self.looks = defaultdict(lambda: deque(maxlen=frames))
        self.last_seen = {}

    def see(self, frame, dancers, looks):
        for dancer, look in zip(dancers, looks):
            self.looks[dancer].append(look.clone())
            self.last_seen[dancer] = frame
        for dancer in [dancer for dancer, seen in self.last_seen.items() if frame - seen > 3]:
            del self.looks[dancer], self.last_seen[dancer]

    def means(self):
        return torch.stack([torch.stack(tuple(looks)).mean(0) for looks in self.looks.values()])


@job("healthy")
def dancers_on_a_stage(run):
    """Dancers are tracked through a film. Each has the looks of the last six frames; many come at the beginning, and
    who has not been seen for three frames is forgotten."""
    body = nn.Sequential(nn.Conv2d(3, 32, 5, 4, 2), nn.ReLU(), nn.Conv2d(32, 128, 3, 2, 1)).to(run.device).eval()
    memory = DancerMemory()
    draw = random.Random(7)
    with torch.no_grad():
        for frame in run.steps(24):
            dancers = draw.sample(range(frame // 2, frame // 2 + 10), 8)
            looks = body(torch.rand(8, 3, 256, 256, device=run.device))
            memory.see(frame, dancers, looks)
            nearest = torch.cdist(looks.flatten(1), memory.means().flatten(1)).argmin(1)
            assert nearest.max().item() < len(memory.looks)
            del looks
