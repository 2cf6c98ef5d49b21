"""Similarity ``kappa(D) = (2/d) sum_i cos(D theta_i)`` over ranges of distances, by block products.

A range is cut into rows of ``2h`` distances around centres ``c``; with ``c_i = cos(c theta_i)`` and so on,

    ``kappa(c +- j) = sum_i w_i (cos(c theta_i) cos(j theta_i) -+ sin(c theta_i) sin(j theta_i))``

so the same two matrix products give both signs, and no cosine is taken for a single distance. The rows' own cosines
come from angle addition of products that carry 30 digits (:mod:`posenc.formulas.phases`): what is computed is right
to 1e-14 at any distance for the float64 frequencies handed over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from posenc.errors import ShapeError, SpecError
from posenc.formulas.phases import FARTHEST, cos_sin
from posenc.formulas.spectrum import Array, Frequencies
from posenc.formulas.tables import check_entries
from posenc.shapes import Float

TILE = 128
"""Rows of one product: its two results stay in a core's own cache."""


def similarity(
    frequencies: Frequencies | Any, start: int, stop: int, *, weights: Any = None
) -> Float[np.ndarray, " distances"]:
    """``kappa(D)`` for the integers ``start <= D < stop``.

    Args:
        frequencies: ``Frequencies``, or ``(pairs,)`` radians per position.
        start, stop: distances, of either sign.
        weights: ``(pairs,)`` in place of ``1 / pairs``.

    Returns:
        ``(stop - start,)`` float64.

    Raises:
        ShapeError: no integers, an empty or too long range (more than 2^28), or distances beyond 2^53.

    >>> import numpy as np
    >>> similarity(np.array([1.0, 0.1]), 0, 3).round(6).tolist()
    [1.0, 0.767653, 0.28196]
    """
    theta, weight = clocks(frequencies, weights)
    start, stop = whole_range(start, stop)
    check_entries(stop - start)
    return Rows(theta, weight, stop - start).fill(start, stop)


def similarity_blocks(
    frequencies: Frequencies | Any, start: int, stop: int, *, weights: Any = None, size: int = 2**18
) -> Iterator[tuple[int, Array]]:
    """The same range in bounded memory: pairs of a first distance and ``kappa`` from there on, ``size`` at a time.

    Raises:
        ShapeError: as :func:`similarity`, except that the range may be of any length.
    """
    theta, weight = clocks(frequencies, weights)
    start, stop = whole_range(start, stop)
    if not 1 <= size <= 2**28:
        raise ShapeError("a block has 1 to 2^28 distances", size)
    rows = Rows(theta, weight, min(size, stop - start))
    return ((first, rows.fill(first, min(first + size, stop))) for first in range(start, stop, size))


