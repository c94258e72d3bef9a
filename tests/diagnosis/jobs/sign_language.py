"""Sign language: from video, or from the poses found in it, to glosses and sentences."""
import copy
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


class ClipReader(nn.Module):
    """Reads a film clip by clip and remembers what was signed before."""

    def __init__(self, truncate, poses=256, width=512, glosses=1000):
        super().__init__()
        self.truncate = truncate
        self.project = nn.Linear(poses, width)
        self.mix = nn.Linear(2 * width, width)
        self.gloss = nn.Linear(width, glosses)
        self.memory = None

    def forward(self, clip):
        hidden = torch.relu(self.project(clip))  # guilty in films_of_signers
        if self.memory is None:
            self.memory = hidden.new_zeros(hidden.shape[0], hidden.shape[2])
        past = self.memory[:, None].expand_as(hidden)
        both = torch.cat([hidden, past], 2)  # guilty in films_of_signers
        hidden = torch.tanh(self.mix(both))  # guilty in films_of_signers
        memory = hidden.mean(1)
        self.memory = memory.detach() if self.truncate else memory  # cause in films_of_signers
        return self.gloss(memory)


@job("hidden_state")
def films_of_signers(run):
    """A model that keeps a memory of the film as an attribute; gradients are summed over the film's clips. Each
    backward pass goes through all clips before, which retain_graph=True has made possible. Fixed: .detach()."""
    reader = ClipReader(truncate=run.fixed).to(run.device)
    optimizer = torch.optim.Adam(reader.parameters(), lr=1e-4)
    for _ in run.steps(10):
        clip = torch.randn(64, 32, 256, device=run.device)  # guilty
        signed = torch.randint(1000, (64,), device=run.device)
        loss = F.cross_entropy(reader(clip), signed) / 10
        loss.backward(retain_graph=not run.fixed)
    optimizer.step()


class FrameAttention(nn.Module):
    """Each frame attends to all frames of the clip."""

    def __init__(self, width=128, heads=4):
        super().__init__()
        self.heads = heads
        self.split = nn.Linear(width, 3 * width)
        self.softmax = nn.Softmax(-1)
        self.join = nn.Linear(width, width)

    def forward(self, frames):
        parts = self.split(frames).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        weights = self.softmax(query @ key.transpose(2, 3) / query.shape[3] ** 0.5)  # guilty in maps_of_attention
        return frames + self.join((weights @ value).transpose(1, 2).flatten(2))


class AttentionMaps:
    """Takes the attention maps of a model by hooks, for the pictures in the report."""

    def __init__(self, model):
        self.step = 0
        self.maps = defaultdict(list)
        for module in model.modules():
            if isinstance(module, nn.Softmax):
                module.register_forward_hook(self.store)

    def store(self, module, inputs, output):
        self.maps[self.step].append(output.detach())

    def take(self):
        """How much each layer attends to the first frame."""
        return [weights[..., 0].mean().item() for weights in self.maps.pop(self.step, ())]


@job("checkpoint_cache")
def maps_of_attention(run):
    """Hooks collect attention maps under the number of the step, and the report takes them after the forward pass;
    the recomputation of the checkpointed blocks in backward() stores them once more. Fixed: taken after backward()."""
    model = nn.ModuleList(FrameAttention() for _ in range(3)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    viewer = AttentionMaps(model)
    report = []
    for step in run.steps(10):
        viewer.step = step
        frames = torch.randn(8, 256, 128, device=run.device)
        for block in model:
            frames = checkpoint(block, frames, use_reentrant=False)
        if not run.fixed:
            report.append(viewer.take())  # cause
        optimizer.zero_grad()
        frames.square().mean().backward()
        if run.fixed:
            report.append(viewer.take())
        optimizer.step()


class SignDictionary:
    """Finds a sign in a dictionary of filmed examples."""

    def __init__(self, run):
        self.run = run
        self.encoder = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 256)).to(run.device).eval()
        self.examples = torch.zeros(800, 256, device=run.device)

    def refresh(self, at_once):
        """New examples from the editors, `at_once` so many."""
        for first in range(0, 800, at_once):
            films = torch.randn(at_once, 24, 1024, device=self.run.device)  # guilty in edited_dictionary
            vectors = self.encoder(films).mean(1)  # guilty in edited_dictionary
            self.examples[first : first + at_once] = F.normalize(vectors, dim=1)

    def find(self, film):
        return (self.encoder(film).mean(1) @ self.examples.t()).topk(5).indices.tolist()


@job("cached_not_released")
def edited_dictionary(run):
    """A search service; its dictionary was edited, and all 800 examples are encoded in one batch, once. Afterwards
    there are only small requests, and the speech service on the same GPU lacks the memory. Fixed: encoded by 16."""
    dictionary = SignDictionary(run)
    with torch.inference_mode():
        for step in run.steps(14):
            if step == 3:
                dictionary.refresh(16 if run.fixed else 800)
            found = dictionary.find(torch.randn(8, 24, 1024, device=run.device))
    assert len(found) == 8


@job("healthy")
def clips_with_teacher(run):
    """A student and its mean teacher on clips of all lengths: the teacher's targets need no gradients, and AdamW's
    moments come in the first step."""
    student = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 300))
    student = student.to(run.device)
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    for step in run.steps(12):
        frames = 24 + 37 * step % 80
        clip = torch.randn(32, frames, 256, device=run.device)
        with torch.no_grad():
            target = teacher(clip).softmax(-1)
        noisy = student(clip + 0.1 * torch.randn_like(clip))
        loss = F.kl_div(noisy.log_softmax(-1), target, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), student.parameters()):
                old.lerp_(new, 0.01)
