"""Reading lips from video: encoders of mouth regions, with a teacher that hears."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


class MouthAttention(nn.Module):
    """Self-attention over the frames of a clip; in training it notes where each frame looks."""

    def __init__(self, width=256, heads=8, summarize=False):
        super().__init__()
        self.heads = heads
        self.summarize = summarize
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.looks = []

    def forward(self, frames):
        count, length, width = frames.shape
        parts = self.project(frames).view(count, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind()
        weights = (query @ key.transpose(-1, -2)).softmax(-1)  # guilty in where_frames_look
        if torch.is_grad_enabled():
            noted = weights.mean().item() if self.summarize else weights.detach()
            self.looks.append(noted)  # cause in where_frames_look
        mixed = (weights @ value).transpose(1, 2).reshape(count, length, width)
        return frames + self.merge(mixed)


@job("checkpoint_cache")
def where_frames_look(run):
    """Attention blocks under reentrant checkpointing note their attention weights whenever gradients are on, which is
    in the recomputation, and nobody clears the notes. Fixed: a number is noted."""
    front = nn.Linear(512, 256).to(run.device)
    blocks = nn.ModuleList(MouthAttention(summarize=run.fixed) for _ in range(2)).to(run.device)
    words = nn.Linear(256, 500).to(run.device)
    parameters = [*front.parameters(), *blocks.parameters(), *words.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-4)
    for _ in run.steps(12):
        frames = torch.randn(8, 220, 512, device=run.device)
        labels = torch.randint(500, (8,), device=run.device)
        hidden = front(frames)
        for block in blocks:
            hidden = checkpoint(block, hidden, use_reentrant=True)
        loss = F.cross_entropy(words(hidden.mean(1)), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


class HearingTeacher:
    """Targets for the frames from the sound, computed on a stream of their own, ahead of the student."""

    def __init__(self, device):
        self.stream = torch.cuda.Stream()
        self.network = nn.Linear(128, 2048).to(device).requires_grad_(False)
        self.device = device

    def targets(self):
        with torch.cuda.stream(self.stream):
            sound = torch.randn(4800, 128, device=self.device)
            targets = self.network(sound).softmax(1)  # guilty in teacher_runs_ahead
        torch.cuda.current_stream().wait_stream(self.stream)
        targets.record_stream(torch.cuda.current_stream())  # cause in teacher_runs_ahead
        return targets


def distil(student, optimizer, frames, targets):
    loss = F.kl_div(student(frames).log_softmax(1), targets, reduction="batchmean")
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


@job("cross_stream_pending")
def teacher_runs_ahead(run):
    """A light teacher makes targets on its own stream for a heavy student; the program never waits, the teacher is
    many batches ahead, and all its targets wait for the student. Fixed: the loss is read after each step."""
    teacher = HearingTeacher(run.device)
    layers = [nn.Linear(512, 2048)]
    for _ in range(6):
        layers += [nn.ReLU(), nn.Linear(2048, 2048)]
    student = nn.Sequential(*layers).to(run.device)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    video = torch.randn(4800, 512, device=run.device)
    total = torch.zeros((), device=run.device)
    for _ in run.steps(12):
        total += distil(student, optimizer, video, teacher.targets())
        if run.fixed:
            total.item()


class ClipEncoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.frames = nn.Sequential(nn.Conv3d(1, width, (3, 5, 5), (1, 2, 2), (1, 2, 2)), nn.PReLU(),
                                    nn.Conv3d(width, width, 3, (1, 2, 2), 1), nn.PReLU())
        self.out = nn.Linear(width, 256)

    def forward(self, clips):
        return self.out(self.frames(clips).mean((3, 4)).transpose(1, 2))


@job("healthy")
def sentences_in_pieces(run):
    """Four micro-batches to each step of the optimizer: the gradients stay for four iterations, as they should, and
    the optimizer makes its state in the fourth."""
    encoder = ClipEncoder().to(run.device)
    decoder = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048)).to(run.device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-4)
    for piece in run.steps(20):
        clips = torch.randn(2, 1, 12, 48, 48, device=run.device)
        letters = torch.randint(2048, (24,), device=run.device)
        loss = F.cross_entropy(decoder(encoder(clips)).flatten(0, 1), letters) / 4
        loss.backward()
        if piece % 4 == 3:
            nn.utils.clip_grad_norm_(decoder.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


@job("healthy")
def clips_encoded_once(run):
    """Features of the frozen encoder stay on the device for all eight speakers; they are computed as a speaker comes
    for the first time, a few clips at a time."""
    encoder = nn.Sequential(nn.Linear(2304, 768), nn.ReLU(), nn.Linear(768, 512)).to(run.device).requires_grad_(False)
    words = nn.Linear(512, 500).to(run.device)
    optimizer = torch.optim.SGD(words.parameters(), lr=0.1, momentum=0.9)
    features = {}
    for step in run.steps(20):
        speaker = 5 * step % 8
        if speaker not in features:
            parts = [encoder(torch.randn(250, 2304, device=run.device)) for _ in range(20)]
            features[speaker] = torch.cat(parts)
            del parts
        labels = torch.randint(500, (5000,), device=run.device)
        loss = F.cross_entropy(words(features[speaker]), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
