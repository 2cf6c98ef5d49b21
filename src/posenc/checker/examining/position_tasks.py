"""Tasks: positions from masks, documents, frames, ranks, caches."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from posenc.checker.examining.tasks import Task, Wrong


def _counted(mask: Any) -> Any:
    mask = np.asarray(mask)
    return np.maximum(np.cumsum(mask > 0, axis=-1) - 1, 0)


def _per_document(mask: Any) -> Any:
    mask = np.asarray(mask)
    out = np.zeros_like(mask)
    for row, values in zip(out, mask, strict=True):
        for document in np.unique(values[values > 0]):
            row[values == document] = np.arange(int((values == document).sum()))
    return out


def _roberta(ids: Any, pad: int, first: int | None = None) -> Any:
    real = np.asarray(ids) != pad
    first = pad + 1 if first is None else first
    return np.where(real, np.cumsum(real, axis=-1) - 1 + first, pad)


def _zigzag(cu: Any, ranks: int, rank: int, packed: bool = True) -> list[int]:
    out: list[int] = []
    for start, end in pairwise(cu):
        piece = (end - start) // (2 * ranks)
        for chunk in (rank, 2 * ranks - 1 - rank):
            out += [int(chunk * piece + i + (start if packed else 0)) for i in range(piece)]
    return out


PADDED = np.array([[0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]])
PACKED = np.array([[1, 1, 2, 2, 2, 0, 0], [1, 1, 1, 1, 2, 2, 3]])
IDS = np.array([[7, 9, 8, 2, 3, 3], [4, 3, 3, 3, 3, 3]])

POSITION_TASKS: dict[str, Task] = {
    "positions:mask": Task(
        "attention_mask (batch, tokens)",
        ("mask-padding",),
        _counted,
        ((PADDED,),),
        (
            Wrong(
                "padding is counted: positions are those of the columns",
                lambda m: np.broadcast_to(np.arange(m.shape[1]), m.shape),
                recovered=("position of the first real token", "3"),
            ),
            Wrong(
                "positions start at 1",
                lambda m: np.cumsum(m, axis=-1) * m,
                recovered=("first position", "1"),
                verdict="convention",
            ),
        ),
        lambda m: m > 0,
    ),
    "positions:packed": Task(
        "packed mask with document numbers (batch, tokens)",
        ("packing",),
        _per_document,
        ((PACKED,),),
        (
            Wrong(
                "only the number 1 counts as a token: later documents have no positions",
                lambda m: np.maximum(np.cumsum(m == 1, axis=-1) - 1, 0),
                recovered=("documents with positions", "the first"),
            ),
            Wrong("positions run on over documents", _counted, recovered=("positions", "not reset")),
        ),
        lambda m: m > 0,
    ),
    "positions:padding_idx": Task(
        "input_ids (batch, tokens), padding_idx",
        ("mask-padding",),
        _roberta,
        ((IDS, 3),),
        (
            Wrong(
                "positions start at 0 in place of padding_idx + 1",
                lambda ids, pad: _roberta(ids, pad, 0),
                recovered=("first position", "0"),
            ),
            Wrong(
                "positions start at padding_idx",
                lambda ids, pad: _roberta(ids, pad, pad),
                recovered=("first position", "padding_idx"),
            ),
            Wrong(
                "positions ignore the ids: 0, 1, 2…",
                lambda ids, pad: np.broadcast_to(np.arange(ids.shape[1]), ids.shape),
                recovered=("first position", "0"),
            ),
        ),
        lambda ids, pad: ids != pad,
    ),
    "positions:frames": Task(
        "start, interval, frames",
        ("multimodal-positions",),
        lambda start, step, n: [start + i * step for i in range(n)],
        ((15, 4, 5), (7, 3, 3)),
        (
            Wrong(
                "the start is multiplied by the interval and the frame is lost",
                lambda start, step, n: [start * step] * n,
                recovered=("temporal positions", "start * interval"),
            ),
            Wrong(
                "the interval is ignored",
                lambda start, step, n: [start + i for i in range(n)],
                recovered=("interval", "1"),
            ),
            Wrong(
                "the start is ignored", lambda start, step, n: [i * step for i in range(n)], recovered=("start", "0")
            ),
        ),
    ),
    "positions:seconds": Task(
        "grids, seconds per grid, tokens per second",
        ("position-rounding", "multimodal-positions"),
        lambda n, s, rate: [math.floor(i * s * rate) for i in range(n)],
        ((4, 0.5, 2), (4, 0.75, 2), (5, 1.5, 3)),
        (
            Wrong(
                "the seconds are truncated to an integer before they are scaled",
                lambda n, s, rate: [i * int(s) * rate for i in range(n)],
                recovered=("seconds per grid", "truncated"),
            ),
            Wrong(
                "positions are rounded to the nearest",
                lambda n, s, rate: [round(i * s * rate) for i in range(n)],
                recovered=("positions", "rounded"),
                verdict="convention",
            ),
        ),
    ),
    "positions:temporal": Task(
        "frames, temporal compression, temporal patch",
        ("multimodal-positions",),
        lambda n, c, p: math.ceil(((n - 1) // c + 1) / p),
        ((81, 4, 2), (49, 4, 3)),
        (
            Wrong(
                "the temporal patch is left out", lambda n, c, p: (n - 1) // c + 1, recovered=("temporal patch", "1")
            ),
            Wrong(
                "a last partial patch is dropped",
                lambda n, c, p: ((n - 1) // c + 1) // p,
                recovered=("rounding", "down"),
            ),
        ),
    ),
    "positions:rank": Task(
        "cu_seqlens, ranks, rank (zig-zag, a packed table)",
        ("sharding", "packing"),
        lambda cu, n, r: _zigzag(cu, n, r),
        (([0, 4, 8], 2, 0), ([0, 8, 20], 2, 1)),
        (
            Wrong(
                "later sequences read the first one's rows: their start in the pack is left out",
                lambda cu, n, r: _zigzag(cu, n, r, packed=False),
                recovered=("offset of later sequences", "0"),
            ),
            Wrong(
                "each rank takes one slice in order, not the front and back one",
                lambda cu, n, r: [
                    int(v) for a, b in pairwise(cu) for v in range(a + r * (b - a) // n, a + (r + 1) * (b - a) // n)
                ],
                recovered=("slices", "in order"),
            ),
        ),
    ),
    "positions:evicted": Task(
        "tokens seen, rows kept",
        ("offset-cache",),
        lambda seen, kept: seen,
        ((100, 32), (57, 57 - 6)),
        (
            Wrong(
                "the next position is the number of rows kept",
                lambda seen, kept: kept,
                recovered=("next position", "rows kept"),
            ),
        ),
    ),
    "positions:decode": Task(
        "cached keys, new tokens: positions of the new queries",
        ("offset-cache",),
        lambda cached, new: [cached + i for i in range(new)],
        ((7, 1), (5, 3)),
        (
            Wrong(
                "the offset is taken before the cached keys are joined: it is 0",
                lambda cached, new: list(range(new)),
                recovered=("offset", "0"),
            ),
        ),
    ),
}
