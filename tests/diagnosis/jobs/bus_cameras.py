"""Cameras of buses: occupancy over time, several streams, passengers that are met again."""
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models.segmentation import lraspp_mobilenet_v3_large

from job import job


class OccupancyCell(nn.Module):
    """A convolutional recurrent cell."""

    def __init__(self, width=32):
        super().__init__()
        self.see = nn.Conv2d(3, width, 3, padding=1)
        self.gates = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.propose = nn.Conv2d(2 * width, width, 3, padding=1)

    def forward(self, frame, state):
        seen = self.see(frame)  # guilty in seats_over_the_day
        keep, use = torch.sigmoid(self.gates(torch.cat([seen, state], 1))).chunk(2, 1)  # guilty in seats_over_the_day
        new = torch.tanh(self.propose(torch.cat([seen, use * state], 1)))  # guilty in seats_over_the_day
        return keep * state + (1 - keep) * new  # guilty in seats_over_the_day


@job("hidden_state")
def seats_over_the_day(run):
    """A recurrent cell follows which seats are taken. The program that runs in the bus only counts them, frame by
    frame, with gradients on. Fixed: inference_mode()."""
    cell = OccupancyCell().to(run.device).eval()
    state = torch.zeros(2, 32, 96, 128, device=run.device)
    taken = []
    with torch.inference_mode(run.fixed):
        for _ in run.steps(12):
            state = cell(torch.rand(2, 3, 96, 128, device=run.device), state)
            taken.append((state.mean(1) > 0).sum().item())


class Camera:
    """Understands its frames on a stream of its own."""

    def __init__(self, device):
        self.stream = torch.cuda.Stream()
        self.weight = torch.randn(4096, 4096, device=device) / 64
        self.last = None

    def understand(self, frames):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            hidden = frames.view(-1, 4096)
            for _ in range(36):
                hidden = F.hardtanh(hidden @ self.weight)
            self.last = hidden.amax()
        frames.record_stream(self.stream)  # cause in three_cameras_of_a_bus


@job("cross_stream_pending")
def three_cameras_of_a_bus(run):
    """Frames are decoded on one stream and handed to the streams of three cameras, one after the other. Nobody asks
    whether these are done, and frames wait for them. Fixed: a camera whose stream is busy is waited for."""
    cameras = [Camera(run.device) for _ in range(3)]
    with torch.no_grad():
        for step in run.steps(18):
            camera = cameras[step % 3]
            if run.fixed:
                camera.stream.synchronize()
            frames = torch.rand(20, 3, 512, 256, device=run.device).clamp_(0.1, 0.9)  # guilty
            camera.understand(frames)
            del frames


class Gallery:
    """The upper halves of all passengers who came through a door, as pictures."""

    def __init__(self, room=0, device=None):
        self.crops = []
        self.all = torch.empty(room, 3, 72, 64, device=device) if room else None
        self.count = 0

    def add(self, passengers):
        upper = passengers[:, :, :72]
        if self.all is None:
            self.crops.append(upper.clone())  # guilty in fuller_and_fuller
        else:
            self.all[self.count : self.count + len(upper)] = upper
        self.count += len(upper)


@job("fragmentation")
def fuller_and_fuller(run):
    """Each round there are more passengers than in the one before. The upper parts of their pictures are kept, in the
    memory of the pictures of the round before; what is left of it is too small for those of the next. Fixed: one
    tensor for what is kept, and one for the pictures of a round."""
    numbers = [200 + 32 * step for step in range(13)]
    gallery = Gallery(sum(numbers), run.device) if run.fixed else Gallery()
    camera = torch.empty(numbers[-1], 3, 128, 64, device=run.device) if run.fixed else None
    embed = nn.Conv2d(3, 8, 8, stride=8).to(run.device)
    with torch.inference_mode():
        for step in run.steps(13):
            count = numbers[step % 13]
            if run.fixed:
                passengers = camera[:count].uniform_()
            else:
                passengers = torch.rand(count, 3, 128, 64, device=run.device)  # guilty
            vectors = [embed(part).mean((2, 3)).cpu() for part in passengers.split(50)]
            gallery.add(passengers)
            assert len(torch.cat(vectors)) == count
            del passengers


@job("healthy")
def masks_of_two_routes(run):
    """A network of torchvision segments frames of two sizes in turn; a validation with larger batches comes every
    fifth iteration."""
    model = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=6).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in run.steps(12):
        frames = torch.rand(4, 3, 160, 224 if step % 2 else 160, device=run.device)
        labels = torch.randint(6, (4, *frames.shape[2:]), device=run.device)
        loss = F.cross_entropy(model(frames)["out"], labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            model.eval()
            with torch.no_grad():
                assert model(torch.rand(16, 3, 160, 224, device=run.device))["out"].argmax(1).max().item() < 6
            model.train()
