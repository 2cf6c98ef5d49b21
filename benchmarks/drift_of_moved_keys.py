"""Cached keys moved 10,000 times: one turn after the other, and shifts added up and applied once. Prints Markdown.

    .venv/bin/python benchmarks/drift_of_moved_keys.py

Keys of 128 channels at positions from 20,000 on, base 500,000; each move takes them one position back, as a streaming
cache does whenever it drops a token. Errors are against the float64 formula at the final position, for the keys as they
were stored in their dtype: the largest over channels, relative to the largest channel, and the change of the norm.
"""

from __future__ import annotations

import argparse

import torch

from posenc.formulas import rotate
from posenc.nn.moving import MovableKeys, move_keys
from posenc.nn.rotary import RotaryEmbedding

MARKS = (1, 10, 100, 1000, 10_000)
HEADS, TOKENS, WIDTH, START = 3, 11, 128, 20_000


def errors(got: torch.Tensor, exact: torch.Tensor) -> tuple[float, float]:
    """Largest difference over largest channel, and relative change of the norm."""
    difference = float((got.double() - exact).abs().max() / exact.abs().max())
    return difference, float((got.double().norm(dim=-1) / exact.norm(dim=-1) - 1).abs().max())


def rows(dtype: torch.dtype, by: int) -> list[tuple[int, float, float, float, float]]:
    """For each mark: moves, and error and stretch of repeated and of added-up moves."""
    module = RotaryEmbedding(WIDTH, 5e5)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, HEADS, TOKENS, WIDTH, dtype=torch.float64, generator=generator)
    at = torch.arange(TOKENS) + START
    first = torch.from_numpy(rotate(x.numpy(), at.numpy(), module.value)).to(dtype)
    naive, kept, found = first.clone(), MovableKeys.of(first), []
    for move in range(1, MARKS[-1] + 1):
        move_keys(naive, module, by, out=naive)
        kept = kept.moved(by)
        if move in MARKS:
            exact = torch.from_numpy(rotate(first.double().numpy(), [by * move] * TOKENS, module.value))
            found.append((move, *errors(naive, exact), *errors(kept.turned(module), exact)))
    return found


def invariance() -> None:
    """How much a score at distance 18 changes when both positions move."""
    print("\n### Score at a fixed distance, both positions moved: largest change over 64 pairs of unit vectors\n")
    print("| moved by | " + " | ".join(f"{n:,}" for n in (1, 1000, 10**6, 10**9)) + " |\n|---|---|---|---|---|")
    module, generator = RotaryEmbedding(WIDTH), torch.Generator().manual_seed(0)
    q, k = torch.nn.functional.normalize(torch.randn(2, 1, 64, 1, WIDTH, generator=generator).double(), dim=-1)

    def score(m: int, n: int, dtype: torch.dtype) -> torch.Tensor:
        table = torch.promote_types(dtype, torch.float32)
        at_m, at_n = (module.prepare(torch.tensor([p]), dtype=table) for p in (m, n))
        a, b = module.rotate(q.to(dtype), at_m), module.rotate(k.to(dtype), at_n, role="key")
        return (a.double() * b.double()).sum(-1)

    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        near = score(23, 5, dtype)
        changes = [float((score(23 + s, 5 + s, dtype) - near).abs().max()) for s in (1, 1000, 10**6, 10**9)]
        print(f"| {str(dtype).split('.')[1]} | " + " | ".join(f"{c:.1e}" for c in changes) + " |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--by", type=int, default=-1, help="positions of each move")
    by = parser.parse_args().by
    torch.set_num_threads(1)
    print(f"### Keys moved by {by} position again and again\n")
    print("| dtype | moves | repeated: error | repeated: norm | added up: error | added up: norm |")
    print("|---|---|---|---|---|---|")
    for dtype in (torch.float32, torch.bfloat16):
        for move, *numbers in rows(dtype, by):
            print(f"| {str(dtype).split('.')[1]} | {move:,} | " + " | ".join(f"{n:.1e}" for n in numbers) + " |")
    invariance()


if __name__ == "__main__":
    main()
