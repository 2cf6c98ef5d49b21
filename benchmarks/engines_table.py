"""Rotated queries of real engines against the float64 formula, position by position. Prints Markdown.

    make engines

SmolLM2-135M's rotary (64 channels, base 100,000) and changes of it. Each number is the largest distance between a
pair of channels and where the formula turns it, in parts of the pair's length: radians. "allowed" is what the float32
roundings of the engine's angle add up to at that position; tests/engines holds every engine to it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from engines.cases import CASES, MLX, POSITIONS, TOKENS, allowed, off, query
from posenc.nn.rotary import RotaryEmbedding


def module(value, x, first):
    """What the module makes of the same query."""
    rotary = RotaryEmbedding.from_value(value)
    ready = rotary.prepare(torch.arange(first, first + TOKENS))
    return rotary.rotate(torch.from_numpy(x)[None], ready)[0].numpy()


def main() -> None:
    """One row for each engine and setting."""
    x, shown = query(), [p for p in POSITIONS if p]
    print(f"| engine | setting | encoding | {' | '.join(f'{p:,} to {p + TOKENS - 1:,}' for p in shown)} |")
    print("|---|---|---|" + "---|" * len(shown))
    for case in CASES:
        if importlib.util.find_spec("mlx" if case.engine == MLX else "xllamacpp") is None:
            print(f"| {case.engine} | {case.name} | not installed |" + " |" * len(shown))
            continue
        found = [f"{off(case.turn(x, p), x, case.value, p):.1e} of {allowed(case, p):.1e}" for p in shown]
        text = str(case.value).replace("|", r"\|")
        text = text if len(text) < 90 else text[:80] + "…"
        print(f"| {case.engine} | {case.name} | `{text}` | {' | '.join(found)} |")
    values = dict.fromkeys(case.value for case in CASES)
    worst = [f"{max(off(module(v, x, p), x, v, p) for v in values):.1e}" for p in shown]
    print(f"| posenc.nn | all of these | | {' | '.join(worst)} |")


if __name__ == "__main__":
    main()
