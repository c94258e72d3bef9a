#!/usr/bin/env python3
"""Records what PyTorch's allocator is asked for by known training loops, on a GPU machine.

    python tests/scenarios/record_truth.py OUT            # all patterns, a process for each
    python tests/scenarios/record_truth.py OUT NAME ...   # some; --list shows them

Writes OUT/NAME.json: the phases (label; bytes allocated, max_allocated, reserved and the sum of the
bytes asked for) and the exact bytes of parameters, gradients, buffers and optimizer state; and
OUT/NAME.events.gz: each request with where it came from, a line each:

    a ID BYTES STREAM WHERE        allocated            f ID         freed
    p LABEL                        a phase ended

test_truth.c compares the engine with the .json files that are kept in tests/data/truth; the events are for
finding out why a figure differs. Nothing here knows the engine: the loops are ordinary PyTorch.
"""
import argparse
import gc
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TORCH_SYMBOLIZE_MODE", "dladdr")  # names only, in microseconds

import torch
from torch import nn
from torch.nn import functional as F

from operation_cases import OPERATIONS

PATTERNS = {}


def pattern(**variants):
    """Registers NAME_VARIANT for each keyword: its value are the function's arguments."""

    def register(function):
        for name, arguments in variants.items():
            full = function.__name__ if name == "plain" else f"{function.__name__}_{name}"
            PATTERNS[full] = (function, arguments)
        return function

    return register


# --- recording -------------------------------------------------------------------------------------


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


