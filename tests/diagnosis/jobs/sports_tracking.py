"""Players and the ball in the pictures of a match: tracking, recognition, pictures for the broadcast."""
from collections import defaultdict, deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class GradientWindow:
    """Replaces the gradients by their average over the last steps."""

    def __init__(self, parameters, steps, forget):
        self.parameters = list(parameters)
        self.steps = steps
        self.past = deque(maxlen=steps if forget else None)  # cause in averaged_over_frames

    @torch.no_grad()
    def average(self):
        self.past.append([parameter.grad for parameter in self.parameters])
        recent = list(self.past)[-self.steps :]
        for parameter, *gradients in zip(self.parameters, *recent):
            parameter.grad = sum(gradients) / len(gradients)


@job("gradient_accumulation")
def averaged_over_frames(run):
    """Neighbouring frames are much alike, so that gradients are averaged over the last four steps; the window keeps
    those of all steps. Fixed: deque(maxlen=4)."""
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 5))
    model = model.to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    window = GradientWindow(model.parameters(), 4, forget=run.fixed)
    for _ in run.steps(16):
        players = torch.randn(256, 1024, device=run.device)
        loss = F.smooth_l1_loss(model(players), players[:, :5])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # guilty
        window.average()
        optimizer.step()


class BroadcastEncoder:
    """Compresses pictures for the broadcast, on a stream of its own."""

    def __init__(self, waits):
        self.waits = waits
        self.stream = torch.cuda.Stream()
        self.sent = deque()

    def send(self, picture):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(60_000_000)  # the compression, in a library of its own
            done = self.stream.record_event()
        if self.waits:
            self.sent.append((done, picture))
            if len(self.sent) > 2:
                self.sent.popleft()[0].synchronize()
        else:
            picture.record_stream(self.stream)  # cause in replay_for_broadcast


def draw_boxes(frames, boxes):
    picture = frames.clone()  # guilty in replay_for_broadcast
    for index, (left, top, right, bottom) in enumerate(boxes):
        picture[index % len(frames), :, top:bottom, left:right] //= 2
    return picture


@job("cross_stream_pending")
def replay_for_broadcast(run):
    """The tracked players are drawn into the frames, which the encoder's stream takes over with record_stream(); it
    is slower than the tracking, and the pictures queue up. Fixed: at most two pictures are under way."""
    encoder = BroadcastEncoder(waits=run.fixed)
    for step in run.steps(12):
        frames = torch.randint(256, (6, 3, 1080, 1920), dtype=torch.uint8, device=run.device)
        boxes = [(100 + 30 * player, 200 + step, 140 + 30 * player, 300 + step) for player in range(22)]
        encoder.send(draw_boxes(frames, boxes))


class PlayerGallery:
    """The last pictures of each player, as features."""

    def __init__(self, pictures):
        self.features = defaultdict(lambda: deque(maxlen=pictures))

    def update(self, player, feature):
        self.features[player].append(feature)

    def leave(self, player):
        self.features.pop(player, None)

    def closest(self, feature):
        """The player whose pictures are most alike."""
        scores = {}
        for player, kept in self.features.items():
            scores[player] = max(torch.dot(past.flatten(), feature.flatten()).item() for past in kept)
        return max(scores, key=scores.get)


@job("healthy")
def substituted_players(run):
    """A gallery of players' features grows while players appear, is full with six pictures of each, and shrinks when
    one leaves."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 64, 3, 1, 1)).to(run.device).eval()
    gallery = PlayerGallery(6)
    with torch.no_grad():
        for step in run.steps(15):
            players = range(min(4 + step, 12))
            features = model(torch.randn(len(players), 3, 256, 128, device=run.device))
            for player in players:
                gallery.update(player, features[player].clone())
            if step == 12:
                gallery.leave(3)
            assert gallery.closest(features[0]) in players


@job("healthy")
def validated_between_matches(run):
    """Training on small crops; after every third step validation on whole frames without gradients, whose memory is
    used again at the next."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 4, 3, padding=1)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    precision = []
    for step in run.steps(15):
        crops = torch.randn(16, 3, 128, 128, device=run.device)
        loss = F.cross_entropy(model(crops), crops.argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 2:
            model.eval()
            with torch.no_grad():
                frame = torch.randn(2, 3, 540, 960, device=run.device)
                precision.append((model(frame).argmax(1) == frame.argmax(1)).float().mean().item())
            model.train()
            del frame
