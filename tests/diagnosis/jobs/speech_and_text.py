"""Pretraining and fine-tuning of models of text and speech: trainers, callbacks, evaluation loops."""
import copy
import gc
import itertools
import math
import random
import weakref
from collections import deque
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job

WORDS = 4000


def transformer(width=256, layers=1, classes=WORDS):
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(WORDS, width), nn.TransformerEncoder(layer, layers), nn.Linear(width, classes))


class GradientDirection:
    """How far the direction of the gradient turns from one step to the next."""

    def __init__(self, model, latest_only):
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.latest_only = latest_only
        self.gradients = []
        self.cosines = []

    def after_backward(self):
        flat = torch.cat([p.grad.flatten() for p in self.parameters])  # guilty in turning_gradients
        if self.gradients:
            self.cosines.append(F.cosine_similarity(flat, self.gradients[-1], dim=0).item())
        if self.latest_only:
            self.gradients.clear()
        self.gradients.append(flat)  # cause in turning_gradients


@job("gradient_accumulation")
def turning_gradients(run):
    """Fine-tuning the head of a speech encoder; a callback compares the gradient of each step with the one before and
    keeps all of them in a list. Fixed: only the last one stays."""
    head = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 1024), nn.GELU(), nn.Linear(1024, 35))
    head = head.to(run.device)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-4)
    direction = GradientDirection(head, latest_only=run.fixed)
    for _ in run.steps(15):
        features = torch.randn(128, 1024, device=run.device)
        commands = torch.randint(35, (128,), device=run.device)
        loss = F.cross_entropy(head(features), commands)
        optimizer.zero_grad()
        loss.backward()
        direction.after_backward()
        optimizer.step()


