"""Click models that learn from the stream of impressions as it comes in."""
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class ClickModel(nn.Module):
    """Predicts clicks and conversions from the same embedding of an impression."""

    def __init__(self, fields=512, width=1024):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(fields, width), nn.ReLU())
        self.click = nn.Linear(width, 1)
        self.conversion = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, impressions):
        shared = self.trunk(impressions)  # guilty in awaited_conversions
        return self.click(shared).squeeze(1), self.conversion(shared).squeeze(1)  # guilty in awaited_conversions


class DelayedFeedback:
    """Predictions of conversions by hour, until the advertiser reports which of them came true."""

    def __init__(self):
        self.open = {}

    def expect(self, hour, predictions):
        self.open[hour] = predictions

    def reported(self, hour, conversions):
        predictions = self.open.pop(hour)
        return F.binary_cross_entropy_with_logits(predictions, conversions).item()


@job("retained_graph")
def awaited_conversions(run):
    """Clicks are learned at once; the predicted conversions of each batch wait for the report of the next day, with
    the graph of the conversion head, through which backward() never went. Fixed: detached predictions wait."""
    model = ClickModel().to(run.device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    feedback = DelayedFeedback()
    for hour in run.steps(12):
        impressions = torch.randn(4096, 512, device=run.device)
        clicked = torch.rand(4096, device=run.device).round()
        clicks, conversions = model(impressions)
        loss = F.binary_cross_entropy_with_logits(clicks, clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        feedback.expect(hour, conversions.detach() if run.fixed else conversions)  # cause
        if hour >= 24:
            feedback.reported(hour - 24, torch.rand(4096, device=run.device).round())


class ParameterServer:
    """Applies the gradients of its workers late, as they would arrive over a slow network."""

    def __init__(self, parameters, delay, rate, forget):
        self.parameters = parameters
        self.delay = delay
        self.rate = rate
        self.forget = forget
        self.arrived = deque()

    def push(self, gradients):
        self.arrived.append(gradients)
        if len(self.arrived) < self.delay:
            return
        stale = self.arrived.popleft() if self.forget else self.arrived[-self.delay]  # cause in stale_workers
        with torch.no_grad():
            for parameter, gradient in zip(self.parameters, stale):
                parameter.sub_(gradient, alpha=self.rate)


@job("gradient_accumulation")
def stale_workers(run):
    """A simulation of asynchronous training: the server looks up the gradients of three pushes ago in its queue and
    removes none. Fixed: they leave the queue as they are applied."""
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, 1))
    model.to(run.device)
    parameters = list(model.parameters())
    server = ParameterServer(parameters, delay=3, rate=0.01, forget=run.fixed)
    for _ in run.steps(16):
        impressions = torch.randn(1024, 1024, device=run.device)
        clicked = torch.rand(1024, 1, device=run.device).round()
        model.zero_grad(set_to_none=True)
        F.binary_cross_entropy_with_logits(model(impressions), clicked).backward()  # guilty
        server.push([parameter.grad for parameter in parameters])
        model.zero_grad(set_to_none=True)


class BackgroundRanking:
    """How well the embeddings of a batch rank, found on a stream beside the training."""

    def __init__(self, device, patient):
        self.stream = torch.cuda.Stream()
        self.patient = patient
        self.done = None
        self.quality = torch.zeros((), device=device)

    def update(self, embeddings):
        if self.patient and self.done:
            self.done.synchronize()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            ranks = embeddings
            for _ in range(8):
                ranks = F.normalize(ranks @ (embeddings.T @ ranks))
            self.quality += ranks.mean()
        embeddings.record_stream(self.stream)  # cause in ranking_beside_training
        self.done = self.stream.record_event()


def learn_clicks(tower, head, optimizer, ranking, device):
    with torch.no_grad():
        embeddings = tower(torch.randn(16384, 256, device=device))  # guilty in ranking_beside_training
    ranking.update(embeddings)
    clicked = torch.rand(16384, 1, device=device).round()
    loss = F.binary_cross_entropy_with_logits(head(embeddings), clicked)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@job("cross_stream_pending")
def ranking_beside_training(run):
    """Each batch of embeddings is also ranked on a second stream, which takes far longer than learning from it; the
    embeddings of all batches wait for their turn. Fixed: a batch is ranked only when the last one has been."""
    tower = nn.Linear(256, 1024).to(run.device).requires_grad_(False)
    head = nn.Linear(1024, 1).to(run.device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    ranking = BackgroundRanking(run.device, patient=run.fixed)
    for _ in run.steps(12):
        learn_clicks(tower, head, optimizer, ranking, run.device)


@job("healthy")
def hours_in_the_window(run):
    """Learns from a window of the last eight hours of impressions, which stays on the device; it fills up first, and
    the optimizer makes its state in the first step."""
    model = ClickModel().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    window = deque(maxlen=8)
    for _ in run.steps(20):
        window.append((torch.randn(8192, 512, device=run.device), torch.rand(8192, device=run.device).round()))
        for impressions, clicked in list(window)[-3:]:
            clicks, conversions = model(impressions)
            loss = F.binary_cross_entropy_with_logits(clicks, clicked)
            loss = loss + 0.1 * F.binary_cross_entropy_with_logits(conversions, clicked)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
