"""Speech and other audio."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


def front_end(channels):
    return nn.Sequential(nn.Conv1d(1, channels, 10, stride=5), nn.GELU(), nn.Conv1d(channels, channels, 8, stride=4),
                         nn.GELU(), nn.Conv1d(channels, channels, 4, stride=2), nn.GELU())


class EventTagger(nn.Module):
    def __init__(self, classes=50):
        super().__init__()
        self.features = front_end(96)
        self.head = nn.Linear(96, classes)

    def forward(self, wave):
        hidden = self.features(wave)  # guilty in hard_batches
        return self.head(hidden.amax(2))  # guilty in hard_batches


class TaggerTraining:
    """Trains on the batches with a large loss at once, and on the easy ones at the end, if there is time."""

    def __init__(self, model, threshold, keep):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        self.threshold = threshold
        self.keep = keep
        self.postponed = []

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def step(self, number, wave, tags):
        loss = F.binary_cross_entropy_with_logits(self.model(wave), tags)
        if number % 4 == 0 or loss.item() > self.threshold:
            self.update(loss)
        elif self.keep:
            self.postponed.append(loss)  # cause in hard_batches
        else:
            self.postponed.append(number)


@job("retained_graph")
def hard_batches(run):
    """Training of a tagger for sounds that postpones easy batches: their losses, with the graph of each, wait in a
    list for an end of the epoch at which they are not worth a step any more. Fixed: the batch's number is noted."""
    training = TaggerTraining(EventTagger().to(run.device), threshold=1.0, keep=not run.fixed)
    for step in run.steps(14):
        wave = torch.randn(16, 1, 32_000, device=run.device) * 0.1  # guilty
        training.step(step, wave, torch.randint(2, (16, 50), device=run.device).float())


@job("hidden_state", fixed_contested="the graph of weights that nobody trains is still built")
def streaming_adapter(run):
    """An adapter is trained on top of a streaming recognizer, whose state goes from chunk to chunk of the stream. The
    recognizer's weights are in no optimizer, but they want gradients; retain_graph=True helped against an error about
    a second pass. Fixed: the state is detached, and the option is gone."""
    recognizer = nn.LSTM(80, 384, num_layers=2, batch_first=True).to(run.device)
    adapter = nn.Sequential(nn.Linear(384, 128), nn.ReLU(), nn.Linear(128, 29)).to(run.device)
    optimizer = torch.optim.Adam(adapter.parameters(), lr=1e-3)
    state = None
    for _ in run.steps(12):
        chunk = torch.randn(48, 40, 80, device=run.device)  # guilty
        hidden, state = recognizer(chunk, state)  # guilty
        loss = F.cross_entropy(adapter(hidden).flatten(0, 1), torch.randint(29, (1920,), device=run.device))
        optimizer.zero_grad()
        recognizer.zero_grad()
        loss.backward(retain_graph=not run.fixed)  # cause
        run.middle()
        optimizer.step()
        if run.fixed:
            state = tuple(part.detach() for part in state)


@job("fragmentation")
def sorted_utterances(run):
    """Utterances come in the order of their lengths; waveforms of a batch are loaded, then the features of each are
    computed and kept for the next epochs. Waveforms become longer and never fit between the features of earlier ones.
    Fixed: features are kept in one block that is as large as all of them will be."""
    batches, size = 10, 16
    samples = [int(340_000 * 1.2**batch) for batch in range(batches)]
    pool = torch.empty(size * sum(samples), device=run.device) if run.fixed else None
    used = 0
    kept = []
    for batch in run.steps(batches):
        loaded = []
        for _ in range(size):
            wave = torch.zeros(samples[batch], device=run.device)  # guilty
            if run.fixed:
                spectrum = torch.sub(wave, 0.97, out=pool[used : used + len(wave)])
                used += len(wave)
            else:
                spectrum = wave - 0.97  # guilty
                loaded.append(wave)
            kept.append(spectrum)
        del loaded, wave, spectrum


@job("healthy")
def enhancement_in_chunks(run):
    """A recurrent network for speech enhancement goes along long recordings in chunks, with its state detached in
    between and dropped when the next recording begins."""
    mask = nn.GRU(257, 384, batch_first=True).to(run.device)
    out = nn.Sequential(nn.Linear(384, 257), nn.Sigmoid()).to(run.device)
    optimizer = torch.optim.Adam([*mask.parameters(), *out.parameters()], lr=1e-3)
    state = None
    for step in run.steps(20):
        if step % 5 == 0:
            state = None
        noisy = torch.rand(24, 60, 257, device=run.device)
        hidden, state = mask(noisy, state)
        state = state.detach()
        loss = F.mse_loss(out(hidden) * noisy, noisy.square())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(mask.parameters(), 5.0)
        optimizer.step()


class Codebook(nn.Module):
    """Vectors that follow the means of what was assigned to them."""

    def __init__(self, entries, width):
        super().__init__()
        self.register_buffer("vectors", torch.randn(entries, width))
        self.register_buffer("usage", torch.ones(entries))

    @torch.no_grad()
    def forward(self, hidden):
        index = torch.cdist(hidden, self.vectors).argmin(1)
        count = torch.bincount(index, minlength=len(self.usage)).float()
        sums = torch.zeros_like(self.vectors).index_add_(0, index, hidden)
        self.usage.lerp_(count, 0.01)
        self.vectors.lerp_(sums / count.clamp(min=1)[:, None], 0.01)
        return index


@job("healthy", contested="outgrown sizes stay reserved, nearly as much again as the peak")
def growing_windows(run):
    """Self-supervised training on windows of sound that become longer during the first ten iterations and stay at
    the longest; the codebook of its targets is updated in place."""
    encoder = front_end(64).to(run.device)
    project = nn.Linear(64, 512).to(run.device)
    codebook = Codebook(512, 64).to(run.device)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *project.parameters()], lr=5e-4)
    for step in run.steps(18):
        wave = torch.randn(12, 1, 8000 + 3200 * min(step, 9), device=run.device)
        hidden = encoder(wave).transpose(1, 2)
        target = codebook(hidden.flatten(0, 1))
        dropped = hidden * (torch.rand(hidden.shape[:2], device=run.device) > 0.3)[..., None]
        loss = F.cross_entropy(project(dropped).flatten(0, 1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
