"""Twins of training over several ranks, as one of them sees it: fully_shard (FSDP2) and ZeroRedundancyOptimizer.

PyTorch's own code runs, in a process group whose collectives do nothing (prelude.py): what one rank allocates is the
same as with the others there.
"""
OPTIMIZERS = ["torch.optim.SGD({}, lr=0.01, momentum=0.9)", "torch.optim.SGD({}, lr=0.01)", "torch.optim.AdamW({}, lr=1e-4)",
              "torch.optim.AdamW({}, lr=1e-4)", "torch.optim.AdamW({}, lr=1e-4, fused=True)",
              "torch.optim.Adam({}, lr=1e-4, foreach=False)"]
POLICIES = ["", "", "param_dtype=torch.bfloat16", "param_dtype=torch.bfloat16, reduce_dtype=torch.float32",
            "param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32"]


def ranks(draw, counts=(2, 4, 4, 8)):
    count = draw.choice(counts)
    return f"init_process_group(world_size={count}, rank={draw.choice([0, 0, draw.randrange(count)])})"


def wide(draw, most):
    """Sizes that ranks do not always divide."""
    return 8 * draw.randint(16, most // 8) + draw.choice([0, 0, 0, 0, 1, 4])


def linears(draw):
    features, batch = wide(draw, 1024), draw.randint(64, 2048)
    hidden = wide(draw, 2048)
    block = draw.choice(["nn.Sequential(nn.Linear({0}, {1}), nn.ReLU(), nn.Linear({1}, {0}))",
                         "Residual(nn.Sequential(nn.LayerNorm({0}), nn.Linear({0}, {1}), nn.GELU(), nn.Linear({1}, {0})))",
                         "Checkpointed(Residual(nn.Sequential(nn.Linear({0}, {1}), nn.SiLU(), nn.Linear({1}, {0}))))"])
    classes = draw.randint(10, 2000)
    return (f"nn.Linear({features}, {features})", block.format(features, hidden), [f"nn.Linear({features}, {classes})"],
            f'torch.randn({batch}, {features}, device="cuda")', "model(x)", classes, batch)


def llama(draw):
    heads, depth, groups = draw.choice([4, 8]), draw.choice([32, 64]), draw.choice([2, 4])
    features, length, batch = heads * depth, draw.choice([64, 128, 200]), draw.randint(1, 8)
    vocabulary, hidden = draw.choice([2000, 8000, 16001]), features * 5 // 2 // 8 * 8
    return (f"nn.Embedding({vocabulary}, {features})",
            f"LlamaBlock({features}, {heads}, groups={groups}, hidden={hidden}, length={length})",
            [f"nn.RMSNorm({features})", f"nn.Linear({features}, {vocabulary}, bias=False)"],
            f'torch.randint(0, {vocabulary}, ({batch}, {length}), device="cuda")',
            f"model(x).view({batch * length}, {vocabulary})", vocabulary, batch * length)


def gpt(draw):
    heads = draw.choice([2, 4, 8])
    features, length, batch = heads * draw.choice([32, 64]), draw.choice([64, 100, 256]), draw.randint(2, 8)
    vocabulary = draw.choice([1000, 5000, 20000])
    return (f"nn.Embedding({vocabulary}, {features})",
            draw.choice([f"GPTBlock({features}, {heads})",
                         f"nn.TransformerEncoderLayer({features}, {heads}, {4 * features}, batch_first=True)"]),
            [f"nn.LayerNorm({features})", f"nn.Linear({features}, {vocabulary})"],
            f'torch.randint(0, {vocabulary}, ({batch}, {length}), device="cuda")',
            f"model(x).view({batch * length}, {vocabulary})", vocabulary, batch * length)


def built(first, block, last, count, shard):
    """Blocks that are sharded one by one, as they are made or when all are there; shard: {} is the module."""
    lines = [f"model = nn.Sequential({first}).cuda()", "blocks = []", f"for k in range({count}):",
             f"    block = {block}.cuda()", "    model.append(block)", "    blocks.append(block)", "del block"]
    for each in last:
        lines += [f"last = {each}.cuda()", "model.append(last)", "del last"]
    return lines + (["for block in blocks:", f"    {shard.format('block')}", "del block"] if shard else [])


def microbatch(i, x, classes, rows, loss):
    """Forward and backward pass number `i` of a step."""
    return [f"x = {x}", f'y = torch.randint(0, {classes}, ({rows},), device="cuda")', f"loss = {loss}",
            f'phase(f"{{i}}:forward {i}")', "loss.backward()", f'phase(f"{{i}}:backward {i}")']


def trained(draw, lines, optimizer, passes):
    """Three steps of the passes."""
    lines += [f"optimizer = {optimizer}", 'phase("start")', "for i in range(3):"]
    at_end = draw.random() < 0.5
    body = [] if at_end else ["optimizer.zero_grad()"]
    body += passes + (["del loss"] if draw.random() < 0.5 else [])
    body += ["optimizer.step()", *(["optimizer.zero_grad()"] if at_end else []), 'phase(f"{i}:step")']
    return "\n".join(lines + ["    " + each for each in body]) + "\n"


def fsdp(draw):
    first, block, last, x, output, classes, rows = draw.choice([linears, llama, llama, gpt])(draw)
    policy = draw.choice(POLICIES)
    options = [f"mp_policy=MixedPrecisionPolicy({policy})"] if policy else []
    reshard = draw.choice(["", "", "reshard_after_forward=True", "reshard_after_forward=False"])
    of_block = [each.replace(", output_dtype=torch.float32", "") for each in options]
    shard = f"fully_shard({', '.join(['{}', *([reshard] if reshard else []), *of_block])})"
    by_block = draw.random() < 0.85
    lines = [ranks(draw), *built(first, block, last, draw.randint(2, 6), shard if by_block else "")]
    lines.append(f"fully_shard({', '.join(['model', *([reshard] if draw.random() < 0.3 and reshard else []), *options])})")
    loss = f"F.cross_entropy({output}, y)"
    count, synced = draw.choice([(1, True), (1, True), (2, True), (2, False), (2, False)])
    passes = []
    for k in range(count):
        if not synced:
            passes.append(f"model.set_requires_gradient_sync({k == count - 1})")
        passes += microbatch(k, x, classes, rows, loss)
    text = trained(draw, lines, draw.choice(OPTIMIZERS).format("model.parameters()"), passes)
    if draw.random() < 0.4:
        text += "\n".join(["with torch.no_grad():", f"    x = {x}", f"    out = {output}", 'phase("evaluated")',
                           "del out", 'phase("forgotten")', "model.reshard()", 'phase("resharded")']) + "\n"
    return text


def beyond(draw, kind, ranks):
    """What a kind of sharding adds to fully_shard() of a part: replicas of shards (two dimensions of ranks), shards in
    the memory of the CPU, or a smaller group of ranks that keeps what was gathered."""
    if kind == "replicas":
        return f"mesh=device_mesh({', '.join(map(str, draw.choice([(2, ranks // 2), (ranks // 2, 2)])))})"
    if kind == "offload":
        return "offload_policy=CPUOffloadPolicy()"
    return f"reshard_after_forward={draw.choice([count for count in (2, 4) if count < ranks])}"


def fsdp_with(draw, kind):
    """Each part sharded with what `kind` adds, or fetched ahead as the program says."""
    first, block, last, x, output, classes, rows = draw.choice([linears, llama, gpt])(draw)
    ranks, policy = draw.choice([4, 8]), draw.choice(POLICIES).replace(", output_dtype=torch.float32", "")
    count = draw.randint(3, 6)
    options = [f"mp_policy=MixedPrecisionPolicy({policy})"] if policy else []
    options += [beyond(draw, kind, ranks)] if kind != "prefetch" else []
    of_root = [each for each in options if not each.startswith("reshard")]
    lines = [f"init_process_group(world_size={ranks}, rank={draw.choice([0, ranks - 1])})",
             *built(first, block, last, count, f"fully_shard({', '.join(['{}', *options])})"),
             f"fully_shard({', '.join(['model', *of_root])})"]
    if kind == "prefetch":
        ahead = draw.randint(1, 2)
        for k in range(count - 1):
            parts = ", ".join(f"blocks[{j}]" for j in range(k + 1, min(k + 1 + ahead, count)))
            lines.append(f"blocks[{k}].set_modules_to_forward_prefetch([{parts}])")
        for k in range(count - 1, 0, -1) if draw.random() < 0.7 else ():
            parts = ", ".join(f"blocks[{j}]" for j in range(k - 1, max(k - 1 - ahead, -1), -1))
            lines.append(f"blocks[{k}].set_modules_to_backward_prefetch([{parts}])")
    return trained(draw, lines, draw.choice(OPTIMIZERS).format("model.parameters()"),
                   microbatch(0, x, classes, rows, f"F.cross_entropy({output}, y)"))


def prefetch(draw):
    return fsdp_with(draw, "prefetch")


def replicas(draw):
    return fsdp_with(draw, "replicas")


def offload(draw):
    return fsdp_with(draw, "offload")


def smaller_group(draw):
    return fsdp_with(draw, "smaller group")


def zero(draw):
    """Stage 1: each rank has the optimizer's state of its own parameters."""
    first, block, last, x, output, classes, rows = draw.choice([linears, llama, gpt])(draw)
    lines = [ranks(draw), *built(first, block, last, draw.randint(2, 5), "")]
    lines.append(f"model = DistributedDataParallel(model, gradient_as_bucket_view={draw.random() < 0.5})")
    kind, options = draw.choice([("AdamW", ""), ("Adam", ", foreach=False"), ("SGD", ", momentum=0.9")])
    optimizer = (f"ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.{kind}, "
                 f"parameters_as_bucket_view={draw.random() < 0.4}, lr=1e-3{options})")
    return trained(draw, lines, optimizer, microbatch(0, x, classes, rows, f"F.cross_entropy({output}, y)"))


def data_parallel(draw):
    """DistributedDataParallel with the optimizer of each rank whole."""
    first, block, last, x, output, classes, rows = draw.choice([linears, llama, gpt])(draw)
    lines = [ranks(draw), *built(first, block, last, draw.randint(2, 5), "")]
    lines.append(f"model = DistributedDataParallel(model, gradient_as_bucket_view={draw.random() < 0.5})")
    return trained(draw, lines, draw.choice(OPTIMIZERS).format("model.parameters()"),
                   microbatch(0, x, classes, rows, f"F.cross_entropy({output}, y)"))


# How many of each.
SHARDED = {fsdp: 24, zero: 6}
# How many of each were drawn later.
LATER_SHARDED = {fsdp: 4, zero: 2, prefetch: 5, replicas: 5, offload: 5, smaller_group: 5}
# How many of each are in the fourth round.
FOURTH_SHARDED = {fsdp: 8, zero: 4, prefetch: 3, replicas: 3, offload: 3, smaller_group: 3, data_parallel: 4}
