"""Scans of teeth in three dimensions: blocks that are recomputed, sharper and sharper volumes."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


class ToothBlock(nn.Module):
    """A residual block; what it had in the middle when gradients were on is kept for a check of its range."""

    def __init__(self, width, middles=None):
        super().__init__()
        self.first = nn.Conv3d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(4, width)
        self.second = nn.Conv3d(width, width, 3, padding=1)
        self.middles = middles

    def forward(self, volume):
        middle = F.relu(self.norm(self.first(volume)))  # guilty in range_of_the_middle
        if self.middles is not None:
            self.middles.append(middle.detach())  # cause in range_of_the_middle
        return volume + self.second(middle)


class Recomputed(torch.autograd.Function):
    """A block of which nothing is kept but what goes in; written before PyTorch had checkpoint()."""

    @staticmethod
    def forward(ctx, block, volume):
        ctx.block = block
        ctx.save_for_backward(volume)
        middles, block.middles = block.middles, None
        result = block(volume)
        block.middles = middles
        return result

    @staticmethod
    def backward(ctx, gradient):
        (volume,) = ctx.saved_tensors
        volume = volume.detach().requires_grad_()
        with torch.enable_grad():
            result = ctx.block(volume)
        torch.autograd.backward(result, gradient)
        return None, volume.grad


class ToothNet(nn.Module):
    def __init__(self, width=16, blocks=3, middles=None, run_block=None):
        super().__init__()
        self.stem = nn.Conv3d(1, width, 3, padding=1)
        self.blocks = nn.ModuleList(ToothBlock(width, middles) for _ in range(blocks))
        self.head = nn.Conv3d(width, 5, 1)
        self.run_block = run_block

    def forward(self, volume):
        hidden = self.stem(volume)
        for block in self.blocks:
            hidden = self.run_block(block, hidden)
        return self.head(hidden)


def jaw(side, device, count=1):
    volume = torch.rand(count, 1, side, side, side, device=device)
    return volume, torch.randint(5, (count, side, side, side), device=device)


@job("checkpoint_cache")
def range_of_the_middle(run):
    """Blocks are computed again in backward(), by a function of the laboratory's own. The middle of each is kept in the
    second computation, to look at its range from time to time, which nobody did. Fixed: its range is taken after each
    step, and the list emptied."""
    middles, ranges = [], []
    model = ToothNet(middles=middles, run_block=Recomputed.apply).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(11):
        volume, teeth = jaw(48, run.device)
        loss = F.cross_entropy(model(volume), teeth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if run.fixed:
            ranges += [middle.max().item() for middle in middles]
            middles.clear()
    assert len(middles) + len(ranges) == 33


def scanned(side, buffer, device):
    """A volume of a scanner, with its mean and spread taken away where it is."""
    if buffer is None:
        volume = torch.rand(side**3, device=device).view(side, side, side)  # guilty in lower_jaws
    else:
        volume = buffer[: side**3].uniform_().view(side, side, side)
    return volume.sub_(0.5).mul_(3.5)


@job("fragmentation")
def lower_jaws(run):
    """Newer scanners are sharper. The lower jaw in each volume, from the oldest to the newest, is copied, three fifths
    of it, to where the volume before was; the other two fifths of that fit for nothing that comes. Fixed: a buffer for
    the sharpest volume, and jaws on the CPU."""
    jaws = []
    buffer = torch.empty(271**3, device=run.device) if run.fixed else None
    for step in run.steps(14):
        side = 180 + 7 * step
        volume = scanned(side, buffer, run.device)
        lower = volume[: 3 * side // 5]
        jaws.append(lower.cpu() if run.fixed else lower.clone())  # guilty
        del volume, lower
    assert len(jaws) == 14


@job("healthy")
def teeth_with_checkpoints(run):
    """Training with checkpoint() around each block, on one jaw or two at a time, and a test after each fifth step in
    which the classes of all voxels are counted."""
    model = ToothNet(run_block=lambda block, hidden: checkpoint(block, hidden, use_reentrant=False)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    counts = torch.zeros(5, dtype=torch.long, device=run.device)
    for step in run.steps(15):
        volume, teeth = jaw(48, run.device, 1 + step % 2)
        loss = F.cross_entropy(model(volume), teeth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            with torch.no_grad():
                counts += torch.bincount(model(jaw(64, run.device)[0]).argmax(1).flatten(), minlength=5)
    assert counts.sum().item() == 3 * 64**3
