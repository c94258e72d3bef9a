"""What record_truth.py records of attention and of training: the twins of patterns/attention.lua and
patterns/training.lua, with the same labels, and of the models among the scenarios."""
import gc

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"flash": [SDPBackend.FLASH_ATTENTION], "efficient": [SDPBackend.EFFICIENT_ATTENTION],
            "math": [SDPBackend.MATH], "cudnn": [SDPBackend.CUDNN_ATTENTION],
            "auto": [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
                     SDPBackend.MATH]}
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "bool": torch.bool}


def once(recorder, label, make, call):
    """One operation forwards and backwards, a phase after each step."""
    inputs = make()
    recorder.phase(label + " inputs")
    out = call(*inputs)
    recorder.phase(label + " forward")
    out.sum().backward()
    recorder.phase(label + " backward")
    del out, inputs
    recorder.phase(label + " end")


def attention(recorder):
    def attends(label, dtype, options, length, keys, depth, heads=None):
        new = lambda h, n: torch.rand(4, h, n, depth, device="cuda", dtype=TYPES[dtype], requires_grad=True)
        keys = keys or length

        def make():
            mask = torch.zeros(length, keys, device="cuda", dtype=TYPES[options["mask"]]) if "mask" in options else None
            return new(8, length), new(heads or 8, keys), new(heads or 8, keys), mask

        def call(q, k, v, mask):
            with sdpa_kernel(BACKENDS[options.get("backend", "auto")]):
                return F.scaled_dot_product_attention(q, k, v, mask, options.get("dropout", 0.0),
                                                      options.get("causal", False), enable_gqa=heads is not None)

        once(recorder, label, make, call)

    def module(label, new, call):
        once(recorder, label, lambda: (new().cuda(), torch.rand(8, 100, 256, device="cuda", requires_grad=True),
                                       torch.rand(8, 60, 256, device="cuda", requires_grad=True)), call)

    once(recorder, "warm", lambda: (nn.Linear(64, 64).cuda(), torch.rand(64, 64, device="cuda")), lambda m, x: m(x))
    for dtype in ("float32", "bfloat16"):
        for backend in ("auto", "efficient", "math"):
            take = lambda **more: {"backend": backend, **more}
            attends(f"{backend} {dtype}", dtype, take(), 256, None, 64)
            attends(f"{backend} causal {dtype}", dtype, take(causal=True), 256, None, 64)
            attends(f"{backend} cross {dtype}", dtype, take(), 100, 200, 64)
            attends(f"{backend} mask {dtype}", dtype, take(mask="bool"), 100, None, 64)
            attends(f"{backend} added mask {dtype}", dtype, take(mask=dtype), 100, None, 64)
            attends(f"{backend} dropout {dtype}", dtype, take(dropout=0.25), 256, None, 64)
            for depth in (32, 96, 128):
                attends(f"{backend} depth {depth} {dtype}", dtype, take(), 200, None, depth)
    for depth in (32, 60, 64, 96, 128, 192, 256):
        attends(f"flash depth {depth}", "bfloat16", {"backend": "flash"}, 200, None, depth)
    attends("flash causal", "float16", {"backend": "flash", "causal": True}, 256, None, 64)
    attends("flash dropout", "float16", {"backend": "flash", "dropout": 0.1}, 256, None, 64)
    attends("flash few rows", "float16", {"backend": "flash"}, 4, 4096, 64)
    attends("flash grouped", "bfloat16", {"backend": "flash"}, 256, None, 64, 2)
    attends("auto grouped", "bfloat16", {}, 256, None, 64, 2)
    attends("math grouped", "float32", {}, 256, None, 64, 2)
    attends("auto depth 192", "bfloat16", {}, 200, None, 192)
    attends("auto dropout 0.1", "bfloat16", {"dropout": 0.1}, 256, None, 64)

    multihead = lambda **options: lambda: nn.MultiheadAttention(256, 4, **options)
    over_itself = lambda m, x, y: m(x, x, x, need_weights=False)[0]
    module("multihead self", multihead(batch_first=True), over_itself)
    module("multihead cross", multihead(batch_first=True), lambda m, x, y: m(x, y, y, need_weights=False)[0])
    module("multihead length first", multihead(), over_itself)
    module("multihead weights", multihead(batch_first=True), lambda m, x, y: m(x, x, x)[0])
    module("multihead weights cross", multihead(batch_first=True, dropout=0.1), lambda m, x, y: m(x, y, y)[0])
    module("multihead no bias", multihead(batch_first=True, bias=False), over_itself)
    for suffix, first in (("", False), (" norm first", True)):
        options = dict(dim_feedforward=512, batch_first=True, norm_first=first)
        module("encoder layer" + suffix, lambda: nn.TransformerEncoderLayer(256, 4, dropout=0.0, **options),
               lambda m, x, y: m(x))
        module("decoder layer" + suffix, lambda: nn.TransformerDecoderLayer(256, 4, **options), lambda m, x, y: m(x, y))
    layer = lambda: nn.TransformerDecoderLayer(256, 4, 512, activation="gelu", batch_first=True)
    module("decoder", lambda: nn.TransformerDecoder(layer(), 2), lambda m, x, y: m(x, y))


