"""Sinusoidal tables: one scalar definition, the readable truth, and one vectorised table that agrees with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError, SpecError
from posenc.formulas.phases import coordinates, cos_sin
from posenc.formulas.spectrum import frequency, unscaled, unscaled_remainder
from posenc.shapes import Float
from posenc.spec import Interleave, Sinusoidal, Split

MOST_ENTRIES = 2**28
"""Largest result that is made in one piece: 2 GiB of float64."""

ZERO, SINE, COSINE = 0, 1, 2


def sinusoidal_entry(encoding: Sinusoidal, position: float | Sequence[float], channel: int) -> float:
    """One entry of a sinusoidal table, by the definition and the standard library alone.

    ``PE(p, 2i) = sin(p theta_i)``, ``PE(p, 2i+1) = cos(p theta_i)`` (Vaswani et al. 2017, section 3.5), in the
    encoding's own order. The angle is one float64 product: its error grows as ``position * 2^-53``.

    Args:
        encoding: the sinusoid.
        position: the position, or one coordinate for each axis.
        channel: 0 to ``dim - 1``.

    Raises:
        ShapeError: the channel does not exist or the coordinates are not as many as the axes.

    >>> sinusoidal_entry(Sinusoidal(8), 3, 0)
    0.1411200080598672
    """
    if not 0 <= channel < encoding.dim:
        raise ShapeError(f"channels run from 0 to {encoding.dim - 1}", channel)
    if encoding.axes is None:
        row = position + encoding.offset  # type: ignore[operator]
        if row == encoding.padding_row:
            return 0.0
        wave, pair = _wave_at(channel, encoding.dim, encoding.order, encoding.odd)
        # tensor2tensor drops the odd channel before it takes frequencies; the paper's formula keeps d
        width = encoding.dim - encoding.dim % 2 if encoding.odd == "zero" else encoding.dim
        return wave(float(row) * frequency(encoding.schedule, pair, encoding.pairs, width))
    at = tuple(position)  # type: ignore[arg-type]
    if len(at) != len(encoding.axes.pairs):  # type: ignore[union-attr]
        raise ShapeError(f"a position has {len(encoding.axes.pairs)} coordinates", len(at))  # type: ignore[union-attr]
    wave, axis, theta = _wave_of_axes(encoding, channel)
    return wave(float(at[axis] + encoding.offset) * theta)


def _wave_at(channel: int, width: int, order: str, odd: str) -> tuple[Callable[[float], float], int]:
    """The function (sine, cosine, zero) and the pair of one channel."""
    half = width // 2
    if width % 2 and odd == "zero" and channel == width - 1:
        return (lambda angle: 0.0), 0
    if order == "interleaved":
        return (math.cos if channel % 2 else math.sin), channel // 2
    if order == "interleaved_cos_first":
        return (math.sin if channel % 2 else math.cos), channel // 2
    first, second = (math.sin, math.cos) if order == "sin|cos" else (math.cos, math.sin)
    return (first, channel) if channel < half else (second, channel - half)


def _wave_of_axes(encoding: Sinusoidal, channel: int) -> tuple[Callable[[float], float], int, float]:
    """The function, axis and frequency of one channel when there are several coordinates."""
    axes: Any = encoding.axes
    if isinstance(axes, Interleave):
        wave, pair = _wave_at(channel, encoding.dim, encoding.order, encoding.odd)
        turn = pair % len(axes.pairs)
        axis = turn if pair < len(axes.pairs) * axes.pairs[turn] else 0
        return wave, axis, frequency(encoding.schedule, pair, encoding.pairs)
    before, axis = 0, 0
    while channel >= 2 * (before + axes.pairs[axis]):
        before, axis = before + axes.pairs[axis], axis + 1
    wave, pair = _wave_at(channel - 2 * before, 2 * axes.pairs[axis], encoding.order, encoding.odd)
    if axes.own_schedule:
        return wave, axis, frequency(encoding.schedule, pair, axes.pairs[axis])
    return wave, axis, frequency(encoding.schedule, before + pair, encoding.pairs)


def channel_waves(encoding: Sinusoidal) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What each channel holds: its function (:data:`ZERO`, :data:`SINE`, :data:`COSINE`) and its pair.

    Orders: ``interleaved`` s c s c; ``sin|cos`` all sines then all cosines. With ``Split`` axes each axis has its own
    part of the channels, ordered inside (MAE). An odd width in an interleaved order ends with half a pair, the first
    function of the order; or with a zero column (tensor2tensor).
    """
    wave, pair = np.zeros(encoding.dim, dtype=np.int64), np.zeros(encoding.dim, dtype=np.int64)
    parts = encoding.axes.pairs if isinstance(encoding.axes, Split) else (encoding.pairs,)
    cosine_first = encoding.order in ("interleaved_cos_first", "cos|sin")
    first, second = (COSINE, SINE) if cosine_first else (SINE, COSINE)
    channel = before = 0
    for pairs in parts:
        at = np.arange(before, before + pairs)
        if encoding.order in ("interleaved", "interleaved_cos_first"):
            functions, owners = np.tile([first, second], pairs), np.repeat(at, 2)
        else:
            functions, owners = np.repeat([first, second], pairs), np.tile(at, 2)
        room = min(2 * pairs, encoding.dim - channel)  # a lone sine or cosine: the last pair has one channel only
        wave[channel : channel + room], pair[channel : channel + room] = functions[:room], owners[:room]
        channel, before = channel + room, before + pairs
    return wave, pair


