"""Question answering, pre-training of language models, mixtures of experts."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job

WORDS = 4000


class Decoder(nn.Module):
    """A small language model with causal attention."""

    def __init__(self, width=256, layers=2, words=WORDS):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
                                    for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, text):
        length = text.shape[1]
        mask = torch.full((length, length), float("-inf"), device=text.device).triu(1)
        hidden = self.embed(text)  # guilty in loss_spikes
        for layer in self.layers:
            hidden = layer(hidden, mask)  # guilty in loss_spikes
        return self.head(hidden)  # guilty in loss_spikes


class PretrainingLoop:
    """Trains, and leaves out batches whose loss is a spike, for a look at them later."""

    def __init__(self, model, optimizer, limit, as_number):
        self.model, self.optimizer, self.limit, self.as_number = model, optimizer, limit, as_number
        self.skipped, self.history = [], []

    def train_step(self, step, text):
        logits = self.model(text[:, :-1])  # guilty in loss_spikes
        loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())  # guilty in loss_spikes
        if loss > self.limit:
            self.skipped.append((step, loss.item() if self.as_number else loss))  # cause in loss_spikes
            return
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.history.append(loss.item())


@job("retained_graph")
def loss_spikes(run):
    """Pre-training that skips batches with a spike in the loss and files the loss of each away; these were never
    through backward(), so that the whole graph comes along. Fixed: .item()."""
    model = Decoder().to(run.device)
    with torch.no_grad():
        model.head.bias[-64:] = -30  # these never occur in the corpus
    loop = PretrainingLoop(model, torch.optim.AdamW(model.parameters(), lr=1e-4), limit=15.0, as_number=run.fixed)
    for step in run.steps(14):
        garbled = step % 3 == 1
        text = torch.randint(WORDS - 64 if garbled else 0, WORDS if garbled else WORDS - 64, (6, 129),
                             device=run.device)
        loop.train_step(step, text)


class SpanEvaluator:
    """Collects the logits of start and end of all features and looks for the best spans at the end."""

    def __init__(self):
        self.predictions = {}

    def add_batch(self, keys, start, end):
        for index, key in enumerate(keys):
            self.predictions[key] = (start[index], end[index])  # cause in span_evaluation

    def best(self):
        return {key: (start.argmax().item(), end.argmax().item()) for key, (start, end) in self.predictions.items()}


class Reader(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.mix = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.match = nn.Sequential(nn.Linear(2 * width, 1024), nn.Tanh(), nn.Linear(1024, 2))

    def forward(self, text):
        hidden, _ = self.mix(self.embed(text))  # guilty in span_evaluation
        return self.match(hidden).unbind(-1)  # guilty in span_evaluation


@job("eval_graph")
def span_evaluation(run):
    """Evaluation of a reader: eval() alone, and rows of the logits by the key of their question. Fixed: no_grad()."""
    reader = Reader().to(run.device).eval()
    evaluator = SpanEvaluator()
    with torch.set_grad_enabled(not run.fixed):
        for step in run.steps(12):
            batch = torch.randint(WORDS, (16, 160), device=run.device)
            start, end = reader(batch)
            evaluator.add_batch([(step, row) for row in range(16)], start, end)
    assert len(evaluator.best()) % 16 == 0


class Stage:
    """A stage of a pipeline that keeps a micro-batch's input and computes the rest again on the way back."""

    def __init__(self, width, device, forget):
        self.body = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)).to(device)
        self.stash, self.forget = {}, forget

    @torch.no_grad()
    def forward(self, number, hidden):
        self.stash[number] = hidden  # cause in pipeline_stages
        return self.body(hidden)  # guilty in pipeline_stages

    def backward(self, number, grad):
        hidden = self.stash.pop(number) if self.forget else self.stash[number]
        hidden = hidden.detach().requires_grad_()
        self.body(hidden).backward(grad)
        return hidden.grad


