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
