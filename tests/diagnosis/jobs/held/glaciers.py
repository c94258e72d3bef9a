"""Glaciers seen by radar: crevasses, ice that moves alike, velocity fields."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


class CrevasseNet(nn.Module):
    """A small U-Net for radar pictures."""

    def __init__(self, width=16):
        super().__init__()
        self.down = nn.Conv2d(2, width, 3, padding=1)
        self.deep = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.bottom = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.head = nn.Conv2d(2 * width, 1, 1)

    def forward(self, radar):
        wide = F.gelu(self.down(radar))  # guilty in crevasses_of_a_test_area
        deep = F.gelu(self.deep(wide))  # guilty in crevasses_of_a_test_area
        deep = F.gelu(self.bottom(deep))  # guilty in crevasses_of_a_test_area
        joined = torch.cat([self.up(deep), wide], 1)  # guilty in crevasses_of_a_test_area
        return self.head(joined)


def tiles(count, device, pixels=256):
    radar = torch.randn(count, 2, pixels, pixels, device=device)
    return radar, (radar[:, :1] > 1.5).float()


def train_step(model, optimizer, radar, crevasses):
    loss = F.binary_cross_entropy_with_logits(model(radar), crevasses)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@job("eval_graph", fixed_contested="104 of 114 MiB reserved are left from the training, most never needed again")
def crevasses_of_a_test_area(run):
    """After the training the tiles of a test area are mapped, and the maps kept until the best threshold is looked for.
    eval() was called, gradients are on: each map keeps all that the network computed. Fixed: inference_mode()."""
    model = CrevasseNet().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train_step(model, optimizer, *tiles(2, run.device))
    model.eval()
    maps, truth = [], []
    with torch.inference_mode(run.fixed):
        for _ in run.steps(11):
            radar, crevasses = tiles(2, run.device)
            maps.append(model(radar).sigmoid())  # cause
            truth.append(crevasses.bool())
    best = max(((torch.cat(maps) > level / 10) == torch.cat(truth)).float().mean().item() for level in range(1, 10))
    assert 0 <= best <= 1


def moving_alike(velocity, rows):
    """For each place of a glacier what places that move alike do, with so many rows of the similarities at a time."""
    result = []
    for part in velocity.split(rows):
        similarity = part @ velocity.T  # guilty in ice_of_a_whole_range
        weights = (similarity / velocity.shape[1] ** 0.5).softmax(1)  # guilty in ice_of_a_whole_range
        result.append(weights @ velocity)
        del similarity, weights
    return torch.cat(result)


@job("true_capacity")
def ice_of_a_whole_range(run):
    """Similarities between all places of a glacier in one matrix: small glaciers fit, a whole range does not. Fixed:
    512 rows at a time."""
    run.cap(600)
    places = [2000, 3200, 2500, 4000, 1800, 9500, 3000]
    with torch.no_grad():
        for step in run.steps(len(places)):
            velocity = torch.randn(places[step % len(places)], 64, device=run.device)
            smooth = moving_alike(velocity, 512 if run.fixed else len(velocity))
            assert len(smooth.mean(1).tolist()) == len(velocity)


class Atlas:
    """Velocity fields of glaciers with 16 bits a number."""

    def __init__(self, on_cpu):
        self.on_cpu = on_cpu
        self.fields = []

    def add(self, field):
        self.fields.append(field.cpu().half() if self.on_cpu else field.half())  # guilty in atlas_by_area


def velocity_field(side, buffer, device):
    """Two components at each place, without what the whole glacier does."""
    if buffer is None:
        field = torch.rand(2 * side * side, device=device)  # guilty in atlas_by_area
    else:
        field = buffer[: 2 * side * side].uniform_()
    return field.sub_(field.mean()).mul_(100)


@job("fragmentation")
def atlas_by_area(run):
    """An atlas goes through glaciers from the smallest to the largest and keeps fields with 16 bits. What is kept of
    one lies where the 32-bit field of the one before was; the other half of that is too small for all that comes.
    Fixed: a buffer for the largest field, and an atlas on the CPU."""
    atlas = Atlas(on_cpu=run.fixed)
    buffer = torch.empty(2 * 2900**2, device=run.device) if run.fixed else None
    for step in run.steps(14):
        field = velocity_field(1700 + 90 * step, buffer, run.device)
        atlas.add(field)
        del field
    assert len(atlas.fields) == 14


@job("healthy")
def crevasses_in_half_precision(run):
    """Training with autocast and a scaler of gradients; norms are clipped, and the rate follows a cosine."""
    model = CrevasseNet(24).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    scaler = torch.amp.GradScaler("cuda")
    losses = []
    for _ in run.steps(12):
        radar, crevasses = tiles(4, run.device, 192)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.binary_cross_entropy_with_logits(model(radar), crevasses)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        losses.append(loss.item())
    assert len(losses) == 12
