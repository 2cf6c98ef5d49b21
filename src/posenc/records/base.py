"""The base of every record, and curves."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Literal[1] = 1
CURVE_POINTS = 8192
"""4096 pairs of a minimum and a maximum."""


class Record(BaseModel):
    """A frozen record with a schema version."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,
        populate_by_name=True,
        serialize_by_alias=True,
    )
    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")


class Curve(BaseModel):
    """A curve as points; thinned curves keep the minimum and maximum of every stretch."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)
    x: tuple[float, ...]
    y: tuple[float, ...]


def thinned(x: Any, y: Any, points: int = CURVE_POINTS) -> Curve:
    """Return at most ``points`` points of a curve: its ends, and both extremes of ``points / 2 - 1`` stretches.

    >>> thinned(range(10), [0, 0, 0, 9, 0, 0, 0, 0, -9, 0], points=6).y
    (0.0, 9.0, 0.0, -9.0, 0.0)
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) > points:
        edges = np.linspace(0, len(x), max(points // 2 - 1, 1) + 1).astype(int)
        stretches = [(a, b) for a, b in pairwise(edges) if b > a]
        extremes = {i for a, b in stretches for i in (a + int(y[a:b].argmin()), a + int(y[a:b].argmax()))}
        kept = sorted(extremes | {0, len(x) - 1})
        x, y = x[kept], y[kept]
    return Curve(x=tuple(x.tolist()), y=tuple(y.tolist()))


def spread(x: Any, y: Any, points: int = CURVE_POINTS) -> Curve:
    """Thin a curve for linear and logarithmic axes alike: half of the points go to equal stretches, half to octaves.

    Args:
        x: increasing, not negative; powers of two among them are kept, so that tables can name their values.
        y: of the same length.
        points: at most this many are kept, at least 128.

    >>> kept = spread(range(100_001), [float(i == 3) - float(i == 99_990) for i in range(100_001)], points=200)
    >>> len(kept.x) <= 200, kept.y[kept.x.index(3)], kept.y[kept.x.index(99_990)], 1024.0 in kept.x
    (True, 1.0, -1.0, True)
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) <= points:
        return Curve(x=tuple(x.tolist()), y=tuple(y.tolist()))
    octaves = [0, *np.searchsorted(x, 2.0 ** np.arange(np.ceil(np.log2(x[-1])) + 1)).tolist(), len(x)]
    each = max((points // 2 - 2 * len(octaves)) // (2 * len(octaves)), 1)
    stretches = [*pairwise(np.linspace(0, len(x), max(points // 4, 1) + 1).astype(int))]
    for a, b in pairwise(octaves):
        stretches += pairwise(np.unique(np.linspace(a, b, each + 1).astype(int)))
    whole = [i for i in octaves if i < len(x) and np.log2(max(x[i], 1)).is_integer()]
    extremes = {i for a, b in stretches if b > a for i in (a + int(y[a:b].argmin()), a + int(y[a:b].argmax()))}
    kept = sorted(extremes | {0, len(x) - 1, *whole})
    return Curve(x=tuple(x[kept].tolist()), y=tuple(y[kept].tolist()))
