"""Text-to-speech: vocoders, codecs, streaming synthesis."""
import gc
import itertools
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job

CYCLES = 20_000_000  # about 10 ms on a GPU of 2 GHz


class Vocoder(nn.Module):
    """Mel frames to samples."""

    def __init__(self, mels=80, hop=256, width=256):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(mels, width), nn.GELU(), nn.Linear(width, hop))

    def forward(self, mel):
        return self.body(mel).flatten(1)  # guilty in speech_sessions


class SpeechSession:
    """One sentence that is spoken in chunks; what happens to them is up to handlers."""

    def __init__(self, vocoder):
        self.vocoder = vocoder
        self.chunks = []
        self.handlers = {"chunk": self.keep, "end": self.finish}  # cause in speech_sessions
        self.seconds = 0.0

    def keep(self, audio):
        self.chunks.append(audio)

    def finish(self):
        self.seconds = sum(chunk.shape[1] for chunk in self.chunks) / 22_050

    def speak(self, mels):
        for mel in mels:
            self.handlers["chunk"](self.vocoder(mel))
        self.handlers["end"]()
        return self.seconds

    def close(self):
        self.handlers.clear()


@job("reference_cycle")
def speech_sessions(run):
    """A synthesis server without the cyclic collector, for its pauses. A session's table of handlers has the
    session's own methods in it, so that finished sessions keep their audio. Fixed: close() empties the table."""
    gc.disable()
    vocoder = Vocoder().to(run.device).eval()
    with torch.inference_mode():
        for _ in run.steps(12):
            session = SpeechSession(vocoder)
            mels = torch.randn(5, 16, 200, 80, device=run.device)
            assert session.speak(mels) > 0
            if run.fixed:
                session.close()
            del session, mels


class GateMemory:
    """The gates of a unit, for when both losses of a step go back through it."""

    def __init__(self):
        self.calls = itertools.count()
        self.known = {}

    def gates(self, call, signal, weight):
        if call not in self.known:
            left, right = (weight @ signal).chunk(2, 1)
            self.known[call] = (torch.tanh(left), torch.sigmoid(right))  # guilty in recalled_gates
        return self.known[call]


class GatedUnit(torch.autograd.Function):
    """tanh times sigmoid of a mixture of channels; only the input is saved, the gates are computed again."""

    @staticmethod
    def forward(ctx, signal, weight, memory):
        ctx.save_for_backward(signal, weight)
        ctx.memory, ctx.call = memory, next(memory.calls)
        left, right = (weight @ signal).chunk(2, 1)
        return torch.tanh(left) * torch.sigmoid(right)

    @staticmethod
    def backward(ctx, grad):
        signal, weight = ctx.saved_tensors
        left, right = ctx.memory.gates(ctx.call, signal, weight)
        mixed = torch.cat([grad * right * (1 - left * left), grad * left * right * (1 - right)], 1)
        return weight.t() @ mixed, torch.einsum("bot,bct->oc", mixed, signal), None


class WaveNet(nn.Module):
    """A few gated units with residual connections."""

    def __init__(self, width, units, memory):
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(2 * width, width) / width) for _ in range(units))
        self.memory = memory

    def forward(self, signal):
        for weight in self.weights:
            signal = signal + GatedUnit.apply(signal, weight, self.memory)
        return signal


@job("checkpoint_cache")
def recalled_gates(run):
    """Units of a vocoder that compute their gates again in backward(). As two losses go back, one after the other,
    the gates are remembered by the number of the call, and nothing forgets them. Fixed: the memory is emptied after
    each step."""
    memory = GateMemory()
    model = WaveNet(48, 2, memory).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(9):
        signal = torch.randn(8, 48, 6000, device=run.device)
        output = model(signal)
        optimizer.zero_grad(set_to_none=True)
        F.l1_loss(output, signal).backward(retain_graph=True)
        output.square().mean().backward()
        optimizer.step()
        if run.fixed:
            memory.known.clear()
        del output


@torch.no_grad()
def k_means(frames, count, rounds):
    """The centres of the frames, by Lloyd's algorithm."""
    centres = frames[torch.randperm(len(frames), device=frames.device)[:count]].clone()
    for _ in range(rounds):
        nearest = torch.cdist(frames, centres).argmin(1)  # guilty in codec_training
        sums = torch.zeros_like(centres).index_add_(0, nearest, frames)
        centres = sums / torch.bincount(nearest, minlength=count).clamp_min(1)[:, None]
    return centres


