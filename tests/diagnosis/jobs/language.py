"""Text models: language modelling, parsing, generation, fine-tuning."""
import gc
import weakref

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job

VOCABULARY = 4000


def tokens(run, *shape):
    return torch.randint(VOCABULARY, shape, device=run.device)


def encoder(width=256, layers=2):
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(VOCABULARY, width), nn.TransformerEncoder(layer, layers), nn.Linear(width, 64))


@job("gradient_accumulation")
def gradient_history(run):
    """The gradient noise scale is estimated from all gradients so far, which are cloned into a list on the GPU; the
    job ends out of memory. Fixed: only their squared norms are kept."""
    run.cap(640)
    model = nn.Sequential(nn.EmbeddingBag(VOCABULARY, 1024), nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024))
    model = model.to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in run.steps(20):
        loss = model(tokens(run, 64, 40)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if run.fixed:
            history.append([p.grad.square().sum().item() for p in model.parameters()])
        else:
            history.append([p.grad.clone() for p in model.parameters()])  # guilty
        optimizer.step()


@job("gradient_accumulation")
def task_conflicts(run):
    """Three tasks with a shared trunk, whose gradients are compared for conflicts and kept by step and task. Fixed:
    the table lives for one step."""
    trunk = nn.Sequential(nn.EmbeddingBag(VOCABULARY, 512), nn.Linear(512, 1024), nn.ReLU()).to(run.device)
    heads = nn.ModuleList(nn.Linear(1024, n) for n in (5, 20, 100)).to(run.device)
    shared = list(trunk.parameters())
    kept = {}
    for step in run.steps(10):
        hidden = trunk(tokens(run, 32, 60))
        if run.fixed:
            kept = {}
        for task, head in enumerate(heads):
            loss = head(hidden).square().mean()
            kept[step, task] = torch.autograd.grad(loss, shared, retain_graph=True)  # guilty
        run.middle()
        with torch.no_grad():
            for index, weight in enumerate(shared):
                weight -= 0.01 * sum(kept[step, task][index] for task in range(3))


@job("hidden_state")
def character_model(run):
    """The norms of a GRU's gradients over a book in chunks, its state carried on; retain_graph=True hides the error
    that this leads to, and each chunk's graph hangs on the state. The job ends out of memory. Fixed: .detach()."""
    run.cap(420)
    embed = nn.Embedding(128, 128).to(run.device)
    model = nn.GRU(128, 512, batch_first=True).to(run.device)
    head = nn.Linear(512, 128).to(run.device)
    weights = [*embed.parameters(), *model.parameters(), *head.parameters()]
    norms = []
    state = None
    for _ in run.steps(12):
        text = torch.randint(128, (64, 61), device=run.device)
        output, state = model(embed(text[:, :-1]), state)  # guilty
        loss = F.cross_entropy(head(output).flatten(0, 1), text[:, 1:].flatten())
        loss.backward(retain_graph=not run.fixed)
        norms.append(nn.utils.clip_grad_norm_(weights, 1.0).item())
        for weight in weights:
            weight.grad = None
        if run.fixed:
            state = state.detach()


@job("hidden_state")
def segment_memory(run):
    """A Transformer-XL whose memory of the last segment is not detached: the segment before it, and its memory, stay
    in the graph, through which each backward pass goes again. Fixed: .detach()."""
    width = 256
    embed = nn.Embedding(VOCABULARY, width).to(run.device)
    attention = nn.MultiheadAttention(width, 4, batch_first=True).to(run.device)
    feed = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)).to(run.device)
    memory = torch.zeros(16, 64, width, device=run.device)
    for _ in run.steps(8):
        segment = embed(tokens(run, 16, 64))
        context = torch.cat([memory, segment], 1)
        mixed, _ = attention(segment, context, context, need_weights=False)  # guilty
        hidden = feed(segment + mixed)  # guilty
        for part in (embed, attention, feed):
            part.zero_grad()
        hidden.square().mean().backward(retain_graph=not run.fixed)
        memory = hidden.detach() if run.fixed else hidden  # cause


@job("eval_graph")
def perplexity(run):
    """The perplexity of a text, window by window, without no_grad(): the list of losses keeps all graphs. The job
    ends out of memory. Fixed: no_grad()."""
    run.cap(700)
    model = encoder().to(run.device).eval()
    losses = []
    with torch.set_grad_enabled(not run.fixed):
        for _ in run.steps(16):
            window = tokens(run, 8, 256)
            logits = model(window)  # guilty
            losses.append(F.cross_entropy(logits.flatten(0, 1), window.flatten() % 64))  # cause


