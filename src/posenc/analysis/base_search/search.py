"""The smallest base of a rotary encoding for a context, certified."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from posenc.analysis.base_search.excluding import GAPS, Exclusion, Opening
from posenc.analysis.base_search.holding import Walk
from posenc.analysis.base_search.published import used_bases
from posenc.analysis.base_search.scanning import scan
from posenc.analysis.base_search.settling import settle, settled_by_formula
from posenc.analysis.base_search.sums import Advance, above, advance, below, exponents, value_error
from posenc.errors import SpecError
from posenc.formulas.spectrum import Array
from posenc.records.base_search import AllAbove, BaseSearch, Bracket, Effort, FeasibleRun

LONGEST = 2**24
NARROWEST, WIDEST = 6, 4096
"""Two pairs are too few: the fast one undoes the other at some distance, however large the base."""
RUNS = 3
"""Runs of feasible bases that are followed."""
PATIENCE = 3000
"""Looks at distances that the runs after the first may take, each."""
SWEEPS = 200
"""Evaluations of all distances that following one run may take."""
Progress = Callable[[str, float], None]
"""Called with what is being done and the share that is done, between 0 and 1 (an estimate)."""


def smallest_base(
    context: Any,
    head_dim: Any,
    *,
    thorough: bool = False,
    progress: Progress | None = None,
    advance: Advance = advance,
) -> BaseSearch:
    """Find the smallest base with ``sum_i cos(D b^(-2i/d)) >= 0`` for every integer ``D`` in ``0..context``.

    Bases are excluded from 1 on by witnesses, distances whose sum stays negative up to the root of a parabola, so that
    nothing between two of them is left out. The criterion is that of Men et al. 2024 (2405.14591, equations 9 to 11).

    Args:
        context: the last distance, 1 to 2^24.
        head_dim: the width that is rotated, even, 6 to 4096.
        thorough: settle from which base on all are feasible also beyond contexts of 2^16, which can take minutes.
        progress: called with a description and a share.
        advance: how witnesses advance (:func:`posenc.analysis.base_search.sums.advance`).

    Raises:
        SpecError: numbers out of range.

    >>> found = smallest_base(1024, 128)
    >>> round(found.infimum.high, 3), found.runs[0].begins_at, round(found.above.certified, 2)
    (4293.438, 1009, 6018.28)
    """
    _check(context, head_dim)
    told = progress or (lambda what, share: None)
    u = exponents(head_dim)
    stop = settled_by_formula(context, u)
    expected = min(stop, max(3.0, math.log(0.06 * context**1.55)))  # near the published values; for progress only
    exclusion = Exclusion(context, u, advance, lambda t: told("excluding small bases", min(t / expected, 0.99)))
    walk = Walk(context, u)
    _, first = exclusion.opening(0.0, stop + 2 * GAPS[-1])
    if first is None:  # at ``stop`` every sum is positive by more than its rounding
        raise AssertionError("a base that a bound shows to be feasible was excluded")
    runs: list[FeasibleRun] = []
    exclusion.told = lambda t: told("following feasible bases", len(runs) / RUNS)
    end = _follow(exclusion, walk, first, stop, runs)
    settled = settle(context, u, first.right, walk, lambda share: told("settling large bases", share), thorough)
    told("comparing with papers and models", 0.0)
    return BaseSearch(
        context=context,
        head_dim=head_dim,
        infimum=_bracket(first.left, first.right),
        lowest=first.lowest,
        lowest_at=first.witness,
        runs=tuple(runs),
        searched=below(end),
        above=AllAbove(
            formula=above(settled.formula),
            certified=above(settled.walk),
            exact=settled.exact,
            infeasible=None if settled.last is None else math.exp(settled.last),
            witness=first.witness if settled.exact and settled.witness is None else settled.witness,
            ratio=settled.ratio,
        ),
        undecided=tuple(_bracket(a, b) for a, b in exclusion.slivers),
        error=value_error(context, first.left, u),
        used=used_bases(context, head_dim, u),
        effort=Effort(looks=exclusion.looks, scans=exclusion.scans, sweeps=walk.sweeps),
    )


def _check(context: Any, head_dim: Any) -> None:
    for name, value, low, high in (("context", context, 1, LONGEST), ("head_dim", head_dim, NARROWEST, WIDEST)):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise SpecError(f"{name} is an integer from {low} to {high}", value)
    if head_dim % 2:
        raise SpecError("head_dim is even", head_dim)


def _bracket(left: float, right: float) -> Bracket:
    return Bracket(low=below(left), high=above(right))


def _follow(exclusion: Exclusion, walk: Walk, first: Opening, stop: float, runs: list[FeasibleRun]) -> float:
    """Follow runs of feasible bases from the first on; return ``ln(base)`` up to which all is known."""
    opening: Opening | None = first
    end = first.right
    while opening is not None and len(runs) < RUNS:
        held = walk.hold(opening.right, max(stop, opening.right), SWEEPS)
        end, edge = held.end, None
        if held.witness is not None:
            edge = _edge(exclusion.context, end, exclusion.u)
        runs.append(
            FeasibleRun(
                begin=_bracket(opening.left, opening.right),
                begins_at=opening.witness if opening.left > 0 else None,
                held=max(below(end), above(opening.right)),
                end=None if edge is None else _bracket(end, edge),
                ends_at=None if edge is None else held.witness,
            )
        )
        if edge is None or len(runs) == RUNS:
            break
        end, opening = exclusion.opening(edge, stop + 2 * GAPS[-1], PATIENCE)
    return end


def _edge(context: int, end: float, u: Array) -> float | None:
    """``ln`` of a base that is certainly infeasible, right of where a run was left; None if float64 cannot tell."""
    for gap in GAPS:
        if len(scan(context, end + gap, u).found.witnesses):
            return end + gap
    return None
