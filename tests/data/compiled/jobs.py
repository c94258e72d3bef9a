"""Jobs whose model is compiled (torch.compile), and two that end out of memory, a process for each: jobs.py JOB OUT"""
import pickle
import sys

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda"


class Net(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))
        return x


def training(step, count=12):
    model = torch.compile(Net().to(DEVICE))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(count):
        step(model, optimizer, torch.randn(2048, 512, device=DEVICE))


def healthy():
    def step(model, optimizer, x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    training(step)


KEPT = []


def retained_graph():
    def step(model, optimizer, x):
        output = model(x)
        loss = output.square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        KEPT.append(loss)
    training(step)


def kept_outputs():
    def step(model, optimizer, x):
        output = model(x)
        loss = output.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        KEPT.append(output)
    training(step)


def gradient_accumulation():
    def step(model, optimizer, x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        KEPT.append([p.grad for p in model.parameters()])
        optimizer.step()
    training(step)


def unfreed():
    def step(model, optimizer, x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    training(step)


def eval_graph():
    model = torch.compile(Net().to(DEVICE)).eval()
    for _ in range(12):
        KEPT.append(model(torch.randn(2048, 512, device=DEVICE)))


def eval_healthy():
    model = torch.compile(Net().to(DEVICE)).eval()
    with torch.no_grad():
        for _ in range(12):
            model(torch.randn(2048, 512, device=DEVICE)).mean().item()


def reduce_overhead():
    model = torch.compile(Net().to(DEVICE), mode="reduce-overhead")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(12):
        loss = model(torch.randn(2048, 512, device=DEVICE)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def pool_oom():
    """A captured graph's pool keeps what the rest of the job then lacks."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((1 << 30) / total)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        a = torch.empty(600 << 20, dtype=torch.uint8, device=DEVICE)
        del a
        b = torch.empty(16 << 20, dtype=torch.uint8, device=DEVICE)
    for _ in range(3):
        graph.replay()
    try:
        c = torch.empty(700 << 20, dtype=torch.uint8, device=DEVICE)
    except torch.cuda.OutOfMemoryError as error:
        print(error)


def capacity_oom():
    held = torch.empty(1 << 30, dtype=torch.uint8, device=DEVICE)
    try:
        torch.empty(400 << 30, dtype=torch.uint8, device=DEVICE)
    except torch.cuda.OutOfMemoryError as error:
        print(error)
    del held


def main():
    name, out = sys.argv[1:]
    torch.manual_seed(0)
    torch.cuda.memory._record_memory_history(max_entries=200000, stacks="python")
    globals()[name]()
    torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot(f"{out}/{name}.pickle")


if __name__ == "__main__":
    main()
