"""The shipped scenarios with their own parameters, as PyTorch programs: what `gmd run` runs, and its twin.

Needs no torch: programs are texts, which the recorder executes with what prelude.py has. {leak} and the like are
filled in for each variant. `draws` gives the numbers that the scenario draws with seed 0.
"""
LEAKS = ({"leak": True}, {"leak": False})

GRADIENT_ACCUMULATION = """
model = resnet50(1000).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
input = torch.randn(1, 3, 224, 224, device="cuda")
target = torch.randn_like(model(input))
phase("start")
for i in range(5):
    if not {leak}:
        optimizer.zero_grad()
    output = model(input)
    phase(f"{{i}}:forward")
    F.cross_entropy(output, target).backward()
    phase(f"{{i}}:backward")
    optimizer.step()
    phase(f"{{i}}:step")
"""

METRICS = """
model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(),
                      nn.LayerNorm(4096), nn.Linear(4096, 1000)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
losses, outputs, validation = [], [], []
def loss_of(samples):
    return F.cross_entropy(model(torch.randn(samples, 1024, device="cuda")),
                           torch.randint(0, 1000, (samples,), device="cuda"))
for i in range(20):
    output = model(torch.randn(512, 1024, device="cuda"))
    loss = F.cross_entropy(output, torch.randint(0, 1000, (512,), device="cuda"))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if {leak}:
        losses.append(loss)
        outputs.append(output)
        validation.append(loss_of(512))
    else:
        loss.item()
        with torch.no_grad():
            loss_of(512).item()
    phase(i)
"""

HIDDEN_STATE = """
lstm = nn.LSTM(256, 512, 2, batch_first=True).cuda()
optimizer = torch.optim.SGD(lstm.parameters(), lr=0.01)
state = None
for i in range(25):
    output, state = lstm(torch.randn(32, 40, 256, device="cuda"), state)
    loss = output.square().mean()
    if not {leak}:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = state[0].detach(), state[1].detach()
    phase(i)
"""

EVALUATION = """
model = nn.Sequential(*(part for _ in range(12) for part in (nn.Linear(1024, 1024), nn.ReLU()))).cuda()
for i in range(20):
    with torch.set_grad_enabled({leak}):
        loss = model(torch.randn(2048, 1024, device="cuda")).square().mean()
    phase(i)
"""

CHECKPOINT_CACHE = """
parts = [nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)) for _ in range(8)]
model = nn.Sequential(*parts).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
cache = []
for i in range(20):
    x = torch.randn(1024, 1024, device="cuda")
    for part in parts:
        cache.append(x)
        x = checkpoint(part, x)
    loss = x.square().mean()
    del x
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if not {leak}:
        cache.clear()
    phase(i)
"""

DYNAMIC_GRAPH = """
first, middle, last = nn.Linear(1024, 1024).cuda(), nn.Linear(1024, 1024).cuda(), nn.Linear(1024, 10).cuda()
optimizer = torch.optim.SGD(params(first, middle, last), lr=0.01)
history, draws = [], Draws()
for i in range(25):
    state = torch.relu(first(torch.randn(1024, 1024, device="cuda")))
    for _ in range(draws.random(1, 12)):
        state = torch.relu(middle(state))
    loss = F.cross_entropy(last(state), torch.randint(0, 10, (1024,), device="cuda"))
    loss.backward(retain_graph={leak})
    optimizer.step()
    optimizer.zero_grad()
    history.append(loss.grad_fn if {leak} else loss.grad_fn.name())
    phase(i)
"""

LOGGING_TENSORS = """
parts = [nn.Linear(1024, 1024) for _ in range(6)]
model = nn.Sequential(*parts).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
log = []
for i in range(40):
    x = torch.randn(1024, 1024, device="cuda")
    for part in parts:
        x = torch.relu(part(x))
        if i % 2 == 0:
            log.append(x.detach() if {leak} else x.mean().item())
    loss = x.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if {leak}:
        log.append(loss.detach())
    phase(i)
"""

