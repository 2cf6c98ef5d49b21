"""What similarity does over ranges of distances too long to store: its minimum, its first fall, its aliases.

The products of :mod:`posenc.formulas.similarities` give ``kappa(c +- j) = p_j -+ q_j``, so the extremes of a tile of
rows are those of ``p -+ |q|``: half the additions, and no value is written anywhere. Only a tile that can hold what is
asked for is looked at distance by distance. Errors are those of the products, below 1e-14.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from posenc.errors import ShapeError
from posenc.formulas.similarities import Rows, clocks, whole_range
from posenc.formulas.spectrum import Array, Frequencies

Progress = Callable[[int, int], None]
"""Called with how many distances are done and how many there are, at least every ``2^21`` distances."""

ROWS = 2**11
"""Rows between two reports of progress."""
TILE = 64
"""Rows of one product: its two results and a third array of their size stay in a core's own cache."""
GROWTH = 2**14, 8
"""Distances of the first stretch, and how many times more each next one has."""
LOBE = 0.5
"""The main lobe ends where similarity first falls below this."""


class Peak(NamedTuple):
    """A distance and the similarity there."""

    distance: int
    similarity: float


class Tile(NamedTuple):
    """A stretch of the range: its first distance, its smallest or largest value; all values, until the next one."""

    first: int
    extreme: float
    values: Callable[[], Array]


def minimum(
    frequencies: Frequencies | Any, start: int, stop: int, *, weights: Any = None, progress: Progress | None = None
) -> tuple[int, float]:
    """The distance of the smallest ``kappa`` in ``start <= D < stop``, the first of equals, and its value.

    Args:
        frequencies: ``Frequencies``, or ``(pairs,)`` radians per position.
        start, stop: distances, of either sign, at most 2^52; any number of them.
        weights: ``(pairs,)`` in place of ``1 / pairs``.
        progress: called with distances done and in all.

    >>> import numpy as np
    >>> minimum(np.array([1.0, 0.1]), 0, 10**6)[0]
    369046
    """
    found, least = start, math.inf
    for tile in tiles(frequencies, start, stop, weights, progress, lowest=True):
        if tile.extreme < least:
            values = tile.values()
            i = int(values.argmin())
            found, least = tile.first + i, float(values[i])
    return found, least


def first_below(
    frequencies: Frequencies | Any,
    threshold: float = 0.0,
    *,
    start: int = 1,
    stop: int,
    weights: Any = None,
    progress: Progress | None = None,
) -> int | None:
    """The first distance in ``start <= D < stop`` with ``kappa(D) < threshold``; None where there is none.

    >>> from posenc.formulas import frequencies
    >>> from posenc.spec import Rotary
    >>> first_below(frequencies(Rotary(128)), stop=4096)
    1707
    """
    if math.isnan(threshold):
        raise ShapeError("a threshold is a number", threshold)
    for tile in tiles(frequencies, start, stop, weights, progress, lowest=True):
        if tile.extreme < threshold:
            return tile.first + int((tile.values() < threshold).argmax())
    return None


def aliases(
    frequencies: Frequencies | Any,
    stop: int,
    *,
    start: int | None = None,
    count: int = 5,
    weights: Any = None,
    progress: Progress | None = None,
) -> tuple[Peak, ...]:
    """The largest local maxima of ``kappa`` in ``start <= D < stop``: distances most easily taken for 0.

    A local maximum is strictly above both neighbours, also where these lie outside the range.

    Args:
        frequencies: ``Frequencies``, or ``(pairs,)`` radians per position.
        stop: end of the range.
        start: beginning; the end of the main lobe, where ``kappa`` first falls below a half, unless given.
        count: how many, at most 1000.
        weights: ``(pairs,)`` in place of ``1 / pairs``.
        progress: called with distances done and in all.

    Returns:
        Largest first, the nearer one of equals.

    >>> import numpy as np
    >>> [peak.distance for peak in aliases(np.array([1.0, 0.1]), 1000, count=3)]
    [377, 754, 691]
    """
    if isinstance(count, bool) or not 1 <= count <= 1000:
        raise ShapeError("between 1 and 1000 aliases are asked for", count)
    if start is None:
        start = first_below(frequencies, LOBE, stop=stop, weights=weights)
        if start is None:
            return ()
    best: list[Peak] = []
    for tile in tiles(frequencies, start, stop, weights, progress, lowest=False):
        floor = best[-1].similarity if len(best) == count else -math.inf
        if tile.extreme > floor:
            values = tile.values()
            ends = _neighbours(frequencies, weights, tile.first, len(values))
            best = sorted([*best, *_peaks(values, ends, tile.first, floor, count)], key=lambda p: -p.similarity)[:count]
    return tuple(best)


