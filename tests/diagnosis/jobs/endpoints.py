"""Web services that infer."""
from collections import OrderedDict
from concurrent.futures import Future

import torch
from torch import nn

from job import job


def read_layer(rows, width):
    """Stands for a layer that is read from a file."""
    return torch.randn(rows, width) / width**0.5


class WideningNetwork:
    """A feed-forward service model in bfloat16, loaded layer by layer."""

    def __init__(self, device, convert_first):
        self.device, self.convert_first = device, convert_first
        self.layers = []

    def load(self, sizes, width):
        for rows in sizes:
            weight = read_layer(rows, width)
            if self.convert_first:
                self.layers.append(weight.bfloat16().to(self.device))
            else:
                whole = weight.to(self.device)  # guilty in layers_in_half
                self.layers.append(whole.bfloat16())  # guilty in layers_in_half
                del whole

    @torch.inference_mode()
    def answer(self, request):
        hidden = request
        for weight in self.layers:
            hidden = hidden + torch.relu(hidden @ weight.T) @ weight
        return hidden.float().mean(1)


@job("fragmentation")
def layers_in_half(run):
    """A service loads its layers, each wider than the one before, in single precision onto the GPU and converts them
    there: each converted layer takes its place in what a layer before was read into, and the rest of it serves nobody.
    Fixed: they are converted before they are moved."""
    network = WideningNetwork(run.device, convert_first=run.fixed)
    network.load([int(3400 * 1.1**layer) for layer in range(16)], 1024)
    for _ in run.steps(10):
        request = torch.randn(64, 1024, device=run.device, dtype=torch.bfloat16)
        assert len(network.answer(request).tolist()) == 64


class FrameWriter:
    """Sends finished pictures to the client from a stream of its own; a delay stands for the encoder."""

    def __init__(self, shape, patient):
        self.stream = torch.cuda.Stream()
        self.host = torch.empty(shape, pin_memory=True)
        self.patient = patient
        self.sent = None

    def write(self, picture):
        if self.patient and self.sent is not None:
            self.sent.synchronize()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(25_000_000)
            self.host.copy_(picture, non_blocking=True)
        picture.record_stream(self.stream)  # cause in style_service
        self.sent = self.stream.record_event()


class StyleService:
    def __init__(self, device, writer):
        self.style = nn.Conv2d(3, 3, 3, padding=1).to(device).eval()
        self.writer = writer

    @torch.inference_mode()
    def handle(self, picture):
        styled = torch.sigmoid(self.style(picture))  # guilty in style_service
        self.writer.write(styled)


@job("cross_stream_pending")
def style_service(run):
    """A service for pictures hands each result to a writer with a stream of its own, which is slower than the model;
    results wait for it. Fixed: a picture is handed in when the one before has been sent."""
    shape = (2, 3, 1080, 1920)
    service = StyleService(run.device, FrameWriter(shape, patient=run.fixed))
    picture = torch.rand(shape, device=run.device)
    for _ in run.steps(14):
        service.handle(picture)


class ResultCache:
    """The latest results up to a number of bytes."""

    def __init__(self, limit):
        self.limit, self.size, self.entries = limit, 0, OrderedDict()

    def put(self, key, value):
        self.entries[key] = value
        self.size += value.numel() * value.element_size()
        while self.size > self.limit:
            _, old = self.entries.popitem(last=False)
            self.size -= old.numel() * old.element_size()


class Batcher:
    """Gathers requests and answers them together."""

    def __init__(self, model, cache):
        self.model, self.cache, self.waiting = model, cache, []

    def submit(self, key, rows):
        future = Future()
        self.waiting.append((key, rows, future))
        return future

    @torch.inference_mode()
    def flush(self):
        answers = self.model(torch.cat([rows for _, rows, _ in self.waiting]))
        for (key, rows, future), answer in zip(self.waiting, answers.split([len(r) for _, r, _ in self.waiting])):
            self.cache.put(key, answer.clone())
            future.set_result(answer[:, 0].tolist())
        self.waiting = []


@job("healthy")
def batching_server(run):
    """A server that answers requests of several sizes in batches and caches results up to 64 MiB: it grows until the
    cache is full."""
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024)).to(run.device).eval()
    batcher = Batcher(model, ResultCache(64 << 20))
    for step in run.steps(24):
        sizes = [256 + 128 * ((7 * step + 3 * client) % 5) for client in range(5)]
        futures = [batcher.submit((step, client), torch.randn(size, 256, device=run.device))
                   for client, size in enumerate(sizes)]
        batcher.flush()
        assert [len(future.result()) for future in futures] == sizes
