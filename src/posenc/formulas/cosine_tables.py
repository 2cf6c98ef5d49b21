"""float32 tables of cosines and sines for consecutive positions, at the speed of filling memory.

An angle is the sum of a block's start and a step within the block, so a table of n rows needs 2 sqrt(n) rows of
cosines; the rest is angle addition in float64, rounded once. Starts and steps come from products of some 30 digits
(:mod:`posenc.formulas.phases`), so a value is off by half a unit in its
last place, at most 6e-8 without a gain, at any position.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError
from posenc.formulas.phases import FARTHEST, cos_sin
from posenc.formulas.spectrum import Array, Frequencies
from posenc.formulas.tables import check_entries
from posenc.native.arrays import add_angles


def cosine_table(
    f: Frequencies, rows: int, start: int = 0, remainder: Array | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """``gain * cos`` and ``gain * sin`` of ``position * theta`` for positions ``start`` to ``start + rows``.

    Args:
        f: frequencies of one axis, the same for all heads.
        rows: how many positions.
        start: the first.
        remainder: ``(1, pairs)`` what rounding to float64 took from the frequencies.

    Returns:
        Two float32 arrays ``(rows, pairs)``, as rotations of pairs read them.

    Raises:
        ShapeError: several axes or heads, rows that are no whole number, or a table of more than 2^28 entries.

    >>> from posenc.formulas import frequencies
    >>> from posenc.spec import Rotary
    >>> [round(float(c), 4) for c in cosine_table(frequencies(Rotary(4)), 3)[0][2]]
    [-0.4161, 0.9998]
    """
    if f.theta.shape[:-1] != (1,):
        raise ShapeError("a table of consecutive positions has one axis and no heads of its own", f.theta.shape)
    if type(rows) is not int or type(start) is not int or rows < 0 or not abs(start) + rows <= FARTHEST:
        raise ShapeError("rows and start are whole numbers within 2^53", (rows, start))
    check_entries(rows, f.pairs)
    steps = 1 << (max(rows, 1).bit_length() // 2)
    starts = math.ceil(rows / steps)
    cos, sin = _every(f.theta, remainder, start, steps, starts)
    return add_angles((cos * f.gain, sin * f.gain), _every(f.theta, remainder, 0, 1, steps), rows)


def _every(theta: Array, remainder: Array | None, first: int, step: int, count: int) -> tuple[Array, Array]:
    """float64 ``(count, pairs)`` cosines and sines of ``first + step * (0, 1, 2...)``, by angle addition as well."""
    inner = 1 << (max(count, 1).bit_length() // 2)
    outer = np.arange(math.ceil(count / inner), dtype=np.float64) * (step * inner) + first
    ca, sa = (t[:, None] for t in cos_sin(outer[:, None], theta, remainder))
    cj, sj = cos_sin(np.arange(inner)[:, None] * float(step), theta, remainder)
    both = ca * cj - sa * sj, sa * cj + ca * sj
    cos, sin = (t.reshape(-1, theta.shape[-1])[:count] for t in both)
    return cos, sin
