"""Fourier features of real coordinates: fixed random ones, and trained ones through a small network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc.errors import ShapeError
from posenc.formulas.phases import coordinates
from posenc.formulas.spectrum import Array
from posenc.formulas.tables import check_entries
from posenc.spec import Fourier, LearnableFourier


def fourier_matrix(encoding: Fourier) -> Array:
    """``B``: ``(dim / 2, axes)`` turns per unit, ``sigma * N(0, 1)`` from the encoding's seed."""
    draw = np.random.default_rng(encoding.seed).standard_normal((encoding.dim // 2, encoding.axes))
    return np.asarray(encoding.sigma * draw)


def fourier_features(encoding: Fourier, positions: Any) -> Array:
    """``[cos 2 pi B v, sin 2 pi B v]`` (Tancik et al. 2020, equation 5 with unit amplitudes).

    Args:
        encoding: width, scale, seed and axes.
        positions: ``(n,)``, or ``(n, axes)`` with axes; integer or real.

    Returns:
        ``(n, dim)`` float64.

    Raises:
        ShapeError: positions are not finite numbers of that shape.

    >>> fourier_features(Fourier(2), [0.0]).tolist()
    [[1.0, 0.0]]
    """
    at = coordinates(positions, encoding.axes)
    if at.ndim != 2:
        raise ShapeError("positions are (n,), or (n, axes) with axes", np.shape(positions))
    check_entries(len(at), encoding.dim)
    turns = at @ fourier_matrix(encoding).T
    angle = 2 * math.pi * (turns - np.round(turns))
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)


def learnable_fourier(
    encoding: LearnableFourier, positions: Any, matrix: Any, first: Any, first_bias: Any, second: Any, second_bias: Any
) -> Array:
    """``GeLU(r W_1 + b_1) W_2 + b_2`` with ``r = [cos W x, sin W x] / sqrt(features)`` (Li et al. 2021, algorithm 1).

    Args:
        encoding: widths, axes and groups.
        positions: ``(n,)``, or ``(n, axes)``.
        matrix: ``W``, ``(features / 2, axes / groups)``.
        first, first_bias: ``(hidden, features)``, ``(hidden,)``.
        second, second_bias: ``(dim / groups, hidden)``, ``(dim / groups,)``.

    Returns:
        ``(n, dim)`` float64.
    """
    at = coordinates(positions, encoding.axes)
    if at.ndim != 2:
        raise ShapeError("positions are (n,), or (n, axes) with axes", np.shape(positions))
    check_entries(len(at), max(encoding.dim, encoding.features * encoding.groups))
    angle = at.reshape(len(at), encoding.groups, -1) @ np.asarray(matrix, dtype=np.float64).T
    r = np.concatenate([np.cos(angle), np.sin(angle)], axis=-1) / math.sqrt(encoding.features)
    inner = r @ np.asarray(first, dtype=np.float64).T + np.asarray(first_bias, dtype=np.float64)
    erf = np.vectorize(math.erf, otypes=[np.float64])
    gelu = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
    outer = gelu @ np.asarray(second, dtype=np.float64).T + np.asarray(second_bias, dtype=np.float64)
    return np.asarray(outer.reshape(len(at), encoding.dim))