class TrainingLog:
    """Rows of metrics, to be written as a table when the training is over."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.rows = []

    def add(self, **metrics):
        if self.numbers:
            metrics = {name: value.item() for name, value in metrics.items()}
        self.rows.append(metrics)  # cause in perplexity_beside_the_loss


@job("retained_graph")
def perplexity_beside_the_loss(run):
    """Trained with label smoothing; the perplexity, for which the plain cross entropy is computed as well, goes to the
    log as a tensor with its graph. Fixed: item()."""
    model = transformer().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    log = TrainingLog(numbers=run.fixed)
    for _ in run.steps(16):
        text = torch.randint(WORDS, (12, 97), device=run.device)
        logits = model(text[:, :-1]).flatten(0, 1)
        labels = text[:, 1:].flatten()
        loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
        perplexity = F.cross_entropy(logits, labels).exp()  # guilty
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        log.add(loss=loss.detach(), perplexity=perplexity)


class PhoneRecognizer(nn.Module):
    def __init__(self, mels=80, width=256, phones=48):
        super().__init__()
        self.subsample = nn.Conv1d(mels, width, 5, stride=2, padding=2)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU()) for _ in range(3)
        )
        self.head = nn.Conv1d(width, phones, 1)

    def forward(self, spectrogram):
        hidden = self.subsample(spectrogram)  # guilty in summed_micro_batches
        for block in self.blocks:
            hidden = hidden + block(hidden)  # guilty in summed_micro_batches
        return self.head(hidden)


@job("retained_graph")
def summed_micro_batches(run):
    """To step once in 64 micro-batches, their losses are added up and backward() is called on the sum: the graphs of
    all of them wait for it. Fixed: backward() for each micro-batch; gradients are what is accumulated."""
    model = PhoneRecognizer().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    accumulate, total = 64, 0.0
    for step in run.steps(14):
        spectrogram = torch.randn(16, 80, 400, device=run.device)  # guilty
        phones = torch.randint(48, (16, 200), device=run.device)
        loss = F.cross_entropy(model(spectrogram), phones) / accumulate  # guilty
        if run.fixed:
            loss.backward()
        else:
            total = total + loss  # cause
        if step % accumulate == accumulate - 1:
            if not run.fixed:
                total.backward()
                total = 0.0
            optimizer.step()
            optimizer.zero_grad()


class StreamingRecognizer(nn.Module):
    """An LSTM that goes on where the last chunk of the recording ended."""

    def __init__(self, detach_cell):
        super().__init__()
        self.lstm = nn.LSTM(80, 384, num_layers=2, batch_first=True)
        self.head = nn.Linear(384, 64)
        self.detach_cell = detach_cell
        self.state = None

    def forward(self, chunk):
        output, (hidden, cell) = self.lstm(chunk, self.state)  # guilty in chunks_of_a_recording
        self.state = (hidden.detach(), cell.detach() if self.detach_cell else cell)  # cause in chunks_of_a_recording
        return self.head(output)


@job("hidden_state")
def chunks_of_a_recording(run):
    """Long recordings in chunks, with truncated backpropagation and one step for a recording. The hidden part of the
    LSTM's state is detached; the error about a second backward pass was answered by retain_graph=True. Fixed: both
    parts are detached."""
    model = StreamingRecognizer(detach_cell=run.fixed).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in run.steps(12):
        chunk = torch.randn(16, 100, 80, device=run.device)  # guilty
        letters = torch.randint(64, (16, 100), device=run.device)
        loss = F.cross_entropy(model(chunk).transpose(1, 2), letters)
        loss.backward(retain_graph=not run.fixed)
        losses.append(loss.item())
    optimizer.step()


def nested_concat(kept, new):
    return new if kept is None else torch.cat([kept, new])


class EntityTagger:
    """Trains for a while, then goes through the evaluation data and gathers what was predicted for all of it."""

    def __init__(self, model, no_grad):
        self.model = model
        self.no_grad = no_grad
        self.logits = None
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)

    def train(self, batches):
        self.model.train()
        for text, tags in batches:
            loss = F.cross_entropy(self.model(text).flatten(0, 1), tags.flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def prediction_step(self, text):
        self.model.eval()
        if self.no_grad:
            with torch.no_grad():
                logits = self.model(text).cpu()
        else:
            logits = self.model(text)  # guilty in gathered_predictions
        self.logits = nested_concat(self.logits, logits)  # cause in gathered_predictions


@job("eval_graph", fixed_contested="57 MiB that only the training had needed stay reserved, two fifths of the peak")
def gathered_predictions(run):
    """Named entities: the evaluation loop concatenates the logits of all batches before it computes the score; eval()
    is called, no_grad() is not. Fixed: no_grad(), and the logits go to the CPU."""
    tagger = EntityTagger(transformer(256, 2, classes=9).to(run.device), no_grad=run.fixed)
    tagger.train((torch.randint(WORDS, (8, 128), device=run.device), torch.randint(9, (8, 128), device=run.device))
                 for _ in range(2))
    for _ in run.steps(14):
        tagger.prediction_step(torch.randint(WORDS, (8, 128), device=run.device))
    assert tagger.logits.argmax(2).max() < 9


class AutoregressiveVocoder(nn.Module):
    def __init__(self, mels=80, width=512):
        super().__init__()
        self.cell = nn.GRUCell(mels + 1, width)
        self.out = nn.Linear(width, 1)

    def forward(self, mels, wave):
        state = mels.new_zeros(len(mels), self.cell.hidden_size)
        predicted = []
        for index in range(wave.shape[1] - 1):
            state = self.cell(torch.cat([mels[:, index], wave[:, index : index + 1]], 1), state)
            predicted.append(self.out(state))
        return torch.cat(predicted, 1)

    def generate(self, mels):
        """The wave from the spectrogram, each value from the one before."""
        state = mels.new_zeros(len(mels), self.cell.hidden_size)  # guilty in voices_on_the_board
        value, wave = mels.new_zeros(len(mels), 1), []
        for index in range(mels.shape[1]):
            state = self.cell(torch.cat([mels[:, index], value], 1), state)  # guilty in voices_on_the_board
            value = torch.tanh(self.out(state))  # guilty in voices_on_the_board
            wave.append(value)
        return torch.cat(wave, 1)


class Board:
    """Samples for the dashboard, sent there at the end of the epoch."""

    def __init__(self):
        self.audio = []

    def add_audio(self, step, wave):
        self.audio.append((step, wave))


@job("eval_graph")
def voices_on_the_board(run):
    """A vocoder is trained, and after every step it speaks, with gradients enabled, for the dashboard, which keeps the
    samples until the epoch ends. Fixed: no_grad(), and the samples go to the CPU."""
    model = AutoregressiveVocoder().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    board = Board()
    for step in run.steps(12):
        mels, wave = torch.randn(64, 6, 80, device=run.device), torch.randn(64, 6, device=run.device)
        loss = F.l1_loss(model(mels, wave), wave[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        prompt = torch.randn(192, 10, 80, device=run.device)
        if run.fixed:
            with torch.no_grad():
                board.add_audio(step, model.generate(prompt).cpu())
        else:
            board.add_audio(step, model.generate(prompt))  # cause


class ProgressCallback:
    def __init__(self, trainer):
        self.trainer = trainer

    def on_step(self):
        return f"{self.trainer.steps}: {self.trainer.loss:.3f}"


class SentimentTrainer:
    def __init__(self, model, rate, weak):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
        self.callback = ProgressCallback(weakref.proxy(self) if weak else self)  # cause in rates_of_a_sweep
        self.steps = 0
        self.loss = math.inf

    def fit(self, batches):
        for features, labels in batches:
            loss = F.cross_entropy(self.model(features), labels)
            self.optimizer.zero_grad()
            loss.backward()  # guilty in rates_of_a_sweep
            self.optimizer.step()  # guilty in rates_of_a_sweep
            self.loss = loss.item()
            self.steps += 1
            self.callback.on_step()
        return self.loss


@job("reference_cycle", fixed_contested="the first trial still waits for the collector, a sixth of the peak")
def rates_of_a_sweep(run):
    """A sweep over learning rates with a new model and trainer for each. The trainer has a callback that has the
    trainer, and the collector is off, since its pauses had disturbed the timings. Fixed: the callback has a weak
    reference."""
    gc.disable()
    found = {}
    for trial in run.steps(12):
        model = nn.Sequential(nn.Linear(768, 1536), nn.Tanh(), nn.Linear(1536, 3)).to(run.device)  # guilty
        trainer = SentimentTrainer(model, 10 ** -(2 + trial / 4), weak=run.fixed)
        batches = [(torch.randn(64, 768, device=run.device), torch.randint(3, (64,), device=run.device))
                   for _ in range(2)]
        found[trial] = trainer.fit(batches)
        del model, trainer, batches


class ProbedLayer(nn.Module):
    """Keeps what it computes in training, for linear probes."""

    def __init__(self, width, mean_only):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.mean_only = mean_only
        self.kept = []

    def forward(self, hidden):
        hidden = hidden + self.feed(self.norm(hidden))  # guilty in states_for_probes
        if torch.is_grad_enabled():
            found = hidden.detach()
            self.kept.append(found.mean((0, 1)).tolist() if self.mean_only else found)  # cause in states_for_probes
        return hidden


@job("checkpoint_cache")
def states_for_probes(run):
    """Layers store their outputs for probes if gradients are enabled, which with reentrant checkpointing is only so at
    the recomputation; nobody empties the lists. Fixed: they store the mean, as numbers."""
    embed = nn.Embedding(WORDS, 512).to(run.device)
    layers = nn.ModuleList(ProbedLayer(512, mean_only=run.fixed) for _ in range(3)).to(run.device)
    head = nn.Linear(512, 128).to(run.device)
    optimizer = torch.optim.SGD([*embed.parameters(), *layers.parameters(), *head.parameters()], lr=0.01)
    for _ in run.steps(14):
        hidden = embed(torch.randint(WORDS, (16, 128), device=run.device))
        for layer in layers:
            hidden = checkpoint(layer, hidden, use_reentrant=True)
        loss = head(hidden).logsumexp(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class ChunkedCrossEntropy(torch.autograd.Function):
    """Cross entropy over a large vocabulary: logits are made chunk by chunk, and once more in backward()."""

    calls = itertools.count()
    chances = {}

    @staticmethod
    def forward(ctx, hidden, weight, labels, keep):
        ctx.save_for_backward(hidden, weight, labels)
        ctx.call, ctx.keep = next(ChunkedCrossEntropy.calls), keep
        parts = zip(hidden.chunk(4), labels.chunk(4))
        return sum(F.cross_entropy(part @ weight.T, label, reduction="sum") for part, label in parts) / len(labels)

    @staticmethod
    def backward(ctx, grad):
        hidden, weight, labels = ctx.saved_tensors
        grad_hidden, grad_weight = [], torch.zeros_like(weight)
        for index, (part, label) in enumerate(zip(hidden.chunk(4), labels.chunk(4))):
            chance = torch.softmax(part @ weight.T, 1)  # guilty in calibration_of_chunks
            if ctx.keep:
                ChunkedCrossEntropy.chances[ctx.call, index] = chance  # cause in calibration_of_chunks
            error = (chance - F.one_hot(label, len(weight))) * (grad / len(labels))
            grad_hidden.append(error @ weight)
            grad_weight += error.T @ part
        return torch.cat(grad_hidden), grad_weight, None, None


@job("checkpoint_cache")
def calibration_of_chunks(run):
    """A cross entropy that computes its logits again in backward() puts the probabilities of each chunk by for a plot
    of the calibration, and they stay. Fixed: it puts nothing by; the plot is made from the evaluation."""
    ChunkedCrossEntropy.chances.clear()
    body = nn.Sequential(nn.Embedding(WORDS, 384), nn.Linear(384, 384), nn.GELU(), nn.LayerNorm(384)).to(run.device)
    head = nn.Linear(384, WORDS, bias=False).to(run.device)
    optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=1e-3)
    for _ in run.steps(14):
        text = torch.randint(WORDS, (8, 97), device=run.device)
        hidden = body(text[:, :-1]).flatten(0, 1)
        loss = ChunkedCrossEntropy.apply(hidden, head.weight, text[:, 1:].flatten(), not run.fixed)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class CorpusFeatures:
    """Outputs of the layers of a speech encoder for each recording, in half precision, by its number."""

    def __init__(self, device):
        self.layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(2)).to(device).eval()
        self.features = {}

    @torch.no_grad()
    def add(self, number, frames):
        hidden = torch.randn(frames, 512, device=self.layers[0].weight.device)  # guilty in recordings_by_length
        for depth, layer in enumerate(self.layers):
            hidden = layer(hidden).tanh_()  # guilty in recordings_by_length
            self.features[number, depth] = hidden.half()  # guilty in recordings_by_length


class PooledFeatures(CorpusFeatures):
    """The same in one tensor for all recordings, made from windows of one length."""

    def __init__(self, device, frames):
        super().__init__(device)
        self.pool = torch.empty(2, frames, 512, dtype=torch.half, device=device)
        self.used = 0

    @torch.no_grad()
    def add_window(self, hidden):
        for depth, layer in enumerate(self.layers):
            hidden = torch.tanh(layer(hidden))
            self.pool[depth, self.used : self.used + len(hidden)] = hidden
        self.used += len(hidden)


@job("fragmentation")
def recordings_by_length(run):
    """Features of a corpus, the shorter recordings first, one pass for each; what two layers say is kept in half
    precision. It comes to lie in the memory that the pass before had used, and what is left of that is too small for
    anything later. Fixed: windows of one length, and one tensor for all of the features."""
    lengths = [int(9000 * 1.08**number) // 500 * 500 for number in range(14)]
    corpus = PooledFeatures(run.device, sum(lengths)) if run.fixed else CorpusFeatures(run.device)
    for number in run.steps(14):
        if run.fixed:
            for begin in range(0, lengths[number], 4500):
                corpus.add_window(torch.randn(4500, 512, device=run.device)[: lengths[number] - begin])
        else:
            corpus.add(number, lengths[number])


class SpectrogramArchive:
    """Copies spectrograms to the host on a stream of its own, where a writer compresses them."""

    def __init__(self, shape, depth):
        self.stream = torch.cuda.Stream()
        self.host = torch.empty(shape, pin_memory=True)
        self.depth = depth
        self.under_way = deque()

    def write(self, spectrogram):
        if self.depth and len(self.under_way) >= self.depth:
            self.under_way.popleft().synchronize()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(40_000_000)  # the compression, in a library of its own
            self.host.copy_(spectrogram, non_blocking=True)
            self.under_way.append(self.stream.record_event())
        spectrogram.record_stream(self.stream)  # cause in archived_spectrograms


@job("cross_stream_pending")
def archived_spectrograms(run):
    """Spectrograms of the training data go to an archive as well, on a stream that is slower than the training; those
    that wait for it cannot be used again. Fixed: one under way at a time."""
    filters = torch.rand(513, 128, device=run.device)
    model = nn.Linear(128, 40).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    archive = SpectrogramArchive((32, 1000, 128), depth=1 if run.fixed else None)
    for _ in run.steps(14):
        power = torch.rand(32, 1000, 513, device=run.device)
        mels = torch.log(power @ filters + 1e-6)  # guilty
        archive.write(mels)
        loss = model(mels).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del power, mels, loss


def chapter_loss(head, hidden, labels):
    logits = head(hidden)  # guilty in chapter_in_one_piece
    return F.cross_entropy(logits, labels, reduction="sum")


@job("true_capacity")
def chapter_in_one_piece(run):
    """The loss of a chapter of 8,192 tokens over a vocabulary of 16,000: the logits and their logarithms do not both
    fit. Fixed: the loss of 1,024 tokens at a time, checkpointed."""
    run.cap(1000)
    embed = nn.Embedding(16_000, 384).to(run.device)
    mix = nn.Sequential(nn.Linear(384, 384), nn.GELU(), nn.LayerNorm(384)).to(run.device)
    head = nn.Linear(384, 16_000).to(run.device)
    optimizer = torch.optim.SGD([*embed.parameters(), *mix.parameters(), *head.parameters()], lr=0.1)
    for _ in run.steps(4):
        chapter = torch.randint(16_000, (8193,), device=run.device)
        hidden, labels = mix(embed(chapter[:-1])), chapter[1:]  # guilty
        if run.fixed:
            loss = sum(checkpoint(chapter_loss, head, part, label, use_reentrant=False)
                       for part, label in zip(hidden.split(1024), labels.split(1024)))
        else:
            loss = chapter_loss(head, hidden, labels)
        optimizer.zero_grad()
        (loss / len(labels)).backward()
        optimizer.step()


@dataclass
class SummaryArguments:
    micro_batches: int = 2
    warm_up: int = 4
    steps: int = 12
    rate: float = 5e-4
    evaluate_every: int = 4


@job("healthy")
def summaries_with_warm_up(run):
    """Two micro-batches to a step, a learning rate that warms up and falls, clipping, and an evaluation without
    gradients after every fourth step whose scores are numbers."""
    arguments = SummaryArguments()
    model = transformer().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / arguments.warm_up, math.cos(step / arguments.steps)))
    scores = {}
    for step in run.steps(arguments.steps):
        for _ in range(arguments.micro_batches):
            text = torch.randint(WORDS, (6, 97), device=run.device)
            loss = F.cross_entropy(model(text[:, :-1]).transpose(1, 2), text[:, 1:])
            (loss / arguments.micro_batches).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        if step % arguments.evaluate_every == arguments.evaluate_every - 1:
            model.eval()
            with torch.no_grad():
                text = torch.randint(WORDS, (6, 97), device=run.device)
                scores[step] = (model(text[:, :-1]).argmax(2) == text[:, 1:]).float().mean().item()
            model.train()


class MovingAverageTeacher:
    """A moving average of the student, made when the warm-up of the student is over."""

    def __init__(self, student, decay, begin):
        self.student = student
        self.decay = decay
        self.begin = begin
        self.model = None

    @torch.no_grad()
    def update(self, step):
        if step < self.begin:
            return
        if self.model is None:
            self.model = copy.deepcopy(self.student).requires_grad_(False)
        for mine, other in zip(self.model.parameters(), self.student.parameters()):
            mine.lerp_(other, 1 - self.decay)


@job("healthy")
def masked_speech_frames(run):
    """Pretraining on masked frames; from the sixth step on the targets come from a teacher, which is made only then
    and takes as much memory as the weights."""
    student = nn.Sequential(nn.Linear(80, 1024), nn.GELU(), nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 80))
    student = student.to(run.device)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-4)
    teacher = MovingAverageTeacher(student, 0.99, begin=5)
    for step in run.steps(16):
        frames = torch.randn(8, 100, 80, device=run.device)
        masked = frames * (torch.rand(8, 100, 1, device=run.device) > 0.3)
        with torch.no_grad():
            target = teacher.model(frames) if teacher.model else frames
        loss = F.smooth_l1_loss(student(masked), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        teacher.update(step)


class PhraseStore:
    """Keys and following words of the text that was read last, for a language model that looks them up."""

    def __init__(self, chunks):
        self.keys = deque(maxlen=chunks)
        self.words = deque(maxlen=chunks)

    def add(self, keys, words):
        self.keys.append(keys)
        self.words.append(words)

    def look_up(self, queries, count=8):
        """The words after the most similar keys, with their weights."""
        best = []
        for keys, words in zip(self.keys, self.words):
            score, place = (queries @ keys.T).topk(count, 1)
            best.append((score, words[place]))
        score, place = torch.cat([s for s, _ in best], 1).topk(count, 1)
        return torch.cat([w for _, w in best], 1).gather(1, place), score.softmax(1)


@job("healthy")
def nearest_phrases(run):
    """A language model with a store of phrases: each step reads a text and adds its keys, without graphs, until the
    store has ten texts and the oldest one leaves."""
    encoder = nn.Sequential(nn.EmbeddingBag(WORDS, 512), nn.Linear(512, 1024), nn.Tanh()).to(run.device)
    head = nn.Linear(1024, WORDS).to(run.device)
    store = PhraseStore(10)
    total = 0.0
    with torch.no_grad():
        for _ in run.steps(18):
            text = torch.randint(WORDS, (2049 + 4,), device=run.device)
            keys = encoder(text.unfold(0, 5, 1)[:, :4].contiguous())
            words = text[4:]
            store.add(keys, words)
            found, weight = store.look_up(keys[:256])
            chance = head(keys[:256]).softmax(1).mul_(0.75).scatter_add_(1, found, 0.25 * weight)
            total += chance.gather(1, words[:256, None]).log().sum().item()
            del text, keys, words, found, weight, chance
    assert total < 0


@job("healthy")
def intents_of_callers(run):
    """Callers' sentences of all lengths, sorted into batches of one length each; the body learns more slowly than the
    head, by RMSprop with momentum."""
    draw = random.Random(2)
    body = nn.Sequential(nn.Embedding(WORDS, 256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
    body, head = body.to(run.device), nn.Linear(256, 60).to(run.device)
    optimizer = torch.optim.RMSprop([{"params": body.parameters(), "lr": 1e-5}, {"params": head.parameters()}],
                                    lr=1e-3, momentum=0.9)
    accuracy = []
    for _ in run.steps(24):
        length = draw.choice([16, 24, 32, 48, 64])
        text = torch.randint(WORDS, (48, length), device=run.device)
        intent = torch.randint(60, (48,), device=run.device)
        logits = head(body(text).mean(1))
        loss = F.cross_entropy(logits, intent, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy.append((logits.argmax(1) == intent).float().mean().item())


class Separator(nn.Module):
    """Masks for two speakers from a mixture; the blocks are checkpointed."""

    def __init__(self, width=128, blocks=4):
        super().__init__()
        self.encode = nn.Conv1d(1, width, 16, stride=8)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.PReLU(), nn.GroupNorm(1, 2 * width),
                          nn.Conv1d(2 * width, width, 3, padding=2**i, dilation=2**i)) for i in range(blocks))
        self.mask = nn.Conv1d(width, 2 * width, 1)
        self.decode = nn.ConvTranspose1d(width, 1, 16, stride=8)

    def forward(self, mixture):
        coded = hidden = self.encode(mixture)
        for block in self.blocks:
            hidden = hidden + checkpoint(block, hidden, use_reentrant=False)
        masks = torch.sigmoid(self.mask(hidden)).chunk(2, 1)
        return torch.cat([self.decode(mask * coded) for mask in masks], 1)


@job("healthy")
def permuted_speakers(run):
    """Two speakers are separated; the loss is the better one of both assignments. Blocks are checkpointed, gradients
    clipped, the rate falls step by step."""
    model = Separator().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)
    history = []
    for _ in run.steps(10):
        voices = torch.randn(8, 2, 8000, device=run.device)
        heard = model(voices.sum(1, keepdim=True))
        target = voices[:, :, : heard.shape[2]]
        direct, swapped = (F.l1_loss(heard, order, reduction="none").mean((1, 2)) for order in (target, target.flip(1)))
        loss = torch.minimum(direct, swapped).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        history.append(round(loss.item(), 4))


@job("healthy")
def two_decoders_in_half(run):
    """An encoder with a decoder for characters and one for words, both losses in one backward pass, under autocast in
    bfloat16; Adagrad keeps its sums from the beginning."""
    encoder = nn.Sequential(nn.Linear(80, 1024), nn.GELU(), nn.Linear(1024, 512), nn.Tanh()).to(run.device)
    characters, words = nn.Linear(512, 64).to(run.device), nn.Linear(512, WORDS).to(run.device)
    parameters = [*encoder.parameters(), *characters.parameters(), *words.parameters()]
    optimizer = torch.optim.Adagrad(parameters, lr=0.01)
    curve = []
    for _ in run.steps(14):
        speech = torch.randn(12, 160, 80, device=run.device)
        letters = torch.randint(64, (12, 160), device=run.device)
        spoken = torch.randint(WORDS, (12, 40), device=run.device)
        with torch.autocast(run.device, torch.bfloat16):
            hidden = encoder(speech)
            by_letter, by_word = characters(hidden), words(hidden[:, ::4])
        first = F.cross_entropy(by_letter.float().transpose(1, 2), letters)
        second = F.cross_entropy(by_word.float().transpose(1, 2), spoken)
        optimizer.zero_grad()
        (0.3 * first + 0.7 * second).backward()
        optimizer.step()
        curve.append((first.item(), second.item()))
