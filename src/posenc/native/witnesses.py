"""Sums of cosines over many distances in C, for the search of bases; every answer is None without the library.

Callers have a plain path of their own, from bounds and block products of the rooms above.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError
from posenc.native.loading import Lows, find

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PIECE = 2**24
"""Cosines that one call takes, about: what is between two looks at whether the user wants to stop."""
SHORT = 2**12
"""Longest range that C goes over without vectors."""


def cosine_sums(distances: Floats, theta: Floats, u: Floats) -> tuple[Floats, Floats] | None:
    """``kappa = mean(cos x)`` with ``x = D theta``, and ``mean(u x sin x)``, for each distance ``(n,)``.

    Args:
        distances: ``(n,)`` float64, 0 to 2^24.
        theta, u: ``(pairs,)`` float64, 0 to 1, at most 2048.

    Raises:
        ShapeError: sizes or numbers out of range.
    """
    library = find().handle
    if library is None:
        return None
    distances, theta, u = (_floats(a) for a in (distances, theta, u))
    value, slope = np.empty(len(distances)), np.empty(len(distances))
    if len(theta) != len(u):
        raise ShapeError("theta and u have one number for each pair", (len(theta), len(u)))
    _done(
        library.posenc_cosine_sums(
            distances.ctypes.data, len(distances), theta.ctypes.data, u.ctypes.data, len(u), value.ctypes.data,
            slope.ctypes.data,
        )
    )  # fmt: skip
    return value, slope


def exclude(
    distances: Floats, t: float, stop: float, u: Floats, cosines: float, least: float = 0.0, *, steps: int = 1
) -> tuple[float, Floats] | None:
    """Go from ``t`` as far as the distances exclude bases, in at most ``steps`` steps of at least ``least``.

    Args:
        distances: ``(n,)`` float64, 0 to 2^24.
        t, stop: ``ln(base)``.
        u: ``(pairs,)`` exponents.
        cosines: bound on the error of a mean of cosines whose angles are right.

    Returns:
        Where it ended, and how far beyond the last ``t`` it looked at each sum stays negative, ``(n,)``.

    Raises:
        ShapeError: sizes or numbers out of range.
    """
    library = find().handle
    if library is None:
        return None
    distances, u = _floats(distances), _floats(u)
    reach, end = np.zeros(len(distances)), ctypes.c_double(t)
    _done(
        library.posenc_exclude(
            distances.ctypes.data, len(distances), t, stop, u.ctypes.data, len(u), cosines, least, steps,
            reach.ctypes.data, ctypes.byref(end),
        )
    )  # fmt: skip
    return end.value, reach


def lowest(
    theta: Floats,
    starts: Sequence[int],
    length: int,
    last: int,
    most: int,
    *,
    limit: float = math.inf,
    offset: float | None = None,
) -> tuple[Integers, Floats] | None:
    """The lowest scores among the distances ``start <= D < start + length``, ``1 <= D <= last``.

    Args:
        theta: ``(pairs,)`` float64, 0 to 1, at most 2048.
        starts: where ranges begin.
        length: of each range.
        last: the last distance, at most 2^24.
        most: how many are wanted.
        limit: only scores below it.
        offset: scores are ``(kappa - offset) / D``; ``kappa`` unless given.

    Returns:
        Distances and scores, in no order; None also for long ranges where the library has no vectors for them: there
        matrix products are faster.

    Raises:
        ShapeError: sizes or numbers out of range.
    """
    found = find()
    library = found.handle
    if library is None or (length > SHORT and found.level in ("portable", "neon")):
        return None
    theta = _floats(theta)
    scores, distances = np.empty(most), np.empty(most, np.int64)
    piece = max(SHORT, PIECE // max(1, len(theta)))
    room = library.posenc_lowest_work(len(theta), min(length, piece))
    if room < 0:
        raise ShapeError("there are 1 to 2048 pairs and one distance or more", (len(theta), length))
    work = np.empty(room)
    call = Lows(
        theta=theta.ctypes.data, pairs=len(theta), last=last, limit=limit, most=most, room=room,
        per_distance=int(offset is not None), offset=offset or 0.0, scores=scores.ctypes.data,
        distances=distances.ctypes.data, work=work.ctypes.data,
    )  # fmt: skip
    for at in reversed(range(0, length, piece)):
        begin = np.asarray(starts, np.int64) + at
        call.starts, call.ranges, call.length = begin.ctypes.data, len(begin), min(piece, length - at)
        _done(library.posenc_lowest(ctypes.byref(call)))
    return distances[: call.found], scores[: call.found]


def _floats(a: Any) -> Floats:
    return np.ascontiguousarray(a, np.float64)


def _done(status: int) -> None:
    if status:
        raise ShapeError(
            "distances are 0 to 2^24, frequencies and exponents 0 to 1, ln(base) 0 to 700, pairs 1 to 2048"
        )
