#!/usr/bin/env python3
"""Training in PyTorch with its own allocator and with gmd's, side by side on one GPU.

    train_compare.py [--library PATH] [--models resnet50,gpt,gpt_varied,gpt_compiled,gpt_reduce_overhead]
                     [--pairs 20] [--json FILE]

For each model two processes are kept, one for each allocator, and take turns: a block of steps here, the
same block there, the order changing from pair to pair. So both see the same clocks and temperatures, and the
ratio of a pair's times is what the allocator costs. cudnn.benchmark is on there; as its choice of algorithm
differs from process to process, losses are compared to the bit in a second run with deterministic
algorithms, and with it the peaks. Needs PyTorch with CUDA, and torchvision for resnet50.
"""

import argparse
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


# --- the models -----------------------------------------------------------------------------------


def resnet50(torch, seed):
    """ResNet-50, batch 64 of 224 x 224, bf16, channels last, SGD with momentum."""
    import torchvision
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    host = torch.Generator().manual_seed(seed)
    # Made once: the host is slow at random numbers, and the step is what is measured.
    batches = [(torch.randn(64, 3, 224, 224, generator=host).pin_memory(),
                torch.randint(1000, (64,), generator=host).pin_memory()) for _ in range(4)]

    def loss_of(step):
        images, labels = (t.cuda(non_blocking=True) for t in batches[step % len(batches)])
        images = images.to(memory_format=torch.channels_last)
        return torch.nn.functional.cross_entropy(model(images), labels)

    return model, optimizer, loss_of


def _gpt(torch, seed, length_of, compiled=lambda model: model):
    class Block(torch.nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                           torch.nn.Linear(4 * width, width))

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                       for t in self.qkv(self.norm1(x)).chunk(3, dim=-1))
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.norm2(x))

    class Gpt(torch.nn.Module):
        def __init__(self, vocabulary=50304, width=768, layers=12, heads=12, longest=1024):
            super().__init__()
            self.tokens = torch.nn.Embedding(vocabulary, width)
            self.places = torch.nn.Embedding(longest, width)
            self.blocks = torch.nn.Sequential(*(Block(width, heads) for _ in range(layers)))
            self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.tokens.weight
            torch.nn.init.normal_(self.tokens.weight, std=0.02)

        def forward(self, tokens):
            places = torch.arange(tokens.shape[1], device=tokens.device)
            return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(places))))

    model = Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    host = torch.Generator().manual_seed(seed)
    run = compiled(model)

    def loss_of(step):
        tokens = torch.randint(50304, (8, length_of(step) + 1), generator=host).cuda(non_blocking=True)
        logits = run(tokens[:, :-1])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    return model, optimizer, loss_of


def gpt(torch, seed):
    """A GPT of 124 million parameters, batch 8 of 1,024 tokens, bf16, AdamW."""
    return _gpt(torch, seed, lambda step: 1023)


def gpt_varied(torch, seed):
    """The same with another length at each step, 200 to 1,000 tokens: the cache is put to work."""
    return _gpt(torch, seed, lambda step: 200 + (step * 2654435761 >> 7) % 800)


def gpt_compiled(torch, seed):
    """The GPT, compiled."""
    return _gpt(torch, seed, lambda step: 1023, torch.compile)


def gpt_reduce_overhead(torch, seed):
    """The GPT, compiled with CUDA graphs, whose private pool is kept and brought back."""
    return _gpt(torch, seed, lambda step: 1023, lambda model: torch.compile(model, mode="reduce-overhead"))


MODELS = {model.__name__: model for model in (resnet50, gpt, gpt_varied, gpt_compiled, gpt_reduce_overhead)}


# --- one process ------------------------------------------------------------------------------------


def worker(options):
    """Reads 'steps N' lines; answers each with a line of JSON: seconds and losses of these steps."""
    import torch
    if options.worker == "gmd":
        sys.path.insert(0, os.path.join(HERE, "..", "integrations"))
        import gmd_torch
        gmd_torch.install(options.conf, library=options.library)
    torch.backends.cudnn.benchmark = not options.deterministic
    if options.deterministic:
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.deterministic = True
    torch.manual_seed(1)
    model, optimizer, loss_of = MODELS[options.models](torch, 2)
    step = 0

    def run(count):
        nonlocal step
        losses = []
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            with torch.autocast("cuda", torch.bfloat16):
                loss = loss_of(step)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            step += 1
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        return seconds, [float(loss) for loss in losses]

    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters())}), flush=True)
    for line in sys.stdin:
        seconds, losses = run(int(line))
        stats = torch.cuda.memory_stats()
        print(json.dumps({"seconds": seconds, "losses": losses,
                          "stats": {k: v for k, v in stats.items() if isinstance(v, int)}}), flush=True)


