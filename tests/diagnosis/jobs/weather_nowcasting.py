"""Nowcasting of rain from radar pictures."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


class RainCell(nn.Module):
    """A convolutional LSTM cell."""

    def __init__(self, channels=32):
        super().__init__()
        self.gates = nn.Conv2d(channels + 1, 4 * channels, 3, padding=1)

    def forward(self, picture, state):
        hidden, cell = state
        gates = self.gates(torch.cat([picture, hidden], 1))  # guilty in long_radar_film
        keep, write, show, new = gates.chunk(4, 1)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(write) * torch.tanh(new)  # guilty in long_radar_film
        hidden = torch.sigmoid(show) * torch.tanh(cell)  # guilty in long_radar_film
        return hidden, cell


class Nowcaster(nn.Module):
    """The next radar picture after each one."""

    def __init__(self, channels=32):
        super().__init__()
        self.channels = channels
        self.cell = RainCell(channels)
        self.head = nn.Conv2d(channels, 1, 1)

    def start(self, like):
        zeros = like.new_zeros(len(like), self.channels, *like.shape[-2:])  # guilty in long_radar_film
        return zeros, zeros

    def forward(self, film, state):
        loss = 0
        for before, after in zip(film[:-1], film[1:]):
            state = self.cell(before, state)
            loss = loss + F.mse_loss(self.head(state[0]), after)
        return loss, state


@job("hidden_state")
def long_radar_film(run):
    """A convolutional LSTM on a long radar film, in pieces: the output of the last cell is detached between pieces,
    its memory is not, and retain_graph=True was the answer to the error. Fixed: both are detached."""
    model = Nowcaster().to(run.device)
    state = model.start(torch.empty(4, 1, 64, 64, device=run.device))
    for _ in run.steps(10):
        film = torch.rand(3, 4, 1, 64, 64, device=run.device)
        loss, (hidden, cell) = model(film, state)
        model.zero_grad()
        loss.backward(retain_graph=not run.fixed)
        for weight in model.parameters():
            weight.data.add_(weight.grad.data, alpha=-0.01)
        state = hidden.detach(), cell.detach() if run.fixed else cell  # cause


class StormTrack:
    """The pictures around a storm, and of each scan the last four, with which forecasts are verified."""

    def __init__(self, device, scratch=None):
        self.device = device
        self.scratch = scratch
        self.verification = []

    def window(self, radar, side):
        crop = radar[:, :, :side, :side]
        if self.scratch is None:
            return crop.to(self.device)
        return self.scratch[: crop.numel()].view(crop.shape).copy_(crop)

    def scan(self, radar, side):
        window = self.window(radar, side)
        motion = (window[1:].amax((1, 2, 3)) - window[:-1].amax((1, 2, 3))).tolist()
        last = window[6:]
        self.verification.append(last.cpu() if self.scratch is not None else last.clone())  # guilty in growing_storm
        return motion


@job("fragmentation")
def growing_storm(run):
    """The window around a storm grows from scan to scan. A part of each window stays, which lies in the segment of an
    earlier window, and the rest of that is too small for the next one. Fixed: one scratch buffer as large as the
    largest window, and what stays is on the host."""
    radar = torch.rand(10, 4, 1040, 1040)
    scratch = torch.empty(10 * 4 * 1035 * 1035, device=run.device) if run.fixed else None
    track = StormTrack(run.device, scratch)
    for step in run.steps(8):
        motion = track.scan(radar, int(413 * 1.14 ** (step % 8)))
    assert len(motion) == 9  # one less than the pictures of a window


class RadarPrefetcher:
    """Uploads the next films on a stream of its own and widens them to floating point there."""

    def __init__(self, films, device):
        self.films = films
        self.device = device
        self.stream = torch.cuda.Stream()

    def next(self):
        with torch.cuda.stream(self.stream):
            film = self.films.to(self.device, non_blocking=True)
            film = film.to(torch.float32).div_(255)  # guilty in radar_prefetcher
        current = torch.cuda.current_stream()
        current.wait_stream(self.stream)
        film.record_stream(current)  # cause in radar_prefetcher
        return film


@job("cross_stream_pending")
def radar_prefetcher(run):
    """A prefetcher hands its films to the training stream with record_stream(). Nothing in the loop waits for the GPU
    since the loss is no longer printed, so the films of many iterations wait. Fixed: the loss is read in each one."""
    model = nn.Sequential(nn.Conv2d(12, 8, 3, padding=1, stride=4), nn.ReLU(), nn.Conv2d(8, 1, 1)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    films = torch.randint(256, (8, 12, 256, 256), dtype=torch.uint8).pin_memory()
    prefetcher = RadarPrefetcher(films, run.device)
    for _ in run.steps(14):
        film = prefetcher.next()
        loss = model(film).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda._sleep(30_000_000)  # the rest of the network
        if run.fixed:
            print(f"loss {loss.item():.3f}")


def ranked_probability(members, truth):
    """The continuous ranked probability score of an ensemble."""
    error = (members - truth).abs().mean()
    spread = (members[:, None] - members[None]).abs().mean()
    return (error - spread / 2).item()


@job("healthy")
def ensemble_members(run):
    """Ensemble forecasts: in each case the members and all their differences are on the GPU, and go with the case;
    the scores are numbers."""
    model = nn.Sequential(nn.Conv2d(2, 32, 3, padding=1), nn.GELU(), nn.Conv2d(32, 1, 3, padding=1)).to(run.device)
    scores = []
    with torch.inference_mode():
        for case in run.steps(10):
            rain = torch.rand(1, 1, 128, 128, device=run.device)
            members = []
            for _ in range(12):
                noisy = torch.cat([rain, torch.randn_like(rain)], 1)
                for _ in range(2 + case % 3):
                    noisy = torch.cat([model(noisy), noisy[:, 1:]], 1)
                members.append(noisy[:, :1])
            scores.append(ranked_probability(torch.cat(members), rain))
    assert len(scores) >= 10
