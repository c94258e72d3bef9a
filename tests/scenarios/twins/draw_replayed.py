"""Twins of CUDA graphs, of paged key-value caches, and of gradients of gradients."""


def wide(draw, most):
    return 8 * draw.randint(8, most // 8) + draw.choice([0, 0, 0, 4])


def perceptron(draw, features, activations, out):
    parts, width = [], features
    for _ in range(draw.randint(1, 4)):
        following = wide(draw, 1024)
        parts += [f"nn.Linear({width}, {following})", draw.choice(activations)]
        width = following
    return f"model = nn.Sequential({', '.join(parts)}, nn.Linear({width}, {out})).cuda()"


# --- CUDA graphs ----------------------------------------------------------------------------------------------------


def warmed(body):
    return ["side = torch.cuda.Stream()", "side.wait_stream(torch.cuda.current_stream())", "with torch.cuda.stream(side):",
            "    for i in range(3):", *("        " + each for each in body),
            "torch.cuda.current_stream().wait_stream(side)", 'phase("warm")']


def replayed(draw, x, graph="graph", result=""):
    shape = x[x.index("("):]
    return ["for i in range(3):", f"    x.copy_(torch.randn{shape})", f"    {graph}.replay()",
            *([f"    kept = {result}.clone()"] if result else []), f'    phase(f"{graph} {{i}}")']


def forgotten(draw, *names):
    lines = []
    for name in draw.sample(names, len(names)):
        lines += [f"del {name}", f'phase("without {name}")']
    return [*lines, "torch.cuda.empty_cache()", 'phase("emptied")']


def graph_inference(draw):
    features, batch = wide(draw, 1024), draw.randint(64, 4096)
    x = f'torch.randn({batch}, {features}, device="cuda")'
    lines = [perceptron(draw, features, ["nn.ReLU()", "nn.GELU()", "nn.SiLU()"], draw.randint(10, 2000)), f"x = {x}",
             "graph = torch.cuda.CUDAGraph()", 'phase("start")', "with torch.no_grad():",
             *("    " + each for each in warmed(["y = model(x)"])), *(["del y", 'phase("cold")'] if draw.random() < 0.5 else []),
             "with torch.no_grad():", "    with torch.cuda.graph(graph):", "        y = model(x)", 'phase("captured")',
             *replayed(draw, x, result=draw.choice(["", "y"])), *forgotten(draw, "y", "graph", "model")]
    return "\n".join(lines) + "\n"


def graph_training(draw):
    """The whole step is captured."""
    features, batch = wide(draw, 768), draw.randint(64, 2048)
    x = f'torch.randn({batch}, {features}, device="cuda")'
    optimizer = draw.choice(["torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)",
                             "torch.optim.SGD(model.parameters(), lr=0.01)"])
    step = ["loss = model(x).square().mean()", "loss.backward()", "optimizer.step()"]
    before, after = (["optimizer.zero_grad()"], []) if draw.random() < 0.5 else ([], ["optimizer.zero_grad()"])
    lines = [perceptron(draw, features, ["nn.ReLU()", "nn.GELU()", "nn.Tanh()"], draw.randint(10, 500)), f"x = {x}",
             "optimizer = " + optimizer, "graph = torch.cuda.CUDAGraph()", 'phase("start")', *warmed(before + step + after),
             "optimizer.zero_grad()", "with torch.cuda.graph(graph):", *("    " + each for each in step), 'phase("captured")',
             *replayed(draw, x), *forgotten(draw, "loss", "graph")]
    return "\n".join(lines) + "\n"


def graph_pool(draw):
    """Two graphs for two batch sizes, with one pool or a pool each."""
    features, large = wide(draw, 1024), draw.randint(512, 4096)
    small, shared = draw.randint(32, large // 2), draw.random() < 0.7
    lines = [perceptron(draw, features, ["nn.ReLU()", "nn.GELU()"], draw.randint(100, 2000)),
             f'x = torch.randn({large}, {features}, device="cuda")', f'z = torch.randn({small}, {features}, device="cuda")',
             "graph = torch.cuda.CUDAGraph()", "other = torch.cuda.CUDAGraph()", 'phase("start")', "with torch.no_grad():",
             *("    " + each for each in warmed(["y = model(x)", "y = model(z)"])), "del y", "with torch.no_grad():",
             "    with torch.cuda.graph(graph):", "        y = model(x)", 'phase("one")', "with torch.no_grad():",
             f"    with torch.cuda.graph(other{', pool=graph.pool()' if shared else ''}):", "        w = model(z)", 'phase("two")',
             "graph.replay()", "other.replay()", 'phase("replayed")', *forgotten(draw, "y", "w", "graph", "other")]
    return "\n".join(lines) + "\n"


# --- paged caches ---------------------------------------------------------------------------------------------------


def paged(draw):
    """Keys and values in blocks of some tokens, each request with a row of a table that says which are its own."""
    heads, depth, size = draw.choice([4, 8, 16]), draw.choice([32, 64, 128]), draw.choice([8, 16, 32])
    requests, most = draw.randint(4, 48), draw.randint(4, 32)
    count, dtype = requests * most + draw.randint(0, 100), draw.choice(["torch.float16", "torch.bfloat16", "torch.float32"])
    form = f'device="cuda", dtype={dtype}'
    pool = f"torch.zeros({count}, {size}, {heads}, {depth}, {form})"
    token = f"torch.randn({requests}, {heads}, {depth}, {form})"
    pages = f"index_select(0, table.view({requests * most})).view({requests}, {most * size}, {heads}, {depth}).transpose(1, 2)"
    lines = [f"keys = {pool}", f"values = {pool}", f'table = torch.randint(0, {count}, ({requests}, {most}), device="cuda")',
             'phase("start")', "for i in range(4):", "    with torch.no_grad():",
             f'        slots = torch.randint(0, {count * size}, ({requests},), device="cuda")',
             f"        keys.view({count * size}, {heads}, {depth}).index_copy_(0, slots, {token})",
             f"        values.view({count * size}, {heads}, {depth}).index_copy_(0, slots, {token})", '        phase(f"{i}:written")',
             f"        q = torch.randn({requests}, {heads}, 1, {depth}, {form})",
             f"        out = F.scaled_dot_product_attention(q, keys.{pages}, values.{pages})", '        phase(f"{i}:read")']
    if draw.random() < 0.5:
        lines += [f"        keys.index_copy_(0, table.select(0, 0), keys.index_select(0, table.select(0, {requests - 1})))",
                  '        phase(f"{i}:copied")']
    return "\n".join(lines) + "\n"


# --- gradients of gradients -----------------------------------------------------------------------------------------


def penalty(draw):
    """A critic whose gradient by its input is to have the length 1."""
    features, batch = wide(draw, 768), draw.randint(32, 1024)
    optimizer = draw.choice(["torch.optim.Adam({}, lr=1e-4)", "torch.optim.SGD({}, lr=0.01)"]).format("model.parameters()")
    lines = [perceptron(draw, features, ["nn.ReLU()", "nn.LeakyReLU(0.2)", "nn.Tanh()"], 1), "optimizer = " + optimizer,
             'phase("start")', "for i in range(3):", f'    x = torch.randn({batch}, {features}, device="cuda", requires_grad=True)',
             "    out = model(x)", "    gradient = torch.autograd.grad(out.sum(), x, create_graph=True)[0]",
             '    phase(f"{i}:gradient")',
             f"    loss = out.mean() + (gradient.square().sum(1).sqrt() - 1).square().mean() * {draw.choice([1, 10])}",
             '    phase(f"{i}:penalty")', "    optimizer.zero_grad()", "    loss.backward()", '    phase(f"{i}:backward")',
             "    optimizer.step()", *(["    del loss, gradient, out"] if draw.random() < 0.5 else []), '    phase(f"{i}:step")']
    return "\n".join(lines) + "\n"


LATER_REPLAYED = {graph_inference: 1, graph_training: 2, graph_pool: 1, paged: 2, penalty: 2}
REPLAYED = {graph_inference: 6, graph_training: 6, graph_pool: 6, paged: 10, penalty: 10}
# How many of each are in the fourth round.
FOURTH_REPLAYED = {graph_inference: 3, graph_training: 4, graph_pool: 4, paged: 4, penalty: 5}
