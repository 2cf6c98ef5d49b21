"""Bases that do serve a context, admitted in steps: all distances at once by a bound, the lowest ones by their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from posenc.analysis.base_search.excluding import FINE
from posenc.analysis.base_search.sums import admitted, bounds, sums, value_error
from posenc.formulas.similarities import similarity
from posenc.formulas.spectrum import Array, from_log_base
from posenc.native import witnesses

WATCHED = 2**8
"""Most distances that are followed one by one; the others are bounded by their slope."""


class Held(NamedTuple):
    """How far every sum certainly stays positive.

    Args:
        end: ``ln(base)``; every base between the beginning and here is feasible.
        witness: the distance whose sum reaches 0 there; None if the walk ended for another reason.
    """

    end: float
    witness: int | None


@dataclass
class Walk:
    """A walk over feasible bases, to the right or to the left.

    Args:
        context: the last distance.
        u: ``(pairs,)`` exponents.
        sweeps: how many evaluations of all distances there were.
    """

    context: int
    u: Array
    sweeps: int = 0

    def hold(self, t: float, stop: float, sweeps: int) -> Held:
        """From a feasible ``t`` towards ``stop``, which may lie on either side.

        Args:
            t, stop: ``ln(base)``.
            sweeps: how many evaluations of all distances it may take.
        """
        left = stop < t
        for _ in range(sweeps):
            # |kappa'| <= D mean(u theta), so a sum of 0.1 at distance D is positive for a while in either direction
            lowest, slack = self._tightest(t)
            step = slack / self._steepness(t)
            if left:  # the bound grows to the left: the one at the far end holds for the whole step
                step *= self._steepness(t) / self._steepness(max(t - step, stop))
            end = max(t - step, stop) if left else min(t + step, stop)
            t, witness = self._watch(lowest, t, end)
            if witness is not None or t == stop:
                return Held(t, witness)
        return Held(t, None)

    def _steepness(self, t: float) -> float:
        return float((self.u * from_log_base(t, self.u)).mean())

    def _tightest(self, t: float) -> tuple[Array, float]:
        """The distances whose ``(kappa(D) - rounding) / D`` is smallest, and the largest of these: others have more."""
        self.sweeps += 1
        count, theta = min(WATCHED, self.context // 8), from_log_base(t, self.u)
        rounding = value_error(self.context, t, self.u)
        lows = witnesses.lowest(theta, [1], self.context, self.context, count + 1, offset=rounding)
        if lows is not None:
            return lows[0].astype(np.float64), float(lows[1].max())
        slack, at = similarity(theta, 1, self.context + 1), np.arange(1.0, self.context + 1)
        slack = (slack - rounding) / at
        lowest = np.argpartition(slack, count)[: count + 1]
        return at[lowest], float(slack[lowest].max())

    def _watch(self, distances: Array, t: float, end: float) -> tuple[float, int | None]:
        """From ``t`` to ``end`` by each distance's own parabola: how far all stay positive, and which one does not."""
        left = end < t
        while t != end:
            now = sums(distances, t, self.u)
            if left:
                bend, _, slope_error = bounds(distances, end, self.u)
                now = now._replace(slope=-now.slope, bend=bend, slope_error=slope_error)
            reach = admitted(now)
            step = float(reach.min())
            if step < FINE:
                return t, int(distances[reach.argmin()])
            distances = distances[reach < abs(end - t)]
            if not len(distances):
                return end, None
            t = t - step if left else t + step
        return t, None