def training(recorder):
    def steps(label, make, dtype=None, scaler=None):
        m = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 300)).cuda()
        m = m.to(dtype) if dtype else m
        recorder.phase(label + " model")
        o = make(m)
        recorder.phase(label + " optimizer")
        for i in range(3):
            x = torch.rand(64, 512, device="cuda", dtype=dtype)
            loss = m(x).sum()
            if scaler:
                loss = scaler.scale(loss)
            loss.backward()
            recorder.phase(f"{label} backward {i}")
            if scaler:
                scaler.step(o)
                scaler.update()
            else:
                o.step()
            recorder.phase(f"{label} step {i}")
            o.zero_grad()
        del m, o, x, loss
        gc.collect()  # the first optimizer of a process leaves a cycle behind that has the model
        recorder.phase(label + " end")

    optim = torch.optim
    steps("warm", lambda m: optim.SGD(m.parameters(), lr=1e-3))
    for suffix, foreach in (("", True), (" in turn", False)):
        of = lambda kind, foreach=foreach, **options: lambda m: kind(m.parameters(), foreach=foreach, **options)
        steps("sgd" + suffix, of(optim.SGD, lr=1e-3, momentum=0.9))
        steps("sgd decay" + suffix, of(optim.SGD, lr=1e-3, weight_decay=0.1))
        steps("nesterov" + suffix, of(optim.SGD, lr=1e-3, momentum=0.9, nesterov=True, weight_decay=0.1))
        steps("adam decay" + suffix, of(optim.Adam, weight_decay=0.1))
        steps("adamw amsgrad" + suffix, of(optim.AdamW, amsgrad=True))
        steps("rmsprop" + suffix, of(optim.RMSprop))
        steps("rmsprop all" + suffix, of(optim.RMSprop, momentum=0.9, centered=True, weight_decay=0.1))
        steps("adagrad" + suffix, of(optim.Adagrad))
        steps("adagrad decay" + suffix, of(optim.Adagrad, weight_decay=0.1))
    steps("sgd fused", lambda m: optim.SGD(m.parameters(), lr=1e-3, momentum=0.9, fused=True))
    steps("adam fused amsgrad", lambda m: optim.Adam(m.parameters(), amsgrad=True, fused=True))
    steps("adamw bfloat16", lambda m: optim.AdamW(m.parameters()), torch.bfloat16)
    steps("adamw float16 in turn", lambda m: optim.AdamW(m.parameters(), foreach=False), torch.float16)
    steps("scaled", lambda m: optim.SGD(m.parameters(), lr=1e-3, momentum=0.9), None, torch.amp.GradScaler("cuda"))

    extra = nn.Linear(300, 512).cuda()

    def grouped(m):
        made = optim.AdamW(m.parameters())
        made.add_param_group({"params": list(extra.parameters()), "weight_decay": 0.0})
        extra(torch.rand(64, 300, device="cuda")).sum().backward()
        return made

    steps("groups", grouped)
    base = nn.Linear(1024, 1024).cuda().requires_grad_(False)
    down, up = nn.Linear(1024, 16, bias=False).cuda(), nn.Linear(16, 1024, bias=False).cuda()
    o = optim.AdamW([*down.parameters(), *up.parameters()])
    x = torch.rand(256, 1024, device="cuda", requires_grad=True)
    recorder.phase("adapter inputs")
    y = base(x) + up(down(x)) * 2
    recorder.phase("adapter forward")
    y.sum().backward()
    recorder.phase("adapter backward")
    o.step()
    recorder.phase("adapter step")


# --- models: the twins of the scenarios of these names -----------------------------------------------------


class Adapted(nn.Module):
    """A linear with an adapter beside it, or alone."""

    def __init__(self, inputs, outputs, rank):
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False)
        self.down = nn.Linear(inputs, rank, bias=False) if rank else None
        self.up = nn.Linear(rank, outputs, bias=False) if rank else None

    def forward(self, x):
        return self.base(x) + self.up(self.down(x)) * 2 if self.down else self.base(x)


