"""A character GPT small enough to read in five minutes and to train in seconds.

Two blocks of causal self-attention and a small feed-forward network each, learned positions, nothing else. With
``causal=False`` the mask is left out and everything else stays the same: a model that leaks.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Self-attention with several heads, (B, T, C) -> (B, T, C)."""

    def __init__(self, C, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(C, 3 * C, bias=False)
        self.out = nn.Linear(C, C)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # each (B, H, T, d)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)  # (B, H, T, d)
        return self.out(y.transpose(1, 2).flatten(-2))  # (B, T, C)


class Block(nn.Module):
    """Look around, then think: attention and a feed-forward network, each added to what is there."""

    def __init__(self, C, heads, dropout, causal):
        super().__init__()
        self.attention = Attention(C, heads, causal)
        self.feed_forward = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))  # (B, T, C)
        return x + self.dropout(self.feed_forward(self.norm2(x)))  # (B, T, C)


class TinyGPT(nn.Module):
    """Token numbers (B, T) -> logits (B, T, vocab); row t scores the token after position t. T is at most block_size."""

    def __init__(self, vocab, block_size=16, C=32, heads=2, layers=2, dropout=0.1, causal=True):
        super().__init__()
        self.block_size = block_size
        self.token = nn.Embedding(vocab, C)
        self.position = nn.Embedding(block_size, C)
        self.blocks = nn.Sequential(*(Block(C, heads, dropout, causal) for _ in range(layers)))
        self.norm = nn.LayerNorm(C)
        self.logits = nn.Linear(C, vocab)

    def forward(self, idx):
        positions = torch.arange(idx.shape[1], device=idx.device)  # (T,)
        x = self.token(idx) + self.position(positions)  # (B, T, C)
        return self.logits(self.norm(self.blocks(x)))  # (B, T, vocab)


def read_characters(path="text.txt"):
    """The text as token numbers (N,) and its alphabet, a sorted list of characters."""
    text = Path(path).read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    return torch.tensor([alphabet.index(character) for character in text]), alphabet


def train(model, tokens, steps=80, batch_size=16, learning_rate=1.5e-2, seed=0):
    """Train on random windows of the text; return the loss of every step, in nats per character."""
    rng = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, fused=True)
    model.train()
    losses = []
    for _ in range(steps):
        starts = torch.randint(len(tokens) - model.block_size, (batch_size, 1), generator=rng)  # (B, 1)
        window = tokens[starts + torch.arange(model.block_size + 1)]  # (B, T+1)
        logits = model(window[:, :-1])  # (B, T, vocab)
        loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())  # the target is the next character
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
