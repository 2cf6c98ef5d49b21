"""The record of a search for bases of rotary encodings that serve a context."""

from __future__ import annotations

from typing import Literal

from posenc.records.analysis import Fact
from posenc.records.base import Record


class Bracket(Fact):
    """A base between two float64 numbers.

    Args:
        low, high: the base lies between; ``high / low - 1`` is how well it is known.
    """

    low: float
    high: float


class FeasibleRun(Fact):
    """Neighbouring bases that all serve the context.

    Args:
        begin: where they begin; ``begin.high`` serves the context.
        begins_at: the distance whose sum is negative below.
        held: every base from ``begin.high`` to here serves the context.
        end: where they end; None where the run was not followed to its end.
        ends_at: the distance whose sum is negative above.
    """

    begin: Bracket
    begins_at: int | None
    held: float
    end: Bracket | None
    ends_at: int | None


class AllAbove(Fact):
    """From which base on every base serves the context.

    Args:
        formula: every base from here on does, by a bound that needs no search.
        certified: every base from here on does; at most ``formula``.
        exact: right below ``certified`` bases do not: it is the smallest such base.
        infeasible: the largest base that was found not to serve the context; None where none was found.
        witness: a distance whose sum is negative there.
        ratio: between ``infeasible`` and ``certified`` only bases on a grid with this ratio were looked at; None where
            there was no grid.
    """

    formula: float
    certified: float
    exact: bool
    infeasible: float | None = None
    witness: int | None = None
    ratio: float | None = None


class UsedBase(Fact):
    """A base that a paper proposes for the context, or that a published model has.

    Args:
        who: the paper or the model.
        kind: which of the two.
        base: the base.
        scaled: the model's frequencies are scaled; ``first_negative`` is that of the scaled ones.
        length: the context of the model (trained, else served).
        first_negative: the first distance up to the context with a negative sum; None where all are positive.
        decided: no sum lies within rounding of 0 before that distance.
    """

    who: str
    kind: Literal["paper", "model"]
    base: float
    scaled: bool = False
    length: int | None = None
    first_negative: int | None
    decided: bool = True


class Effort(Fact):
    """What the search took.

    Args:
        looks: how often witnesses were looked for, among some or all distances.
        scans: how often among all.
        sweeps: evaluations of every distance while following feasible bases.
    """

    looks: int
    scans: int
    sweeps: int


class BaseSearch(Record):
    """Bases ``b > 1`` with ``sum_i cos(D b^(-2i/d)) >= 0`` for every integer ``D`` in ``0..context``.

    Args:
        context: the last distance.
        head_dim: ``d``, the width that is rotated.
        infimum: the smallest feasible base; every base from 1 to ``infimum.low`` is excluded.
        lowest: the smallest sum at ``infimum.high`` over ``d/2``, and ``lowest_at`` its distance.
        runs: the first runs of feasible bases.
        searched: bases from the last run to here are excluded.
        above: from which base on all bases are feasible.
        undecided: pairs of bases between which float64 did not decide; a run that narrow can hide there.
        error: bound on the rounding of ``kappa`` at the infimum: sums closer to 0 than this are undecided.
        used: what papers and models use.
        effort: what it took.
    """

    context: int
    head_dim: int
    infimum: Bracket
    lowest: float
    lowest_at: int
    runs: tuple[FeasibleRun, ...]
    searched: float
    above: AllAbove
    undecided: tuple[Bracket, ...]
    error: float
    used: tuple[UsedBase, ...]
    effort: Effort