class ParseNode:
    """A constituent; it knows its parts, and they know it."""

    def __init__(self, vector, parts=(), weak=False):
        self.vector = vector
        self.parts = parts
        self.parent = None
        for part in parts:
            part.parent = weakref.ref(self) if weak else self


@job("reference_cycle")
def parse_trees(run):
    """Trees whose nodes point to their parents: each sentence's tree is a cycle and waits for the collector, which is
    off to avoid its pauses. Fixed: a weak reference to the parent."""
    gc.disable()
    compose = nn.Linear(2048, 1024).to(run.device)
    for _ in run.steps(14):
        with torch.no_grad():
            nodes = [ParseNode(torch.randn(256, 1024, device=run.device)) for _ in range(8)]  # guilty
            while len(nodes) > 1:
                left, right = nodes.pop(0), nodes.pop(0)
                vector = torch.tanh(compose(torch.cat([left.vector, right.vector], 1)))  # guilty
                nodes.append(ParseNode(vector, (left, right), weak=run.fixed))  # cause
        score = nodes[0].vector.mean().item()
        del left, right, vector, nodes
        assert -1 <= score <= 1


class AttentionBias(nn.Module):
    """Bias from relative positions, remembered for each input."""

    def __init__(self, by_length):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(257))
        self.by_length = by_length
        self.known = {}

    def forward(self, hidden):
        length = hidden.shape[1]
        key = length if self.by_length else hidden
        if key not in self.known:
            place = torch.arange(length, device=hidden.device)
            offset = (place[:, None] - place[None, :]).clamp(-128, 128) + 128
            self.known[key] = F.one_hot(offset, 257).to(hidden.dtype)  # guilty in remembered_bias
        return torch.einsum("ijk,k->ij", self.known[key], self.table)


@job("checkpoint_cache")
def remembered_bias(run):
    """A cache of attention biases inside a checkpointed block has its input tensor as the key: each recomputation
    adds an entry. Fixed: the sequence length is the key."""
    embed = nn.Embedding(VOCABULARY, 128).to(run.device)
    bias = AttentionBias(by_length=run.fixed).to(run.device)
    value = nn.Linear(128, 128).to(run.device)
    parameters = [*embed.parameters(), *bias.parameters(), *value.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01)

    def block(hidden):
        return torch.softmax(bias(hidden), 1) @ value(hidden)

    for _ in run.steps(8):
        hidden = checkpoint(block, embed(tokens(run, 8, 96)), use_reentrant=True)
        loss = hidden.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("true_capacity")
def quadratic_attention(run):
    """Attention written out over a document of 8,192 tokens: one matrix of scores is larger than what is left of the
    GPU. Fixed: scaled_dot_product_attention, which has no such matrix."""
    run.cap(1536)
    project = nn.Linear(256, 768).to(run.device, torch.bfloat16)
    for _ in run.steps(5):
        document = torch.randn(1, 8, 8192, 32, device=run.device, dtype=torch.bfloat16)
        query, key, value = project(document.transpose(1, 2).flatten(2)).chunk(3, -1)
        query, key, value = (x.view(1, 8192, 8, 32).transpose(1, 2) for x in (query, key, value))
        if run.fixed:
            mixed = F.scaled_dot_product_attention(query, key, value)
        else:
            mixed = torch.softmax(query @ key.transpose(2, 3) / 32**0.5, 3) @ value  # guilty
        mixed.square().mean().backward()
        project.zero_grad()


@job("cached_not_released")
def long_prompt(run):
    """A server of a language model: one request with a very long prompt, then short ones. The other processes on the
    GPU do not get its memory back. Fixed: empty_cache() after an unusual request."""
    model = encoder(512).to(run.device).eval()
    with torch.inference_mode():
        for step in run.steps(12):
            length = 4000 if step == 2 else 100
            answer = model(tokens(run, 4, length)).argmax(-1).tolist()  # guilty
            if run.fixed and length > 1000:
                torch.cuda.empty_cache()
    assert len(answer) == 4