class Recorder:
    def __init__(self):
        self.phases = []
        self.sizes = {}
        self.times = []

    def phase(self, label):
        torch.cuda.synchronize()
        stats = torch.cuda.memory_stats()
        self.times.append(time.time_ns() // 1000)
        self.phases.append({
            "label": str(label),
            "allocated": torch.cuda.memory_allocated(),
            "max_allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.memory_reserved(),
            "max_reserved": torch.cuda.max_memory_reserved(),
            "requested": stats["requested_bytes.all.current"],
            "max_requested": stats["requested_bytes.all.peak"],
        })

    def measure(self, model, optimizer=None):
        """The exact bytes; to be called while the gradients are there."""
        parameters = list(model.parameters())
        self.sizes = {
            "parameters": bytes_of(parameters),
            "buffers": bytes_of(model.buffers()),
            "gradients": bytes_of(p.grad for p in parameters if p.grad is not None),
        }
        if optimizer:
            self.sizes["optimizer_state"] = bytes_of(
                t for state in optimizer.state.values() for t in state.values()
                if torch.is_tensor(t) and t.is_cuda)


INTERESTING = re.compile(r"(\w+Backward\d*::apply|at::(?:native|_ops)::(?:\(anonymous namespace\)::)?\w+"
                         r"|cudnn\w*|cublas\w+|gemm\w*|AccumulateGrad)")


def where(frames):
    """The innermost named operations, and the user's line."""
    names, user = [], ""
    for frame in frames:
        if frame["filename"].endswith(".py"):
            if not user and os.path.basename(frame["filename"]) == os.path.basename(__file__):
                user = f"{frame['name']}:{frame['line']}"
            continue
        found = INTERESTING.search(frame["name"])
        if found and len(names) < 4:
            name = found.group(1).split("::")[-2 if found.group(1).endswith("apply") else -1]
            if name not in names and name != "call":
                names.append(name)
    return "<".join(names + [user]) or "?"


def write_events(path, trace, recorder):
    ids, count, marks = {}, 0, list(zip(recorder.times, recorder.phases))
    with gzip.open(path, "wt") as out:
        for event in trace:
            while marks and event.get("time_us", 0) > marks[0][0]:
                out.write(f"p {marks.pop(0)[1]['label']}\n")
            if event["action"] == "alloc":
                count += 1
                ids[event["addr"]] = count
                out.write(f"a {count} {event['size']} {event['stream']} {where(event.get('frames', []))}\n")
            elif event["action"] == "free_requested":
                out.write(f"f {ids.get(event['addr'], 0)}\n")
        for _, phase in marks:
            out.write(f"p {phase['label']}\n")


def record(name, folder):
    function, arguments = PATTERNS[name]
    torch.manual_seed(0)
    torch.cuda.init()
    torch.cuda.memory._record_memory_history("all", context="all", stacks="all", max_entries=400000)
    recorder = Recorder()
    function(recorder, **arguments)
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    write_events(os.path.join(folder, name + ".events.gz"), trace, recorder)
    with open(os.path.join(folder, name + ".json"), "w") as out:
        json.dump({
            "pattern": name, "arguments": {k: str(v) for k, v in arguments.items()},
            "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
            "device": torch.cuda.get_device_name(), **recorder.sizes, "phases": recorder.phases,
        }, out, indent=1)
        out.write("\n")


# --- models ----------------------------------------------------------------------------------------


class Bottleneck(nn.Module):
    def __init__(self, inplanes, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, planes * 4, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(planes * 4)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inplanes != planes * 4:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes * 4, 1, stride, bias=False),
                                            nn.BatchNorm2d(planes * 4))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet50(nn.Module):
    """As torchvision's."""

    def __init__(self, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inplanes, layers = 64, []
        for planes, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            blocks = []
            for i in range(count):
                blocks.append(Bottleneck(inplanes, planes, stride if i == 0 else 1))
                inplanes = planes * 4
            layers.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = layers
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(2048, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Seq2Seq(nn.Module):
    """The forum thread's: GRU encoder over packed sequences, two GRU cells with additive attention."""

    def __init__(self, vocabulary, embedding, hidden):
        super().__init__()
        self.encoder = nn.GRU(embedding, hidden, bidirectional=True, batch_first=True)
        self.source = nn.Embedding(vocabulary, embedding)
        self.keys = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.Tanh())
        self.initial = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh())
        self.target = nn.Embedding(vocabulary, embedding)
        self.cell1 = nn.GRUCell(embedding, hidden)
        self.query = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1)
        self.cell2 = nn.GRUCell(2 * hidden, hidden)
        self.out = nn.Sequential(nn.Sequential(nn.Linear(embedding + 3 * hidden, embedding), nn.Tanh()),
                                 nn.Linear(embedding, vocabulary))

    def forward(self, source, target):
        mask = source == 0
        lengths = source.size(1) - mask.sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.source(source), lengths.cpu(), batch_first=True)
        states, last = self.encoder(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        keys, state = self.keys(states), self.initial(last[1])
        words, hidden, contexts = self.target(F.pad(target, (1, 0))[:, :-1]), [], []
        for t in range(target.size(1)):
            state = self.cell1(words[:, t], state)
            scores = self.score(torch.tanh(keys + self.query(state).unsqueeze(1)))
            context = (F.softmax(scores, 1).transpose(1, 2) @ states).squeeze(1)
            state = self.cell2(context, state)
            hidden.append(state)
            contexts.append(context)
        return self.out(torch.cat([words, torch.stack(hidden, 1), torch.stack(contexts, 1)], -1))


class Block(nn.Module):
    """A GPT block over nn.MultiheadAttention, pre-norm."""

    def __init__(self, features, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(features)
        self.ln2 = nn.LayerNorm(features)
        self.attention = nn.MultiheadAttention(features, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(features, 4 * features), nn.GELU(), nn.Linear(4 * features, features))

    def forward(self, x):
        h = self.ln1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class CausalBlock(nn.Module):
    """A GPT block as nanoGPT writes it: one projection, scaled_dot_product_attention, causal."""

    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(features)
        self.qkv = nn.Linear(features, 3 * features)
        self.projection = nn.Linear(features, features)
        self.ln2 = nn.LayerNorm(features)
        self.fc = nn.Linear(features, 4 * features)
        self.out = nn.Linear(4 * features, features)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(c, 2)
        q, k, v = (s.view(b, t, self.heads, c // self.heads).transpose(1, 2) for s in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary, features, layers, heads, block=Block, positions=0, checkpoint=None):
        super().__init__()
        self.words = nn.Embedding(vocabulary, features)
        self.positions = nn.Embedding(positions, features) if positions else None
        self.blocks = nn.ModuleList(block(features, heads) for _ in range(layers))
        self.head = nn.Linear(features, vocabulary, bias=False)
        self.checkpoint = checkpoint

    def forward(self, tokens):
        x = self.words(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.blocks:
            if self.checkpoint is None:
                x = block(x)
            else:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=self.checkpoint)
        return self.head(x)


class LSTMTagger(nn.Module):
    def __init__(self, vocabulary, features, hidden, layers, kind, both):
        super().__init__()
        self.words = nn.Embedding(vocabulary, features)
        self.rnn = kind(features, hidden, layers, batch_first=True, bidirectional=both)
        self.head = nn.Linear(2 * hidden if both else hidden, vocabulary)

    def forward(self, tokens):
        return self.head(self.rnn(self.words(tokens))[0])


# --- loops -----------------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-4),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-4),
    "adam_single": lambda p: torch.optim.Adam(p, lr=1e-4, foreach=False),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=1e-4, fused=True),
}


def train(recorder, model, batch, loss_of, optimizer="adamw", iterations=3, set_to_none=True, clip=None,
          accumulate=1, amp=None):
    """zero_grad, forward, backward, step; a phase after each. `batch()` gives input and target."""
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    scaler = torch.GradScaler("cuda") if amp == torch.float16 else None
    recorder.phase("start")
    for i in range(iterations):
        optimizer.zero_grad(set_to_none=set_to_none)
        recorder.phase(f"{i}:zero grads")
        for k in range(accumulate):
            suffix = f" {k}" if accumulate > 1 else ""
            x, y = batch()
            with torch.autocast("cuda", dtype=amp or torch.bfloat16, enabled=amp is not None):
                loss = loss_of(model(x), y)
            recorder.phase(f"{i}:forward{suffix}")
            (scaler.scale(loss) if scaler else loss).backward()
            recorder.phase(f"{i}:backward{suffix}")
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            recorder.phase(f"{i}:clip")
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        recorder.phase(f"{i}:step")
    recorder.measure(model, optimizer)


def images(batch, side=224):
    def make():
        return (torch.randn(batch, 3, side, side, device="cuda"),
                torch.randint(0, 1000, (batch,), device="cuda"))
    return make


def tokens(vocabulary, batch, length):
    def make():
        x = torch.randint(0, vocabulary, (batch, length), device="cuda")
        return x, torch.randint(0, vocabulary, (batch * length,), device="cuda")
    return make


def flat_loss(logits, target):
    return F.cross_entropy(logits.flatten(0, -2), target)


@pattern(bs8_adam=dict(batch=8, optimizer="adam"), bs16_sgd=dict(batch=16, optimizer="sgd"),
         bs4_side128=dict(batch=4, side=128, optimizer="momentum"), bs64=dict(batch=64, optimizer="momentum"),
         bs8_zeroed=dict(batch=8, optimizer="momentum", set_to_none=False),
         bs8_accumulate=dict(batch=8, optimizer="momentum", accumulate=2),
         bs32_bf16=dict(batch=32, optimizer="momentum", amp=torch.bfloat16),
         bs32_fp16=dict(batch=32, optimizer="momentum", amp=torch.float16),
         bs32_benchmark=dict(batch=32, optimizer="momentum", benchmark=True),
         bs16_channels_last=dict(batch=16, optimizer="momentum", channels_last=True))
def resnet50(recorder, batch, side=224, benchmark=False, channels_last=False, **options):
    torch.backends.cudnn.benchmark = benchmark
    model = ResNet50().cuda()
    make = images(batch, side)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        make = lambda inner=make: [(x.to(memory_format=torch.channels_last), y) for x, y in [inner()]][0]
    train(recorder, model, make, F.cross_entropy, **options)


@pattern(bs512_side28=dict(batch=512, side=28, iterations=3))
def first_iteration(recorder, batch, side, iterations):
    """cuDNN's trial of algorithms: the first pass, then the peak of each later one."""
    torch.backends.cudnn.benchmark = True
    model = ResNet50().cuda()
    optimizer = OPTIMIZERS["momentum"](model.parameters())
    recorder.phase("start")
    for i in range(iterations):
        x, y = images(batch, side)()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        recorder.phase(f"{i}:forward")
        loss.backward()
        optimizer.step()
        del loss, x, y
        recorder.phase(f"{i}:step")
        torch.cuda.reset_peak_memory_stats()
    recorder.measure(model, optimizer)


@pattern(bs80=dict(batch=80, length=50), bs32=dict(batch=32, length=40),
         small=dict(batch=64, length=20, vocabulary=8000, embedding=256, hidden=512))
def seq2seq(recorder, batch, length, vocabulary=30000, embedding=500, hidden=1000):
    model = Seq2Seq(vocabulary, embedding, hidden).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    recorder.phase("beginning")
    for i in range(3):
        optimizer.zero_grad(set_to_none=False)
        source = torch.randint(1, vocabulary, (batch, length)).cuda()
        target = torch.randint(1, vocabulary, (batch, length)).cuda()
        recorder.phase(f"{i}:zero grads")
        logits = model(source, target)
        recorder.phase(f"{i}:forward")
        loss = F.cross_entropy(logits.view(-1, vocabulary), target.view(-1))
        recorder.phase(f"{i}:compute loss")
        loss.backward()
        recorder.phase(f"{i}:backward")
        optimizer.step()
        recorder.phase(f"{i}:optimizer step")
    recorder.measure(model, optimizer)


@pattern(lstm=dict(kind=nn.LSTM, layers=1), lstm2=dict(kind=nn.LSTM, layers=2, hidden=768),
         gru=dict(kind=nn.GRU, layers=1), gru3=dict(kind=nn.GRU, layers=3, features=384),
         lstm4=dict(kind=nn.LSTM, layers=4), lstm_both=dict(kind=nn.LSTM, layers=1, both=True),
         lstm2_both=dict(kind=nn.LSTM, layers=2, both=True, hidden=384),
         gru2_both=dict(kind=nn.GRU, layers=2, both=True, features=128))
def tagger(recorder, kind, layers, features=256, hidden=512, both=False):
    model = LSTMTagger(10000, features, hidden, layers, kind, both).cuda()
    train(recorder, model, tokens(10000, 32, 64), flat_loss, "adam")


@pattern(leak=dict(leak=True), fixed=dict(leak=False),
         gru_leak=dict(leak=True, kind=nn.GRU), large_leak=dict(leak=True, batch=48, length=100, hidden=384),
         both_leak=dict(leak=True, both=True), gru_both_fixed=dict(leak=False, kind=nn.GRU, both=True, layers=3))
def hidden(recorder, leak, kind=nn.LSTM, batch=32, length=64, features=128, hidden=256, layers=2, both=False):
    model = kind(features, hidden, layers, batch_first=True, bidirectional=both).cuda()
    state = None
    for i in range(6):
        output, state = model(torch.randn(batch, length, features, device="cuda"), state)
        loss = output.square().mean()
        if not leak:
            loss.backward()
            state = tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()
        recorder.phase(i)
    recorder.measure(model)


@pattern(post=dict(), gelu=dict(activation="gelu", optimizer="adam"), pre=dict(norm_first=True),
         long=dict(batch=4, length=512, features=256, heads=4), clip=dict(clip=1.0))
def encoder(recorder, batch=32, length=96, features=512, heads=8, layers=6, optimizer="adamw", clip=None, **options):
    layer = nn.TransformerEncoderLayer(features, heads, 4 * features, batch_first=True, **options)
    model = nn.Sequential(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
                          nn.Linear(features, 1000)).cuda()

    def make():
        return (torch.randn(batch, length, features, device="cuda"),
                torch.randint(0, 1000, (batch * length,), device="cuda"))

    train(recorder, model, make, flat_loss, optimizer, clip=clip)


@pattern(fp32=dict(), causal=dict(block=CausalBlock, positions=256), bf16=dict(amp=torch.bfloat16),
         causal_bf16=dict(block=CausalBlock, positions=256, amp=torch.bfloat16),
         fp16=dict(amp=torch.float16), checkpoint=dict(checkpoint=False), reentrant=dict(checkpoint=True),
         checkpoint_bf16=dict(checkpoint=False, amp=torch.bfloat16),
         accumulate_bf16=dict(amp=torch.bfloat16, accumulate=3), single=dict(optimizer="adam_single"),
         fused=dict(optimizer="adamw_fused"), small=dict(batch=2, features=256, heads=4, layers=4))
def gpt(recorder, batch=8, length=256, vocabulary=50304, features=768, heads=12, layers=8, block=Block,
        positions=0, checkpoint=None, optimizer="adamw", **options):
    import torch.utils.checkpoint
    model = GPT(vocabulary, features, layers, heads, block, positions, checkpoint).cuda()
    train(recorder, model, tokens(vocabulary, batch, length), flat_loss, optimizer, **options)


@pattern(resnet=dict(no_grad=False), resnet_no_grad=dict(no_grad=True))
def evaluate(recorder, no_grad):
    model = ResNet50().cuda().eval()
    with torch.set_grad_enabled(not no_grad):
        for i in range(4):
            output = model(torch.randn(16, 3, 224, 224, device="cuda"))
            total = output.sum()
            recorder.phase(i)
    recorder.measure(model)


@pattern(leak=dict(leak=True), no_grad=dict(leak=False))
def mlp(recorder, leak, layers=8, features=1536, batch=4096):
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(features, features), nn.ReLU()]
    model = nn.Sequential(*parts).cuda()
    with torch.set_grad_enabled(leak):
        for i in range(5):
            x = torch.randn(batch, features, device="cuda")
            loss = (model(x) - x).square().mean()
            recorder.phase(i)
    recorder.measure(model)


@pattern(loss=dict(keep="loss"), outputs=dict(keep="outputs"), detached=dict(keep="detached"), item=dict(keep="item"))
def metrics(recorder, keep):
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4096, 4096), nn.GELU(),
                          nn.LayerNorm(4096), nn.Linear(4096, 1000)).cuda()
    optimizer = OPTIMIZERS["adam"](model.parameters())
    kept = []
    for i in range(6):
        x, y = torch.randn(512, 1024, device="cuda"), torch.randint(0, 1000, (512,), device="cuda")
        output = model(x)
        loss = F.cross_entropy(output, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append({"loss": loss, "outputs": output, "detached": loss.detach(), "item": 0.0}[keep])
        recorder.phase(i)
    recorder.measure(model, optimizer)


@pattern(record=dict(record=True), wait=dict(record=False))
def side_stream(recorder, record):
    """Batches prefetched on a side stream; `record`: their memory is recorded on the stream that uses it."""
    model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)).cuda()
    side = torch.cuda.Stream()
    upcoming = None
    for i in range(8):
        with torch.cuda.stream(side):
            following = torch.randn(2048 + 256 * (i % 3), 4096, device="cuda")
        if upcoming is not None:
            torch.cuda.current_stream().wait_stream(side)
            if record:
                upcoming.record_stream(torch.cuda.current_stream())
            model(upcoming).sum().backward()
        upcoming = following
        recorder.phase(i)
    recorder.measure(model)


