"""Cosines and sines of ``position * theta`` that stay right at any position.

A float64 product ``position * theta`` is rounded to 16 digits, so at position 1e7 the angle is off by 1e-9 and at 1e9
by 1e-7. Here the product is kept as an unevaluated sum of two float64 numbers (Dekker 1971), whose second part turns
the first one's cosine and sine by the little that is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.errors import ShapeError
from posenc.formulas.spectrum import Array

FARTHEST = 2.0**53
"""Positions up to here are whole numbers in float64."""

_SPLITTER = 2.0**27 + 1.0


def coordinates(positions: Any, axes: int) -> Array:
    """Positions as float64 with a last dimension of ``axes``; with one axis that dimension is added.

    Raises:
        ShapeError: not finite real numbers below 2^53, or their last dimension is not the axes.
    """
    at = np.asarray(positions)
    if at.dtype.kind not in "iuf":
        raise ShapeError("positions are real numbers", at.dtype)
    at = at.astype(np.float64)
    if at.size and not (np.abs(at) <= FARTHEST).all():
        raise ShapeError(
            "positions are finite and at most 2^53", float(at.flat[int(np.argmax(~(np.abs(at) <= FARTHEST)))])
        )
    if axes == 1:
        return at[..., None]
    if at.ndim == 0 or at.shape[-1] != axes:
        raise ShapeError(f"positions end in a dimension of {axes} axes", at.shape)
    return at


def cos_sin(at: Any, theta: Array, remainder: Array | None = None) -> tuple[Array, Array]:
    """Cosine and sine of ``at @ (theta + remainder)``, right to a few 1e-16 for the float64 numbers handed over.

    Args:
        at: ``(..., tokens, axes)`` positions, integer or real.
        theta: ``(axes, pairs)``, or with leading dimensions that broadcast (heads).
        remainder: what rounding took from theta, of its shape; nothing by default.

    Returns:
        Two arrays ``(..., tokens, pairs)``.
    """
    at = np.asarray(at, dtype=np.float64)
    high, low = _product(at[..., 0, None], theta[..., None, 0, :])
    for axis in range(1, theta.shape[-2]):
        p, e = _product(at[..., axis, None], theta[..., None, axis, :])
        high, carried = _sum(high, p)
        low = low + e + carried
    if remainder is not None:
        low = low + at @ remainder
    cos, sin = np.cos(high), np.sin(high)
    if not low.size or np.abs(low).max() < 1e-5:  # the series' next terms are below 1e-16
        c, s = 1.0 - 0.5 * low * low, low
    else:
        c, s = np.cos(low), np.sin(low)
    return cos * c - sin * s, sin * c + cos * s


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """``a * b`` as a rounded product and its exact error (Dekker's product with Veltkamp's splitting)."""
    p = a * b
    a1, b1 = _SPLITTER * a, _SPLITTER * b
    a1, b1 = a1 - (a1 - a), b1 - (b1 - b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """``a + b`` as a rounded sum and its exact error (Knuth)."""
    s = a + b
    b_seen = s - a
    return s, (a - (s - b_seen)) + (b - b_seen)