CLOSURE_CYCLE = """
class Trainer:
    def __init__(self):
        self.model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.on_step = lambda: self
import gc
for i in range(24):
    trainer = Trainer()
    for _ in range(3):
        trainer.optimizer.zero_grad()
        torch.relu(trainer.model(torch.randn(256, 1024, device="cuda"))).square().mean().backward()
        trainer.optimizer.step()
    if not {leak} and i % 2 == 0:
        gc.collect()
    phase(i)
"""

REFERENCE_CYCLE = """
import gc
for i in range(60):
    a, b = Node(), Node()
    a.data = torch.empty(67108864, device="cuda", dtype=torch.uint8)
    b.data = torch.empty(67108864, device="cuda", dtype=torch.uint8)
    a.other = b
    b.other = a
    if not {leak} and i % 5 == 0:
        gc.collect()
    phase(i)
"""

AWAITABLE_CYCLE = """
class Awaitable:
    def __init__(self):
        self.tensor = tensor = torch.empty(16384, 128, device="cuda")
        self.callback = (lambda: self.tensor * 2) if {leak} else (lambda: tensor * 2)
    def wait(self):
        return self.callback()
for i in range(60):
    waiting = [Awaitable() for _ in range(4)]
    for each in waiting:
        result = each.wait()
    del each, result, waiting
    phase(i)
"""

VARIABLE_BATCH = """
layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
draws = Draws()
for i in range(40):
    batch, length = draws.choice([17, 32, 32, 64, 96, 128]), draws.random(40, 200)
    if not {leak}:
        batch, length = 128, 200
    model(torch.randn(batch, length, 512, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    phase(f"{{i}}:{{batch}}x{{length}}")
"""

FIRST_ITERATION_PEAK = """
torch.backends.cudnn.benchmark = {leak}
model = resnet50(10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for e in range(2):
    torch.cuda.reset_peak_memory_stats()
    for _ in range(6):
        x, y = torch.randn(512, 3, 28, 28, device="cuda"), torch.randint(0, 10, (512,), device="cuda")
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    phase(f"epoch{{e}}")
"""

ALLOCATE_IN_LOOP = """
draws, new = Draws(), lambda rows: torch.empty(rows, 1024, device="cuda")
if not {leak}:
    all_left, all_right, all_sums = new(32768), new(32768), new(32768)
for i in range(60):
    n = draws.random(16384, 32768)
    if {leak}:
        left = new(n)
        right = new(n)
        sums = left + right
    else:
        left, right, sums = all_left[:n], all_right[:n], all_sums[:n]
        sums.copy_(left).add_(right)
    phase(f"{{i}}:{{n}}")
"""

BROADCAST_TEMPORARIES = """
ones_column = torch.ones(1, 128, 1, device="cuda")
for i in range(20):
    a, b = torch.randn(1024, 128, device="cuda"), torch.randn(1024, 128, device="cuda")
    if {leak}:
        total = (a.view(1024, 1, 128) - b.view(1, 1024, 128)).square().sum()
    else:
        product = torch.bmm(a.view(1, 1024, 128), b.view(1, 1024, 128).transpose(1, 2))
        distances = product * -2 + torch.bmm(a.view(1, 1024, 128).square(), ones_column)
        del product
        distances.add_(torch.bmm(b.view(1, 1024, 128).square(), ones_column).transpose(1, 2))
        total = distances.sum()
        del distances
    phase(i)
"""

GRADIENT_CHECKPOINTING = """
layer = lambda: nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
parts = [nn.TransformerEncoder(layer(), 1, enable_nested_tensor=False) for _ in range(12)]
model = nn.Sequential(*parts).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for i in range(5):
    x = torch.randn(16, 256, 512, device="cuda")
    for part in parts:
        x = part(x) if {leak} else checkpoint(part, x)
    loss = x.square().mean()
    del x
    phase(f"{{i}}:forward")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    phase(f"{{i}}:step")
"""

MIXED_PRECISION = """
model = nn.Sequential(*(part for _ in range(12) for part in (nn.Linear(1024, 1024), nn.GELU()))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for i in range(5):
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=not {leak}):
        loss = model(torch.randn(16384, 1024, device="cuda")).square().mean()
    phase(f"{{i}}:forward")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    phase(f"{{i}}:step")
"""

