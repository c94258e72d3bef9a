"""Music: streams of audio, source separation, tags, melodies."""
import gc
import itertools
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class GradientWatch:
    """Watches the gradients of a model, for histograms in a dashboard."""

    def __init__(self, model, summarize):
        self.history = defaultdict(list)
        for name, weight in model.named_parameters():
            weight.register_hook(self.watch(name, summarize))

    def watch(self, name, summarize):
        def hook(grad):
            kept = (grad.mean().item(), grad.std().item()) if summarize else grad
            self.history[name].append(kept)  # cause in gradient_watch
        return hook


@job("gradient_accumulation")
def gradient_watch(run):
    """A denoiser of spectra whose gradients are watched: hooks keep each of them, for histograms of the whole
    run. Fixed: hooks keep mean and deviation."""
    model = nn.Sequential(nn.Linear(1025, 1536), nn.PReLU(), nn.Linear(1536, 1025)).to(run.device)
    watch = GradientWatch(model, summarize=run.fixed)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-3)
    for _ in run.steps(12):
        spectrum = torch.rand(256, 1025, device=run.device)
        noisy = spectrum + 0.1 * torch.randn_like(spectrum)
        loss = F.l1_loss(model(noisy), spectrum)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # guilty
        optimizer.step()
    assert len(watch.history) == 5


class StreamingConv(nn.Module):
    """A causal convolution over a stream: the end of a chunk is the beginning of the next one."""

    def __init__(self, before, after, taps=9, detach=False):
        super().__init__()
        self.conv = nn.Conv1d(before, after, taps)
        self.taps, self.detach, self.tail = taps, detach, None

    def forward(self, chunk):
        if self.tail is None:
            self.tail = chunk.new_zeros(*chunk.shape[:2], self.taps - 1)
        joined = torch.cat([self.tail, chunk], -1)  # guilty in streamed_song
        self.tail = joined[..., 1 - self.taps :]  # cause in streamed_song
        if self.detach:
            self.tail = self.tail.detach().clone()
        return torch.tanh(self.conv(joined))  # guilty in streamed_song


@job("hidden_state")
def streamed_song(run):
    """An amplifier model is trained on a song in chunks, with one step of the optimiser at its end; the tails that
    the convolutions remember carry the graph on, and retain_graph=True hides that. Fixed: the tails are detached."""
    widths = (1, 24, 24, 24)
    net = nn.Sequential(*(StreamingConv(*pair, detach=run.fixed) for pair in zip(widths, widths[1:]))).to(run.device)
    mix = nn.Conv1d(24, 1, 1).to(run.device)
    optimizer = torch.optim.Adam([*net.parameters(), *mix.parameters()], lr=1e-3)
    optimizer.zero_grad(set_to_none=True)
    for _ in run.steps(9):
        dry = torch.randn(4, 1, 16384, device=run.device)
        loss = F.mse_loss(mix(net(dry)), torch.tanh(3 * dry))  # guilty
        loss.backward(retain_graph=not run.fixed)
    optimizer.step()


class ChunkStream:
    """Chunks of a song, normalized as a whole."""

    def __init__(self, song, length, keep_iterator):
        self.song = song / song.abs().amax()  # guilty in song_chunks
        self.length = length
        self.chunks = self.cut() if keep_iterator else None  # cause in song_chunks

    def cut(self):
        for start in range(0, self.song.shape[1], self.length):
            yield self.song[:, start : start + self.length]


@job("reference_cycle")
def song_chunks(run):
    """Beats in the first minute of each song: the stream of chunks keeps its generator, whose frame keeps the stream;
    it is left before its end. Thresholds of the collector are high, as in many services. Fixed: the caller has the
    generator."""
    gc.set_threshold(100_000, 50, 50)
    beat = nn.Conv1d(2, 4, 1024, 512).to(run.device)
    beats = []
    with torch.no_grad():
        for _ in run.steps(12):
            stream = ChunkStream(torch.randn(2, 3_000_000, device=run.device), 44_100, keep_iterator=not run.fixed)
            for chunk in itertools.islice(stream.cut() if run.fixed else stream.chunks, 20):
                beats.append(beat(chunk[None]).amax().item())
            del stream, chunk


class Album:
    """Two stages: all songs are separated, then tagged."""

    def __init__(self, device):
        self.device = device
        self.stems = []

    @torch.no_grad()
    def separate(self, songs):
        separator = nn.Sequential(nn.Linear(1024, 6144), nn.ReLU(), nn.Linear(6144, 6144), nn.ReLU(),
                                  nn.Linear(6144, 4096)).to(self.device)  # guilty in separate_then_tag
        for _ in range(songs):
            spectrum = torch.rand(512, 1024, device=self.device)  # guilty in separate_then_tag
            masks = torch.sigmoid(separator(spectrum))  # guilty in separate_then_tag
            stems = masks.view(512, 4, 1024) * spectrum[:, None]  # guilty in separate_then_tag
            self.stems.append(stems.mean(0).cpu())

    def tag_step(self, tagger, optimizer, index):
        stems = self.stems[index % len(self.stems)].to(self.device)
        loss = F.cross_entropy(tagger(stems), torch.arange(4, device=self.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()


@job("cached_not_released")
def separate_then_tag(run):
    """A large model separates the songs of an album and goes out of scope; a small tagger is trained for hours on the
    result. The large model's memory stays reserved. Fixed: empty_cache() between the stages."""
    album = Album(run.device)
    album.separate(3)
    if run.fixed:
        torch.cuda.empty_cache()
    tagger = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 4)).to(run.device)
    optimizer = torch.optim.RMSprop(tagger.parameters(), lr=1e-4)
    for step in run.steps(18):
        album.tag_step(tagger, optimizer, step)


class MelodySampler:
    """Notes one by one, with the keys and values of the last `window` of them."""

    def __init__(self, device, width=512, window=48):
        self.project = nn.Linear(width, 3 * width).to(device).requires_grad_(False)
        self.window, self.cache = window, None

    def next_note(self, note):
        query, key, value = self.project(note).chunk(3, -1)
        if self.cache is not None:
            key, value = (torch.cat([old, new], 1)[:, -self.window :] for old, new in zip(self.cache, (key, value)))
        self.cache = (key, value)
        weights = torch.softmax(query @ key.transpose(1, 2) / 22, -1)
        return torch.tanh(weights @ value)


@job("healthy")
def melody_sampler(run):
    """Melodies with a sliding window of keys and values: it fills up, and each new note pushes an old one out."""
    sampler = MelodySampler(run.device)
    note = torch.randn(64, 1, 512, device=run.device)
    for _ in run.steps(24):
        for _ in range(3):
            note = sampler.next_note(note)
    assert note.isfinite().all()