class Process:
    def __init__(self, options, model, allocator, deterministic):
        command = [sys.executable, os.path.abspath(__file__), "--worker", allocator, "--models", model,
                   "--conf", options.conf]
        if options.library:
            command += ["--library", options.library]
        environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=options.conf)
        if deterministic:
            command.append("--deterministic")
            environment["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.losses, self.stats = [], {}

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"train_compare: a worker ended with status {self.process.wait()}")
        return json.loads(line)

    def steps(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        answer = self.read()
        self.losses += answer["losses"]
        self.stats = answer["stats"]
        return answer["seconds"] / count

    def end(self):
        self.process.stdin.close()
        self.process.wait()


# --- the comparison -----------------------------------------------------------------------------------


def interval(ratios):
    """The geometric mean and its 95 % confidence interval, by Student's t."""
    logs = [math.log(r) for r in ratios]
    n = len(logs)
    mean = sum(logs) / n
    if n < 2:
        return [math.exp(mean)] * 3
    deviation = math.sqrt(sum((x - mean) ** 2 for x in logs) / (n - 1))
    t = {5: 2.57, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04}
    margin = min((t[k] for k in t if k <= n), default=3.2) * deviation / math.sqrt(n)
    return [math.exp(mean), math.exp(mean - margin), math.exp(mean + margin)]


def timed(options, model, another):
    """`another`: losses of one more run with PyTorch's own."""
    native, ours = (Process(options, model, a, False) for a in ("native", "gmd"))
    parameters = [native.read()["parameters"], ours.read()["parameters"]]
    for process in (native, ours):
        process.steps(options.warmup)
    ratios, times = [], []
    for pair in range(options.pairs):
        order = (native, ours) if pair % 2 == 0 else (ours, native)
        seconds = {process: process.steps(options.block) for process in order}
        ratios.append(seconds[ours] / seconds[native])
        times.append((seconds[native], seconds[ours]))
    result = {"parameters": parameters[0], "pairs": options.pairs, "block": options.block,
              "ratio": interval(ratios),
              "step_ms": [1000 * sorted(t[i] for t in times)[len(times) // 2] for i in (0, 1)],
              "loss": [native.losses[-1], ours.losses[-1]],
              "first_loss": [native.losses[0], ours.losses[0]],
              "largest_loss_difference": largest_difference(native.losses, ours.losses),
              "largest_loss_difference_of_native": largest_difference(native.losses, another),
              **compared(native, ours)}
    native.end()
    ours.end()
    return result


def largest_difference(some, others):
    return max(abs(a - b) for a, b in zip(some, others))


def compared(native, ours):
    peak = "reserved_bytes.all.peak"
    differing = sorted(k for k in native.stats if native.stats[k] != ours.stats.get(k))
    return {"steps": len(native.losses), "losses_equal": native.losses == ours.losses,
            "peak_reserved": [native.stats[peak], ours.stats[peak]],
            "requests": native.stats["allocation.all.allocated"], "statistics": len(native.stats),
            "differing_statistics": {k: [native.stats[k], ours.stats.get(k)] for k in differing}}


def untimed(options, models):
    """For each model the deterministic comparison, and the losses of one more run with PyTorch's own; all
    at the same time."""
    count = options.warmup + options.pairs * options.block
    runs = {(model, key): (Process(options, model, allocator, is_deterministic), steps)
            for model in models
            for key, allocator, is_deterministic, steps in (
                ("native", "native", True, options.steps), ("ours", "gmd", True, options.steps),
                ("again", "native", False, count))}
    with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
        list(pool.map(lambda run: (run[0].read(), run[0].steps(run[1]), run[0].end()), runs.values()))
    of = {key: process for key, (process, _) in runs.items()}
    return {m: (compared(of[m, "native"], of[m, "ours"]), of[m, "again"].losses) for m in models}


def show(model, kind, result):
    peaks = [p / 2**20 for p in result["peak_reserved"]]
    print(f"{model} {kind}: losses {'equal' if result['losses_equal'] else 'differ'} over {result['steps']} "
          f"steps, peak reserved {peaks[0]:.0f} / {peaks[1]:.0f} MiB, {len(result['differing_statistics'])} "
          f"of {result['statistics']} statistics differ", flush=True)
    if "ratio" in result:
        mean, low, high = result["ratio"]
        print(f"  step {result['step_ms'][0]:.2f} / {result['step_ms'][1]:.2f} ms, ratio {mean:.4f} (95 %: "
              f"{low:.4f} to {high:.4f}) of {result['pairs']} pairs of {result['block']} steps; last loss "
              f"{result['loss'][0]:.6f} / {result['loss'][1]:.6f}; {result['parameters']:,} parameters")
        print(f"  largest difference of losses {result['largest_loss_difference']:.3g}, of two runs with "
              f"PyTorch's own {result['largest_loss_difference_of_native']:.3g}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--library", help="libgmd_allocator.so; else as gmd_torch.install finds it")
    parser.add_argument("--conf", default="", help="allocator settings, for both")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--block", type=int, default=10, help="steps of a turn")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20, help="of the deterministic run")
    parser.add_argument("--json", help="all figures")
    parser.add_argument("--worker", choices=("native", "gmd"), help=argparse.SUPPRESS)
    parser.add_argument("--deterministic", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options)
        return 0
    results, is_good = {}, True
    models = options.models.split(",")
    for model, (deterministic, another) in untimed(options, models).items():
        results[model] = {"deterministic": deterministic, "timed": timed(options, model, another)}
        for kind, result in results[model].items():
            show(model, kind, result)
            is_good &= result["peak_reserved"][1] <= result["peak_reserved"][0]
        is_good &= results[model]["deterministic"]["losses_equal"]
        is_good &= results[model]["timed"]["ratio"][0] <= 1.02
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    print("pass" if is_good else "fail")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
