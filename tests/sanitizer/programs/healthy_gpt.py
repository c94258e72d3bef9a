"""A small GPT: embeddings, causal attention, tied head, fused AdamW, clipped gradients."""

import torch
from torch import nn
from torch.nn import functional

import case

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH = 1000, 128, 4, 3, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.Sequential(*[Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight
        return self.norm(self.blocks(x)) @ self.tokens.weight.t()


def train():
    model = GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    tokens = torch.randint(0, VOCABULARY, (8, LENGTH + 1), device="cuda")
    for _ in range(20):
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item()


case.run_healthy(train)