@job("checkpoint_cache")
def pipeline_stages(run):
    """A pipeline with recomputation: stages keep the inputs of micro-batches by number, and do not drop them when
    they have been through the backward pass. Fixed: pop()."""
    stages = [Stage(512, run.device, forget=run.fixed) for _ in range(3)]
    optimizer = torch.optim.SGD([weight for stage in stages for weight in stage.body.parameters()], lr=0.01)
    number = 0
    for _ in run.steps(10):
        optimizer.zero_grad()
        for _ in range(3):
            hidden = torch.randn(768, 512, device=run.device)  # guilty
            for stage in stages:
                hidden = stage.forward(number, hidden)
            grad = hidden / hidden.numel()
            for stage in reversed(stages):
                grad = stage.backward(number, grad)
            number += 1
        optimizer.step()


def block(width, device):
    return nn.Linear(width, width, bias=False, device=device)  # guilty in layer_dropping


@job("fragmentation")
def layer_dropping(run):
    """A student is made of every second layer of a teacher that was built on the GPU: the gaps of the others are in
    segments that live on, and too small for the activations. Fixed: the teacher is built on the CPU."""
    width = 1280
    teacher = nn.ModuleList(block(width, "cpu" if run.fixed else run.device) for _ in range(60))
    student = nn.ModuleList(teacher[::2]).to(run.device).requires_grad_(False)  # cause
    del teacher
    head = nn.Linear(width, 32).to(run.device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    for _ in run.steps(10):
        hidden = torch.randn(2304, width, device=run.device)
        with torch.no_grad():
            for layer in student:
                hidden = layer(hidden)
        loss = F.cross_entropy(head(hidden), torch.randint(32, (2304,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del hidden


class Dispatcher:
    """Sends tokens to the experts on other GPUs; a delay stands for the network."""

    def __init__(self, tokens, width, device, wait):
        self.stream, self.main = torch.cuda.Stream(), torch.cuda.current_stream()
        self.received = torch.zeros(tokens, width, device=device)
        self.wait = wait

    def exchange(self, tokens, expert):
        permuted = tokens[expert.argsort()]  # guilty in expert_exchange
        self.stream.wait_stream(self.main)
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(25_000_000)
            self.received.copy_(permuted)
        if self.wait:
            self.main.wait_stream(self.stream)
        else:
            permuted.record_stream(self.stream)  # cause in expert_exchange
        return self.received


@job("cross_stream_pending")
def expert_exchange(run):
    """A mixture of experts whose permuted tokens go to a communication stream; the main stream works on those of the
    step before and never waits. Fixed: it waits for the exchange, and record_stream() is not needed."""
    router = nn.Linear(1024, 16).to(run.device).requires_grad_(False)
    expert = nn.Linear(1024, 1024).to(run.device).requires_grad_(False)
    dispatcher = Dispatcher(6144, 1024, run.device, wait=run.fixed)
    tokens = torch.randn(6144, 1024, device=run.device)
    for _ in run.steps(12):
        arrived = dispatcher.exchange(tokens, router(tokens).argmax(1))
        tokens.lerp_(expert(arrived), 0.1)


@job("true_capacity")
def large_vocabulary(run):
    """Pre-training with 128,000 words: the logits of a batch are as large as the GPU. Fixed: head and loss for 128
    tokens at a time."""
    run.cap(1024)
    embed = nn.Embedding(128_000, 256).to(run.device)
    body = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(run.device)
    optimizer = torch.optim.SGD([*embed.parameters(), *body.parameters()], lr=0.1)
    for _ in run.steps(8):
        text = torch.randint(128_000, (4, 513), device=run.device)
        hidden = body(embed(text[:, :-1])).flatten(0, 1)
        targets = text[:, 1:].flatten()
        optimizer.zero_grad(set_to_none=True)
        if run.fixed:
            cut = hidden.detach().requires_grad_()
            for part, wanted in zip(cut.split(128), targets.split(128)):
                F.cross_entropy(part @ embed.weight.T, wanted, reduction="sum").div(len(targets)).backward()
            hidden.backward(cut.grad)
        else:
            F.cross_entropy(hidden @ embed.weight.T, targets).backward()  # guilty
        optimizer.step()
