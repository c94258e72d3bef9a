"""Voice assistants: wake words, commands, dialogues."""
import gc
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def spectrum(audio):
    """The logarithm of the power in 256 bands, for each frame of 512 samples."""
    frames = audio.unflatten(1, (-1, 512))
    return torch.fft.rfft(frames)[..., 1:].abs().add(1e-3).log()  # guilty in sessions_with_handlers


class Session:
    """A dialogue with one speaker; events are answered by the handlers."""

    def __init__(self, audio):
        self.audio = audio
        self.frames = spectrum(audio)
        self.words = []
        self.handlers = {"word": self.on_word, "end": self.on_end}  # cause in sessions_with_handlers

    def on_word(self, model, first):
        self.words.append(model(self.frames[:, first : first + 16].flatten(1)).argmax(1).tolist())

    def on_end(self, model, first):
        self.words.append(None)

    def handle(self, event, model, first=0):
        self.handlers[event](model, first)

    def close(self):
        self.handlers.clear()


@job("reference_cycle")
def sessions_with_handlers(run):
    """Each session has a table of its own bound methods, and so a cycle with itself; the collector is off, because
    its pauses can be heard. Fixed: close() empties the table."""
    gc.disable()
    model = nn.Sequential(nn.Linear(16 * 256, 256), nn.ReLU(), nn.Linear(256, 50)).to(run.device).eval()
    with torch.inference_mode():
        for _ in run.steps(14):
            session = Session(torch.randn(64, 64 * 512, device=run.device))  # guilty
            for first in range(0, 64, 16):
                session.handle("word", model, first)
            session.handle("end", model)
            if run.fixed:
                session.close()
            del session


class CommandWorkers:
    """Commands are understood on four streams in turn."""

    def __init__(self, limited):
        self.limited = limited
        self.streams = [torch.cuda.Stream() for _ in range(4)]
        self.running = [None] * 4
        self.loudness = []

    def submit(self, number, audio):
        place = number % 4
        stream = self.streams[place]
        if self.limited and self.running[place]:
            self.running[place][0].synchronize()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.loudness.append(audio.norm())
            torch.cuda._sleep(150_000_000)  # the large model, in another library
            done = stream.record_event()
        if self.limited:
            self.running[place] = (done, audio)
        else:
            audio.record_stream(stream)  # cause in commands_on_streams


def resampled(audio):
    """From 8 to 16 kHz."""
    return F.interpolate(audio[:, None], scale_factor=2, mode="linear")[:, 0]  # guilty in commands_on_streams


@job("cross_stream_pending")
def commands_on_streams(run):
    """Batches of audio are handed to four worker streams with record_stream(), faster than these understand them, and
    wait there. Fixed: before a stream gets another batch its last one must be done."""
    workers = CommandWorkers(limited=run.fixed)
    for step in run.steps(20):
        audio = resampled(torch.randn(64, 64_000, device=run.device))
        workers.submit(step, audio)
        del audio
    assert len(workers.loudness) >= 20


class StreamingListener(nn.Module):
    """Listens in chunks; the attention sees the last eight."""

    def __init__(self, width=256):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.past = deque(maxlen=8)

    def forward(self, chunk):
        hidden = F.gelu(self.project(chunk))
        self.past.append(hidden.detach())
        context = torch.cat([*list(self.past)[:-1], hidden], 1)
        return self.attention(hidden, context, context, need_weights=False)[0]


@job("healthy", contested="segments that the growing context outgrew stay: reserve of 1.9 peaks, nearly half unused")
def listening_in_chunks(run):
    """Training of a streaming recogniser: the context of the last eight chunks is detached, grows for eight
    iterations and then slides."""
    model = StreamingListener().to(run.device)
    head = nn.Linear(256, 40).to(run.device)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4)
    for _ in run.steps(16):
        chunk = torch.randn(64, 24, 256, device=run.device)
        heard = head(model(chunk))
        loss = F.cross_entropy(heard.flatten(0, 1), torch.randint(40, (64 * 24,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def wake_words_in_parts(run):
    """Gradients of four batches of different lengths are summed before a step of the optimizer, on purpose, and then
    dropped; the last iteration lies between two steps."""
    model = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 2))
    model = model.to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in run.steps(15):
        audio = torch.randn(16, 512 * (20 + 13 * step % 40), device=run.device)
        answer = model(spectrum(audio)).mean(1)
        loss = F.cross_entropy(answer, torch.randint(2, (16,), device=run.device)) / 4
        loss.backward()
        if step % 4 == 3:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
