"""Picking earthquakes from the records of seismometers."""
import logging
import logging.handlers

import torch
import torch.nn.functional as F
from torch import nn

from job import job

log = logging.getLogger("seismology")


class PhasePicker(nn.Module):
    """Probabilities of P waves, S waves and noise for each sample of three-component records."""

    def __init__(self, width=24):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv1d(3, width, 11, padding=5), nn.ReLU(),
                                    nn.Conv1d(width, width, 11, padding=5), nn.ReLU())
        self.classify = nn.Conv1d(width, 3, 1)

    def forward(self, records):
        return self.classify(self.encode(records))


def sharpness(logits):
    """How much a pick stands out from the samples around it."""
    chances = logits.softmax(1)  # guilty in debug_messages
    around = F.avg_pool1d(chances, 31, stride=1, padding=15)
    return (chances / (around + 1e-3)).log().amax(2).mean()  # guilty in debug_messages


class PickerTrainer:
    """One step of training, with messages for whoever has to find out why it diverges."""

    def __init__(self, device, log_numbers):
        self.model = PhasePicker().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.log_numbers = log_numbers

    def step(self, number, records, phases):
        logits = self.model(records)
        loss = F.cross_entropy(logits, phases)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        picked = sharpness(logits.detach()).item() if self.log_numbers else sharpness(logits)
        log.debug("step %d sharpness %.3f", number, picked)  # cause in debug_messages


@job("retained_graph")
def debug_messages(run):
    """A memory handler of the logging module keeps messages until an error occurs, to show what led to it. The
    arguments of a message are kept as they are, here a metric with its graph. Fixed: the message gets a number."""
    handler = logging.handlers.MemoryHandler(100_000, target=logging.NullHandler())
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(handler)
    trainer = PickerTrainer(run.device, log_numbers=run.fixed)
    for number in run.steps(14):
        records = torch.randn(48, 3, 12_000, device=run.device)
        trainer.step(number, records, torch.randint(3, (48, 12_000), device=run.device))
    log.removeHandler(handler)


class SpectrumMonitor:
    """Watches the spectra of incoming records on a stream of its own, so that picking is not slowed down."""

    def __init__(self, device, patient):
        self.stream = torch.cuda.Stream()
        self.level = torch.zeros(3, 32, device=device)
        self.stream.wait_stream(torch.cuda.current_stream())
        self.patient = patient

    def watch(self, records):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(14_000_000)  # stands for the many small kernels of the real monitor
            self.level.lerp_(records[:, :, :32].abs().mean(0), 0.1)
            watched = self.stream.record_event()
        records.record_stream(self.stream)  # cause in spectra_on_the_side
        if self.patient:
            watched.synchronize()


@job("cross_stream_pending")
def spectra_on_the_side(run):
    """Filtered records are watched by a monitor on another stream, which is slower than the picker and which nobody
    waits for. Fixed: the next records are filtered when the monitor has seen these."""
    band = nn.Conv1d(3, 3, 33, padding=16, groups=3).to(run.device).requires_grad_(False)
    monitor = SpectrumMonitor(run.device, patient=run.fixed)
    incoming = torch.randn(64, 3, 24_000, device=run.device)
    strongest = torch.zeros(64, device=run.device)
    for _ in run.steps(15):
        records = band(incoming)  # guilty
        torch.maximum(strongest, records.amax((1, 2)), out=strongest)
        monitor.watch(records)
        del records


class StationNetwork(nn.Module):
    """Locates an event from the features of all stations that have seen it; each station attends to all others."""

    def __init__(self, width=64):
        super().__init__()
        self.project = nn.Linear(8, 3 * width)
        self.locate = nn.Linear(width, 3)

    def forward(self, stations, rows=None):
        queries, keys, values = self.project(stations).chunk(3, 1)  # guilty in great_earthquake
        parts = queries.split(rows or len(stations))
        return self.locate(torch.cat([self.attend(part, keys, values) for part in parts]).mean(0))

    def attend(self, queries, keys, values):
        scores = (queries / 8) @ keys.T  # guilty in great_earthquake
        return torch.softmax(scores, 1) @ values


@job("true_capacity")
def great_earthquake(run):
    """Events are located by attention between the stations that recorded them. A great earthquake is recorded by all
    11,000 stations, and a matrix of all pairs does not fit. Fixed: 1024 stations ask at a time."""
    run.cap(640)
    network = StationNetwork().to(run.device).eval()
    recorded = (1800, 900, 3100, 2500, 1200, 4000, 2200, 11_000, 1500, 2000)
    with torch.no_grad():
        for event in run.steps(10):
            stations = torch.randn(recorded[event], 8, device=run.device)
            place = network(stations, rows=1024 if run.fixed else None)
            assert len(place.tolist()) == 3


class Trigger:
    """Keeps the frames of an event from when the ground begins to move until it is calm again."""

    def __init__(self, picker, longest):
        self.picker = picker
        self.longest = longest
        self.frames = []

    def feed(self, frame, moving):
        if moving:
            self.frames.append(frame)
        if self.frames and (not moving or len(self.frames) == self.longest):
            return self.analyse()
        return None

    def analyse(self):
        event, self.frames = torch.stack(self.frames), []
        return sum(self.picker(frame).argmax(1).float().mean().item() for frame in event) / len(event)


@job("healthy")
def triggered_windows(run):
    """Frames arrive all the time. While an event lasts they are kept. They are analysed and forgotten when it is over,
    or when there are nine of them."""
    trigger = Trigger(PhasePicker(width=8).to(run.device).eval(), longest=9)
    events = [(2, 6), (8, 9), (11, 25), (28, 34)]
    reports = []
    with torch.inference_mode():
        for step in run.steps(36):
            frame = torch.randn(40, 3, 10_000, device=run.device)
            frame = frame - frame.mean(2, keepdim=True)
            report = trigger.feed(frame, any(first <= step < last for first, last in events))
            if report is not None:
                reports.append(report)
    assert len(reports) == 5
