"""The arrays of golden vectors: for one encoding, what any right implementation must reproduce."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from posenc.formulas.biases import alibi_at, alibi_slopes, query_scale, t5_buckets
from posenc.formulas.learned import learned_rows
from posenc.formulas.phases import coordinates, cos_sin
from posenc.formulas.rotation import pairs_of, rotate
from posenc.formulas.scalings import frequencies
from posenc.formulas.tables import sinusoidal_table
from posenc.formulas.time import seasonal_features
from posenc.spec import Alibi, Learned, QueryScale, Rotary, Seasonal, Sinusoidal, T5Bias

Arrays = dict[str, np.ndarray]
POSITIONS = (0, 1, 2, 3, 7, 127, 128, 4095, 4096, 8191)
DISTANCES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 31, 32, 63, 64, 90, 127, 128, 129, 400)
AXIS_STEP = 5
"""Beside equal coordinates, coordinate ``a`` of position ``p`` is ``p + 5 a``: no two axes can be swapped unnoticed."""


def lengths_of(encoding: Any) -> tuple[int | None, ...]:
    """Declared lengths at which the numbers are recorded: None where they do not depend on it."""
    thresholds = sorted(_originals(encoding, only_length_dependent=True))
    if not thresholds:
        return (None,)
    return (1, *dict.fromkeys(n for t in thresholds for n in (t, t + 1, 4 * t + 3)))


def positions_of(encoding: Any, served: int | None) -> tuple[int, ...]:
    """Positions that are recorded: fixed ones, around every threshold and at the end of the served length."""
    extra: set[int] = set()
    for length in (*_originals(encoding), *([served] if served else [])):
        extra |= {length - 1, length, length + 1}
    if served:
        extra -= {served, served + 1}
    return tuple(sorted({*POSITIONS, *(p for p in extra if 0 <= p < 2**31)}))


def _originals(encoding: Any, only_length_dependent: bool = False) -> set[int]:
    found = set()
    for scaling in getattr(encoding, "scaling", ()):
        fields = scaling.fields() if scaling.kind == "as_executed" else dict(scaling)
        if fields.get("original") and (getattr(scaling, "needs_length", False) or not only_length_dependent):
            found.add(int(fields["original"]))
    return found


def query(width: int) -> np.ndarray:
    """The input that is rotated: channel ``c`` holds ``((7 c + 3) mod 11 - 5) / 4``, exact in every format.

    >>> query(4).tolist()
    [-0.5, 1.25, 0.25, -0.75]
    """
    return np.asarray(((7 * np.arange(width) + 3) % 11 - 5) / 4)


def spread(positions: Iterable[int], axes: int) -> np.ndarray:
    """Positions as coordinates: ``(n,)`` for one axis, else ``(2 n, axes)``: equal ones, then ``p + 5 a``."""
    at = np.asarray(tuple(positions), dtype=np.float64)
    if axes == 1:
        return at
    return np.concatenate([np.repeat(at[:, None], axes, 1), at[:, None] + AXIS_STEP * np.arange(axes)])


def rotary_arrays(encoding: Rotary, positions: tuple[int, ...]) -> Arrays:
    """What does not depend on the length: positions, channels of the pairs in both layouts, the input."""
    at = spread(positions, frequencies(encoding).axes)
    return {
        "positions": _whole(at),
        "pairs.half": pairs_of(encoding.replace(interleaved=False)),
        "pairs.adjacent": pairs_of(encoding.replace(interleaved=True)),
        "q": query(encoding.head_dim),
    }


def rotary_arrays_at(encoding: Rotary, positions: tuple[int, ...], length: int | None) -> Arrays:
    """Frequencies, cos and sin without gain, gains, and the rotated input in both layouts."""
    f = frequencies(encoding, length)
    at = spread(positions, f.axes)
    cos, sin = cos_sin(coordinates(at, f.axes), f.theta)
    found = {
        "theta": f.theta,
        "gain": np.array([f.gain]),
        "logit_scale": np.array([f.logit_scale]),
        "cos": cos,
        "sin": sin,
    }
    roles = ("query", "key") if f.growth.any() else (None,)
    if f.growth.any():
        found["growth"] = f.growth
    heads = f.theta.shape[:-2]
    x = np.broadcast_to(query(encoding.head_dim), (*heads, len(at), encoding.head_dim))
    for layout, interleaved in (("half", False), ("adjacent", True)):
        for role in roles:
            name = f"rotated.{layout}" + (f".{role}" if role else "")
            found[name] = rotate(x, at, encoding.replace(interleaved=interleaved), length=length, role=role)  # type: ignore[arg-type]
    return found


def sinusoidal_arrays(encoding: Sinusoidal, positions: tuple[int, ...]) -> Arrays:
    """Rows of the table and the frequencies of its pairs."""
    f = frequencies(encoding)
    at = spread(positions, f.axes)
    if getattr(encoding.axes, "coordinates", "index") == "unit":
        at = (np.arange(at.size).reshape(at.shape) + 0.5) / at.size * 2 - 1
    return {"positions": _whole(at), "theta": f.theta, "rows": sinusoidal_table(encoding, at)}


def learned_arrays(encoding: Learned, positions: tuple[int, ...]) -> Arrays:
    """Which row each position reads, for the positions that have one."""
    if len(encoding.shape) == 1:
        rows = encoding.shape[0]
        at = np.array([p for p in {*positions, rows - 1} if p < rows], dtype=np.int64)
        at.sort()
    else:
        last = np.array(encoding.shape, dtype=np.int64) - 1
        at = np.stack([np.zeros_like(last), np.minimum(1 + np.arange(len(last)), last), last])
    return {"positions": at, "rows": learned_rows(encoding, at)}


def alibi_arrays(encoding: Alibi) -> Arrays:
    """Slopes, and the bias of every head at distances of both signs."""
    relative = _relative()
    slopes = alibi_slopes(encoding.num_heads, encoding.max_bias)
    return {"key_minus_query": relative, "slopes": slopes, "bias": alibi_at(encoding, relative)}


def t5_arrays(encoding: T5Bias) -> Arrays:
    """Bucket of every distance, both signs."""
    relative = _relative()
    buckets = t5_buckets(
        relative,
        bidirectional=encoding.bidirectional,
        num_buckets=encoding.num_buckets,
        max_distance=encoding.max_distance,
    )
    return {"key_minus_query": relative, "buckets": np.asarray(buckets, dtype=np.int64)}


def other_arrays(encoding: Any, positions: tuple[int, ...]) -> Arrays | None:
    """Arrays of an encoding without lengths; None where nothing is recorded for its kind."""
    match encoding:
        case Sinusoidal():
            return sinusoidal_arrays(encoding, positions)
        case Learned():
            return learned_arrays(encoding, positions)
        case Alibi():
            return alibi_arrays(encoding)
        case T5Bias():
            return t5_arrays(encoding)
        case QueryScale():
            at = np.asarray(positions, dtype=np.int64)
            return {"positions": at, "scale": query_scale(encoding, at)}
        case Seasonal():
            at = np.asarray(positions, dtype=np.int64)
            return {"positions": at, "rows": seasonal_features(encoding, at)}
    return None


def _relative() -> np.ndarray:
    return np.array([*(-d for d in reversed(DISTANCES) if d), *DISTANCES], dtype=np.int64)


def _whole(at: np.ndarray) -> np.ndarray:
    """Whole numbers as integers."""
    return at.astype(np.int64) if np.array_equal(at, np.round(at)) else at
