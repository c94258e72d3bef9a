"""Attention by each of PyTorch's kernels, in bfloat16, with masks and odd lengths."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import case


def train():
    q, k, v = (torch.randn(2, 8, 257, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    weight = torch.randn(2, 8, 257, 64, device="cuda", dtype=torch.bfloat16)
    optimizer = torch.optim.SGD([q, k, v], lr=1.0)
    for step in range(18):
        backend = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH)[step % 3]
        with sdpa_kernel(backend):
            out = scaled_dot_product_attention(q, k, v, is_causal=True)
        loss = (out * weight).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


case.run_healthy(train)
