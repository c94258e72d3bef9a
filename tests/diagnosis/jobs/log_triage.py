"""Triage of anomalies in logs: embedding of log windows, incidents, services that answer."""
import gc
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from job import job

LINES = 12288  # the most of a window


class Incidents:
    """What the encoder made of the log windows of open incidents, to compare new ones with."""

    def __init__(self, device, slots=0):
        self.encoder = nn.Sequential(nn.Linear(192, 2048), nn.ReLU(), nn.Linear(2048, 1152)).to(device)
        self.slots = torch.empty(slots, LINES, 1152, device=device)
        self.free = list(range(slots))
        self.open = {}

    @torch.inference_mode()
    def begin(self, number, window):
        if self.free:
            slot = self.free.pop()
            for part in range(0, len(window), 1024):
                lines = self.encoder(window[part : part + 1024])
                self.slots[slot, part : part + len(lines)] = lines
            self.open[number] = slot
        else:
            self.open[number] = self.encoder(window)  # guilty in windows_of_open_incidents

    def close(self, number):
        slot = self.open.pop(number)
        if isinstance(slot, int):
            self.free.append(slot)


@job("fragmentation")
def windows_of_open_incidents(run):
    """Incidents open and close; most live for three steps, some stay. The embedding of each is carved out of the larger
    intermediate result of its kind, and the rest is of no use for the next window, whose size is another. Fixed: slots
    for twelve incidents, written in parts."""
    incidents = Incidents(run.device, slots=12 if run.fixed else 0)
    for step in run.steps(24):
        lines = LINES - 613 * step % 1000
        incidents.begin(step, torch.randn(lines, 192, device=run.device))
        if step >= 3 and step % 3:
            incidents.close(step - 3)


class Request:
    """A window of log lines to be judged, and whom to tell."""

    def __init__(self, lines):
        self.lines = lines
        self.scores = None
        self.on_done = None


class TriageService:
    """Takes requests, and calls back."""

    def __init__(self, device, tidy):
        self.network = nn.Sequential(nn.Linear(256, 768), nn.GELU(), nn.Linear(768, 512)).to(device).eval()
        self.tidy = tidy
        self.alarms = 0

    def submit(self, request):
        request.on_done = partial(self.finish, request)  # cause in callbacks_of_requests
        with torch.inference_mode():
            request.scores = self.network(request.lines)  # guilty in callbacks_of_requests
        request.on_done()
        if self.tidy:
            request.on_done = None

    def finish(self, request):
        self.alarms += int(request.scores.max().item() > 3)


@job("reference_cycle")
def callbacks_of_requests(run):
    """A service that switched the cyclic collector off because of its pauses; each request has a callback that is bound
    to the request. Fixed: the callback is removed when it has been called."""
    service = TriageService(run.device, tidy=run.fixed)
    gc.disable()
    for _ in run.steps(16):
        service.submit(Request(torch.randn(8192, 256, device=run.device)))  # guilty


class AlertBuffer:
    """Past alerts in blocks, which are made as they are needed; when all are there, the oldest is written over."""

    def __init__(self, blocks, rows, device):
        self.most = blocks
        self.rows = rows
        self.device = device
        self.blocks = []
        self.written = 0

    def store(self, alerts):
        if len(self.blocks) < self.most:
            self.blocks.append(torch.empty(self.rows, alerts.shape[1], device=self.device))
        self.blocks[self.written % self.most].copy_(alerts)
        self.written += 1

    def sample(self, count):
        block = self.blocks[torch.randint(len(self.blocks), ()).item()]
        return block[torch.randint(self.rows, (count,), device=self.device)]


@job("healthy")
def rehearsed_alerts(run):
    """A detector that learns from new alerts and from a buffer of old ones, which grows for twelve steps."""
    detector = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(run.device)
    optimizer = torch.optim.Adagrad(detector.parameters(), lr=0.01)
    buffer = AlertBuffer(12, 4096, run.device)
    for _ in run.steps(24):
        alerts = torch.randn(4096, 512, device=run.device)
        buffer.store(alerts)
        for batch in (alerts, buffer.sample(2048)):
            loss = F.mse_loss(detector(batch), batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()


@job("healthy")
def state_of_each_host(run):
    """A recurrent model follows the logs of nine hosts in turn, each with a state that is detached before it is kept;
    the states come into being one by one."""
    cell = nn.GRUCell(128, 512).to(run.device)
    following = nn.Linear(512, 128).to(run.device)
    optimizer = torch.optim.RMSprop([*cell.parameters(), *following.parameters()], lr=1e-4)
    states = {}
    for step in run.steps(24):
        host = step % 9
        state = states.get(host, torch.zeros(4096, 512, device=run.device))
        events = torch.randn(4, 4096, 128, device=run.device)
        loss = 0
        for now, then in zip(events, events[1:]):
            state = cell(now, state)
            loss = loss + F.mse_loss(following(state), then)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        states[host] = state.detach()
