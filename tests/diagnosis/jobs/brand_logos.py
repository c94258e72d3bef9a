"""Representations of logos by contrast: queues of keys, augmentation ahead of the training."""
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class LogoEncoder(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.second = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.head = nn.Linear(2 * width, 128)

    def forward(self, logos):
        hidden = F.relu(self.first(logos))  # guilty in keys_of_old_logos
        hidden = F.relu(self.second(hidden))  # guilty in keys_of_old_logos
        return F.normalize(self.head(hidden.mean((2, 3))), dim=1)


def two_views(count, device, pixels=64):
    logos = torch.rand(count, 3, pixels, pixels, device=device)
    noisy = logos.flip(3) + 0.05 * torch.randn_like(logos)
    return noisy, logos * 0.9  # guilty in keys_of_old_logos


def follow(slow, fast, rate=0.01):
    with torch.no_grad():
        for old, new in zip(slow.parameters(), fast.parameters()):
            old.lerp_(new, rate)


@job("retained_graph")
def keys_of_old_logos(run):
    """The keys of a momentum encoder go to a queue of many batches. Its weights ask for gradients like any others, so
    each key has a graph; the loss takes them detached. Fixed: no_grad() around the keys."""
    encoder, momentum = LogoEncoder().to(run.device), LogoEncoder().to(run.device)
    momentum.load_state_dict(encoder.state_dict())
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.03)
    queue = deque(maxlen=4096)
    for _ in run.steps(13):
        first, second = two_views(64, run.device)
        queries = encoder(first)
        with torch.set_grad_enabled(not run.fixed):
            keys = momentum(second)
        queue.append(keys)  # cause
        others = torch.cat([key.detach() for key in queue])
        loss = F.cross_entropy(queries @ others.T / 0.07, torch.arange(64, device=run.device) + len(others) - 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        follow(momentum, encoder)


class Augmenter:
    """Makes batches on a stream of its own, while the last ones are trained on."""

    def __init__(self, device, most_ahead=None):
        self.device = device
        self.stream = torch.cuda.Stream()
        self.trained = deque()
        self.most_ahead = most_ahead

    def next_batch(self):
        with torch.cuda.stream(self.stream):
            logos = torch.rand(160, 3, 128, 128, device=self.device)  # guilty in augmented_far_ahead
        torch.cuda.current_stream().wait_stream(self.stream)
        logos.record_stream(torch.cuda.current_stream())  # cause in augmented_far_ahead
        return logos

    def batch_done(self):
        if self.most_ahead is None:
            return
        self.trained.append(torch.cuda.current_stream().record_event())
        if len(self.trained) > self.most_ahead:
            self.trained.popleft().synchronize()


@job("cross_stream_pending")
def augmented_far_ahead(run):
    """Batches are augmented on another stream than that of the training, which is far behind the Python program: what
    it has not trained with yet is freed, and waits. Fixed: at most one batch is not trained with."""
    augmenter = Augmenter(run.device, most_ahead=1 if run.fixed else None)
    weight = torch.randn(3072, 3072, device=run.device) / 55
    with torch.no_grad():
        for _ in run.steps(15):
            logos = augmenter.next_batch()
            hidden = logos.view(-1, 3072)[:2400]
            for _ in range(40):
                hidden = torch.relu(hidden @ weight)
            del logos
            augmenter.batch_done()


def distances(logos, catalogue, broadcast):
    if broadcast:
        return (logos[:, None] - catalogue[None]).square().sum(2).sqrt()  # guilty in catalogue_of_a_country
    return torch.cdist(logos, catalogue)


@job("true_capacity")
def catalogue_of_a_country(run):
    """Distances between logos and catalogues, by the broadcast difference of all pairs: for the catalogue of a large
    country it does not fit. Fixed: cdist()."""
    run.cap(600)
    catalogues = [600, 900, 700, 1200, 800, 9000, 700]
    with torch.no_grad():
        for step in run.steps(len(catalogues)):
            catalogue = torch.randn(catalogues[step % len(catalogues)], 256, device=run.device)
            logos = torch.randn(128, 256, device=run.device)
            assert len(distances(logos, catalogue, broadcast=not run.fixed).argmin(1).tolist()) == 128


@job("healthy")
def bank_of_all_logos(run):
    """A bank has a row for each logo from the start; rows are renewed as their logos are met. The bank is copied for a
    nearest-neighbour test after each sixth batch."""
    encoder = LogoEncoder().to(run.device)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.03)
    bank = F.normalize(torch.randn(40_000, 128, device=run.device), dim=1)
    for step in run.steps(18):
        first, second = two_views(64, run.device)
        rows = torch.randint(40_000, (64,), device=run.device)
        queries = encoder(first)
        loss = F.cross_entropy(queries @ bank.T / 0.07, rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            bank[rows] = encoder(second)
            if step % 6 == 5:
                tested = bank.clone()
                assert (tested[:500] @ tested.T).topk(2).indices.shape == (500, 2)
                del tested
