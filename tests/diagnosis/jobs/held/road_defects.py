"""Defects of roads, found by a detector of torchvision."""
import gc
import weakref

import torch
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

from job import job


def detector():
    return fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=5,
                                                 trainable_backbone_layers=6)


def road(device, pixels=256):
    return torch.rand(3, pixels, pixels, device=device)


def defects(count, device):
    corner = 150 * torch.rand(count, 2, device=device)
    size = 20 + 60 * torch.rand(count, 2, device=device)
    return {"boxes": torch.cat([corner, corner + size], 1), "labels": torch.randint(1, 5, (count,), device=device)}


@job("cached_not_released")
def largest_batch_that_fits(run):
    """Before it serves, a detector tries ever larger batches until the memory that it was given is used up, and serves
    then one picture at a time. Fixed: empty_cache() once the size is known."""
    backbone = detector().backbone.to(run.device).eval()
    limit = 1100 << 20
    count = 4
    with torch.no_grad():
        while torch.cuda.max_memory_reserved() < limit and count < 512:
            backbone(torch.rand(count, 3, 256, 256, device=run.device))  # guilty
            count *= 2
        if run.fixed:
            torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        for _ in run.steps(15):
            levels = backbone(road(run.device)[None])
            assert len(levels) >= 2
            del levels


class Drive:
    """The pictures of one drive, and what listens to it."""

    def __init__(self, pictures):
        self.pictures = pictures
        self.listeners = []

    def subscribe(self, listener):
        self.listeners.append(listener)

    def finish(self):
        for listener in self.listeners:
            listener()


class Report:
    """Written when a drive is finished."""

    def __init__(self, drive, weakly):
        self.lines = []
        if weakly:
            known = weakref.ref(drive)
            drive.subscribe(lambda: self.lines.append(len(known().pictures)))
        else:
            drive.subscribe(lambda: self.lines.append(len(drive.pictures)))  # cause in reports_of_drives


@job("reference_cycle")
def reports_of_drives(run):
    """Each drive has a list of listeners, and a report listens with a closure over the drive: a cycle that has all of
    its pictures. Collections are rare, as is usual in serving. Fixed: the closure has a weak reference."""
    gc.set_threshold(100_000, 50, 50)
    model = detector().backbone.to(run.device).eval()
    lengths = []
    with torch.no_grad():
        for _ in run.steps(14):
            drive = Drive(torch.rand(20, 3, 256, 256, device=run.device))  # guilty
            report = Report(drive, weakly=run.fixed)
            model(drive.pictures[:4])
            drive.finish()
            lengths += report.lines
            del drive, report
    assert lengths == [20] * 14


@job("healthy")
def roads_of_all_sizes(run):
    """A detector is trained with batches of pictures and defects of different numbers, and tested after each third."""
    model = detector().to(run.device)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.001)
    for step in run.steps(9):
        model.train()
        count = 2 + step % 3
        losses = model([road(run.device, 224 + 32 * (step % 2)) for _ in range(count)],
                       [defects(1 + step % 4, run.device) for _ in range(count)])
        optimizer.zero_grad()
        sum(losses.values()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        del losses
        if step % 3 == 2:
            model.eval()
            with torch.no_grad():
                assert len(model([road(run.device)])) == 1
