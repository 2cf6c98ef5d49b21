"""Time as an input: seasons, a trend, Time2Vec; phases right for epoch seconds and nanoseconds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc.errors import ShapeError
from posenc.formulas.phases import FARTHEST
from posenc.formulas.spectrum import Array
from posenc.formulas.tables import check_entries
from posenc.shapes import Float
from posenc.spec import Seasonal


def seasonal_features(encoding: Seasonal, times: Any) -> Float[np.ndarray, "*times dim"]:
    """``sin, cos (2 pi k t / P)`` side by side for ``k = 1..harmonics`` of every period; ``t / trend`` last.

    Time is reduced modulo the period before anything is multiplied: the remainder is exact, so the phase at 1.7e9
    seconds is as good as the phase at 0. Integer times (nanoseconds, say) are reduced as integers where the period is
    one.

    Args:
        encoding: periods, harmonics and trend, in the unit of the times.
        times: ``(n,)`` integers or finite real numbers.

    Returns:
        ``(n, dim)`` float64.

    Raises:
        ShapeError: times are not numbers, or integers beyond 2^53 with a period that is not whole.

    >>> seasonal_features(Seasonal((7.0,)), [3]).round(6).tolist()
    [[0.433884, -0.900969]]
    """
    at = np.asarray(times)
    if at.ndim != 1 or at.dtype.kind not in "iuf" or not np.isfinite(at).all():
        raise ShapeError("times are (n,) finite numbers", at.shape if at.dtype.kind in "iuf" else at.dtype)
    check_entries(len(at), encoding.dim)
    features = np.empty((len(at), encoding.dim))
    channel = 0
    for period, harmonics in zip(encoding.periods, encoding.harmonics, strict=True):
        part = _into_period(at, period)
        for k in range(1, harmonics + 1):
            angle = 2 * math.pi * (np.fmod(k * part, period) / period)
            features[:, channel], features[:, channel + 1] = np.sin(angle), np.cos(angle)
            channel += 2
    if encoding.trend is not None:
        features[:, channel] = at / encoding.trend
    return features


def _into_period(at: Any, period: float) -> Array:
    """What is left of t after whole periods, exactly."""
    if at.dtype.kind in "iu" and at.size:
        farthest = max(int(at.max()), -int(at.min()))
        if period.is_integer() and period < 2**62 and farthest < 2**63:
            return np.asarray(np.remainder(at.astype(np.int64), int(period)).astype(np.float64))
        if farthest > FARTHEST:
            raise ShapeError("integer times beyond 2^53 need whole periods", period, "Choose a coarser unit.")
    return np.asarray(np.fmod(at.astype(np.float64), period))  # exact, with the sign of t


def time2vec(times: Any, weights: Any, phases: Any) -> Float[np.ndarray, "*times dim"]:
    """``w_0 t + phi_0`` and ``sin(w_i t + phi_i)`` for ``i >= 1`` (Kazemi et al. 2019, equation 1); all trained.

    Args:
        times: ``(...)``.
        weights, phases: ``(dim,)``.

    Returns:
        ``(..., dim)``.

    >>> time2vec(2, [0.5, 1], [0.1, 0.2]).round(6).tolist()
    [1.1, 0.808496]
    """
    w, phi = np.asarray(weights, dtype=np.float64), np.asarray(phases, dtype=np.float64)
    if w.ndim != 1 or w.shape != phi.shape or not len(w):
        raise ShapeError("weights and phases are (dim,)", (w.shape, phi.shape))
    result = np.asarray(times, dtype=np.float64)[..., None] * w + phi
    result[..., 1:] = np.sin(result[..., 1:])
    return np.asarray(result)
