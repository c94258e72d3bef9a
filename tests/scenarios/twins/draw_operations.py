"""Twins of single operations: three drawn shapes of each, forwards and backwards, and chains of drawn operations."""

# Each operation: how its inputs are drawn, and its call. Letters of a shape: n 32 to 4096, m 8 to 300, s 2 to 16, w a
# multiple of 8 up to 512; the same letter twice in a case is the same number. "#n" is an index below the first size.
OPERATIONS = {
    "sum_all": (["nm"], "a.sum()"),
    "sum_first": (["nm"], "a.sum(0)"),
    "sum_last": (["nm"], "a.sum(-1)"),
    "sum_middle": (["smn"], "a.sum(1)"),
    "sum_two": (["smn"], "a.sum((0, 2), keepdim=True)"),
    "mean_last": (["snw"], "a.mean(-1)"),
    "mean_images": (["smww"], "a.mean((2, 3))"),
    "max_last": (["snw"], "a.max(-1)[0]"),
    "min_first": (["nm"], "a.min(0)[0]"),
    "max_all": (["snm"], "a.max()"),
    "var_last": (["snw"], "a.var(-1, keepdim=True)"),
    "std_all": (["snw"], "a.std()"),
    "argmax": (["snw"], "a.argmax(-1)"),
    "softmax_last": (["snm"], "F.softmax(a, -1)"),
    "softmax_middle": (["smw"], "F.softmax(a, 1)"),
    "softmax_columns": (["nm"], "F.softmax(a.t(), -1)"),
    "log_softmax": (["nm"], "F.log_softmax(a, -1)"),
    "permute_copy": (["snm"], "a.permute(2, 0, 1).contiguous()"),
    "permute_images": (["smww"], "a.permute(0, 2, 3, 1).contiguous() * 2"),
    "reshape_copy": (["snm"], "a.transpose(1, 2).reshape(-1)"),
    "reshape_view": (["snm"], "a.reshape(-1) * a.reshape(-1)"),
    "unsqueeze_broadcast": (["sm", "nm"], "a.unsqueeze(1) * b.unsqueeze(0)"),
    "expand": (["m"], "a.unsqueeze(0).expand(700, -1) * 2"),
    "narrow": (["nw"], "a.narrow(1, 3, 4) * 2"),
    "select": (["snm"], "a.select(1, 5) * 2"),
    "split_product": (["nw"], "a.chunk(2, -1)[0] * 2"),
    "cat_first": (["nm", "sm"], "torch.cat([a, b], 0)"),
    "cat_last": (["nm", "nw"], "torch.cat([a, b], -1)"),
    "stack": (["nm", "nm"], "torch.stack([a, b], 1)"),
    "add_broadcast": (["snm", "m"], "a + b"),
    "mul_same": (["snm", "snm"], "a * b"),
    "mul_rows": (["snm", "n1"], "a * b"),
    "div": (["nm", "m"], "a / b"),
    "pow_three": (["nm"], "a ** 3"),
    "polynomial": (["nm"], "a * a * 3 - a * 2 + 1"),
    "sqrt_log": (["nm"], "(a + 1).sqrt().log()"),
    "rsqrt_normalise": (["nw"], "a * (a.square().mean(-1, keepdim=True) + 1).rsqrt()"),
    "sin_cos": (["nm"], "a.sin() * a.cos()"),
    "gelu": (["snm"], "F.gelu(a)"),
    "silu_gate": (["nm", "nm"], "F.silu(a) * b"),
    "leaky_relu": (["snm"], "F.leaky_relu(a)"),
    "tanh_sigmoid": (["nm"], "torch.tanh(a) * torch.sigmoid(a)"),
    "exp": (["snm"], "torch.exp(a)"),
    "abs_clamp": (["nm"], "a.abs().clamp(0.2, 0.8)"),
    "dropout": (["snm"], "F.dropout(a, 0.25)"),
    "relu_in_place": (["nm"], "(a * 2).relu_()"),
    "mul_in_place": (["nm", "nm"], "(a * 2).mul_(b)"),
    "add_in_place": (["snm", "m"], "(a * 2).add_(b)"),
    "matmul_vectors": (["nm", "mw"], "a @ b"),
    "matmul_batch": (["snw", "wm"], "torch.matmul(a, b)"),
    "matmul_batches": (["snw", "swm"], "a @ b"),
    "matmul_transposed": (["nw", "mw"], "a @ b.t()"),
    "bmm": (["snm", "smw"], "torch.bmm(a, b)"),
    "bmm_transposed": (["snw", "smw"], "torch.bmm(a, b.transpose(1, 2))"),
    "bmm_columns": (["swn", "swm"], "torch.bmm(a.transpose(1, 2), b)"),
    "bmm_heads": (["ssnw", "ssmw"], "a @ b.transpose(2, 3)"),
    "index_select": (["nm", "#p"], "a.index_select(0, b)"),
    "index_columns": (["sn", "#p"], "a.index_select(1, b)"),
    "gather": (["nm", "#pm"], "a.gather(0, b)"),
    "embedding": (["nw", "#sp"], "F.embedding(b, a)"),
    "masked_fill": (["snm"], "a.masked_fill(a > 0.5, 0)"),
    "where": (["nm", "nm"], "torch.where(a > 0.5, a, b)"),
    "tril": (["snn"], "a.tril()"),
    "cumsum_first": (["nm"], "a.cumsum(0)"),
    "cumsum_last": (["nm"], "a.cumsum(-1)"),
    "sort": (["nm"], "a.sort()[0]"),
    "sort_long": (["sL"], "a.sort()[0]"),
    "topk": (["nw"], "a.topk(5)[0]"),
    "cross_entropy": (["nm", "?n"], "F.cross_entropy(a, b)"),
    "cross_entropy_sum": (["nw", "?n"], 'F.cross_entropy(a, b, reduction="sum")'),
    "cross_entropy_none": (["nm", "?n"], 'F.cross_entropy(a, b, reduction="none")'),
    "mse": (["snm", "snm"], "F.mse_loss(a, b)"),
    "mse_none": (["nm", "nm"], 'F.mse_loss(a, b, reduction="none")'),
    "bce_logits": (["nm", "-nm"], "F.binary_cross_entropy_with_logits(a, b)"),
    "kl_div": (["nm", "-nm"], 'F.kl_div(F.log_softmax(a, -1), b, reduction="batchmean")'),
    "to_bfloat16": (["snm"], "a.to(torch.bfloat16) * 2"),
    "half_product": (["nw", "mw"], "a.half() @ b.half().t()"),
    "sdpa": (["ssnd", "ssnd"], "F.scaled_dot_product_attention(a, b, b)"),
    "sdpa_cross": (["ssnd", "sspd"], "F.scaled_dot_product_attention(a, b, b)"),
    "sdpa_causal_bf16": (["ssnd", "ssnd"], "F.scaled_dot_product_attention("
                         "a.bfloat16(), b.bfloat16(), b.bfloat16(), is_causal=True)"),
    "sdpa_dropout": (["ssnd"], "F.scaled_dot_product_attention(a, a, a, dropout_p=0.2)"),
    "sdpa_math": (["ssmd", "ssmd"], 'attention(a, b, b, backend="math")'),
    "amp_products": (["nw", "mw"], "a @ b.t()", "torch.bfloat16"),
    "amp_softmax": (["snw", "smw"], "F.softmax(a @ b.transpose(1, 2), -1)", "torch.bfloat16"),
    "amp_mse": (["nw", "mw", "nm"], "F.mse_loss(a @ b.t(), c)", "torch.float16"),
    "amp_square_mean": (["nw", "mw"], "(a @ b.t()).square().mean(-1)", "torch.bfloat16"),
    "amp_log_softmax": (["nw", "mw"], "F.log_softmax(a @ b.t(), -1)", "torch.float16"),
    "amp_gelu_sum": (["snw", "wm"], "F.gelu(a @ b).sum(-1)", "torch.bfloat16"),
}

