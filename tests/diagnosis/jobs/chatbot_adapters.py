"""A chat model and its low-rank adapters: fine-tuning, merging, serving."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job

WORDS = 1000


class AdaptedLinear(nn.Module):
    """A layer of the base model with an addition of low rank."""

    def __init__(self, width, rank=8):
        super().__init__()
        self.base = nn.Linear(width, width)
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, hidden):
        return self.base(hidden) + self.up(self.down(hidden))

    def adapter(self):
        return [self.down.weight, self.up.weight]


class ChatModel(nn.Module):
    """As much of a language model as fine-tuning its layers needs."""

    def __init__(self, width=1536, depth=6):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.layers = nn.ModuleList(AdaptedLinear(width) for _ in range(depth))

    def adapters(self):
        return [weight for layer in self.layers for weight in layer.adapter()]

    def forward(self, words):
        hidden = self.embed(words)
        for layer in self.layers:
            hidden = hidden + F.gelu(layer(hidden))
        return hidden @ self.embed.weight.T


def next_word_loss(model, words):
    return F.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())


@job("gradient_accumulation")
def base_left_trainable(run):
    """Only the adapters are given to the optimizer, but nobody froze the base model: its gradients are summed up from
    batch to batch, and neither used nor zeroed. Fixed: requires_grad_(False) for the base model."""
    model = ChatModel().to(run.device)
    if run.fixed:
        model.requires_grad_(False)
        for weight in model.adapters():
            weight.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.adapters(), lr=1e-4)
    for _ in run.steps(10):
        words = torch.randint(WORDS, (8, 33), device=run.device)
        loss = next_word_loss(model, words)
        optimizer.zero_grad()  # cause
        loss.backward()  # guilty
        optimizer.step()


class ValidationCallback:
    """The loss on conversations that are held out, after each step of training."""

    def __init__(self, conversations, no_grad):
        self.conversations = conversations
        self.no_grad = no_grad
        self.losses = []

    def on_step_end(self, trainer):
        trainer.model.eval()
        with torch.set_grad_enabled(not self.no_grad):
            words = self.conversations[len(self.losses) % len(self.conversations)]
            logits = trainer.head(trainer.model(trainer.embed(words[:, :-1])))  # guilty in held_out_conversations
            loss = F.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())  # guilty in held_out_conversations
            self.losses.append(loss)  # cause in held_out_conversations
        trainer.model.train()


class AdapterTrainer:
    """Trains a head on a frozen encoder's top layer, and calls what wants to be called."""

    def __init__(self, device, callbacks):
        layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
        self.embed = nn.Embedding(WORDS, 256).to(device)
        self.model = nn.TransformerEncoder(layer, 2).to(device)
        self.head = nn.Linear(256, WORDS).to(device)
        weights = [*self.embed.parameters(), *self.model.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.AdamW(weights, lr=1e-4)
        self.callbacks = callbacks

    def step(self, words):
        logits = self.head(self.model(self.embed(words[:, :-1])))
        self.optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten()).backward()
        self.optimizer.step()
        for callback in self.callbacks:
            callback.on_step_end(self)


@job("eval_graph")
def held_out_conversations(run):
    """A callback computes the validation loss after each step, in eval() mode but with gradients, and keeps the losses
    as tensors for the report. Fixed: no_grad()."""
    conversations = torch.randint(WORDS, (4, 8, 129), device=run.device)
    trainer = AdapterTrainer(run.device, [ValidationCallback(conversations, no_grad=run.fixed)])
    for _ in run.steps(12):
        trainer.step(torch.randint(WORDS, (8, 129), device=run.device))


def merge_personas(layers, adapters):
    """Adds to the layers what the personas' adapters agree on: the sign that most of them have decides."""
    products = [up @ down for adapter in adapters for down, up in adapter]  # guilty in personas
    deltas = torch.stack(products).unflatten(0, (len(adapters), len(layers)))  # guilty in personas
    agreed = deltas.sum(0).sign()  # guilty in personas
    deltas = torch.where(deltas.sign() == agreed, deltas, torch.zeros_like(deltas))  # guilty in personas
    for layer, delta in zip(layers, deltas.mean(0)):  # guilty in personas
        layer.weight.add_(delta.to(layer.weight.dtype))  # guilty in personas


@job("cached_not_released")
def personas(run):
    """A chat server merges the adapters of four personas in single precision when it starts; then it answers with a
    small part of that memory. The speech synthesis on the same GPU finds the rest taken. Fixed: empty_cache() after
    the merge."""
    width = 1536
    layers = [nn.Linear(width, width, bias=False).to(run.device, torch.bfloat16) for _ in range(5)]
    with torch.inference_mode():
        adapters = [[(torch.randn(8, width, device=run.device), torch.randn(width, 8, device=run.device))
                     for _ in layers] for _ in range(4)]
        merge_personas(layers, adapters)
        del adapters
        if run.fixed:
            torch.cuda.empty_cache()
        for step in run.steps(14):
            hidden = torch.randn(4, 32 + 16 * (step % 4), width, device=run.device, dtype=torch.bfloat16)
            for layer in layers:
                hidden = hidden + F.gelu(layer(hidden))
            words = hidden[:, -1, :WORDS].argmax(1).tolist()
    assert len(words) == 4


class KeysAndValues:
    """What a layer attends to, as long as the conversation goes on."""

    def __init__(self):
        self.keys = self.values = None

    def add(self, keys, values):
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], 1)
        self.values = values if self.values is None else torch.cat([self.values, values], 1)
        return self.keys, self.values


@job("healthy")
def conversation_turns(run):
    """Conversations of six turns: keys and values grow from turn to turn, and go with the conversation."""
    width, depth = 512, 3
    project = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth)).to(run.device).eval()
    with torch.inference_mode():
        for step in run.steps(17):
            if step % 6 == 0:
                memory = [KeysAndValues() for _ in range(depth)]
            hidden = torch.randn(16, 64, width, device=run.device)
            for layer, known in zip(project, memory):
                query, key, value = layer(hidden).chunk(3, 2)
                keys, values = known.add(key, value)
                hidden = hidden + torch.softmax(query @ keys.transpose(1, 2) / width**0.5, 2) @ values
            reply = hidden.argmax(2).tolist()
    assert len(reply) == 16


@job("healthy")
def customers_in_turn(run):
    """One base model, frozen, and for each customer new adapters with their own optimizer, trained on a few batches
    and then moved to the CPU."""
    model = ChatModel(width=1024, depth=4).requires_grad_(False).to(run.device)
    finished = {}
    for customer in run.steps(9):
        for layer in model.layers:
            nn.init.normal_(layer.down.weight, std=0.02)
            nn.init.zeros_(layer.up.weight)
        weights = [weight.requires_grad_(True) for weight in model.adapters()]
        optimizer = torch.optim.AdamW(weights, lr=1e-3)
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            next_word_loss(model, torch.randint(WORDS, (16, 65), device=run.device)).backward()
            optimizer.step()
        finished[customer] = [weight.detach().cpu().clone() for weight in weights]
        optimizer.zero_grad(set_to_none=True)
