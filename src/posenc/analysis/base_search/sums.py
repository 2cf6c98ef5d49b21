"""The sum ``kappa(D, t) = (2/d) sum_i cos(D exp(-t u_i))`` as a function of ``t = ln(base)``, with bounds.

With ``u_i = 2i/d`` and ``x_i = D exp(-t u_i)``, which falls as ``t`` grows,

    ``kappa' = mean(u x sin x)``,    ``|kappa''| = |mean(u^2 (x sin x + x^2 cos x))| <= mean(u^2 (x + x^2))``

and the bound at ``t`` holds for every larger ``t``. So a distance whose sum is negative at ``t`` excludes every base
up to the root of a parabola, and one whose sum is positive admits them up to another: no grid is needed.

Rounding: ``exp`` and the product make an angle wrong by at most ``x (2 + t u)`` units of ``2^-52``; a cosine, and a sum
of two products of such numbers, is right to 16 units, and adding ``n`` numbers of mean size 1 at most, in any order, to
``n`` units. So a sum is wrong by at most :func:`value_error`; one closer to 0 than that is undecided in float64. The C
library (:mod:`posenc.native.witnesses`) keeps the same bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from posenc.formulas.spectrum import Array, from_log_base
from posenc.native import witnesses

UNIT = float(np.finfo(np.float64).eps)
COSINES = 16 * UNIT
"""Bound on the rounding of the cosines themselves; their mean adds a unit for each pair."""
STEPS = 1000
"""Steps between two looks at whether the user wants to stop."""
FARTHEST = 700.0
"""Largest ``ln(base)`` that float64 can hold, nearly."""
TINY = 1e-300
"""Keeps quotients of two zeros finite."""
SHORT = 1 - 1e-9
"""Steps are shortened by more than their own rounding."""


class Sums(NamedTuple):
    """Sums of some distances at one ``t``, all ``(n,)``.

    Args:
        value: ``kappa``.
        slope: its derivative by ``t``.
        bend: bound on the absolute second derivative from ``t`` on.
        error, slope_error: bounds on the rounding of ``value`` and ``slope``.
    """

    value: Array
    slope: Array
    bend: Array
    error: Array
    slope_error: Array


def exponents(head_dim: int) -> Array:
    """``2i/d`` for every pair."""
    return np.arange(0, head_dim, 2) / head_dim


def sums(distances: Array, t: float, u: Array) -> Sums:
    """Value, slope and bounds for each distance ``(n,)`` at ``t = ln(base)`` and exponents ``u`` ``(pairs,)``."""
    theta = from_log_base(t, u)
    found = witnesses.cosine_sums(distances, theta, u)
    if found is None:
        x = distances[:, None] * theta
        found = np.cos(x).mean(1), (x * np.sin(x)) @ (u / len(u))
    return Sums(*found, *bounds(distances, t, u))


def cosines_error(pairs: int) -> float:
    """Bound on the rounding of a mean of ``pairs`` cosines whose angles are right."""
    return COSINES + pairs * UNIT


def bounds(distances: Array, t: float, u: Array) -> tuple[Array, Array, Array]:
    """The three bounds of :class:`Sums`, which need no cosine: each is a polynomial of the distance."""
    theta = from_log_base(t, u)
    angle_error = UNIT * (2 + t * u) * theta / len(u)
    first, second, slope = ((v * theta / len(u)).sum() for v in (u * u, u * u * theta, u))
    cosines = cosines_error(len(u))
    return (
        distances * (first + distances * second),
        distances * angle_error.sum() + cosines,
        distances * (distances * (u * theta * angle_error).sum() + slope * cosines),
    )


def value_error(distance: float, t: float, u: Array) -> float:
    """Bound on the rounding of the sum of one distance; it grows with the distance and falls with the base."""
    return float(bounds(np.array([float(distance)]), t, u)[1][0])


def excluded(s: Sums) -> Array:
    """How far beyond ``t`` each sum certainly stays negative: ``value + slope h + bend h^2 / 2 < 0``; 0 for none."""
    return _reach(-s.value - s.error, -s.slope - s.slope_error, s.bend)


def reaches(distances: Array, t: float, u: Array) -> Array:
    """:func:`excluded` of :func:`sums`."""
    found = witnesses.exclude(distances, t, FARTHEST, u, cosines_error(len(u)))
    return excluded(sums(distances, t, u)) if found is None else found[1]


def admitted(s: Sums) -> Array:
    """How far beyond ``t`` each sum certainly stays positive; 0 for one that is not certainly positive at ``t``."""
    return _reach(s.value - s.error, s.slope - s.slope_error, s.bend)


def _reach(value: Array, slope: Array, bend: Array) -> Array:
    """The root of ``value + slope h - bend h^2 / 2`` for a positive value, in the form that does not cancel."""
    root = np.sqrt(np.maximum(slope * slope + 2 * bend * value, 0.0))
    far = np.where(slope < 0, 2 * value / (root - slope + TINY), (root + slope) / (bend + TINY))
    return np.where(value > 0, SHORT * far, 0.0)


Advance = Callable[[Array, float, float, Array, float], float]
"""The type of :func:`advance`; a compiled function may take its place."""


def advance(distances: Array, t: float, stop: float, u: Array, least: float) -> float:
    """Go from ``t`` as far as the distances together exclude bases, in steps of at least ``least``, or past ``stop``.

    Args:
        distances: ``(n,)`` float64.
        t, stop: ``ln(base)``.
        u: ``(pairs,)`` exponents, from 0 to below 1.
        least: the smallest step worth taking.

    Returns:
        ``ln(base)``: at every base between, at least one of the distances has a negative sum.
    """
    while t < stop:
        found = witnesses.exclude(distances, t, stop, u, cosines_error(len(u)), least, steps=STEPS)
        if found is None:
            return _advance_plainly(distances, t, stop, u, least)
        t, reach = found
        if not reach.max() >= least:
            break
    return t


def _advance_plainly(distances: Array, t: float, stop: float, u: Array, least: float) -> float:
    _, error, slope_error = bounds(distances, t, u)  # these hold for larger t, too
    weight, mean = u / len(u), np.full(len(u), 1 / len(u))
    twice = u * weight
    while t < stop:
        theta = from_log_base(t, u)
        x = distances[:, None] * theta
        value = np.cos(x) @ mean
        slope = (x * np.sin(x)) @ weight
        bend = distances * (twice @ theta + distances * (twice @ (theta * theta)))
        step = float(_reach(-value - error, -slope - slope_error, bend).max())
        if not step >= least:
            break
        t += step
    return t


def below(t: float) -> float:
    """A float64 base that is certainly at most ``exp(t)``, and at most 4 units of ``2^-52`` below it."""
    return max(1.0, math.exp(t) * (1 - 3 * UNIT))


def above(t: float) -> float:
    """A float64 base that is certainly at least ``exp(t)``."""
    return math.exp(t) * (1 + 3 * UNIT)
