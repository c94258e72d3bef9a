"""What record_truth.py records of attention and of training: the twins of patterns/attention.lua and
patterns/training.lua, with the same labels, and of the models among the scenarios."""
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


MODELS = {"attention": (attention, {}), "training": (training, {})}