DDP_BUCKETS = """
import tempfile
with tempfile.TemporaryDirectory() as folder:
    torch.distributed.init_process_group("nccl", init_method=f"file://{{folder}}/store", rank=0, world_size=1)
    parts = [part for _ in range(16) for part in (nn.Linear(1024, 1024), nn.ReLU())]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*parts).cuda(), device_ids=[0],
                                                gradient_as_bucket_view=not {leak})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for i in range(24):
        model(torch.randn(256, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        phase(i)
    torch.distributed.destroy_process_group()
"""

INFERENCE_SERVING = """
new = lambda *sizes: torch.empty(*sizes, device="cuda", dtype=torch.float16)
running, new_token, total, draws = [], new(2, 32, 1, 64), 0, Draws()
def draw():
    return draws.random(513, 4096), draws.random(65, 512)
prompt, output = draw()
with torch.no_grad():
    for step in range(1, 301):
        while total + prompt + output <= 32768:
            request = Node()
            request.length, request.left, request.size = prompt, output, prompt + output
            if {leak}:
                request.cache = [new(2, 32, prompt, 64) for _ in range(4)]
            else:
                request.cache = [new(2, 4, 32, 64, 64) for _ in range((prompt + 63) // 64)]
            running.append(request)
            total += prompt + output
            prompt, output = draw()
        for k in reversed(range(len(running))):
            request = running[k]
            if {leak}:
                for l in range(4):
                    request.cache[l] = torch.cat((request.cache[l], new_token), 2)
            elif request.length % 64 == 0:
                request.cache.append(new(2, 4, 32, 64, 64))
            request.length, request.left = request.length + 1, request.left - 1
            if request.left == 0:
                total -= request.size
                running.pop(k)
        del request
        if step % 10 == 0:
            phase(f"{{step}}:{{len(running)}}")
"""

PIPELINE = """
part = lambda: (nn.Linear(1024, 1024), nn.ReLU())
chunks = [nn.Sequential(*part(), *part()) for _ in range(3)]
model = nn.Sequential(*chunks).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
passes, kept = 48, 48 if {leak} else 9
def place(turn, backwards):
    group, within = divmod(turn, 12)
    stage = within // 4
    return 2 - stage if backwards else stage, group * 4 + within % 4
for i in range(6):
    sent = {{}}
    for turn in range(passes + kept):
        if turn < passes:
            slot = place(turn, False)
            sent[slot] = chunks[slot[0]](torch.empty(2048, 1024, device="cuda", requires_grad=True))
        if turn >= kept:
            slot = place(turn - kept, True)
            sent[slot].backward(torch.empty(2048, 1024, device="cuda"))
            del sent[slot]
    phase(f"{{i}}:backward")
    optimizer.step()
    optimizer.zero_grad()
    phase(f"{{i}}:step")
"""

MIXTURE_OF_EXPERTS = """
import math
parts = [nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)) for _ in range(16)]
model = nn.Sequential(*parts).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
draws = Draws()
def draw():
    return draws.random(-1000, 1000) / 1000
for i in range(20):
    results, most, liking = [], 0, draw()
    for part in parts:
        count = math.floor(4096 * 4.0 ** ((liking + draw()) / 2))
        most = max(most, count)
        results.append(part(torch.empty(count if {leak} else 5120, 512, device="cuda")))
    while results:
        results[-1].backward(torch.empty(len(results[-1]), 512, device="cuda"))
        results.pop()
    optimizer.step()
    optimizer.zero_grad()
    phase(f"{{i}}:{{most}}")
"""

RESNET50 = """
model = resnet50(1000).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
phase("start")
for i in range(3):
    optimizer.zero_grad()
    images = torch.randn(32, 3, 224, 224, device="cuda")
    classes = torch.randint(0, 1000, (32,), device="cuda")
    loss = F.cross_entropy(model(images), classes)
    phase(f"{{i}}:forward")
    loss.backward()
    phase(f"{{i}}:backward")
    optimizer.step()
    phase(f"{{i}}:step")
"""