# Drawn later, with other sizes: half of the operations above, and these.
LATER_OPERATIONS = {
    "flatten": (["snm"], "a.flatten(1) * 2"),
    "flip": (["snm"], "a.flip(1)"),
    "roll": (["snm"], "a.roll(3, 1)"),
    "repeat": (["nm"], "a.repeat(3, 1)"),
    "pad": (["smww"], "F.pad(a, (1, 1, 2, 2))"),
    "l1_loss": (["nm", "-nm"], "F.l1_loss(a, b)"),
    "smooth_l1_loss": (["nm", "-nm"], "F.smooth_l1_loss(a, b)"),
    "huber_loss": (["nm", "-nm"], 'F.huber_loss(a, b, reduction="sum")'),
    "bce": (["nm", "-nm"], "F.binary_cross_entropy(torch.sigmoid(a), b)"),
    "nll_loss": (["nm", "?n"], "F.nll_loss(F.log_softmax(a, -1), b)"),
    "elu": (["snm"], "F.elu(a)"),
    "softplus": (["snm"], "F.softplus(a)"),
    "mish": (["snm"], "F.mish(a)"),
    "hardswish": (["snm"], "F.hardswish(a)"),
    "relu6": (["snm"], "F.relu6(a)"),
    "interpolate": (["smww"], "F.interpolate(a, scale_factor=2)"),
    "normalize": (["nw"], "F.normalize(a, dim=-1)"),
    "logsumexp": (["snm"], "a.logsumexp(-1)"),
    "norm": (["snm"], "a.norm()"),
}

LIMIT = 24 << 20  # numbers of the largest input
CASES = 3


def sizes_of(draw):
    width = 8 * draw.randint(1, 64)
    return {"n": draw.choice([draw.randint(32, 400), draw.randint(400, 4096)]), "m": draw.randint(8, 300),
            "s": draw.randint(2, 16), "w": width, "d": draw.choice([32, 64, 64, 96, 128]), "p": draw.randint(20, 900),
            "L": draw.randint(5000, 60000), "1": 1}


