"""The base from which on every base serves a context: what a formula settles, what a walk, and what a grid finds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from posenc.analysis.base_search.holding import Walk
from posenc.analysis.base_search.scanning import scan
from posenc.analysis.base_search.sums import value_error
from posenc.formulas.spectrum import Array, from_log_base

DISTANCES = 2**29
"""How many sums the grid may take."""
SWEEPS = 10_000
"""How often a walk may evaluate all distances."""
WALKED = 2**16
"""Longest context over which large bases are walked unless more is asked for: the steps shorten with the context."""
STRIDE = 16
"""Sweeps between two reports of progress."""
MOST = 5000
"""Most bases on the grid."""
FINEST = 5e-4
"""Smallest ratio of neighbouring bases on the grid, less 1."""


class Settled(NamedTuple):
    """Where infeasible bases end, in ``ln(base)``.

    Args:
        formula: from here on all are feasible, because the slow pairs outweigh the fast ones whatever these do.
        walk: from here to ``formula`` all are feasible, by bounds on every sum.
        exact: right below ``walk`` bases are infeasible.
        last, witness: the largest base found infeasible, and the distance that shows it; None where none was found.
        ratio: neighbouring bases of the grid between ``last`` and ``walk`` differ by this factor; None without a grid.
    """

    formula: float
    walk: float
    exact: bool
    last: float | None
    witness: int | None
    ratio: float | None


def settled_by_formula(context: int, u: Array) -> float:
    """The smallest ``ln(base)`` from which on a bound shows every sum to be positive, for three pairs or more.

    ``cos(D theta) >= cos(L theta)`` for ``D <= L`` while ``L theta <= pi``, and ``>= -1`` beyond; the bound grows with
    the base, to ``1 - 2 / pairs``.
    """

    def bound(t: float) -> float:
        x = context * from_log_base(t, u)
        return float(np.where(x <= math.pi, np.cos(np.minimum(x, math.pi)), -1.0).mean()) - 2 * value_error(
            context, t, u
        )

    low, high = 0.0, 1.0
    if bound(low) > 0:
        return low
    while bound(high) <= 0:
        low, high = high, 2 * high
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if bound(middle) > 0 else (middle, high)
    return high


def settle(context: int, u: Array, first: float, walk: Walk, told: Callable[[float], None], thorough: bool) -> Settled:
    """Say from which base on every base is feasible, as far as it can be said.

    Args:
        context: the last distance.
        u: ``(pairs,)`` exponents.
        first: ``ln`` of the smallest feasible base.
        walk: what goes over feasible bases.
        told: called with the share that is done.
        thorough: walk however long it takes.
    """
    formula = end = settled_by_formula(context, u)
    if formula <= first:
        return Settled(first, first, True, None, None, None)
    for _ in range(10**9 if thorough else SWEEPS // STRIDE if context <= WALKED else 0):
        held = walk.hold(end, first, STRIDE)
        end = held.end
        told((formula - end) / (formula - first))
        if held.witness is not None or end <= first:
            return Settled(formula, end, True, None, held.witness, None)
    count = min(max(DISTANCES // context, 16), MOST, math.ceil((end - first) / math.log1p(FINEST)))
    step = (end - first) / count
    for i in range(1, count):
        told(i / count)
        seen = scan(context, end - i * step, u)
        if len(seen.found.witnesses):
            witness = int(seen.found.witnesses[0])
            return Settled(formula, end, False, end - i * step, witness, math.exp(step))
    return Settled(formula, end, False, None, None, math.exp(step))