@pattern(copies={}, views={"gradient_as_bucket_view": True}, kept={"gradient_as_bucket_view": True, "set_to_none": False},
         small={"bucket_cap_mb": 4}, normalised={"normalise": True})
def ddp(recorder, layers=6, features=1536, batch=512, iterations=4, set_to_none=True, normalise=False, **options):
    """DistributedDataParallel, one process: its buckets and what it broadcasts are the same as with many."""
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1)
        parts = []
        for _ in range(layers):
            parts += [nn.Linear(features, features), *([nn.BatchNorm1d(features)] if normalise else []), nn.ReLU()]
        body = nn.Sequential(*parts).cuda()
        recorder.phase("model")
        model = nn.parallel.DistributedDataParallel(body, device_ids=[0], **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        recorder.phase("wrapped")
        for i in range(iterations):
            x = torch.randn(batch, features, device="cuda")
            loss = model(x).square().mean()
            recorder.phase(f"{i}:forward")
            loss.backward()
            recorder.phase(f"{i}:backward")
            optimizer.step()
            recorder.phase(f"{i}:step")
            if i < iterations - 1:
                optimizer.zero_grad(set_to_none=set_to_none)
        recorder.measure(model, optimizer)
        torch.distributed.destroy_process_group()


@pattern(cat=dict(static=False), static=dict(static=True))
def kv_cache(recorder, static):
    """Decoding: keys and values of all earlier positions, grown by concatenation or kept in one block."""
    layers, batch, heads, depth, most = 8, 4, 16, 64, 256
    new = lambda length: torch.zeros(batch, heads, length, depth, device="cuda", dtype=torch.float16)
    with torch.no_grad():
        if static:
            cache = [(new(most), new(most)) for _ in range(layers)]
        else:
            cache = [(new(64), new(64)) for _ in range(layers)]
        for i in range(64, 96):
            for k in range(layers):
                q = new(1)
                if static:
                    cache[k][0][:, :, i:i + 1] = new(1)
                    cache[k][1][:, :, i:i + 1] = new(1)
                    keys, values = cache[k][0][:, :, :i + 1], cache[k][1][:, :, :i + 1]
                else:
                    cache[k] = tuple(torch.cat([old, new(1)], 2) for old in cache[k])
                    keys, values = cache[k]
                F.scaled_dot_product_attention(q, keys, values)
            if i % 8 == 7:
                recorder.phase(i)


def once(recorder, label, make, call):
    """One operation forwards and backwards, a phase after each step."""
    inputs = make()
    recorder.phase(label + " inputs")
    out = call(*inputs)
    recorder.phase(label + " forward")
    out.sum().backward() if out.requires_grad else None
    recorder.phase(label + " backward")
    del out, inputs
    recorder.phase(label + " end")


def frozen(module):
    return module.requires_grad_(False)


# Each case of patterns/functions.lua: shapes of the inputs that require a gradient, constant inputs, the call.
# A module is an input, so that its parameters are there before.
FUNCTIONS = [
    ("sum dim", [(64, 300, 50)], lambda a: a.sum(1)),
    ("sum keepdim", [(64, 300, 50)], lambda a: a.sum(2, keepdim=True)),
    ("sum two dims", [(64, 300, 50)], lambda a: a.sum((1, 2))),
    ("sum rows", [(4000, 2000)], lambda a: a.sum(0)),
    ("mean dim", [(64, 300, 50)], lambda a: a.mean(1)),
    ("mean keepdim", [(64, 300, 50)], lambda a: a.mean(-1, keepdim=True)),
    ("max", [(64, 300, 50)], lambda a: a.max()),
    ("max dim", [(64, 300, 50)], lambda a: a.max(1)[0]),
    ("max keepdim", [(64, 300, 50)], lambda a: a.max(2, keepdim=True)[0]),
    ("softmax dim", [(64, 300, 50)], lambda a: F.softmax(a, 1)),
    ("log_softmax", [(640, 300)], lambda a: F.log_softmax(a, -1)),
    ("permute", [(64, 300, 50)], lambda a: a.permute(2, 0, 1).contiguous()),
    ("permute back", [(64, 300, 50)], lambda a: a.permute(2, 0, 1).permute(1, 2, 0).contiguous()),
    ("reshape view", [(64, 300, 50)], lambda a: a.reshape(64, -1)),
    ("reshape copy", [(64, 300, 50)], lambda a: a.transpose(1, 2).reshape(64, -1)),
    ("unsqueeze", [(64, 300, 50)], lambda a: a.unsqueeze(1) * 2),
    ("squeeze", [(64, 1, 300)], lambda a: a.squeeze(1) * 2),
    ("squeeze all", [(64, 1, 300, 1)], lambda a: a.squeeze() * 2),
    ("expand", [(64, 1, 50)], lambda a: a.expand(-1, 300, -1) * 2),
    ("div", [(64, 300), (64, 300)], lambda a, b: a / b),
    ("div broadcast", [(64, 300), (300,)], lambda a, b: a / b),
    ("div number", [(64, 300)], lambda a: a / 3),
    ("number div", [(64, 300)], lambda a: 3 / a),
    ("sub", [(64, 300), (64, 300)], lambda a, b: a - b),
    ("number sub", [(64, 300)], lambda a: 3 - a),
    ("pow", [(64, 300)], lambda a: a ** 3),
    ("pow zero", [(64, 300)], lambda a: a ** 0),
    ("pow one", [(64, 300)], lambda a: a ** 1),
    ("sqrt", [(64, 300)], torch.sqrt),
    ("log", [(64, 300)], torch.log),
    ("leaky_relu", [(64, 300)], F.leaky_relu),
    ("mse mean", [(640, 300), (640, 300)], lambda a, b: F.mse_loss(a, b)),
    ("mse sum", [(640, 300), (640, 300)], lambda a, b: F.mse_loss(a, b, reduction="sum")),
    ("mse none", [(640, 300), (640, 300)], lambda a, b: F.mse_loss(a, b, reduction="none")),
    ("mse target", [(640, 300), "like"], lambda a, b: F.mse_loss(a, b)),
    ("bce mean", [(640, 300), "like"], lambda a, b: F.binary_cross_entropy_with_logits(a, b)),
    ("bce sum", [(640, 300), "like"], lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="sum")),
    ("bce none", [(640, 300), "like"], lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="none")),
    ("kl batchmean", [(640, 300), "like"], lambda a, b: F.kl_div(a, b, reduction="batchmean")),
    ("kl mean", [(640, 300), "like"], lambda a, b: F.kl_div(a, b)),
    ("kl sum", [(640, 300), "like"], lambda a, b: F.kl_div(a, b, reduction="sum")),
    ("kl none", [(640, 300), "like"], lambda a, b: F.kl_div(a, b, reduction="none")),
    ("kl log target", [(640, 300), "like"], lambda a, b: F.kl_div(a, b, reduction="batchmean", log_target=True)),
    ("ce mean", [(640, 300), "classes"], lambda a, b: F.cross_entropy(a, b, ignore_index=7)),
    ("ce sum", [(640, 300), "classes"], lambda a, b: F.cross_entropy(a, b, reduction="sum")),
    ("ce none", [(640, 300), "classes"], lambda a, b: F.cross_entropy(a, b, reduction="none")),
    ("group norm", [lambda: nn.GroupNorm(8, 64), (16, 64, 32, 32)], lambda m, x: m(x)),
    ("batch norm 1d", [lambda: nn.BatchNorm1d(300), (640, 300)], lambda m, x: m(x)),
    ("batch norm 1d length", [lambda: nn.BatchNorm1d(64), (32, 64, 200)], lambda m, x: m(x)),
    ("batch norm 1d eval", [lambda: nn.BatchNorm1d(300).eval(), (640, 300)], lambda m, x: m(x)),
    ("rms norm", [lambda: nn.RMSNorm(512), (32, 100, 512)], lambda m, x: m(x)),
    ("avg pool", [(16, 64, 32, 32)], lambda x: F.avg_pool2d(x, 3, 2, 1)),
    ("adaptive pool 7", [(16, 64, 32, 32)], lambda x: F.adaptive_avg_pool2d(x, 7)),
    ("upsample nearest", [(16, 64, 32, 32)], lambda x: F.interpolate(x, scale_factor=2)),
    ("upsample bilinear", [(16, 64, 32, 32)], lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    ("flatten 2", [(16, 64, 32, 32)], lambda x: nn.Flatten(2)(x) * 2),
    ("frozen linear", [lambda: frozen(nn.Linear(512, 512)), (64, 512)], lambda m, x: m(x)),
    ("conv groups", [lambda: nn.Conv2d(64, 128, 3, padding=1, groups=4), (16, 64, 32, 32)], lambda m, x: m(x)),
    ("conv dilation", [lambda: nn.Conv2d(64, 128, 3, padding=2, dilation=2), (16, 64, 32, 32)], lambda m, x: m(x)),
    ("conv depthwise", [lambda: nn.Conv2d(64, 64, 3, padding=1, groups=64), (16, 64, 32, 32)], lambda m, x: m(x)),
    ("conv 1 by 3", [lambda: nn.Conv2d(64, 64, (1, 3), padding=(0, 1)), (16, 64, 32, 32)], lambda m, x: m(x)),
    ("conv1d", [lambda: nn.Conv1d(64, 128, 5, padding=2), (32, 64, 200)], lambda m, x: m(x)),
    ("conv1d stride", [lambda: nn.Conv1d(64, 128, 4, stride=2), (32, 64, 200)], lambda m, x: m(x)),
]