def tensor(kind, sizes):
    """The text that makes an input."""
    mark, letters = (kind[0], kind[1:]) if kind[0] in "#?-" else ("", kind)
    shape = ", ".join(str(sizes[letter]) for letter in letters)
    if mark in ("#", "?"):
        comma = "," if len(letters) == 1 else ""
        return f'torch.randint(0, 2, ({shape}{comma}), device="cuda")'
    if mark == "-":
        return f'torch.rand({shape}, device="cuda")'
    return f'torch.rand({shape}, device="cuda", requires_grad=True)'


def count(kind, sizes):
    total = 1
    for letter in kind.strip("#?-"):
        total *= sizes[letter]
    return total


def fitting_sizes(draw, kinds):
    """Products of two inputs are as large as the first and the last size of each, roughly."""
    while True:
        sizes = sizes_of(draw)
        if max(count(kind, sizes) for kind in kinds) <= LIMIT and (
                len(kinds) == 1 or count(kinds[0], sizes) * sizes[kinds[1][-1]] <= 64 * LIMIT) and (
                "ssn" not in kinds[0] or sizes["s"] ** 2 * sizes["n"] ** 2 <= 4 * LIMIT) and (
                "nn" not in kinds[0] or sizes["n"] <= 1500):
            return sizes


def inputs_of(kinds, sizes):
    return [f"{name} = {tensor(kind, sizes)}" for name, kind in zip("abc", kinds)]


def case(number, lines, call, names, backward=True, precision=None):
    """One case with its own peaks: its inputs, forwards and backwards, a phase after each."""
    inside = [f"out = {call}"]
    if precision:
        inside = [f'with torch.autocast("cuda", dtype={precision}):', f"    out = {call}"]
    return [*lines, "torch.cuda.reset_peak_memory_stats()", f'phase("{number}:inputs")', *inside,
            f'phase("{number}:forward")',
            *(["out.sum().backward()", f'phase("{number}:backward")'] if backward else []),
            f"del out, {', '.join(names)}", f'phase("{number}:end")']


def operation(name, draw):
    kinds, call, precision = (*{**OPERATIONS, **LATER_OPERATIONS}[name], None)[:3]
    lines = []
    for number in range(CASES):
        sizes = fitting_sizes(draw, kinds)
        lines += case(number, inputs_of(kinds, sizes), call, "abc"[:len(kinds)], name != "argmax", precision)
    return "\n".join(lines) + "\n"


# What a chain is drawn from: the new value, by the values before it. They keep the shape, or reduce to rows.
STEPS = ["{x} * {y}", "{x} + {y}", "{x} - {y} * 2", "{x} / ({y}.abs() + 1)", "torch.tanh({x})", "torch.sigmoid({x})",
         "F.gelu({x})", "F.silu({x})", "torch.exp({x} * 0.1)", "{x}.square()", "({x}.abs() + 1).sqrt()",
         "{x} - {x}.mean(-1, keepdim=True)", "{x} / ({x}.abs().sum(-1, keepdim=True) + 1)", "F.softmax({x}, -1)",
         "F.dropout({x}, 0.1)", "{x} @ w", "{x} @ w.t()", "torch.where({x} > 0, {x}, {y})",
         "{x}.masked_fill({y} > 0.5, 0)", "torch.cat([{x}, {y}], 0).narrow(0, 0, rows)", "{x}.cumsum(0)",
         "{x}.t().contiguous().t()", "{x}.clamp(-1, 1)", "{x} * {x}.max(-1, keepdim=True)[0]",
         "{x}.permute(1, 0).softmax(-1).permute(1, 0)", "{x}.sin() + {y}.cos()", "torch.relu({x})"]


def chain(draw):
    """Statements that use values before them; some are deleted on the way."""
    rows, width = draw.randint(200, 3000), 8 * draw.randint(8, 128)
    lines = [f'x0 = torch.rand({rows}, {width}, device="cuda", requires_grad=True)',
             f'w = torch.rand({width}, {width}, device="cuda", requires_grad=True)', 'phase("inputs")']
    alive, precision = ["x0"], draw.choice([None, None, "torch.bfloat16", "torch.float16"])
    for number in range(1, draw.randint(6, 14)):
        step = draw.choice(STEPS).replace("rows", str(rows))
        text = f"x{number} = " + step.format(x=alive[-1], y=draw.choice(alive))
        lines += [f'with torch.autocast("cuda", dtype={precision}):', "    " + text] if precision else [text]
        alive.append(f"x{number}")
        if len(alive) > 3 and draw.random() < 0.4:
            lines.append("del " + alive.pop(draw.randint(1, len(alive) - 2)))
        if number % 3 == 0:
            lines.append(f'phase("{number}")')
    lines += [f"loss = {alive[-1]}.float().mean()", "del " + ", ".join(alive[1:]), 'phase("loss")', "loss.backward()",
              'phase("backward")']
    return "\n".join(lines) + "\n"
