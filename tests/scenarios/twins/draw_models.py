"""Twins of models that are trained: a drawn architecture, optimizer, precision and loop."""

OPTIMIZERS = ["torch.optim.SGD({}, lr=0.01)", "torch.optim.SGD({}, lr=0.01, momentum=0.9)",
              "torch.optim.SGD({}, lr=0.01, momentum=0.9, nesterov=True, foreach=False)",
              "torch.optim.Adam({}, lr=1e-4)", "torch.optim.Adam({}, lr=1e-4, foreach=False)",
              "torch.optim.Adam({}, lr=1e-4, amsgrad=True)", "torch.optim.AdamW({}, lr=1e-4)",
              "torch.optim.AdamW({}, lr=1e-4)", "torch.optim.AdamW({}, lr=1e-4, fused=True)",
              "torch.optim.RMSprop({}, lr=1e-3)", "torch.optim.RMSprop({}, lr=1e-3, momentum=0.9, foreach=False)",
              "torch.optim.Adagrad({}, lr=1e-3)", "torch.optim.SGD({}, lr=0.01, weight_decay=0.01)"]
PRECISIONS = [None, None, None, "autocast torch.bfloat16", "autocast torch.float16", "model torch.bfloat16"]


def classes_loss(count, rows):
    """Cross entropy over `rows` targets."""
    return [f'y = torch.randint(0, {count}, ({rows},), device="cuda")'], "F.cross_entropy({}, y)"


def in_type(line, dtype):
    """Modules and floating tensors of a statement in another type."""
    line = line.replace(".cuda()", f".cuda().to({dtype})")
    return line if "randint" in line else line.replace('device="cuda"', f'device="cuda", dtype={dtype}')


def loop(draw, build, inputs, forward, loss, things="model", plain=False):
    """Builds, then trains for three steps: `inputs` are statements, `forward` the output's expression, or
    statements that bind `out`; `loss` the expression of the loss with {} for the output."""
    precision = None if plain else draw.choice(PRECISIONS)
    kind, dtype = precision.split() if precision else ("", "")
    accumulate, clip = draw.choice([1, 1, 1, 2]), draw.random() < 0.25 and things == "model"
    scaled, to_none, at_end = dtype == "torch.float16", draw.random() < 0.8, draw.random() < 0.4
    if kind == "model":
        build, inputs = ([in_type(line, dtype) for line in lines] for lines in (build, inputs))
    optimizer = draw.choice(OPTIMIZERS)
    lines = [*build, "optimizer = " + optimizer.format(f"params({things})")]
    lines += ['scaler = torch.amp.GradScaler("cuda")'] if scaled else []
    lines += ['phase("start")', "for i in range(3):"]
    clear = f"    optimizer.zero_grad(set_to_none={to_none})"
    lines += [] if at_end else [clear]
    body = [*inputs]
    if isinstance(forward, str):
        steps = [f"loss = {loss.format(forward)}"]
    else:
        steps = [*forward, f"loss = {loss.format('out')}", "del out"]
    if kind == "autocast":
        steps = [f'with torch.autocast("cuda", dtype={dtype}):', *("    " + each for each in steps)]
    body += steps
    part = " {k}" if accumulate > 1 else ""
    body += [f'phase(f"{{i}}:forward{part}")', "scaler.scale(loss).backward()" if scaled else "loss.backward()",
             f'phase(f"{{i}}:backward{part}")']
    if draw.random() < 0.4:
        body.append("del loss")
    indent = "    "
    if accumulate > 1:
        lines.append(f"    for k in range({accumulate}):")
        indent = "        "
    lines += [indent + each for each in body]
    if clip:
        lines += ["    scaler.unscale_(optimizer)"] if scaled else []
        lines += [f"    nn.utils.clip_grad_norm_({things}.parameters(), 1.0)", '    phase(f"{i}:clip")']
    lines += ["    scaler.step(optimizer)", "    scaler.update()"] if scaled else ["    optimizer.step()"]
    lines += [clear] if at_end else []
    lines += ['    phase(f"{i}:step")']
    return "\n".join(lines) + "\n"


