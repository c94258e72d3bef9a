"""Filters learned in the frequency domain; cuFFT's plans and their workspaces."""

import torch

import case


def train():
    signal = torch.randn(32, 4095, device="cuda")
    target = torch.roll(signal, 7, dims=1)
    weights = torch.ones(2048, dtype=torch.complex64, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.05)
    for step in range(30):
        spectrum = torch.fft.rfft(signal) * weights
        loss = (torch.fft.irfft(spectrum, n=4095) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.fft.fft2(torch.randn(3, 60 + step, 77, device="cuda"))
        yield loss.item()


case.run_healthy(train)
