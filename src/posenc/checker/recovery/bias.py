"""What a bias matrix is: Toeplitz or not, linear in the distance, in buckets, symmetric, the same for every head."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array


@dataclass(frozen=True, eq=False)
class BiasShape:
    """A bias ``(heads, queries, keys)`` in numbers.

    Args:
        toeplitz: largest max - min along a diagonal, over the largest entry.
        toeplitz_up_to_rows: the same after each row's entry on the diagonal is taken away, which no softmax sees.
        line: ``(heads, distances)`` mean along each diagonal, distances ``key - query`` ascending.
        distances: ``(distances,)``.
        masked: ``key - query`` from which entries are minus infinity (or below -1e4); None where none are.
        past, future: ``(heads,)`` slope per position for keys before and after the query.
        past_residual, future_residual: largest deviation from the line, over the largest entry on that side.
        intercept: ``(heads,)`` value at distance 0.
        symmetric: largest ``|b(D) - b(-D)|`` over the largest entry.
        one_shape: all heads are multiples of the first.
        steps: distances at which some head's value changes, if it is constant between and changes seldom.
    """

    toeplitz: float
    toeplitz_up_to_rows: float
    line: Array
    distances: NDArray[np.int64]
    masked: int | None
    past: Array
    future: Array
    past_residual: float
    future_residual: float
    intercept: Array
    symmetric: float
    one_shape: bool
    steps: tuple[int, ...] = field(default=())

    @property
    def heads(self) -> int:
        return len(self.past)


def bias_shape(bias: Array) -> BiasShape:
    """Look at ``(heads, queries, keys)``; the last query stands at the last key.

    >>> b = -0.5 * np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))[None]
    >>> s = bias_shape(b)
    >>> s.toeplitz, s.past.tolist(), s.future.tolist(), s.symmetric
    (0.0, [0.5], [-0.5], 0.0)
    """
    heads, n_q, n_k = bias.shape
    relative = np.arange(n_k) - (np.arange(n_q)[:, None] + n_k - n_q)
    hidden = ~np.isfinite(bias).all(0) | (bias < -1e4).any(0)
    masked = int(relative[hidden].min()) if hidden.any() and relative[hidden].min() > relative[~hidden].min() else None
    values = np.where(hidden, 0.0, bias)
    own = np.stack([values[:, i, i + n_k - n_q] for i in range(n_q)], axis=1)[..., None]
    distances = np.arange(relative.min(), relative.max() + 1)
    scale = max(float(np.abs(values).max()), 1e-300)
    line, spread, spread_rows = [], 0.0, 0.0
    free = values - own
    for distance in distances:
        at = (relative == distance) & ~hidden
        if not at.any():
            line.append(np.full(heads, np.nan))
            continue
        line.append(values[:, at].mean(1))
        spread = max(spread, float(np.ptp(values[:, at], axis=1).max()))
        spread_rows = max(spread_rows, float(np.ptp(free[:, at], axis=1).max()))
    curve = np.stack(line, axis=1)
    if spread > 1e-6 * scale and spread_rows <= 1e-6 * scale:
        curve = np.stack(
            [
                free[:, (relative == d) & ~hidden].mean(1)
                if ((relative == d) & ~hidden).any()
                else np.full(heads, np.nan)
                for d in distances
            ],
            axis=1,
        )
    past, past_rest, at_zero = _slope(curve, distances, distances <= 0)
    future, future_rest, _ = _slope(curve, distances, distances >= 0)
    both = [d for d in distances if d > 0 and -d >= distances[0] and d <= distances[-1]]
    left, right = (curve[:, [int(s * d - distances[0]) for d in both]] for s in (-1, 1))
    gap = np.abs(left - right)
    symmetric = float(np.nanmax(gap) / scale) if both and np.isfinite(gap).any() else float("nan")
    return BiasShape(
        toeplitz=spread / scale,
        toeplitz_up_to_rows=spread_rows / scale,
        line=curve,
        distances=distances,
        masked=masked,
        past=past,
        future=future,
        past_residual=past_rest,
        future_residual=future_rest,
        intercept=at_zero,
        symmetric=symmetric,
        one_shape=_one_shape(curve),
        steps=_steps(curve, distances),
    )


def _slope(curve: Array, distances: NDArray[np.int64], side: NDArray[np.bool_]) -> tuple[Array, float, Array]:
    at = side & np.isfinite(curve).all(0)
    if at.sum() < 2:
        return np.full(len(curve), np.nan), float("nan"), np.full(len(curve), np.nan)
    d, y = distances[at].astype(np.float64), curve[:, at]
    mean = d.mean()
    slope = ((d - mean) * (y - y.mean(1, keepdims=True))).sum(1) / ((d - mean) ** 2).sum()
    first = y.mean(1) - slope * mean
    rest = float(np.abs(y - first[:, None] - slope[:, None] * d).max() / max(float(np.abs(y).max()), 1e-300))
    return slope, rest, first


def _one_shape(curve: Array) -> bool:
    seen = curve[:, np.isfinite(curve).all(0)]
    if len(seen) < 2 or not seen.size:
        return True
    singular = np.linalg.svd(seen, compute_uv=False)
    return bool(singular[1] <= 1e-6 * max(singular[0], 1e-300))


def _steps(curve: Array, distances: NDArray[np.int64]) -> tuple[int, ...]:
    """Distances at which a value differs from that of the distance before."""
    scale = max(float(np.nanmax(np.abs(curve))), 1e-300) if np.isfinite(curve).any() else 1.0
    change = np.abs(np.diff(curve, axis=1)).max(0) > 1e-7 * scale
    at = tuple(int(d) for d in distances[1:][np.nan_to_num(change, nan=False)])
    return at if len(at) <= 0.7 * len(distances) else ()