@job("cached_not_released", contested="most of the unused memory is in a segment with a live block: fragmentation")
def codec_training(run):
    """The code book of a speech codec starts from the centres of many frames, whose matrix of distances is far larger
    than anything in training; the memory stays in the cache, while other trainings share the GPU. Fixed:
    empty_cache() once the code book is there."""
    width, codes = 64, 1024
    encoder = nn.Linear(80, width).to(run.device)
    decoder = nn.Linear(width, 80).to(run.device)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    with torch.no_grad():
        book = k_means(encoder(torch.randn(90_000, 80, device=run.device)), codes, 3)  # guilty
    if run.fixed:
        torch.cuda.empty_cache()
    for _ in run.steps(10):
        frames = torch.randn(1500, 80, device=run.device)
        latent = encoder(frames)
        chosen = book[torch.cdist(latent.detach(), book).argmin(1)]
        output = decoder(latent + (chosen - latent).detach())
        loss = F.mse_loss(output, frames) + 0.25 * F.mse_loss(latent, chosen)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


class SpeakingThread:
    """Turns mels into sound on a stream of its own; the vocoder is the slower half of the pipeline."""

    def __init__(self, device, ahead):
        self.stream = torch.cuda.Stream()
        self.energy = torch.zeros((), device=device)
        self.ahead = ahead
        self.events = deque()

    def submit(self, mel):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(CYCLES)
            torch.mean(mel, dim=(0, 1, 2), out=self.energy)
        mel.record_stream(self.stream)  # cause in two_stage_speech
        self.events.append(self.stream.record_event())
        while self.ahead is not None and len(self.events) > self.ahead:
            self.events.popleft().synchronize()


@job("cross_stream_pending")
def two_stage_speech(run):
    """The acoustic model hands its mels over to a vocoder on a second stream and goes on with the next sentences,
    however far behind the vocoder is. Fixed: it is at most one batch ahead."""
    acoustic = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 80)).to(run.device).eval()
    speaker = SpeakingThread(run.device, 1 if run.fixed else None)
    with torch.no_grad():
        for _ in run.steps(14):
            mel = acoustic(torch.randn(64, 1000, 256, device=run.device))  # guilty
            speaker.submit(mel)
            del mel


class OverlapAdd:
    """Joins windows of sound; the end of each is added to the beginning of the next."""

    def __init__(self, overlap):
        self.overlap = overlap
        self.tail = None

    def join(self, windows):
        for window in windows:
            if self.tail is not None:
                window[:, : self.overlap] += self.tail
            self.tail = window[:, -self.overlap :].clone()
            yield window[:, : -self.overlap]


@job("healthy")
def overlap_add_vocoder(run):
    """Long texts, spoken window by window by generators; each iteration collects its sound, longer for longer texts,
    and moves it to the host."""
    vocoder = Vocoder(width=512).to(run.device).eval()
    spoken = []
    with torch.no_grad():
        for step in run.steps(10):
            mels = (torch.randn(24, 150, 80, device=run.device) for _ in range(4 + step % 4))
            sound = torch.cat(list(OverlapAdd(2048).join(map(vocoder, mels))), 1)
            spoken.append(sound.half().cpu())
            del sound, mels
    assert spoken


class BufferRing:
    """Three output buffers that are used in turn, each after its last copy has ended."""

    def __init__(self, shape, device):
        self.buffers = [torch.empty(shape, device=device) for _ in range(3)]
        self.host = torch.empty(shape, pin_memory=True)
        self.events = [None] * 3
        self.stream = torch.cuda.Stream()
        self.turn = 0

    def acquire(self):
        self.turn = (self.turn + 1) % 3
        if self.events[self.turn]:
            self.events[self.turn].synchronize()
        return self.buffers[self.turn]

    def send(self):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.host.copy_(self.buffers[self.turn], non_blocking=True)
            self.events[self.turn] = self.stream.record_event()


@job("healthy")
def ring_of_buffers(run):
    """A service that copies sound to the host on a second stream, from three buffers that live as long as it does."""
    vocoder = Vocoder().to(run.device).eval()
    ring = BufferRing((32, 300 * 256), run.device)
    with torch.inference_mode():
        for _ in run.steps(16):
            mel = torch.randn(32, 300, 80, device=run.device)
            ring.acquire().copy_(vocoder(mel))
            ring.send()
            del mel