def _peaks(values: Array, ends: tuple[float, float], first: int, floor: float, count: int) -> list[Peak]:
    """The largest local maxima of a tile above ``floor``, given the values just outside of it."""
    wide = np.concatenate(([ends[0]], values, [ends[1]]))
    found = np.flatnonzero((values > floor) & (values > wide[:-2]) & (values > wide[2:]))
    found = found[np.argsort(-values[found], kind="stable")][:count]
    return [Peak(first + int(i), float(values[i])) for i in found]


def _neighbours(frequencies: Any, weights: Any, first: int, count: int) -> tuple[float, float]:
    from posenc.formulas.similarities import similarity_at

    before, after = similarity_at(frequencies, [first - 1, first + count], weights=weights)
    return float(before), float(after)


def tiles(
    frequencies: Frequencies | Any,
    start: int,
    stop: int,
    weights: Any = None,
    progress: Progress | None = None,
    *,
    lowest: bool,
) -> Iterator[Tile]:
    """Tiles that follow each other through a range, with the smallest or largest value of each.

    The first ones are small, so that a search that finds something early has computed little.
    """
    theta, weight = clocks(frequencies, weights)
    start, stop = whole_range(start, stop)
    first, size = start, GROWTH[0]
    while first < stop:
        end = min(stop, first + size)
        rows = Rows(theta, weight, end - first)
        for at, tile in _stretch(rows, first, end, lowest):
            if tile is not None:
                yield tile
            elif progress is not None:
                progress(at - start, stop - start)
        first, size = end, GROWTH[1] * size


def _stretch(rows: Rows, start: int, stop: int, lowest: bool) -> Iterator[tuple[int, Tile | None]]:
    """Tiles of equal rows, and None wherever progress can be told."""
    width = 2 * rows.half
    full, end = (stop - start) // width, start
    spare = np.empty((TILE, rows.half + 1))
    for row in range(0, full, ROWS):
        begin = start + row * width
        count = min(ROWS, full - row)
        for a, p, q in rows.tiles(begin, count, TILE):
            extreme = _extreme(p, q, spare[: len(p)], lowest)
            yield begin, Tile(begin + a * width, extreme, lambda p=p, q=q: _values(rows, p, q))  # type: ignore[misc]
        end = begin + count * width
        yield end, None
    if end < stop:
        rest = rows.fill(end, stop)
        yield end, Tile(end, float(rest.min() if lowest else rest.max()), lambda: rest)
        yield stop, None


def _extreme(p: Array, q: Array, spare: Array, lowest: bool) -> float:
    """The smallest ``p - |q|`` or largest ``p + |q|``; of the last column only ``p + q`` belongs to the rows."""
    np.abs(q, out=spare)
    if lowest:
        np.subtract(p, spare, out=spare)
    else:
        np.add(p, spare, out=spare)
    np.add(p[:, -1], q[:, -1], out=spare[:, -1])
    return float(spare.min() if lowest else spare.max())


def _values(rows: Rows, p: Array, q: Array) -> Array:
    out = np.empty((len(p), 2 * rows.half))
    rows.put(p, q, out)
    return out.reshape(-1)