class LlamaBlock(nn.Module):
    def __init__(self, features, hidden, heads, groups, rank):
        super().__init__()
        self.depth, self.heads, self.groups = features // heads, heads, groups
        keys = groups * self.depth
        self.norm1, self.norm2 = nn.RMSNorm(features), nn.RMSNorm(features)
        self.q, self.k = Adapted(features, features, rank), Adapted(features, keys, rank)
        self.v, self.o = Adapted(features, keys, rank), Adapted(features, features, rank)
        self.gate, self.up = Adapted(features, hidden, rank), Adapted(features, hidden, rank)
        self.down = Adapted(hidden, features, rank)

    def rotate(self, x, cosine, sine):
        first, second = x.chunk(2, -1)
        return x * cosine + torch.cat((-second, first), -1) * sine

    def attend(self, x, cosine, sine):
        b, t, _ = x.shape
        q = self.q(x).view(b, t, self.heads, self.depth).transpose(1, 2)
        k = self.k(x).view(b, t, self.groups, self.depth).transpose(1, 2)
        v = self.v(x).view(b, t, self.groups, self.depth).transpose(1, 2)
        y = F.scaled_dot_product_attention(self.rotate(q, cosine, sine), self.rotate(k, cosine, sine), v,
                                           is_causal=True, enable_gqa=self.heads != self.groups)
        return self.o(y.transpose(1, 2).reshape(b, t, -1))

    def feed_forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))

    def forward(self, x, cosine, sine):
        x = x + self.attend(self.norm1(x), cosine, sine)
        return x + self.feed_forward(self.norm2(x))


