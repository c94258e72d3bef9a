"""DataLoader with workers and pinned memory; a prefetcher on a side stream that does record_stream."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import case


class Prefetcher:
    def __init__(self, loader):
        self.batches, self.stream = iter(loader), torch.cuda.Stream()
        self.preload()

    def preload(self):
        hosts = next(self.batches, None)
        self.batch = None
        if hosts is not None:
            with torch.cuda.stream(self.stream):
                self.batch = [host.to("cuda", non_blocking=True) for host in hosts]

    def __iter__(self):
        while self.batch is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.batch
            for tensor in batch:
                tensor.record_stream(torch.cuda.current_stream())
            self.preload()
            yield batch


def train():
    x = torch.randn(2048, 128)
    dataset = TensorDataset(x, (x @ torch.randn(128, 1)).squeeze(1))
    loader = DataLoader(dataset, batch_size=128, shuffle=True, num_workers=2, pin_memory=True)
    model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        losses = []
        for inputs, targets in Prefetcher(loader):
            loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        yield torch.stack(losses).mean().item()


if __name__ == "__main__":
    case.run_healthy(train)
