"""Learned tables: which row a position reads, and a trained table resampled to a new length or grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError, SpecError
from posenc.formulas.spectrum import Array
from posenc.formulas.tables import check_entries
from posenc.spec import Learned


def learned_rows(encoding: Learned, positions: Any, *, trained: int | None = None) -> NDArray[np.int64]:
    """The row of the stored table that each position reads: ``prefix + offset + position``.

    Args:
        encoding: the learned table.
        positions: ``(...)`` integers; ``(..., axes)`` with a shape of several axes, last axis fastest.
        trained: number of positions that training ever reached; rows beyond exist but hold their random start.

    Raises:
        ShapeError: positions are not integers, lie outside the table, or beyond ``trained``.

    >>> learned_rows(Learned(16, shape=(512,), offset=2), [0, 511]).tolist()
    [2, 513]
    """
    at = np.asarray(positions)
    if at.dtype.kind not in "iu":
        raise ShapeError("positions of a learned table are integers", at.dtype)
    shape = encoding.shape
    at = at[..., None] if len(shape) == 1 else at
    if at.ndim == 0 or at.shape[-1] != len(shape):
        raise ShapeError(f"positions end in a dimension of {len(shape)} axes", at.shape)
    for axis, rows in enumerate(shape):
        outside = (at[..., axis] >= rows) | (at[..., axis] < 0)
        if outside.any():
            worst = int(at[..., axis][outside][0])
            raise ShapeError(
                f"a learned table has rows for positions 0 to {rows - 1}",
                worst,
                "A learned table does not extrapolate: shorten the input or resample the table.",
            )
    index = np.zeros(at.shape[:-1], dtype=np.int64)
    for axis, rows in enumerate(shape):
        index = index * rows + at[..., axis].astype(np.int64)
    if trained is not None and index.size and index.max() >= trained:
        raise ShapeError(
            f"only the first {trained} rows were ever trained",
            int(index.max()),
            "The row exists but was never trained.",
        )
    return index + encoding.prefix + encoding.offset


def resample_table(
    table: Any, old_shape: Sequence[int], new_shape: Sequence[int], prefix: int = 0, method: str = "cubic"
) -> Array:
    """A trained table resampled to a new length or grid; prefix rows are kept, an unchanged axis is left exactly.

    Cell centres stay in place (``align_corners=False``), each axis on its own. ``linear`` over two axes is bilinear,
    ``cubic`` bicubic (Keys 1981 with a = -0.75, edges repeated).

    Args:
        table: ``(prefix + prod(old_shape), dim)``, rows row-major.
        old_shape: the grid the rows stand for, ``(n,)`` or ``(rows, columns)``.
        new_shape: the grid wanted, of as many axes.
        prefix: leading rows (class tokens) that are kept as they are.
        method: ``linear`` or ``cubic``.

    Raises:
        ShapeError: the table's rows are not those of the old shape, or a shape is empty.

    >>> resample_table([[9.0], [0.0], [1.0]], (2,), (4,), prefix=1, method="linear").ravel().tolist()
    [9.0, 0.0, 0.25, 0.75, 1.0]
    """
    rows = np.asarray(table, dtype=np.float64)
    old, new = tuple(old_shape), tuple(new_shape)
    if len(old) != len(new) or not old or min(*old, *new, prefix + 1) < 1:
        raise ShapeError("both shapes have as many axes and at least one cell along each", f"{old} and {new}")
    if rows.ndim != 2 or len(rows) != prefix + math.prod(old):
        raise ShapeError(f"the table has {prefix + math.prod(old)} rows of one width", rows.shape)
    if method not in ("linear", "cubic"):
        raise SpecError("method is linear or cubic", method)
    check_entries(prefix + math.prod(new), rows.shape[1])
    cells = rows[prefix:].reshape(*old, -1)
    for axis, (before, after) in enumerate(zip(old, new, strict=True)):
        if before != after:
            check_entries(*cells.shape[:axis], after, *cells.shape[axis + 1 :])
            cells = _along(cells, axis, after, method)
    return np.concatenate([rows[:prefix], cells.reshape(-1, rows.shape[1])])


def _along(cells: Array, axis: int, after: int, method: str) -> Array:
    """One axis resampled: a weighted sum of 2 or 4 neighbours."""
    before = cells.shape[axis]
    source = (np.arange(after) + 0.5) * (before / after) - 0.5
    left = np.floor(source).astype(np.int64)
    t = source - left
    weights = {0: 1 - t, 1: t} if method == "linear" else {k: _keys(np.abs(t - k)) for k in (-1, 0, 1, 2)}
    result = np.zeros((*cells.shape[:axis], after, *cells.shape[axis + 1 :]))
    spread = [1] * cells.ndim
    spread[axis] = after
    for k, weight in weights.items():
        neighbour = np.clip(left + k, 0, before - 1)
        result += weight.reshape(spread) * np.take(cells, neighbour, axis=axis)
    return result


def _keys(x: Array, a: float = -0.75) -> Array:
    """Keys' cubic convolution weight of a neighbour at distance ``x``, 0 beyond 2."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))
