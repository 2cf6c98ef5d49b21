"""Encodings made of sinusoids: a trained correction, and several scales of position side by side."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc.errors import ShapeError
from posenc.formulas.learned import learned_rows
from posenc.formulas.spectrum import Array
from posenc.formulas.tables import sinusoidal_table
from posenc.spec import Adjusted, Hierarchical, Learned


def adjusted_table(
    encoding: Adjusted, positions: Any, *, correction: Any = None, scale: Any = None, shift: Any = None
) -> Array:
    """``PE + C`` of form ``table``, ``(1 + a) PE + b`` of form ``scale_shift``; prefix rows stay zero.

    Args:
        encoding: the sinusoid and the form of its correction.
        positions: ``(n,)`` integers, or ``(n, axes)``.
        correction: ``C``, ``(prod(shape), dim)``; nothing by default.
        scale, shift: ``a`` and ``b``, ``(dim,)``; nothing by default.

    Returns:
        ``(prefix + n, dim)`` float64.

    Raises:
        ShapeError: a position lies outside ``shape``, or the correction has another shape.
    """
    rows = learned_rows(Learned(encoding.dim, shape=encoding.shape), positions)
    table = sinusoidal_table(encoding.sinusoid, positions)
    part = table[encoding.prefix :]
    if encoding.form == "table" and correction is not None:
        given = np.asarray(correction, dtype=np.float64)
        if given.shape != (math.prod(encoding.shape), encoding.dim):
            raise ShapeError(f"the correction is {(math.prod(encoding.shape), encoding.dim)}", given.shape)
        part += given[rows]
    if encoding.form == "scale_shift":
        part *= 1 + np.asarray(0.0 if scale is None else scale, dtype=np.float64)
        part += np.asarray(0.0 if shift is None else shift, dtype=np.float64)
    return table


def levels_of(encoding: Hierarchical, index: Any) -> Array:
    """One running index taken apart: ``(..., levels)``, the finest first.

    ``level_0 = t mod s_0``, ``level_1 = floor(t / s_0) mod s_1``, … and the last without a limit. A real ``t`` keeps
    its fraction on level 0.

    Raises:
        ShapeError: the encoding has no sizes.

    >>> from posenc.spec import Sinusoidal
    >>> clock = Hierarchical((Sinusoidal(4), Sinusoidal(4), Sinusoidal(4)), sizes=(24, 7))
    >>> levels_of(clock, [0, 25, 24 * 7 * 3 + 24 * 2 + 5]).tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [5.0, 2.0, 3.0]]
    """
    if not encoding.sizes:
        raise ShapeError("a running index needs sizes; without them positions have a coordinate for each level")
    rest, levels = np.asarray(index), []
    for size in encoding.sizes:
        levels.append(np.remainder(rest, size).astype(np.float64))
        rest = np.floor_divide(rest, size)
    return np.stack([*levels, rest.astype(np.float64)], axis=-1)


def hierarchical_table(encoding: Hierarchical, positions: Any) -> Array:
    """The rows of all levels side by side.

    Args:
        encoding: levels and sizes.
        positions: ``(n, levels)`` coordinates, or ``(n,)`` running indices where the encoding has sizes.

    Returns:
        ``(n, dim)`` float64.

    Raises:
        ShapeError: positions have another shape.
    """
    at = np.asarray(positions)
    if at.ndim == 1:
        at = levels_of(encoding, at)
    if at.ndim != 2 or at.shape[1] != len(encoding.levels):
        raise ShapeError(f"positions are (n, {len(encoding.levels)}), or (n,) with sizes", np.shape(positions))
    return np.concatenate([sinusoidal_table(level, at[:, i]) for i, level in enumerate(encoding.levels)], axis=1)
