"""Videos of dancers, with networks of torchvision."""
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models.video import r3d_18

from job import job


def network(styles=10):
    return r3d_18(weights=None, num_classes=styles)


@job("cached_not_released")
def whole_choreography_first(run):
    """Before a head is trained on features, a whole choreography goes through the network at once. Training needs a
    small part of what that took, which stays cached. Fixed: empty_cache() after it."""
    body = network().to(run.device).eval()
    body.fc = nn.Identity()
    with torch.no_grad():
        features = body(torch.randn(10, 3, 48, 112, 112, device=run.device))  # guilty
    if run.fixed:
        torch.cuda.empty_cache()
    head = nn.Linear(512, 10).to(run.device)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    for _ in run.steps(14):
        labels = torch.randint(10, (len(features),), device=run.device)
        loss = F.cross_entropy(head(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Take:
    """One take of a dance, smaller than the camera made it."""

    def __init__(self, frames):
        frames.sub_(0.5).div_(0.25)
        self.frames = F.interpolate(frames, scale_factor=0.75)  # guilty in lengthening_takes

    def tempo(self):
        return self.frames.diff(dim=0).abs().mean().item()


@job("fragmentation")
def lengthening_takes(run):
    """Each take is some frames longer than the one before. What is kept of it is smaller, and settles in the memory of
    the take before, whose rest is too small for the next. Fixed: one buffer for the longest take, what is kept goes to
    the CPU, and empty_cache() is called after each take."""
    takes = []
    buffer = torch.empty(60 + 8 * 12, 3, 160, 160, device=run.device) if run.fixed else None
    for number in run.steps(12):
        length = 60 + 8 * (number % 12)
        if run.fixed:
            take = Take(buffer[:length].normal_())
            take.frames = take.frames.cpu()
            torch.cuda.empty_cache()
        else:
            take = Take(torch.randn(length, 3, 160, 160, device=run.device))  # guilty
        takes.append(take)
    assert takes[0].tempo() > 0


@job("true_capacity")
def film_in_one_piece(run):
    """Films are classified in one piece. The network needs some MiB for each frame, and a long film has too many.
    Fixed: windows of 32 frames."""
    run.cap(720)
    model = network().to(run.device).eval()
    lengths = [32, 64, 48, 80, 64, 420, 48]
    styles = []
    with torch.no_grad():
        for step in run.steps(len(lengths)):
            film = torch.rand(lengths[step % len(lengths)], 3, 112, 112)
            windows = film.split(32) if run.fixed else [film]
            scores = 0
            for window in windows:
                scores = scores + model(window.to(run.device).transpose(0, 1)[None])  # guilty
            styles.append(scores.argmax().item())


@job("healthy")
def clips_from_both_cameras(run):
    """The network is trained with clips of two lengths in turn, and tested after each fourth batch."""
    model = network().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in run.steps(12):
        clips = torch.randn(4, 3, 16 if step % 2 else 8, 64, 64, device=run.device)
        loss = F.cross_entropy(model(clips), torch.randint(10, (4,), device=run.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            model.eval()
            with torch.inference_mode():
                right = (model(torch.randn(8, 3, 16, 64, 64, device=run.device)).argmax(1) == 3).sum().item()
                assert right <= 8
            model.train()