def one_at_a_time(recorder, cases):
    def make(kinds):
        made = []
        for kind in kinds:
            if kind == "like":
                made.append(torch.rand(*made[-1].shape, device="cuda"))
            elif kind == "classes":
                made.append(torch.randint(0, made[-1].shape[1], made[-1].shape[:1], device="cuda"))
            elif callable(kind):
                made.append(kind().cuda())
            else:
                made.append(torch.rand(*kind, device="cuda", requires_grad=True))
        return made

    once(recorder, "warm", lambda: make([lambda: nn.Linear(64, 64), (64, 64)]), lambda m, x: m(x))
    for label, kinds, call in cases:
        once(recorder, label, lambda: make(kinds), call)


@pattern(plain={})
def functions(recorder):
    """What scripts can call, one at a time."""
    one_at_a_time(recorder, FUNCTIONS)


@pattern(plain={})
def operations(recorder):
    """Operations under autocast, of other layouts, and by index, one at a time."""
    one_at_a_time(recorder, OPERATIONS)


@pattern(plain={})
def ops(recorder):
    """One operation at a time, forwards and backwards; for the rules of workspaces and saved tensors."""
    new = lambda *shape, **k: torch.randn(*shape, device="cuda", requires_grad=True, **k)

    def go(label, make, call):
        once(recorder, label, make, call)

    go("warm", lambda: [new(64, 64)], lambda a: a @ a)
    for b, c, k, s, f, st in [(8, 64, 64, 56, 1, 1), (8, 64, 64, 56, 3, 1), (8, 128, 128, 28, 3, 1), (8, 128, 128, 56, 3, 2),
                              (8, 256, 256, 14, 3, 1), (8, 512, 512, 7, 3, 1), (8, 3, 64, 224, 7, 2), (8, 3, 64, 32, 3, 1),
                              (32, 64, 128, 32, 3, 1), (64, 32, 64, 28, 5, 1), (8, 256, 512, 56, 1, 2), (1, 64, 64, 56, 3, 1)]:
        for dtype in (torch.float32, torch.bfloat16):
            go(f"conv {b}x{c}x{s} to {k} kernel {f} stride {st} {dtype}",
               lambda: [new(b, c, s, s, dtype=dtype), new(k, c, f, f, dtype=dtype)],
               lambda x, w: F.conv2d(x, w, stride=st, padding=f // 2))
    for name, call in [("gelu", F.gelu), ("tanh", torch.tanh), ("sigmoid", torch.sigmoid), ("silu", F.silu), ("exp", torch.exp),
                       ("softmax", lambda a: F.softmax(a, -1)), ("layer_norm", lambda a: F.layer_norm(a, (a.size(-1),))),
                       ("dropout", F.dropout), ("square", torch.square), ("mean", lambda a: a.mean(0)), ("relu_", lambda a: F.relu_(a * 1)),
                       ("transpose", lambda a: a.t().contiguous()), ("cat", lambda a: torch.cat([a, a])), ("half", lambda a: a.half()),
                       ("stack", lambda a: torch.stack([a, a])), ("index", lambda a: a[3:70]), ("add_", lambda a: (a * 1).add_(a)),
                       ("mul_", lambda a: (a * 1).mul_(2)), ("broadcast", lambda a: a[:, :1] * a), ("sum", lambda a: a.sum(1))]:
        go(name, lambda: [new(2000, 3000)], call)
    go("bmm", lambda: [new(16, 300, 200), new(16, 200, 100)], torch.bmm)
    go("addmm", lambda: [new(3000), new(2000, 1000), new(1000, 3000)], torch.addmm)
    for dtype in (torch.float32, torch.bfloat16):
        for causal in (False, True):
            go(f"sdpa {dtype} causal {causal}", lambda: [new(4, 12, 256, 64, dtype=dtype) for _ in range(3)],
               lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        for layers, both in ((1, False), (2, False), (3, False), (1, True), (2, True)):
            for b, t, i, h in ((16, 20, 64, 128), (32, 50, 96, 256), (16, 40, 64, 1000)):
                net = kind(i, h, layers, bidirectional=both).cuda()
                go(f"{kind.__name__} layers {layers} both {both} {b}x{t}x{i} to {h}", lambda: [new(t, b, i)], lambda x: net(x)[0])
                del net


def register_models():
    """Those of truth_models.py, which needs a newer torch than the rest."""
    import truth_models
    PATTERNS.update(truth_models.MODELS)


# --- the command -----------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    register_models()
    names = options.names or list(PATTERNS)
    if options.list:
        print("\n".join(names))
        return 0
    os.makedirs(options.folder, exist_ok=True)
    if options.here:
        record(names[0], options.folder)
        return 0
    failed = []
    for name in names:
        began = time.time()
        done = subprocess.run([sys.executable, __file__, options.folder, name, "--here"])
        print(f"{name}: {'ok' if done.returncode == 0 else 'FAILED'}, {time.time() - began:.0f} s", flush=True)
        failed += [name] if done.returncode else []
    return 1 if failed else 0


if __name__ == "__main__":
    gc.disable()  # the collector's moments are not what is recorded here
    sys.exit(main())