def sequential(parts):
    return f"model = nn.Sequential({', '.join(parts)}).cuda()"


def wide(draw, most):
    return 8 * draw.randint(8, most // 8) + draw.choice([0, 0, 0, 1, 4])


def mlp(draw):
    features, classes, batch = wide(draw, 1024), draw.randint(2, 2000), draw.randint(16, 4096)
    activation = draw.choice(["nn.ReLU()", "nn.GELU()", "nn.SiLU()", "nn.Tanh()", "nn.ReLU(inplace=True)"])
    parts, width = [], features
    for _ in range(draw.randint(1, 6)):
        following = wide(draw, 2048)
        parts.append(f"nn.Linear({width}, {following}, bias={draw.random() < 0.8})")
        parts += draw.choice([[], [], [f"nn.LayerNorm({following})"], [f"nn.BatchNorm1d({following})"],
                              [f"nn.RMSNorm({following})"]])
        parts += [activation] + (["nn.Dropout(0.1)"] if draw.random() < 0.3 else [])
        width = following
    parts.append(f"nn.Linear({width}, {classes})")
    inputs = [f'x = torch.randn({batch}, {features}, device="cuda")']
    if draw.random() < 0.3:
        return loop(draw, [sequential(parts)], inputs, "model(x)", "{}.square().mean()")
    targets, loss = classes_loss(classes, batch)
    return loop(draw, [sequential(parts)], inputs + targets, "model(x)", loss)


def residual_mlp(draw):
    features, hidden, batch = wide(draw, 768), wide(draw, 1536), draw.randint(64, 4096)
    body = (f"nn.Sequential(nn.LayerNorm({features}), nn.Linear({features}, {hidden}), nn.GELU(), "
            f"nn.Linear({hidden}, {features}))")
    wrap = draw.choice(["Residual({})", "Residual({})", "Checkpointed(Residual({}))"])
    parts = [wrap.format(body)] * draw.randint(2, 8)
    inputs = [f'x = torch.randn({batch}, {features}, device="cuda")']
    return loop(draw, [sequential(parts)], inputs, "model(x)", "{}.square().mean()")


def checkpointed(draw):
    features, batch, count = wide(draw, 1024), draw.randint(256, 4096), draw.randint(3, 8)
    build = ["blocks = []", f"for k in range({count}):",
             f"    blocks.append(nn.Sequential(nn.Linear({features}, {features}), nn.ReLU(), "
             f"nn.Linear({features}, {features})).cuda())"]
    forward = [f'out = torch.randn({batch}, {features}, device="cuda")', "for block in blocks:",
               "    out = checkpoint(block, out)"]
    return loop(draw, build, [], forward, "{}.square().mean()", "blocks", plain=True)


def cnn(draw):
    batch, side, channels = draw.choice([4, 16, 32, 64]), draw.choice([28, 32, 48, 64]), draw.choice([1, 3])
    classes, parts, width, size = draw.randint(2, 100), [], channels, side
    for _ in range(draw.randint(2, 4)):
        following = draw.choice([16, 24, 32, 48, 64, 96, 128])
        parts.append(f"nn.Conv2d({width}, {following}, {draw.choice(['3, 1, 1', '3, 1, 1', '5, 1, 2'])})")
        parts += draw.choice([[f"nn.BatchNorm2d({following})"], []]) + ["nn.ReLU()"]
        if size % 2 == 0:
            parts.append(draw.choice(["nn.MaxPool2d(2)", "nn.AvgPool2d(2)"]))
            size //= 2
        width = following
    if draw.random() < 0.5:
        parts += ["nn.AdaptiveAvgPool2d(1)", "nn.Flatten()", f"nn.Linear({width}, {classes})"]
    else:
        parts += ["nn.Flatten()", f"nn.Linear({width * size * size}, {classes})"]
    targets, loss = classes_loss(classes, batch)
    inputs = [f'x = torch.randn({batch}, {channels}, {side}, {side}, device="cuda")', *targets]
    return loop(draw, [sequential(parts)], inputs, "model(x)", loss)


def resnet(draw):
    """Residual blocks of two convolutions at one width for each stage."""
    batch, side, width = draw.choice([8, 16, 32]), draw.choice([32, 64]), draw.choice([16, 32, 48, 64])
    parts = [f"nn.Conv2d(3, {width}, 3, 1, 1, bias=False)", f"nn.BatchNorm2d({width})", "nn.ReLU(inplace=True)"]
    for stage in range(3):
        for _ in range(draw.randint(1, 2)):
            parts.append(f"Residual(nn.Sequential(nn.Conv2d({width}, {width}, 3, 1, 1, bias=False), nn.BatchNorm2d({width}), "
                         f"nn.ReLU(inplace=True), nn.Conv2d({width}, {width}, 3, 1, 1, bias=False), "
                         f"nn.BatchNorm2d({width})))")
            parts.append("nn.ReLU(inplace=True)")
        if stage < 2:
            parts += [f"nn.Conv2d({width}, {2 * width}, 3, 2, 1)", "nn.ReLU()"]
            width *= 2
    parts += ["nn.AdaptiveAvgPool2d(1)", "nn.Flatten()", f"nn.Linear({width}, 10)"]
    targets, loss = classes_loss(10, batch)
    inputs = [f'x = torch.randn({batch}, 3, {side}, {side}, device="cuda")', *targets]
    return loop(draw, [sequential(parts)], inputs, "model(x)", loss)


def gpt(draw):
    heads = draw.choice([2, 4, 8])
    features, vocabulary = heads * draw.choice([32, 64]), draw.choice([1000, 5000, 8192, 20000])
    batch, length, layers = draw.randint(2, 12), draw.choice([64, 100, 128, 256]), draw.randint(2, 6)
    build = [f"model = gpt(vocabulary={vocabulary}, features={features}, heads={heads}, layers={layers}, positions={length}, "
             f"causal={draw.random() < 0.6}, checkpoint={draw.random() < 0.25}).cuda()"]
    targets, loss = classes_loss(vocabulary, batch * length)
    inputs = [f'x = torch.randint(0, {vocabulary}, ({batch}, {length}), device="cuda")', *targets]
    return loop(draw, build, inputs, f"model(x).view({batch * length}, {vocabulary})", loss)


def encoder(draw):
    heads = draw.choice([2, 4, 8])
    features, classes = heads * draw.choice([32, 64]), draw.randint(10, 3000)
    batch, length = draw.randint(2, 24), draw.randint(16, 200)
    layer = (f"nn.TransformerEncoderLayer({features}, {heads}, {features * draw.choice([2, 4])}, "
             f"activation=\"{draw.choice(['relu', 'gelu'])}\", batch_first=True, norm_first={draw.random() < 0.5})")
    wrap = draw.choice(["{}", "{}", "Checkpointed({})"])
    parts = [wrap.format(layer)] * draw.randint(2, 6) + [f"nn.Linear({features}, {classes})"]
    targets, loss = classes_loss(classes, batch * length)
    inputs = [f'x = torch.randn({batch}, {length}, {features}, device="cuda")', *targets]
    return loop(draw, [sequential(parts)], inputs, f"model(x).view({batch * length}, {classes})", loss)


def translation(draw):
    """Encoder and decoder layers over two sequences."""
    heads, vocabulary = draw.choice([4, 8]), draw.choice([2000, 8000])
    features, layers = heads * draw.choice([32, 64]), draw.randint(1, 3)
    batch, source, target = draw.randint(2, 16), draw.randint(16, 128), draw.randint(16, 128)
    shape = f"({features}, {heads}, {4 * features}, batch_first=True)"
    build = [f"words = nn.Embedding({vocabulary}, {features}).cuda()",
             f"head = nn.Linear({features}, {vocabulary}).cuda()", "encoders = []", "decoders = []",
             f"for k in range({layers}):", f"    encoders.append(nn.TransformerEncoderLayer{shape}.cuda())",
             f"    decoders.append(nn.TransformerDecoderLayer{shape}.cuda())"]
    targets, loss = classes_loss(vocabulary, batch * target)
    inputs = [f'a = torch.randint(0, {vocabulary}, ({batch}, {source}), device="cuda")',
              f'b = torch.randint(0, {vocabulary}, ({batch}, {target}), device="cuda")', *targets]
    forward = ["memory = words(a)", "for block in encoders:", "    memory = block(memory)", "out = words(b)",
               "for block in decoders:", "    out = block(out, memory)",
               f"out = head(out).view({batch * target}, {vocabulary})", "del memory"]
    return loop(draw, build, inputs, forward, loss, "words, encoders, decoders, head")


def tagger(draw):
    kind, vocabulary = draw.choice(["LSTM", "GRU"]), draw.choice([1000, 5000, 20000])
    features, hidden = wide(draw, 300), wide(draw, 640)
    both, layers = draw.random() < 0.4, draw.choice([1, 1, 2, 3])
    batch, length, classes = draw.choice([4, 16, 32, 64]), draw.randint(10, 80), draw.choice([9, 50, 1000])
    out = 2 * hidden if both else hidden
    build = [f"words = nn.Embedding({vocabulary}, {features}).cuda()",
             f"rnn = nn.{kind}({features}, {hidden}, {layers}, bidirectional={both}, batch_first=True).cuda()",
             f"head = nn.Linear({out}, {classes}).cuda()"]
    targets, loss = classes_loss(classes, batch * length)
    inputs = [f'x = torch.randint(0, {vocabulary}, ({batch}, {length}), device="cuda")', *targets]
    return loop(draw, build, inputs, f"head(rnn(words(x))[0]).view({batch * length}, {classes})", loss, "words, rnn, head",
                plain=True)


def llama(draw):
    """RMSNorm, rotary embeddings, grouped keys, SwiGLU."""
    heads, depth, groups = draw.choice([4, 8]), draw.choice([32, 64]), draw.choice([2, 4])
    features, hidden = heads * depth, heads * depth * 5 // 2 // 8 * 8
    batch, length, vocabulary = draw.randint(1, 8), draw.choice([64, 128, 256]), draw.choice([2000, 8000, 16000])
    bare = ", bias=False).cuda()"
    build = [f"words = nn.Embedding({vocabulary}, {features}).cuda()",
             f"head = nn.Linear({features}, {vocabulary}{bare}", f"last = nn.RMSNorm({features}).cuda()",
             f'cosine = torch.randn({length}, {depth}, device="cuda")', f'sine = torch.randn({length}, {depth}, device="cuda")',
             "blocks = []", "trained = []", f"for k in range({draw.randint(2, 5)}):", "    block = Node()",
             f"    block.norm1 = nn.RMSNorm({features}).cuda()", f"    block.norm2 = nn.RMSNorm({features}).cuda()",
             f"    block.q = nn.Linear({features}, {features}{bare}", f"    block.k = nn.Linear({features}, {groups * depth}{bare}",
             f"    block.v = nn.Linear({features}, {groups * depth}{bare}", f"    block.o = nn.Linear({features}, {features}{bare}",
             f"    block.gate = nn.Linear({features}, {hidden}{bare}", f"    block.up = nn.Linear({features}, {hidden}{bare}",
             f"    block.down = nn.Linear({hidden}, {features}{bare}", "    blocks.append(block)",
             *(f"    trained.append(block.{part})" for part in "norm1 norm2 q k v o gate up down".split()),
             "def rotate(x):", "    first, second = x.chunk(2, -1)",
             "    return x * cosine + torch.cat([-second, first], -1) * sine",
             "def attend(block, x):",
             *(f"    {n} = block.{n}(x).view({batch}, {length}, {count}, {depth}).transpose(1, 2)"
               for n, count in (("q", heads), ("k", groups), ("v", groups))),
             f"    y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa={heads != groups})",
             f"    return block.o(y.transpose(1, 2).reshape({batch}, {length}, {features}))",
             "def feed_forward(block, x):", "    return block.down(F.silu(block.gate(x)) * block.up(x))"]
    targets, loss = classes_loss(vocabulary, batch * length)
    inputs = [f'tokens = torch.randint(0, {vocabulary}, ({batch}, {length}), device="cuda")', *targets]
    forward = ["out = words(tokens)", "for block in blocks:", "    out = out + attend(block, block.norm1(out))",
               "    out = out + feed_forward(block, block.norm2(out))",
               f"out = head(last(out)).view({batch * length}, {vocabulary})"]
    return loop(draw, build, inputs, forward, loss, "words, trained, last, head", plain=draw.random() < 0.5)


def vit(draw):
    patch, count, heads = draw.choice([8, 16]), draw.choice([4, 7, 8]), draw.choice([3, 4, 6])
    features, batch, classes = heads * 64, draw.randint(2, 32), draw.randint(10, 1000)
    side, patches = patch * count, count * count
    layer = (f'nn.TransformerEncoderLayer({features}, {heads}, {4 * features}, activation="gelu", batch_first=True, '
             "norm_first=True)")
    build = [f"embedding = nn.Conv2d(3, {features}, {patch}, {patch}).cuda()",
             f'token = torch.zeros(1, 1, {features}, device="cuda", requires_grad=True)',
             f'positions = torch.zeros(1, {patches + 1}, {features}, device="cuda", requires_grad=True)',
             f"encoder = nn.Sequential({', '.join([layer] * draw.randint(2, 6))}).cuda()",
             f"norm = nn.LayerNorm({features}).cuda()", f"head = nn.Linear({features}, {classes}).cuda()"]
    targets, loss = classes_loss(classes, batch)
    inputs = [f'x = torch.randn({batch}, 3, {side}, {side}, device="cuda")', *targets]
    forward = [f"out = embedding(x).view({batch}, {features}, {patches}).transpose(1, 2)",
               f"out = torch.cat([token.expand({batch}, -1, -1), out], 1) + positions",
               "out = head(norm(encoder(out)).select(1, 0))"]
    return loop(draw, build, inputs, forward, loss, "embedding, token, positions, encoder, norm, head")


def unet(draw):
    batch, side, channels, levels = draw.randint(1, 8), draw.choice([64, 96, 128]), draw.choice([8, 16, 24, 32]), draw.randint(2, 3)
    bilinear = draw.random() < 0.5

    def twice(inputs, outputs):
        norm = f"nn.BatchNorm2d({outputs})"
        return (f"nn.Sequential(nn.Conv2d({inputs}, {outputs}, 3, 1, 1, bias=False), {norm}, nn.ReLU(inplace=True), "
                f"nn.Conv2d({outputs}, {outputs}, 3, 1, 1, bias=False), {norm}, nn.ReLU(inplace=True)).cuda()")

    build = [f"down0 = {twice(3, channels)}", "pool = nn.MaxPool2d(2)"]
    forward, names = ["s0 = down0(x)"], ["down0"]
    for level in range(1, levels + 1):
        build.append(f"down{level} = {twice(channels << level - 1, channels << level)}")
        names.append(f"down{level}")
        forward.append(f"{'out' if level == levels else f's{level}'} = down{level}(pool(s{level - 1}))")
    for level in range(levels, 0, -1):
        low, high = channels << level, channels << level - 1
        if bilinear:
            build.append(f'grow{level} = nn.Upsample(scale_factor=2, mode="bilinear")')
            build.append(f"up{level} = {twice(low + high, high)}")
        else:
            build.append(f"grow{level} = nn.ConvTranspose2d({low}, {high}, 2, 2).cuda()")
            build.append(f"up{level} = {twice(2 * high, high)}")
            names.append(f"grow{level}")
        names.append(f"up{level}")
        forward += [f"out = up{level}(torch.cat([s{level - 1}, grow{level}(out)], 1))", f"del s{level - 1}"]
    build.append(f"head = nn.Conv2d({channels}, 1, 1).cuda()")
    forward.append("out = head(out)")
    inputs = [f'x = torch.randn({batch}, 3, {side}, {side}, device="cuda")',
              f'y = torch.ones({batch}, 1, {side}, {side}, device="cuda")']
    return loop(draw, build, inputs, forward, "F.binary_cross_entropy_with_logits({}, y)", ", ".join(names + ["head"]),
                plain=draw.random() < 0.5)


def gan(draw):
    latent, hidden, pixels = 8 * draw.randint(4, 16), 8 * draw.randint(16, 128), 8 * draw.randint(50, 500)
    batch, optimizer, leaky = draw.randint(16, 512), draw.choice(OPTIMIZERS), "nn.LeakyReLU(0.2)"
    return "\n".join([
        f"generator = nn.Sequential(nn.Linear({latent}, {hidden}), {leaky}, nn.Linear({hidden}, {pixels}), nn.Tanh()).cuda()",
        f"judge = nn.Sequential(nn.Linear({pixels}, {hidden}), {leaky}, nn.Linear({hidden}, 1)).cuda()",
        "optimizer = " + optimizer.format("params(generator)"), "other = " + optimizer.format("params(judge)"),
        'phase("start")', "for i in range(3):", f'    real = torch.randn({batch}, {pixels}, device="cuda")',
        f'    zero = torch.zeros({batch}, 1, device="cuda")', f'    one = torch.ones({batch}, 1, device="cuda")',
        f'    fake = generator(torch.randn({batch}, {latent}, device="cuda"))', "    other.zero_grad()",
        "    loss = F.binary_cross_entropy_with_logits(judge(real), one) + "
        "F.binary_cross_entropy_with_logits(judge(fake.detach()), zero)", '    phase(f"{i}:judged")', "    loss.backward()",
        "    other.step()", '    phase(f"{i}:judge")', "    optimizer.zero_grad()",
        "    loss = F.binary_cross_entropy_with_logits(judge(fake), one)", "    loss.backward()", "    optimizer.step()",
        "    del fake, loss", '    phase(f"{i}:generator")']) + "\n"


def lora(draw):
    """A frozen base with adapters beside it."""
    features, rank, batch, layers = wide(draw, 1024), draw.choice([4, 8, 16]), draw.randint(64, 2048), draw.randint(2, 6)
    dtype = draw.choice(["", "", ".to(torch.bfloat16)"])
    build = ["blocks = []", "trained = []", f"for k in range({layers}):", "    block = Node()",
             f"    block.base = nn.Linear({features}, {features}).cuda(){dtype}", "    block.base.requires_grad_(False)",
             f"    block.down = nn.Linear({features}, {rank}, bias=False).cuda(){dtype}",
             f"    block.up = nn.Linear({rank}, {features}, bias=False).cuda(){dtype}", "    blocks.append(block)",
             "    trained.append(block.down)", "    trained.append(block.up)"]
    form = ", dtype=torch.bfloat16" if dtype else ""
    inputs = [f'x = torch.randn({batch}, {features}, device="cuda"{form})']
    forward = ["out = x", "for block in blocks:",
               "    out = F.gelu(block.base(out) + block.up(block.down(out)) * 2)"]
    return loop(draw, build, inputs, forward, "{}.square().mean()", "trained", plain=True)


def evaluation(draw):
    """A perceptron or encoder under no_grad()."""
    features, batch = wide(draw, 1024), draw.randint(64, 4096)
    parts = []
    for _ in range(draw.randint(2, 8)):
        parts += [f"nn.Linear({features}, {features})", draw.choice(["nn.ReLU()", "nn.GELU()", "nn.SiLU()"])]
    return "\n".join([sequential(parts), "model.eval()", 'phase("model")', "for i in range(4):", "    with torch.no_grad():",
                      f'        x = torch.randn({batch}, {features}, device="cuda")',
                      "        out = model(x)", '    phase(f"{i}:output")',
                      "    total = out.softmax(-1).sum()", '    phase(f"{i}:total")']) + "\n"


def kept(draw):
    """Losses kept with their graphs, or state that is carried over."""
    features, hidden, batch = wide(draw, 512), wide(draw, 512), draw.randint(8, 64)
    if draw.random() < 0.5:
        build = [f"model = nn.Sequential(nn.Linear({features}, {hidden}), nn.ReLU(), nn.Linear({hidden}, {features})).cuda()",
                 "kept = []", 'phase("start")', "for i in range(4):",
                 f'    x = torch.randn({batch * 32}, {features}, device="cuda")', "    loss = F.mse_loss(model(x), x)",
                 "    kept.append(loss)", '    phase(f"{i}")', "kept.clear()", 'phase("cleared")']
        return "\n".join(build) + "\n"
    kind, states = draw.choice([("LSTM", "(h, c)"), ("GRU", "h")])
    detach = "    h, c = h.detach(), c.detach()" if kind == "LSTM" else "    h = h.detach()"
    length, layers, fixed = draw.randint(10, 50), draw.randint(1, 2), draw.random() < 0.5
    x = f'torch.randn({batch}, {length}, {features}, device="cuda")'
    first = [f"output, {states} = model({x})", 'phase("first")']
    return "\n".join([f"model = nn.{kind}({features}, {hidden}, {layers}, batch_first=True).cuda()", 'phase("start")', *first,
                      "for i in range(4):", *([detach] if fixed else []), f"    output, {states} = model({x}, {states})",
                      "    loss = output.square().mean()", '    phase(f"{i}:forward")',
                      *(["    loss.backward()", '    phase(f"{i}:backward")'] if fixed else [])]) + "\n"


def dqn(draw):
    """A network that learns from a copy of itself, which is made anew at times."""
    features, hidden, batch, actions = wide(draw, 512), wide(draw, 1024), draw.randint(32, 1024), draw.randint(2, 64)
    loss = draw.choice(["F.smooth_l1_loss", "F.mse_loss", "F.huber_loss"])
    return "\n".join([
        f"model = nn.Sequential(nn.Linear({features}, {hidden}), nn.ReLU(), nn.Linear({hidden}, {hidden}), nn.ReLU(), "
        f"nn.Linear({hidden}, {actions})).cuda()", "target = copy.deepcopy(model)", "target.requires_grad_(False)",
        "optimizer = " + draw.choice(OPTIMIZERS).format("params(model)"), 'phase("start")', "for i in range(4):",
        f'    x = torch.randn({batch}, {features}, device="cuda")', f'    after = torch.randn({batch}, {features}, device="cuda")',
        f'    action = torch.randint(0, {actions}, ({batch}, 1), device="cuda")', "    with torch.no_grad():",
        "        best = target(after).max(1, keepdim=True)[0] * 0.99", '    phase(f"{i}:target")',
        f"    loss = {loss}(model(x).gather(1, action), best)", "    optimizer.zero_grad()", "    loss.backward()",
        '    phase(f"{i}:backward")', "    optimizer.step()",
        *(["    target = copy.deepcopy(model)", '    phase(f"{i}:copied")'] if draw.random() < 0.6 else []),
        '    phase(f"{i}:step")']) + "\n"


def channels_last(draw):
    """A classifier of images whose channels come last."""
    batch, side, classes = draw.choice([8, 16, 32, 64]), draw.choice([32, 48, 64]), draw.randint(2, 100)
    parts, width = [], 3
    for _ in range(draw.randint(2, 4)):
        following = draw.choice([32, 64, 96, 128])
        parts += [f"nn.Conv2d({width}, {following}, 3, 1, 1)", f"nn.BatchNorm2d({following})", "nn.ReLU()"]
        parts += ["nn.MaxPool2d(2)"] if side % 2 == 0 and draw.random() < 0.5 else []
        width = following
    parts += ["nn.AdaptiveAvgPool2d(1)", "nn.Flatten()", f"nn.Linear({width}, {classes})"]
    targets, loss = classes_loss(classes, batch)
    inputs = [f'x = torch.randn({batch}, 3, {side}, {side}, device="cuda").to(memory_format=torch.channels_last)', *targets]
    return loop(draw, [sequential(parts), "model.to(memory_format=torch.channels_last)"], inputs, "model(x)", loss)


def groups(draw):
    """Weights that decay, and a head that does not; the first layer is frozen at times."""
    features, hidden, batch = wide(draw, 1024), wide(draw, 1536), draw.randint(32, 2048)
    optimizer = draw.choice(["torch.optim.AdamW(params(body), lr=1e-4)", "torch.optim.SGD(params(body), lr=0.01, momentum=0.9)",
                             "torch.optim.AdamW(params(body), lr=1e-4, foreach=False)"])
    return "\n".join([
        f"body = nn.Sequential(nn.Linear({features}, {hidden}), nn.GELU(), nn.Linear({hidden}, {features}), "
        f"nn.LayerNorm({features})).cuda()", f"head = nn.Linear({features}, {draw.randint(10, 2000)}).cuda()",
        *(["body[0].requires_grad_(False)"] if draw.random() < 0.5 else []), "optimizer = " + optimizer,
        'optimizer.add_param_group({"params": params(head), "weight_decay": 0.0})', 'phase("start")', "for i in range(3):",
        f'    x = torch.randn({batch}, {features}, device="cuda")', "    loss = head(body(x)).square().mean()",
        '    phase(f"{i}:forward")', "    optimizer.zero_grad()", "    loss.backward()", '    phase(f"{i}:backward")',
        "    optimizer.step()", '    phase(f"{i}:step")']) + "\n"


def dropout_rnn(draw):
    """A language model whose layers have dropout between them."""
    kind, vocabulary, layers = draw.choice(["LSTM", "GRU"]), draw.choice([1000, 5000, 10000]), draw.choice([2, 2, 3])
    features, hidden = wide(draw, 400), draw.choice([64, 100, 128, 200, 256, 400, 512, 650])
    batch, length = draw.choice([16, 20, 32, 64]), draw.choice([20, 35, 50, 70])
    build = [f"words = nn.Embedding({vocabulary}, {features}).cuda()",
             f"rnn = nn.{kind}({features}, {hidden}, {layers}, dropout={draw.choice([0.2, 0.5])}, batch_first=True).cuda()",
             f"head = nn.Linear({hidden}, {vocabulary}).cuda()"]
    targets, loss = classes_loss(vocabulary, batch * length)
    inputs = [f'x = torch.randint(0, {vocabulary}, ({batch}, {length}), device="cuda")', *targets]
    return loop(draw, build, inputs, f"head(F.dropout(rnn(words(x))[0], 0.5)).view({batch * length}, {vocabulary})", loss,
                "words, rnn, head", plain=True)


# How many of each are in the fourth round.
FOURTH_MODELS = {mlp: 6, residual_mlp: 3, checkpointed: 2, cnn: 4, resnet: 3, gpt: 6, encoder: 5, translation: 4, tagger: 4,
                 llama: 5, vit: 4, unet: 3, gan: 2, lora: 3, evaluation: 2, kept: 3, dqn: 2, channels_last: 3, groups: 3,
                 dropout_rnn: 3}
LATER_MODELS = {mlp: 2, residual_mlp: 2, checkpointed: 2, cnn: 2, resnet: 1, gpt: 4, encoder: 3, translation: 2, tagger: 2,
                llama: 2, vit: 1, unet: 1, gan: 1, lora: 1, evaluation: 1, kept: 1, dqn: 3}
# How many of each.
MODELS = {mlp: 12, residual_mlp: 6, checkpointed: 3, cnn: 7, resnet: 5, gpt: 10, encoder: 8, translation: 5, tagger: 8,
          llama: 7, vit: 5, unet: 5, gan: 4, lora: 4, evaluation: 4, kept: 5}
