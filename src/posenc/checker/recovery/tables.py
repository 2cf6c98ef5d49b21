"""What a table of rows is: the order of its sines and cosines, their frequencies, amplitude, first row, empty rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array
from posenc.checker.recovery.angles import Waves, fit_waves

Order = Literal["interleaved", "interleaved_cos_first", "sin|cos", "cos|sin"]
ORDERS: tuple[Order, ...] = ("interleaved", "interleaved_cos_first", "sin|cos", "cos|sin")


@dataclass(frozen=True, eq=False)
class TableShape:
    """A table read in one channel order.

    Args:
        order: of sines and cosines.
        waves: one for each whole pair.
        amplitude: median length of a pair.
        lone: frequency of a sine without cosine at the end of an odd width, and its residual; None for even widths.
        steady: largest relative change of a pair's length over the rows: 0 for a true pair.
    """

    order: Order
    waves: Waves
    amplitude: float
    steady: float
    lone: int | None = None


def channels_of(order: Order, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sine and the cosine channel of each whole pair.

    >>> [c.tolist() for c in channels_of("sin|cos", 5)]
    [[0, 1], [2, 3]]
    """
    pairs = width // 2
    i = np.arange(pairs)
    if order == "interleaved":
        return 2 * i, 2 * i + 1
    if order == "interleaved_cos_first":
        return 2 * i + 1, 2 * i
    return (i, i + pairs) if order == "sin|cos" else (i + pairs, i)


def read_in(table: Array, positions: Array, order: Order) -> TableShape:
    """Read a table ``(rows, width)`` as if its channels were in this order."""
    sine, cosine = channels_of(order, table.shape[1])
    z = table[:, cosine] + 1j * table[:, sine]
    size = np.abs(z)
    middle = np.median(size, axis=0)
    steady = float((np.abs(size - middle).max(axis=0) / np.maximum(middle, 1e-300)).max()) if len(sine) else np.inf
    return TableShape(order, fit_waves(positions, z), float(np.median(middle)) if len(sine) else 0.0, steady, None)


def best_order(table: Array, positions: Array, rounding: float = 2.0**-24) -> TableShape | None:
    """The order in which every pair keeps its length and turns forwards; None if there is none.

    Rows of zeros are left out.
    """
    full = np.abs(table).max(axis=1) > 1e-12
    if full.sum() < 4 or table.shape[1] < 2:
        return None
    found = []
    for order in ORDERS:
        shape = read_in(table[full], positions[full], order)
        forward = float((shape.waves.theta >= -1e-9).mean())
        left = float(np.sqrt((shape.waves.residual**2).mean()))
        if shape.steady < 0.02 + 8 * rounding and forward > 0.5 and shape.amplitude > 1e-6:
            start = np.abs(shape.waves.start).max()
            found.append((round(left, 3), round(1 - forward, 3), float(start), shape))
    if not found:
        return None
    return min(found, key=lambda f: f[:3])[3]
