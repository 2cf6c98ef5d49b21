"""The share of a training step that positions take: 4 layers, width 256, 512 tokens, forward and backward on the CPU.

    python benchmarks/bench_training_share.py [--batch 4] [--rounds 9] [--dtype float32]

A step with rotary positions minus the same step without them, in interleaved runs; and beside it the time of the
rotations and of ``prepare`` alone, each as often as a step has them, which noise disturbs less.
"""

from __future__ import annotations

import argparse
import time

import torch
from measuring import interleaved, machine, table, time_of
from torch import nn
from torch.nn import functional

from posenc.nn.rotary import RotaryEmbedding

WIDTH, HEADS, LAYERS, TOKENS, WORDS = 256, 4, 4, 512, 1024


class Block(nn.Module):
    """Attention and a feed-forward layer, normalised before."""

    def __init__(self, rotary):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.rotary = rotary

    def forward(self, x, ready):
        q, k, v = (p.unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in self.qkv(self.first(x)).chunk(3, -1))
        if ready is not None:
            q, k = self.rotary(q, k, ready)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.feed(self.second(x))


class Model(nn.Module):
    """A small decoder."""

    def __init__(self):
        super().__init__()
        self.rotary = RotaryEmbedding(WIDTH // HEADS)
        self.words, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.blocks = nn.ModuleList(Block(self.rotary) for _ in range(LAYERS))

    def forward(self, ids, positions):
        ready = self.rotary.prepare(torch.arange(ids.shape[1])) if positions else None
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, ready)
        return self.head(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dtype", default="float32")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Model().to(getattr(torch, args.dtype))
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.randint(WORDS, (args.batch, TOKENS))

    def step(positions):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(ids, positions).flatten(0, 1).float(), ids.flatten())
        loss.backward()
        optimizer.step()

    q, k = (torch.randn(args.batch, HEADS, TOKENS, WIDTH // HEADS, dtype=model.head.weight.dtype) for _ in range(2))
    wanted = q.requires_grad_(), k.requires_grad_()
    weights = torch.randn_like(q), torch.randn_like(k)

    def alone():
        ready = model.rotary.prepare(torch.arange(TOKENS))
        for _ in range(LAYERS):
            torch.autograd.grad(model.rotary(*wanted, ready), wanted, weights)

    ways = {"step": lambda: step(True), "step without positions": lambda: step(False), "positions alone": alone}
    medians = interleaved(ways, args.rounds, clock=time.thread_time)
    whole = medians["step"]
    print(f"## Positions in a training step, {args.dtype}, batch {args.batch}\n\n{machine(1)}\n")
    print(
        table(["what", "time", "share of the step"], [[n, time_of(t), f"{t / whole:.2%}"] for n, t in medians.items()])
    )
    gap = whole - medians["step without positions"]
    print(f"Difference of the two steps: {gap * 1e3:+.2f} ms, {gap / whole:.2%} of the step.")


if __name__ == "__main__":
    main()