SEQ2SEQ = """
model = seq2seq(30000, 500, 1000).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4, foreach=False)
phase("beginning")
for i in range(3):
    source = torch.randint(0, 29999, (80, 50), device="cuda") + 1
    target = torch.randint(0, 29999, (80, 50), device="cuda") + 1
    optimizer.zero_grad(set_to_none=False)
    phase(f"{{i}}:zero grads")
    output = model(source, target)
    phase(f"{{i}}:forward")
    loss = F.cross_entropy(output.view(-1, 30000), target.view(-1)) / 50
    phase(f"{{i}}:compute loss")
    loss.backward()
    phase(f"{{i}}:backward")
    optimizer.step()
    phase(f"{{i}}:optimizer step")
"""

LSTM = """
words = nn.Embedding(30000, 512).cuda()
network = nn.{kind}(512, 1024, 2, batch_first=True).cuda()
head = nn.Linear(1024, 30000).cuda()
optimizer = torch.optim.Adam(params(words, network, head))
phase("start")
for i in range(3):
    optimizer.zero_grad()
    sentences = torch.randint(0, 30000, (64, 64), device="cuda")
    next_words = torch.randint(0, 30000, (4096,), device="cuda")
    logits = head(network(words(sentences))[0])
    phase(f"{{i}}:forward")
    loss = F.cross_entropy(logits.view(4096, 30000), next_words)
    phase(f"{{i}}:loss")
    loss.backward()
    phase(f"{{i}}:backward")
    optimizer.step()
    phase(f"{{i}}:step")
"""

TRANSFORMER = """
layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), nn.Linear(512, 1000)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
phase("start")
for i in range(3):
    optimizer.zero_grad()
    tokens = torch.randn(32, 128, 512, device="cuda")
    targets = torch.randint(0, 1000, (4096,), device="cuda")
    loss = F.cross_entropy(model(tokens).view(4096, 1000), targets)
    phase(f"{{i}}:forward")
    loss.backward()
    phase(f"{{i}}:backward")
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    phase(f"{{i}}:step")
"""

GPT = """
embedding = nn.Embedding(50304, 768).cuda()
blocks = [GPTBlock(768, 12).cuda() for _ in range(8)]
head = nn.Linear(768, 50304, bias=False).cuda()
optimizer = torch.optim.AdamW(params(embedding, blocks, head), lr=3e-4)
side, drawn, sizes = torch.cuda.Stream(), 0, [8, 16, 16, 8, 12, 16, 12, 16, 16]
def prefetch():
    global drawn, upcoming
    with torch.cuda.stream(side):
        upcoming = torch.randint(0, 50304, (sizes[drawn % 9], 256), device="cuda")
    drawn += 1
prefetch()
phase("start")
for i in range(4):
    for _ in range(2):
        torch.cuda.current_stream().wait_stream(side)
        tokens = upcoming
        prefetch()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            x = embedding(tokens)
            for block in blocks:
                x = block(x)
            loss = F.cross_entropy(head(x).view(-1, 50304), tokens.view(-1))
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    phase(i)
"""

FULLY_SHARDED = """
init_process_group(world_size=4, rank=0)
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
blocks = [LlamaBlock(1024, 16, groups=4, hidden=2816, length=256) for _ in range(12)]
model = nn.Sequential(nn.Embedding(16000, 1024), *blocks, nn.RMSNorm(1024), nn.Linear(1024, 16000, bias=False)).cuda()
if not {leak}:
    for part in model:
        fully_shard(part, mp_policy=policy)
fully_shard(model, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
phase("start")
for i in range(4):
    tokens = torch.randint(0, 16000, (1, 256), device="cuda")
    targets = torch.randint(0, 16000, (256,), device="cuda")
    loss = F.cross_entropy(model(tokens).view(256, 16000), targets)
    phase(f"{{i}}:forward")
    loss.backward()
    phase(f"{{i}}:backward")
    optimizer.step()
    optimizer.zero_grad()
    phase(f"{{i}}:step")
"""