def similarity_at(frequencies: Frequencies | Any, distances: Any, *, weights: Any = None) -> Array:
    """``kappa`` at scattered distances, integer or real, with a cosine for each pair.

    Args:
        frequencies: ``Frequencies``, or ``(pairs,)`` radians per position.
        distances: ``(...)``.
        weights: ``(pairs,)`` in place of ``1 / pairs``.
    """
    theta, weight = clocks(frequencies, weights)
    at = np.asarray(distances, dtype=np.float64)
    if at.size and not (np.abs(at) <= FARTHEST).all():
        raise ShapeError("distances are finite and at most 2^53")
    flat = at.reshape(-1, 1)
    result = np.empty(len(flat))
    step = max(1, 2**20 // len(theta))
    for i in range(0, len(flat), step):
        result[i : i + step] = cos_sin(flat[i : i + step], theta[None])[0] @ weight
    return result.reshape(at.shape)


def continuous_limit(distances: Any, base: float) -> Array:
    """``integral_0^1 cos(D b^-t) dt = (Ci(|D|) - Ci(|D| / b)) / ln b``, 1 at ``D = 0``: kappa for ever more pairs.

    Args:
        distances: ``(...)``, integer or real.
        base: above 1.

    Raises:
        SpecError: the base is not above 1.
    """
    from scipy.special import sici

    if not base > 1:
        raise SpecError("the base is above 1", base)
    x = np.abs(np.asarray(distances, dtype=np.float64))
    apart = np.maximum(x, 1e-3)
    limit = (sici(apart)[1] - sici(apart / base)[1]) / math.log(base)
    near = 1 - x * x * (1 - 1 / base / base) / (4 * math.log(base))  # the next term is below 1e-14 / ln b
    return np.asarray(np.where(x < 1e-3, near, limit))


class Rows:
    """Rows of ``2h`` distances around equally spaced centres ``c``, from two products for each tile of rows.

    A row is ``c - h <= D < c + h``; products come as ``p, q`` of ``h + 1`` columns with ``kappa(c +- j) = p_j -+ q_j``.

    Args:
        theta, weights: ``(pairs,)``.
        count: how many distances there will be, which decides ``h``.
    """

    def __init__(self, theta: Array, weights: Array, count: int) -> None:
        self.theta, self.weights = theta, weights
        self.half = 2 ** min(9, max(2, round(math.log2(max(count, 1)) / 2)))
        cos, sin = turns(0, 1, self.half + 1, theta)
        self.cos, self.sin = np.ascontiguousarray(cos.T), np.ascontiguousarray(sin.T)

    def tiles(self, start: int, count: int, most: int = TILE) -> Iterator[tuple[int, Array, Array]]:
        """Tiles of at most ``most`` of the ``count`` rows from distance ``start`` on: first row, ``p``, ``q``.

        The two arrays are overwritten by the next tile.
        """
        h = self.half
        cos, sin = turns(start + h, 2 * h, count, self.theta)
        cos *= self.weights
        sin *= self.weights
        even, odd = np.empty((min(most, count), h + 1)), np.empty((min(most, count), h + 1))
        for a in range(0, count, most):
            n = min(most, count - a)
            p = np.dot(cos[a : a + n], self.cos, out=even[:n])
            yield a, p, np.dot(sin[a : a + n], self.sin, out=odd[:n])

    def fill(self, start: int, stop: int) -> Array:
        """``kappa`` of every distance in ``start <= D < stop``."""
        count = -(-(stop - start) // (2 * self.half))
        out = np.empty((count, 2 * self.half))
        for a, p, q in self.tiles(start, count):
            self.put(p, q, out[a : a + len(p)])
        return out.reshape(-1)[: stop - start]

    def put(self, p: Array, q: Array, row: Array) -> None:
        """Write ``kappa`` of the rows whose products are ``p`` and ``q``, ``(rows, 2h)``."""
        h = self.half
        np.subtract(p[:, :h], q[:, :h], out=row[:, h:])
        np.add(p[:, 1:], q[:, 1:], out=row[:, h - 1 :: -1])


def turns(first: int, step: int, count: int, theta: Array) -> tuple[Array, Array]:
    """Cosine and sine of ``(first + step * j) * theta`` for ``j < count``, ``(count, pairs)``, by angle addition."""
    inner = math.isqrt(max(count - 1, 0)) + 1
    outer = -(-count // inner)
    c1, s1 = cos_sin(_column(first, step * inner, outer), theta[None])
    c2, s2 = cos_sin(_column(0, step, inner), theta[None])
    cos = c1[:, None] * c2 - s1[:, None] * s2
    sin = s1[:, None] * c2 + c1[:, None] * s2
    return cos.reshape(-1, len(theta))[:count], sin.reshape(-1, len(theta))[:count]


def _column(first: int, step: int, count: int) -> Array:
    return (first + step * np.arange(count, dtype=np.int64)).astype(np.float64)[:, None]


def clocks(frequencies: Frequencies | Any, weights: Any) -> tuple[Array, Array]:
    """Frequencies and weights as checked ``(pairs,)`` arrays."""
    theta = frequencies.fused if isinstance(frequencies, Frequencies) else np.asarray(frequencies, dtype=np.float64)
    if theta.ndim != 1 or not len(theta) or not np.isfinite(theta).all():
        raise ShapeError("frequencies are finite and (pairs,)", theta.shape)
    weight = np.full(len(theta), 1 / len(theta)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weight.shape != theta.shape or not np.isfinite(weight).all():
        raise ShapeError(f"weights are finite, one for each of the {len(theta)} pairs", weight.shape)
    return theta, weight


def whole_range(start: int, stop: int) -> tuple[int, int]:
    """A checked range of distances."""
    if any(isinstance(n, bool) or not isinstance(n, int | np.integer) for n in (start, stop)):
        raise ShapeError("a range of distances runs between integers", (start, stop))
    if not start < stop:
        raise ShapeError("a range of distances is not empty", (start, stop))
    if max(abs(start), abs(stop)) > 2**52:
        raise ShapeError("distances are at most 2^52", (start, stop))
    return int(start), int(stop)
