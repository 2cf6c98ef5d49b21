"""Many distances at one base: all of them, or those near distances that were negative at a smaller base."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from posenc.analysis.base_search.sums import reaches, value_error
from posenc.formulas.ranges import tiles
from posenc.formulas.spectrum import Array, from_log_base
from posenc.native import witnesses

WITNESSES = 16
"""How many distances go on together: one more costs as much as 4000 distances in a product."""
SAMPLE = 48
"""The lowest sums among which they are chosen."""
STRETCH = 2**12
"""Distances around an earlier witness that are looked at first: sums near it stay low when the base changes."""
GROWTH = 8
"""How many times longer each next stretch of a scan is."""
NEGATIVE = -1e-9
"""Sums below this are witnesses worth a look."""
HALF = 32


class Found(NamedTuple):
    """Witnesses at one base.

    Args:
        witnesses: ``(n,)`` distances with negative sums, those that exclude most first; may be none.
        reach: how far beyond ``t`` the first of them excludes every base.
    """

    witnesses: Array
    reach: float


NOTHING = Found(np.zeros(0), 0.0)


class Scan(NamedTuple):
    """What all distances say of one base.

    Args:
        found: the best witnesses; none where no sum is certainly negative.
        lowest: the smallest sum met; of all distances where none is negative.
        distance: where it is.
        decided: some sum is certainly negative, or all are certainly positive.
    """

    found: Found
    lowest: float
    distance: int
    decided: bool


def scan(context: int, t: float, u: Array, enough: float = 0.0) -> Scan:
    """Look at ``D = 1..context`` in growing order, until negative sums are found: small distances reach far.

    Args:
        context: the last distance.
        t: ``ln(base)``.
        u: ``(pairs,)`` exponents.
        enough: go on as long as what was found excludes less than this.
    """
    rounding = value_error(context, t, u)
    lowest, distance, best = 1.0, 0, NOTHING
    for distances, values in _lows(from_log_base(t, u), context, -rounding):
        i = int(values.argmin())
        if values[i] < lowest:
            lowest, distance = float(values[i]), int(distances[i])
        if values[i] < -rounding:
            negative = values < -rounding
            best = max(best, chosen(distances[negative], values[negative], t, u), key=lambda found: found.reach)
            if best.reach > enough:
                break
    return Scan(best, lowest, distance, lowest < -rounding or lowest > rounding)


def _lows(theta: Array, context: int, floor: float) -> Iterator[tuple[np.ndarray, Array]]:
    """Distances and sums in growing order, stretch by stretch: the lowest so far, and the lowest ones below a floor."""
    first, size, limit = 1, STRETCH, 1.0
    while first <= context:
        found = witnesses.lowest(theta, [first], size, context, SAMPLE, limit=limit)
        if found is None:
            break
        if len(found[0]):
            yield found
            limit = max(floor, min(limit, float(found[1].min())))
        first, size = first + size, size * GROWTH
    if first <= context:
        for tile in tiles(theta, first, context + 1, lowest=True):
            if tile.extreme < limit:
                values = tile.values()
                yield tile.first + np.arange(len(values)), values
                limit = max(floor, min(limit, float(values.min())))


def nearby(stretches: Sequence[int], context: int, t: float, u: Array) -> Found:
    """Witnesses in some stretches ``a * STRETCH <= D < (a + 1) * STRETCH``; what is left out does not matter."""
    theta = from_log_base(t, u)
    lows = witnesses.lowest(theta, [STRETCH * a for a in stretches], STRETCH, context, SAMPLE, limit=NEGATIVE)
    if lows is not None:
        return chosen(*lows, t, u)
    rows = _waves(HALF, 2 * HALF, STRETCH // (2 * HALF), theta)
    rows = np.concatenate([rows * _waves(STRETCH * a, 1, 1, theta) for a in stretches])
    columns = _waves(0, 1, HALF + 1, theta)
    even, odd = rows.real @ columns.real.T, rows.imag @ columns.imag.T
    low = even - np.abs(odd)  # the smaller of kappa(c + j) and kappa(c - j), times the pairs
    row, j = np.nonzero(low < NEGATIVE * len(u))
    centres = np.add.outer(STRETCH * np.asarray(stretches), np.arange(HALF, STRETCH, 2 * HALF)).ravel()
    found = centres[row] + np.where(odd[row, j] > 0, j, -j)
    inside = (found > 0) & (found <= context)
    return chosen(found[inside], low[row, j][inside], t, u)


def _waves(first: int, step: int, count: int, theta: Array) -> np.ndarray:
    """``exp(i D theta)`` for ``D = first + step j``, ``(count, pairs)``, by angle addition."""
    inner = math.isqrt(count - 1) + 1 if count > 1 else 1
    outer = _wave(first, step * inner, -(-count // inner), theta)
    product: np.ndarray = outer[:, None] * _wave(0, step, inner, theta)
    return product.reshape(-1, len(theta))[:count]


def _wave(first: int, step: int, count: int, theta: Array) -> np.ndarray:
    angles = np.outer(first + step * np.arange(count), theta)
    wave = np.empty(angles.shape, dtype=np.complex128)
    wave.real, wave.imag = np.cos(angles), np.sin(angles)
    return wave


def chosen(distances: np.ndarray, values: Array, t: float, u: Array) -> Found:
    """At most ``WITNESSES`` of the distances, those that exclude most first, chosen among the lowest values."""
    if not len(distances):
        return NOTHING
    if len(distances) > SAMPLE:
        distances = distances[np.argpartition(values, SAMPLE)[:SAMPLE]]
    distances = distances.astype(np.float64)
    reach = reaches(distances, t, u)
    order = np.argsort(-reach, kind="stable")[:WITNESSES]
    return Found(distances[order], float(reach[order[0]]))
