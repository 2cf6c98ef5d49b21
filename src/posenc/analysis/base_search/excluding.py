"""Bases that cannot serve a context, excluded from left to right by distances whose sum is negative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from posenc.analysis.base_search.scanning import NOTHING, STRETCH, Found, Scan, nearby, scan
from posenc.analysis.base_search.sums import Advance, advance
from posenc.formulas.spectrum import Array

COARSE, FINE = 1e-7, 1e-13
"""Smallest steps in ``ln(base)``: before other witnesses are looked for, and next to the end of an exclusion."""
GAPS = (1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2)
"""How far right of an exclusion's end a feasible base is looked for: there the sums are clear of rounding."""
PIECE = 0.25
"""Longest advance in ``ln(base)`` without a report of progress."""


class Opening(NamedTuple):
    """Where a run of feasible bases begins.

    Args:
        left: ``ln(base)``; every base below it, back to where the search began or the last run ended, is excluded.
        right: ``ln(base)`` of a feasible base, ``GAPS[0]`` farther if float64 decides there.
        witness: the distance whose sum is the smallest at ``right``: below ``left`` it is negative.
        lowest: that sum.
    """

    left: float
    right: float
    witness: int
    lowest: float


@dataclass
class Exclusion:
    """The state of a search from left to right.

    Args:
        context: the last distance.
        u: ``(pairs,)`` exponents.
        advance: how witnesses advance; a compiled function may be handed over.
        told: called with ``ln(base)`` on the way.
        slivers: pairs ``ln(base)`` between which float64 decided nothing.
        looks, scans: how often some and how often all distances were looked at.
    """

    context: int
    u: Array
    advance: Advance = advance
    told: Callable[[float], None] = lambda t: None
    slivers: list[tuple[float, float]] = field(default_factory=list)
    looks: int = 0
    scans: int = 0
    _pool: Array = field(default_factory=lambda: np.zeros(0))
    _recent: list[int] = field(default_factory=list)

    def opening(self, t: float, stop: float, patience: int | None = None) -> tuple[float, Opening | None]:
        """The next run of feasible bases from ``t`` on, and how far exclusion came.

        Args:
            t, stop: ``ln(base)``.
            patience: how many looks at distances it may take; any number unless given.

        Returns:
            ``ln(base)`` up to which every base is excluded (slivers apart), and the run; None past ``stop`` or out of
            patience.
        """
        last = None if patience is None else self.looks + patience
        while t < stop and (last is None or self.looks < last):
            t, found = self._exclude(t, stop, last)
            if found is None:
                break
            if found.decided and not len(found.found.witnesses):
                return t, Opening(t, t, found.distance, found.lowest)
            for gap in GAPS:
                beside = self._scan(t + gap)
                if beside.decided:
                    break
            if beside.decided and not len(beside.found.witnesses):
                return t, Opening(t, t + gap, beside.distance, beside.lowest)
            self._undecided(t, t + gap)
            t += gap
            self._pool = beside.found.witnesses
        return t, None

    def _exclude(self, t: float, stop: float, last: int | None) -> tuple[float, Scan | None]:
        """From ``t`` to the first base where no sum is negative by more than rounding, with the scan there."""
        while t < stop and (last is None or self.looks < last):
            if len(self._pool):
                t = self._advance(t, stop, COARSE)
            found = self._near(t)
            if found.reach < COARSE:
                seen = self._scan(t)
                found = seen.found
                if found.reach < FINE:  # closer to the end than a step: what begins here is looked at from its right
                    return t, seen
            self._pool = found.witnesses
            t += found.reach
            if found.reach < COARSE:
                t = self._advance(t, stop, FINE)
        return t, None

    def _undecided(self, left: float, right: float) -> None:
        if self.slivers and self.slivers[-1][1] == left:
            left = self.slivers.pop()[0]
        self.slivers.append((left, right))

    def _advance(self, t: float, stop: float, least: float) -> float:
        while t < stop:
            end = min(t + PIECE, stop)
            t = self.advance(self._pool, t, end, self.u, least)
            self.told(t)
            if t < end:
                break
        return t

    def _near(self, t: float) -> Found:
        """Witnesses near recent ones."""
        most = min(8, self.context // 2**16 + 1)  # more stretches would cost as much as all distances
        del self._recent[most:]
        for stretches in (self._recent[:1], self._recent[1:]):
            if stretches and self.context >= 2 * STRETCH:
                self.looks += 1
                found = nearby(stretches, self.context, t, self.u)
                if found.reach >= COARSE:
                    self._remember(found.witnesses[0])
                    return found
        return NOTHING

    def _scan(self, t: float) -> Scan:
        self.looks += 1
        self.scans += 1
        seen = scan(self.context, t, self.u, enough=COARSE)
        for witness in seen.found.witnesses[2::-1]:
            self._remember(witness)
        return seen

    def _remember(self, witness: float) -> None:
        stretch = int(witness // STRETCH)
        if stretch in self._recent:
            self._recent.remove(stretch)
        self._recent.insert(0, stretch)
