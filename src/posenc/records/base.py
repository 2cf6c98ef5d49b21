"""The base of every record, and curves."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

SCHEMA = 1
CURVE_POINTS = 8192
"""4096 pairs of a minimum and a maximum."""


class Record(BaseModel):
    """A frozen record with a schema version."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True, populate_by_name=True, serialize_by_alias=True
    )
    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")


class Curve(BaseModel):
    """A curve as points; thinned curves keep the minimum and maximum of every stretch."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    x: tuple[float, ...]
    y: tuple[float, ...]


def thinned(x: Any, y: Any, points: int = CURVE_POINTS) -> Curve:
    """Return the curve with at most ``points`` points, keeping both extremes of each of ``points / 2`` stretches.

    >>> thinned(range(10), [0, 0, 0, 9, 0, 0, 0, 0, -9, 0], points=4).y
    (0.0, 9.0, 0.0, -9.0)
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) > points:
        edges = np.linspace(0, len(x), points // 2 + 1).astype(int)
        stretches = [(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True) if b > a]
        kept = sorted({i for a, b in stretches for i in (a + int(y[a:b].argmin()), a + int(y[a:b].argmax()))})
        x, y = x[kept], y[kept]
    return Curve(x=tuple(x.tolist()), y=tuple(y.tolist()))
