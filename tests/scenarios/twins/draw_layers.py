"""Twins of single layers with drawn shapes: two forward and backward passes each."""


def width(draw, least=8, most=1024):
    """Half of them are multiples of 8."""
    drawn = draw.randint(least, most)
    return drawn if draw.random() < 0.5 else max(8, drawn // 8 * 8)


def image(draw, channels, most=8 << 20):
    """Batch and side of an image."""
    while True:
        batch, side = draw.choice([1, 2, 4, 8, 16, 32, 64]), draw.choice([7, 8, 14, 16, 28, 32, 56, 64, 112])
        if batch * channels * side * side <= most:
            return batch, side


def rows(draw, features):
    return draw.choice([f"{draw.randint(16, 4096)}, {features}",
                        f"{draw.randint(2, 32)}, {draw.randint(16, 256)}, {features}"])


def linear(draw):
    features = width(draw, 8, 2048)
    return f"nn.Linear({features}, {width(draw, 8, 2048)}, bias={draw.random() < 0.7})", rows(draw, features)


def layer_norm(draw):
    features = width(draw, 16, 2048)
    return f"nn.LayerNorm({features})", rows(draw, features)


def rms_norm(draw):
    features = width(draw, 16, 2048)
    return f"nn.RMSNorm({features})", rows(draw, features)


def group_norm(draw):
    groups = draw.choice([4, 8, 16, 32])
    channels = groups * draw.randint(1, 12)
    batch, side = image(draw, channels)
    return f"nn.GroupNorm({groups}, {channels})", f"{batch}, {channels}, {side}, {side}"


def batch_norm(draw):
    channels = draw.randint(8, 512)
    if draw.random() < 0.3:
        return f"nn.BatchNorm1d({channels})", f"{draw.randint(16, 4096)}, {channels}"
    batch, side = image(draw, channels)
    return f"nn.BatchNorm2d({channels})", f"{batch}, {channels}, {side}, {side}"


def conv2d(draw):
    channels, out = draw.choice([3, 16, 24, 32, 64, 96, 128, 256]), draw.choice([16, 32, 48, 64, 128, 192, 256])
    kernel, stride = draw.choice([1, 3, 3, 3, 5, 7]), draw.choice([1, 1, 1, 2])
    batch, side = image(draw, max(channels, out), 4 << 20)
    return (f"nn.Conv2d({channels}, {out}, {kernel}, {stride}, {kernel // 2}, bias={draw.random() < 0.5})",
            f"{batch}, {channels}, {side}, {side}")


def conv_grouped(draw):
    groups = draw.choice([2, 4, 8, 32])
    channels, out = groups * draw.choice([1, 4, 8]), groups * draw.choice([1, 4, 8])
    dilation = draw.choice([1, 1, 2])
    batch, side = image(draw, max(channels, out), 4 << 20)
    return (f"nn.Conv2d({channels}, {out}, 3, 1, {dilation}, dilation={dilation}, groups={groups})",
            f"{batch}, {channels}, {side}, {side}")


def conv1d(draw):
    channels, out = width(draw, 8, 256), width(draw, 8, 256)
    kernel = draw.choice([1, 3, 5, 9])
    return (f"nn.Conv1d({channels}, {out}, {kernel}, {draw.choice([1, 1, 2])}, {kernel // 2})",
            f"{draw.randint(2, 32)}, {channels}, {draw.randint(64, 1000)}")


def conv_transpose(draw):
    channels, out = draw.choice([16, 32, 64, 128, 256]), draw.choice([8, 16, 32, 64, 128])
    batch, side = image(draw, max(channels, out), 1 << 20)
    kind = draw.choice(["2, 2", "4, 2, 1", "3, 2, 1, 1", "3, 1, 1"])
    return f"nn.ConvTranspose2d({channels}, {out}, {kind})", f"{batch}, {channels}, {side}, {side}"


def recurrent(draw, kind):
    inputs, hidden, layers = width(draw, 16, 512), width(draw, 16, 640), draw.choice([1, 1, 1, 2, 3])
    both, first = draw.random() < 0.3, draw.random() < 0.6
    batch, length = draw.choice([1, 4, 8, 16, 20, 32, 64]), draw.randint(8, 100)
    sizes = f"{batch}, {length}" if first else f"{length}, {batch}"
    return (f"nn.{kind}({inputs}, {hidden}, {layers}, bidirectional={both}, batch_first={first})", f"{sizes}, {inputs}",
            "m(x)[0]")


def lstm(draw):
    return recurrent(draw, "LSTM")


def gru(draw):
    return recurrent(draw, "GRU")


def cell(draw):
    kind, inputs, hidden = draw.choice(["LSTMCell", "GRUCell"]), width(draw, 16, 1024), width(draw, 16, 1024)
    batch = draw.randint(1, 512)
    call = "m(x)[0]" if kind == "LSTMCell" else f'm(x, torch.zeros({batch}, {hidden}, device="cuda"))'
    return f"nn.{kind}({inputs}, {hidden})", f"{batch}, {inputs}", call


def multihead(draw):
    heads = draw.choice([2, 4, 8])
    features = heads * draw.choice([32, 40, 64, 96])
    return (f"MultiheadAttention({features}, {heads}, need_weights={draw.random() < 0.4}, "
            f"dropout={draw.choice([0.0, 0.0, 0.1])}, batch_first={draw.random() < 0.7})",
            f"{draw.randint(2, 16)}, {draw.randint(16, 256)}, {features}", "m(x, x, x)")


def encoder_layer(draw):
    heads = draw.choice([2, 4, 8])
    features = heads * draw.choice([32, 64])
    return (f"nn.TransformerEncoderLayer({features}, {heads}, {features * draw.choice([2, 4])}, "
            f"dropout={draw.choice([0.0, 0.1])}, activation=\"{draw.choice(['relu', 'gelu'])}\", batch_first=True, "
            f"norm_first={draw.random() < 0.5})", f"{draw.randint(2, 16)}, {draw.randint(16, 256)}, {features}")


def decoder_layer(draw):
    heads = draw.choice([4, 8])
    features = heads * draw.choice([32, 64])
    return (f"nn.TransformerDecoderLayer({features}, {heads}, {features * 4}, dropout={draw.choice([0.0, 0.1])}, "
            f"batch_first=True)", f"{draw.randint(2, 16)}, {draw.randint(16, 200)}, {features}", "m(x, x)")


def embedding(draw):
    entries, features = draw.randint(100, 40000), width(draw, 16, 1024)
    return f"nn.Embedding({entries}, {features})", f"{draw.randint(2, 32)}, {draw.randint(8, 256)}", "m(x)", "indices"


def pool(draw):
    channels = draw.choice([16, 32, 64, 128])
    batch, side = image(draw, channels)
    kind = draw.choice(["nn.MaxPool2d(2)", "nn.MaxPool2d(3, 2, 1)", "nn.AvgPool2d(2)", "nn.AdaptiveAvgPool2d(1)",
                        "nn.AdaptiveAvgPool2d(5)"])
    return kind, f"{batch}, {channels}, {side}, {side}"


def upsample(draw):
    channels = draw.choice([8, 16, 32, 64])
    batch, side = image(draw, channels, 1 << 20)
    return (f"nn.Upsample(scale_factor={draw.choice([2, 4])}, mode=\"{draw.choice(['nearest', 'bilinear'])}\")",
            f"{batch}, {channels}, {side}, {side}")


def instance_norm(draw):
    channels = draw.choice([16, 32, 64, 128])
    batch, side = image(draw, channels)
    return f"nn.InstanceNorm2d({channels}, affine={draw.random() < 0.5})", f"{batch}, {channels}, {side}, {side}"


# How many of each.
LAYERS = {linear: 6, layer_norm: 3, rms_norm: 3, group_norm: 3, batch_norm: 4, conv2d: 12, conv_grouped: 4, conv1d: 4,
          conv_transpose: 4, lstm: 9, gru: 7, cell: 4, multihead: 5, encoder_layer: 4, decoder_layer: 3, embedding: 3,
          pool: 4, upsample: 3, instance_norm: 2}
CUDNN = (conv2d, conv_grouped, conv1d, conv_transpose, lstm, gru)  # in 16 bits less often: other workspaces


LATER_LAYERS = {linear: 1, layer_norm: 1, rms_norm: 1, group_norm: 1, batch_norm: 1, conv2d: 3, conv_grouped: 1, conv1d: 1,
                conv_transpose: 1, lstm: 2, gru: 2, cell: 1, multihead: 2, encoder_layer: 2, decoder_layer: 1, embedding: 2,
                pool: 1, upsample: 1, instance_norm: 1}
# How many of each are in the fourth round.
FOURTH_LAYERS = {linear: 2, layer_norm: 2, rms_norm: 1, group_norm: 2, batch_norm: 2, conv2d: 5, conv_grouped: 3, conv1d: 2,
                 conv_transpose: 3, lstm: 4, gru: 4, cell: 2, multihead: 3, encoder_layer: 3, decoder_layer: 3, embedding: 2,
                 pool: 2, upsample: 2, instance_norm: 2}


def padded(drawn):
    """With the usual call, of an input that is no index."""
    return drawn + ("m(x)", "")[len(drawn) - 2:]


def layer(make, draw):
    module, shape, call, kind = padded(make(draw))
    needs = "" if kind else f", requires_grad={draw.random() < 0.7}"
    precision = draw.choice([None] * 4 + ["torch.bfloat16", "torch.float16"]) if make not in CUDNN else (
        draw.choice([None] * 5 + ["torch.bfloat16"]))
    x = f'torch.randint(0, 2, ({shape}), device="cuda")' if kind else f'torch.randn({shape}, device="cuda"{needs})'
    forward = [f"    out = {call}"]
    if precision:
        forward = [f'    with torch.autocast("cuda", dtype={precision}):', f"        out = {call}"]
    lines = [f"m = {module}.cuda()", 'phase("module")', "for i in range(2):", f"    x = {x}",
             '    phase(f"{i}:input")', *forward, '    phase(f"{i}:forward")']
    if "requires_grad=False" in x and make in (pool, upsample) or "requires_grad=False" in x and "affine=False" in module:
        lines += ['    phase(f"{i}:nothing to do")']
    else:
        lines += ["    out.sum().backward()", '    phase(f"{i}:backward")']
    return "\n".join(lines + ["    del out, x", '    phase(f"{i}:end")']) + "\n"