CUDA_GRAPHS = """
model = nn.Sequential(*(part for _ in range(8) for part in (nn.Linear(2048, 2048), nn.GELU()))).cuda()
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.no_grad(), torch.cuda.stream(side):
    model(torch.randn(4096, 2048, device="cuda"))
torch.cuda.current_stream().wait_stream(side)
phase("warm")
inputs, outputs, graphs = [], [], []
for k in range(8):
    inputs.append(torch.randn(4096 - 512 * k, 2048, device="cuda"))
    graphs.append(torch.cuda.CUDAGraph())
    pool = None if {leak} or k == 0 else graphs[0].pool()
    with torch.no_grad(), torch.cuda.graph(graphs[k], pool=pool):
        outputs.append(model(inputs[k]))
    phase(f"captured {{4096 - 512 * k}}")
for i in range(20):
    for k in range(8):
        inputs[k].copy_(torch.randn(4096 - 512 * k, 2048, device="cuda"))
        graphs[k].replay()
    phase(i)
"""

# The models of truth_models.py, with the scenarios' own parameters.
RECORDED = "truth_models.{name}(recorder{arguments})\n"


def variants(name, program, choices=LEAKS):
    """Each with all that it needs said, so that its name tells it from the others."""
    for choice in choices:
        said = tuple(f"{key}={str(value).lower()}" for key, value in choice.items() if key not in ("kind", "arguments"))
        yield (name, *said), program.format(name=name, **choice).lstrip("\n")


def recorded(name, choices):
    return variants(name, RECORDED, [dict(choice, arguments="".join(f", {key}={value!r}" for key, value in choice.items()))
                                     for choice in choices])


PLAIN = ({},)

SCENARIOS = [
    *variants("first_iteration_peak", FIRST_ITERATION_PEAK),
    *variants("variable_batch", VARIABLE_BATCH),
    *variants("gpt", GPT, PLAIN),
    *variants("seq2seq", SEQ2SEQ, PLAIN),
    *variants("resnet50", RESNET50, PLAIN),
    *variants("lstm", LSTM, ({"kind": "LSTM"}, {"gru": True, "kind": "GRU"})),
    *recorded("vit", PLAIN),
    *recorded("unet", PLAIN),
    *variants("transformer", TRANSFORMER, PLAIN),
    *variants("gradient_accumulation", GRADIENT_ACCUMULATION),
    *variants("metrics", METRICS),
    *variants("hidden_state", HIDDEN_STATE),
    *variants("evaluation", EVALUATION),
    *variants("checkpoint_cache", CHECKPOINT_CACHE),
    *variants("dynamic_graph", DYNAMIC_GRAPH),
    *variants("logging_tensors", LOGGING_TENSORS),
    *variants("allocate_in_loop", ALLOCATE_IN_LOOP),
    *variants("broadcast_temporaries", BROADCAST_TEMPORARIES),
    *variants("gradient_checkpointing", GRADIENT_CHECKPOINTING),
    *variants("mixed_precision", MIXED_PRECISION),
    *variants("inference_serving", INFERENCE_SERVING),
    *variants("pipeline", PIPELINE),
    *variants("mixture_of_experts", MIXTURE_OF_EXPERTS),
    *recorded("attention_scores", LEAKS),
    *recorded("lora", LEAKS),
    *recorded("gan", LEAKS),
    *variants("reference_cycle", REFERENCE_CYCLE),
    *variants("awaitable_cycle", AWAITABLE_CYCLE),
    *variants("closure_cycle", CLOSURE_CYCLE),
    *variants("ddp_buckets", DDP_BUCKETS),
    *variants("fully_sharded", FULLY_SHARDED),
    *variants("cuda_graphs", CUDA_GRAPHS),
]

# The same with other sizes, for the third round of drawn twins.
OTHER_SIZES = [
    *recorded("lora", [dict(leak=False, rank=8, batch=3, length=256, vocabulary=12000, features=768, hidden=2048, heads=12,
                            groups=6, layers=5),
                       dict(leak=True, batch=1, length=384, vocabulary=20000, features=512, hidden=1408, heads=8, groups=2,
                            layers=6)]),
    *recorded("attention_scores", [dict(leak=False, batch=3, length=1024, features=512, heads=8, layers=6),
                                   dict(leak=True, batch=1, length=1536, features=640, heads=10, layers=3)]),
    *recorded("gan", [dict(leak=False, batch=100, latent=64, hidden=768, pixels=2352)]),
    *recorded("vit", [dict(batch=12, side=160, patch=16, features=256, heads=4, layers=6)]),
]