@job("fragmentation")
def growing_sessions(run):
    """Each request of a server needs a buffer for its prompt while it is answered, and a state for its session that
    stays; prompts become longer. The states keep the segments, the buffers' places between them are too small for
    later requests. Fixed: all of them are slices of a pool that is allocated once."""
    pool = torch.empty(56 << 20, device=run.device) if run.fixed else None
    sessions = []
    used = 0
    for step in run.steps(6):
        prompt = int(400_000 * 1.5**step)
        buffers = []
        for user in range(6):
            if run.fixed:
                buffers.append(pool[-prompt * (user + 1) :][:prompt])
                sessions.append(pool[used : used + prompt * 7 // 10])
                used += prompt * 7 // 10
            else:
                buffers.append(torch.zeros(prompt, device=run.device))  # guilty
                sessions.append(torch.zeros(prompt * 7 // 10, device=run.device))  # guilty
        del buffers


@job("healthy")
def micro_batches(run):
    """Gradients accumulated over four micro-batches on purpose, then a step and zero_grad()."""
    model = encoder().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in run.steps(5):
        for _ in range(4):
            loss = model(tokens(run, 8, 128)).square().mean() / 4
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


@job("healthy")
def two_steps_of_adamw(run):
    """Only the first iterations: AdamW's moments appear in the first step and memory seems to grow."""
    model = nn.Sequential(nn.EmbeddingBag(VOCABULARY, 1024), nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))
    model = model.to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in run.steps(3):
        loss = model(tokens(run, 64, 40)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def generation(run):
    """Answers of 16 tokens with a key-value cache that grows with each token and is dropped with the answer."""
    width, layers = 512, 2
    project = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers)).to(run.device)
    with torch.inference_mode():
        for _ in run.steps(4):
            hidden = torch.randn(16, 1, width, device=run.device)
            cache = [(torch.zeros(16, 200, width, device=run.device),) * 2 for _ in range(layers)]
            for _ in range(16):
                for index, layer in enumerate(project):
                    query, key, value = layer(hidden).chunk(3, -1)
                    keys, values = cache[index]
                    cache[index] = (torch.cat([keys, key], 1), torch.cat([values, value], 1))
                    hidden = F.scaled_dot_product_attention(query, *cache[index])
            del cache, keys, values


@job("healthy")
def truncated_backpropagation(run):
    """A GRU with its state carried from chunk to chunk and detached each time."""
    embed = nn.Embedding(128, 128).to(run.device)
    model = nn.GRU(128, 512, batch_first=True).to(run.device)
    head = nn.Linear(512, 128).to(run.device)
    optimizer = torch.optim.Adam([*embed.parameters(), *model.parameters(), *head.parameters()], lr=1e-3)
    state = None
    for _ in run.steps(12):
        text = torch.randint(128, (64, 61), device=run.device)
        output, state = model(embed(text[:, :-1]), state)
        state = state.detach()
        loss = F.cross_entropy(head(output).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class LowRank(nn.Module):
    """A frozen layer with a trainable addition of low rank."""

    def __init__(self, width, rank=8):
        super().__init__()
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)

    def forward(self, hidden):
        return torch.relu(self.frozen(hidden) + self.up(self.down(hidden)))


@job("healthy")
def low_rank_adapters(run):
    """Fine-tuning of low-rank adapters; the frozen weights, most of the memory, never get gradients."""
    model = nn.Sequential(*(LowRank(1536) for _ in range(5))).to(run.device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for _ in run.steps(8):
        loss = model(torch.randn(512, 1536, device=run.device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        run.middle()
        optimizer.step()


@job("healthy")
def clipped_gradients(run):
    """Gradient clipping, with a list of all norms as numbers."""
    model = encoder().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    norms = []
    for _ in run.steps(8):
        loss = model(tokens(run, 8, 128)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()


@job("healthy")
def length_curriculum(run):
    """Sequences become longer for eight iterations and stay at the longest."""
    model = encoder().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in run.steps(12):
        loss = model(tokens(run, 16, 48 + 32 * min(step, 7))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def beam_search(run):
    """Beam search that reorders its states in each step; sentences are translated one after the other."""
    embed = nn.Embedding(VOCABULARY, 1024).to(run.device)
    cell = nn.GRUCell(1024, 1024).to(run.device)
    head = nn.Linear(1024, VOCABULARY).to(run.device)
    with torch.no_grad():
        for _ in run.steps(6):
            state = torch.randn(640, 1024, device=run.device)
            word = torch.zeros(640, dtype=torch.long, device=run.device)
            score = torch.zeros(640, device=run.device)
            for _ in range(10):
                state = cell(embed(word), state)
                total = score[:, None] + torch.log_softmax(head(state), 1)
                score, place = total.flatten().topk(640)
                word = place % VOCABULARY
                state = state[torch.div(place, VOCABULARY, rounding_mode="floor")]
