"""Tables of cosines and sines, 131072 x 64: time beside filling fresh memory, errors beside mpmath.

python benchmarks/bench_tables.py [--rows 131072] [--rounds 11]
"""

from __future__ import annotations

import argparse
import importlib
import sys

import numpy as np
import peers
import torch
from measuring import interleaved, machine, table, time_of
from mpmath import mp

from posenc.formulas import cosine_table, frequencies
from posenc.formulas.spectrum import unscaled_remainder
from posenc.nn.rotary import RotaryEmbedding
from posenc.spec import Rotary

PAIRS, BASE = 64, 10000
FAR = (10**3, 10**5, 10**7)


def worst(values, positions):
    """Largest error of cosines ``(rows, pairs)`` at positions, against mpmath."""
    found = 0.0
    with mp.workdps(50):
        for row, p in enumerate(positions):
            for i in range(PAIRS):
                exact = mp.cos(p * mp.mpf(BASE) ** (-mp.mpf(i) / PAIRS))
                found = max(found, float(abs(mp.mpf(float(values[row, i])) - exact)))
    return found


def positional_encodings(rows):
    """A sinusoid of sines and cosines by turns, from row 0 alone; its title, its table, the cosines of one position."""
    kind = importlib.import_module("positional_encodings.torch_encodings").PositionalEncoding1D
    shape = torch.empty(1, rows, 2 * PAIRS)
    table = kind(2 * PAIRS)(shape)
    return (
        "positional-encodings, a sinusoid",
        lambda: kind(2 * PAIRS)(shape),
        lambda p: table[0, p, 1::2][None] if p < rows else None,
    )


def timm(rows):
    """Sines and cosines of a grid of one axis; its title, its tables, the cosines of one position."""
    build = peers.timm().build_fourier_pos_embed

    def made(length, first):
        return build([length], num_bands=PAIRS, in_pixels=False, grid_offset=first)

    return "timm, a grid of one axis", lambda: made(rows, 0.0), lambda p: made(1, float(p))[1][:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=131072)
    parser.add_argument("--rounds", type=int, default=11)
    args = parser.parse_args()
    torch.set_num_threads(1)
    value = Rotary(2 * PAIRS, base=float(BASE))
    f, rest, rotary = frequencies(value), unscaled_remainder(value), RotaryEmbedding(2 * PAIRS)
    slow = 1.0 / (BASE ** (torch.arange(0, 2 * PAIRS, 2).float() / (2 * PAIRS)))
    theta, rows = torch.from_numpy(f.theta[0].copy()), args.rows

    def filled():
        room = np.empty((rows, PAIRS), np.float32), np.empty((rows, PAIRS), np.float32)
        for part in room:
            part.fill(1.0)
        return room

    def single(at):
        angle = torch.outer(at.float(), slow)
        return angle.cos(), angle.sin()

    def double(at):
        angle = torch.outer(at.double(), theta)
        return angle.cos().float(), angle.sin().float()

    ids = torch.arange(rows)
    ways = {
        "limit: fill fresh memory": filled,
        "posenc, angle addition": lambda: cosine_table(f, rows, 0, rest),
        "posenc, prepare (any positions)": lambda: rotary.prepare(ids),
        "PyTorch, float32": lambda: single(ids),
        "PyTorch, float64 rounded": lambda: double(ids),
    }
    at = {
        "posenc, angle addition": lambda p: cosine_table(f, 1, p, rest)[0],
        "posenc, prepare (any positions)": lambda p: rotary.prepare(torch.tensor([p])).cos[0, 0],
        "PyTorch, float32": lambda p: single(torch.tensor([p]))[0],
        "PyTorch, float64 rounded": lambda p: double(torch.tensor([p]))[0],
    }
    for name, make in {"positional-encodings": positional_encodings, "timm": timm}.items():
        try:
            title, way, cosines = make(rows)
            ways[title], at[title] = way, cosines
        except Exception as error:
            print(f"not measured: {name} ({type(error).__name__}: {str(error).splitlines()[0][:80]})", file=sys.stderr)
    medians = interleaved(ways, args.rounds)
    limit = medians["limit: fill fresh memory"]
    rows_of_table = []
    for name, t in medians.items():
        found = [at[name](p) if name in at else None for p in FAR]
        errors = ["" if c is None else f"{worst(np.asarray(c), [p]):.1e}" for p, c in zip(FAR, found, strict=True)]
        rows_of_table.append([name, time_of(t), f"{t / limit:.2f}", *errors])
    print(f"## Tables of {rows} x {PAIRS} cosines and sines\n\n{machine(1)}\n")
    print(table(["way", "time", "x fill", *(f"error at 1e{len(str(p)) - 1}" for p in FAR)], rows_of_table))


if __name__ == "__main__":
    main()