def sinusoidal_table(encoding: Sinusoidal, positions: Any) -> Float[np.ndarray, "rows dim"]:
    """The rows of a sinusoidal table, right to 1e-15 at any position up to 2^53.

    The angles are products of some 30 digits (:mod:`posenc.formulas.phases`), of frequencies that carry what rounding
    to float64 took from a geometric schedule; a plain float64 product is off by 1e-9 at position 1e7.

    Args:
        encoding: the sinusoid.
        positions: ``(n,)``, or ``(n, axes)`` with axes; integer or real.

    Returns:
        ``(prefix + n, dim)`` float64; the encoding's ``prefix`` rows come first and are zero.

    Raises:
        ShapeError: positions are not finite numbers of that shape, or the table would have more than 2^28 entries.

    >>> sinusoidal_table(Sinusoidal(4), [0, 3]).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.1411, -0.99, 0.03, 0.9996]]
    """
    f = unscaled(encoding)
    at = coordinates(positions, f.axes)
    if at.ndim != 2:
        raise ShapeError("positions of a table are (n,), or (n, axes) with axes", np.shape(positions))
    check_entries(encoding.prefix + len(at), encoding.dim)
    rows = at + encoding.offset
    remainder = unscaled_remainder(encoding)
    wave, pair = channel_waves(encoding)
    table = np.zeros((encoding.prefix + len(at), encoding.dim))
    step = max(1, 2**20 // f.pairs)
    for start in range(0, len(at), step):
        cos, sin = cos_sin(rows[start : start + step], f.theta, remainder)
        block = table[encoding.prefix + start : encoding.prefix + start + step]
        block[:, wave == SINE] = sin[:, pair[wave == SINE]]
        block[:, wave == COSINE] = cos[:, pair[wave == COSINE]]
    if encoding.padding_row is not None:
        table[encoding.prefix :][rows[:, 0] == encoding.padding_row] = 0.0
    return table


def grid_positions(
    shape: Sequence[int], *, coordinates: str = "index", columns_first: bool = False
) -> Float[np.ndarray, "cells axes"]:
    """Coordinates of the cells of a grid in row-major order, one column for each axis of ``shape``.

    Args:
        shape: cells along each axis, for an image ``(rows, columns)``.
        coordinates: ``index``: 0, 1, 2…; ``unit``: centres of the cells over [-1, 1] (DINOv3).
        columns_first: give the last axis first (MAE's table starts with the column's part).

    Raises:
        ShapeError: an axis has no cells, or the grid has more than 2^28 coordinates.

    >>> grid_positions((1, 2), columns_first=True).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    if not shape or any(n < 1 for n in shape):
        raise ShapeError("a grid has at least one cell along each axis", tuple(shape))
    if coordinates not in ("index", "unit"):
        raise SpecError("coordinates are index or unit", coordinates)
    check_entries(*shape, len(shape))
    lines = [np.arange(n) if coordinates == "index" else (2 * np.arange(n) + 1) / n - 1 for n in shape]
    cells = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(shape)).astype(np.float64)
    return cells[:, ::-1].copy() if columns_first else cells


def check_entries(*shape: int) -> None:
    """Refuse a result of more than 2^28 numbers before any memory is taken."""
    if math.prod(shape) > MOST_ENTRIES:
        raise ShapeError("a result has at most 2^28 numbers", " x ".join(map(str, shape)), "Ask for it in parts.")