def lora(recorder, leak, rank=16, batch=2, length=512, vocabulary=32000, features=1024, hidden=2816, heads=16,
         groups=4, layers=8, iterations=4):
    new = lambda module: module.cuda().to(torch.bfloat16)
    words = new(nn.Embedding(vocabulary, features))
    blocks = [new(LlamaBlock(features, hidden, heads, groups, 0 if leak else rank)) for _ in range(layers)]
    last, head = new(nn.RMSNorm(features)), new(nn.Linear(features, vocabulary, bias=False))
    model = nn.ModuleList([words, *blocks, last, head])
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(leak or name.endswith((".down.weight", ".up.weight")))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    cosine = torch.randn(length, features // heads, device="cuda", dtype=torch.bfloat16)
    sine = torch.randn(length, features // heads, device="cuda", dtype=torch.bfloat16)

    def forward():
        x = words(inputs)
        for block in blocks:
            x = block(x, cosine, sine)
        return F.cross_entropy(head(last(x)).view(-1, vocabulary), targets)

    recorder.phase("start")
    for i in range(iterations):
        inputs = torch.randint(0, vocabulary, (batch, length), device="cuda")
        targets = torch.randint(0, vocabulary, (batch * length,), device="cuda")
        loss = forward()
        recorder.phase(f"{i}:forward")
        loss.backward()
        recorder.phase(f"{i}:backward")
        optimizer.step()
        optimizer.zero_grad()
        recorder.phase(f"{i}:step")
    recorder.measure(model, optimizer)


class ScoredBlock(nn.Module):
    def __init__(self, features, heads, backend):
        super().__init__()
        self.heads, self.backend = heads, backend
        self.norm1, self.norm2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.qkv, self.projection = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.wide, self.narrow = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        with sdpa_kernel(BACKENDS[self.backend]):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.projection(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


def attention_scores(recorder, leak, batch=2, length=2048, features=768, heads=12, layers=4, iterations=4):
    model = nn.Sequential(*(ScoredBlock(features, heads, "math" if leak else "flash") for _ in range(layers)))
    model = model.cuda().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    for i in range(iterations):
        loss = model(torch.randn(batch, length, features, device="cuda", dtype=torch.bfloat16)).square().mean()
        recorder.phase(f"{i}:forward")
        loss.backward()
        recorder.phase(f"{i}:backward")
        optimizer.step()
        optimizer.zero_grad()
        recorder.phase(f"{i}:step")
    recorder.measure(model, optimizer)


def gan(recorder, leak, batch=256, latent=128, hidden=1024, pixels=3072, iterations=20):
    leaky = lambda: nn.LeakyReLU(0.2)
    generator = nn.Sequential(nn.Linear(latent, hidden), leaky(), nn.Linear(hidden, hidden), leaky(),
                              nn.Linear(hidden, pixels), nn.Tanh()).cuda()
    discriminator = nn.Sequential(nn.Linear(pixels, hidden), leaky(), nn.Linear(hidden, hidden), leaky(),
                                  nn.Linear(hidden, 1)).cuda()
    for_generator = torch.optim.Adam(generator.parameters(), lr=2e-4)
    for_discriminator = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
    judge, losses = F.binary_cross_entropy_with_logits, []
    for i in range(iterations):
        real = torch.randn(batch, pixels, device="cuda")
        zero, one = torch.zeros(batch, 1, device="cuda"), torch.ones(batch, 1, device="cuda")
        fake = generator(torch.randn(batch, latent, device="cuda"))
        for_discriminator.zero_grad()
        loss = judge(discriminator(real), one) + judge(discriminator(fake if leak else fake.detach()), zero)
        loss.backward(retain_graph=leak)
        for_discriminator.step()
        losses.append(loss if leak else loss.item())
        for_generator.zero_grad()
        loss = judge(discriminator(fake), one)
        loss.backward()
        for_generator.step()
        losses.append(loss if leak else loss.item())
        del fake, loss
        recorder.phase(i)
    recorder.measure(nn.ModuleList([generator, discriminator]))


class ViT(nn.Module):
    def __init__(self, side, patch, features, heads, layers, classes):
        super().__init__()
        self.embedding = nn.Conv2d(3, features, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, features))
        self.positions = nn.Parameter(torch.zeros(1, (side // patch) ** 2 + 1, features))
        layer = nn.TransformerEncoderLayer(features, heads, 4 * features, activation="gelu", batch_first=True,
                                           norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(features), nn.Linear(features, classes)

    def forward(self, images):
        x = self.embedding(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(images), -1, -1), x), 1) + self.positions
        return self.head(self.norm(self.encoder(x))[:, 0])


def steps_of(recorder, model, optimizer, batch, loss_of, precision=None, iterations=3):
    recorder.phase("start")
    for i in range(iterations):
        images, targets = batch()
        with torch.autocast("cuda", dtype=precision or torch.bfloat16, enabled=precision is not None):
            loss = loss_of(model(images), targets)
        recorder.phase(f"{i}:forward")
        loss.backward()
        recorder.phase(f"{i}:backward")
        optimizer.step()
        optimizer.zero_grad()
        recorder.phase(f"{i}:step")
    recorder.measure(model, optimizer)


def vit(recorder, batch=32, side=224, patch=16, features=384, heads=6, layers=12, classes=1000, precision=None):
    model = ViT(side, patch, features, heads, layers, classes).cuda()
    make = lambda: (torch.randn(batch, 3, side, side, device="cuda"), torch.randint(0, classes, (batch,), device="cuda"))
    steps_of(recorder, model, torch.optim.AdamW(model.parameters()), make, F.cross_entropy, precision)


class UNet(nn.Module):
    def __init__(self, channels, levels):
        super().__init__()

        def twice(inputs, outputs):
            parts = []
            for each in (inputs, outputs):
                parts += [nn.Conv2d(each, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                          nn.ReLU(inplace=True)]
            return nn.Sequential(*parts)

        self.down = nn.ModuleList([twice(3, channels)])
        for i in range(1, levels + 1):
            self.down.append(nn.Sequential(nn.MaxPool2d(2), twice(channels << i - 1, channels << i)))
        self.up = nn.ModuleList(twice((channels << i) + (channels << i - 1), channels << i - 1)
                                for i in range(levels, 0, -1))
        self.enlarge = nn.Upsample(scale_factor=2, mode="bilinear")
        self.head = nn.Conv2d(channels, 1, 1)

    def forward(self, x):
        skips = []
        for level in self.down:
            x = level(x)
            skips.append(x)
        skips.pop()
        for level in self.up:
            x = level(torch.cat((skips.pop(), self.enlarge(x)), 1))
        return self.head(x)


def unet(recorder, batch=8, side=256, channels=32, levels=4):
    model = UNet(channels, levels).cuda()
    make = lambda: (torch.randn(batch, 3, side, side, device="cuda"), torch.ones(batch, 1, side, side, device="cuda"))
    steps_of(recorder, model, torch.optim.Adam(model.parameters(), lr=1e-4), make, F.binary_cross_entropy_with_logits)


MODELS = {
    "attention": (attention, {}), "training": (training, {}),
    "lora_leak": (lora, {"leak": True}), "lora_fixed": (lora, {"leak": False}),
    "attention_scores_leak": (attention_scores, {"leak": True}),
    "attention_scores_fixed": (attention_scores, {"leak": False}),
    "gan_leak": (gan, {"leak": True}), "gan_fixed": (gan, {"leak": False}),
    "vit": (vit, {}), "vit_bf16": (vit, {"precision": torch.bfloat16}),
    "unet": (unet, {}),
}
