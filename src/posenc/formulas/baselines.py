"""Baselines: one-hot, random vectors, a constant, one clock."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError
from posenc.formulas.phases import coordinates
from posenc.formulas.spectrum import Array
from posenc.formulas.tables import check_entries
from posenc.shapes import Float
from posenc.spec import Clock, Constant, OneHot, RandomVectors


def one_hot_table(encoding: OneHot, positions: Any) -> Float[np.ndarray, "rows dim"]:
    """Unit vectors, ``(n, dim)``.

    Raises:
        ShapeError: a position is no integer of 0 to ``dim - 1``.

    >>> one_hot_table(OneHot(3), [2, 0]).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    at = _rows(positions, encoding.dim)
    check_entries(len(at), encoding.dim)
    table = np.zeros((len(at), encoding.dim))
    table[np.arange(len(at)), at] = 1.0
    return table


def random_table(encoding: RandomVectors) -> Float[np.ndarray, "rows dim"]:
    """All rows, ``(length, dim)``: ``scale * N(0, 1)`` drawn row by row."""
    draw = np.random.default_rng(encoding.seed).standard_normal((encoding.length, encoding.dim))
    return np.asarray(encoding.scale * draw)


def random_vectors(encoding: RandomVectors, positions: Any) -> Array:
    """Rows of the random table, ``(n, dim)``.

    Raises:
        ShapeError: a position is no integer of 0 to ``length - 1``.
    """
    return random_table(encoding)[_rows(positions, encoding.length)]


def constant_table(encoding: Constant, positions: Any) -> Float[np.ndarray, "rows dim"]:
    """The same vector for all, ``(n, dim)``."""
    at = coordinates(positions, 1)
    check_entries(len(at), encoding.dim)
    return np.full((len(at), encoding.dim), encoding.level)


def clock_table(encoding: Clock, positions: Any) -> Float[np.ndarray, "rows dim"]:
    """``sin, cos (2 pi p / period)`` repeated over the pairs, ``(n, dim)``; positions are reduced exactly first.

    >>> clock_table(Clock(2, period=2.5), [0, 5]).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    at = coordinates(positions, 1)[..., 0]
    check_entries(len(at), encoding.dim)
    angle = 2 * math.pi * (np.fmod(at, encoding.period) / encoding.period)
    return np.tile(np.stack([np.sin(angle), np.cos(angle)], axis=-1), encoding.dim // 2)


def _rows(positions: Any, rows: int) -> NDArray[np.int64]:
    at = np.asarray(positions)
    if at.ndim != 1 or at.dtype.kind not in "iu":
        raise ShapeError("positions of a table are (n,) integers", at.shape if at.dtype.kind in "iu" else at.dtype)
    outside = (at < 0) | (at >= rows)
    if outside.any():
        raise ShapeError(f"the table has rows for positions 0 to {rows - 1}", int(at[outside][0]), "Shorten the input.")
    return at.astype(np.int64)
