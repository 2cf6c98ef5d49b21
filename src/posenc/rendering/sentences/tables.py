"""What is said of a table of positions, a user's own included."""

from __future__ import annotations

from posenc.records.analysis import PermutationFacts, TableFacts
from posenc.rendering.sentences.numbers import listed, many, real, whole

SAME = 1e-9
"""Relative to the largest entry of K: a smaller spread is rounding."""


def table(t: TableFacts) -> str:
    """Rank and distinctness."""
    distinct = int(t.distinct_rows.value or 0)
    every = (
        f"all {whole(t.rows)} rows differ"
        if distinct == t.rows
        else f"only {whole(distinct)} of {whole(t.rows)} differ"
    )
    nearest = ""
    if t.nearest_pair is not None and distinct == t.rows:
        i, j = sorted(t.nearest_pair)
        nearest = f", the nearest two being {whole(i)} and {whole(j)} at {real(t.nearest_rows.value)}"
    return (
        f"{many(t.rows, 'row')} of {many(t.width, 'column')} have rank {whole(t.rank.value or 0)}, and 99 % of their "
        f"energy lies in {many(int(t.energy_rank.value or 0), 'direction')}; {every}{nearest}."
    )


def kernel(t: TableFacts) -> str:
    """Whether inner products depend on the difference of positions alone."""
    relative, spread = t.relative_defect.value or 0.0, t.toeplitz_defect.value or 0.0
    size = t.toeplitz_defect.note
    if relative < SAME:
        return f"K(m, n) depends on m − n alone: along a diagonal it varies by {real(spread, 2)} ({size})."
    return (
        f"K(m, n) is not a function of m − n: along a diagonal it varies by {real(spread, 3)}, {relative:.1%} of its "
        f"largest entry ({size})."
    )


def diagonals(t: TableFacts) -> str:
    """How the mean inner product falls with distance."""
    least = min(zip(t.kernel.y, t.kernel.x, strict=True))
    near = dict(zip(t.kernel.x, t.kernel.y, strict=True)).get(1.0)
    first = f"falls to {real(near, 3)} of K(m, m) one step away and " if near is not None else ""
    return f"On average the inner product {first}is smallest, {real(least[0], 3)}, at distance {whole(least[1])}."


def norm(t: TableFacts) -> str:
    """Whether all rows have the same length."""
    low, high = t.norm
    if high - low <= SAME * max(high, 1.0):
        return f"Every row has length {real(high)}."
    return f"Rows have lengths from {real(low)} to {real(high)}."


def shift(t: TableFacts) -> str:
    """Whether one linear map takes every row to the next."""
    error = t.shift_error.value
    if error is None:
        return f"{many(t.rows, 'row')} of {many(t.width, 'column')} do not decide whether a shift is linear."
    if error < SAME * max(t.norm[1], 1.0) * 100:
        return f"One linear map takes every row to the next, to {real(error, 2)}."
    return f"No linear map takes every row to the next: the best one misses by up to {real(error, 3)}."


def breaks(t: TableFacts) -> list[str]:
    """What this table cannot do."""
    found = [f"There is no row past {whole(t.rows - 1)} in what was examined."]
    distinct = int(t.distinct_rows.value or 0)
    if distinct < t.rows:
        repeats = "repeats" if t.rows - distinct == 1 else "repeat"
        found.append(
            f"{many(t.rows - distinct, 'row')} {repeats} an earlier one: those positions cannot be told apart."
        )
    if (t.relative_defect.value or 0.0) >= SAME:
        found.append("Scores that use it do not depend on distance alone.")
    if t.norm[1] - t.norm[0] > SAME * max(t.norm[1], 1.0):
        found.append("Positions differ in length, so some weigh more than others.")
    return found


def permutation(p: PermutationFacts) -> str:
    """What attention knows of order, with and without positions."""
    one, two = p.one_causal_layer.value or 0.0, p.two_causal_layers.value or 0.0
    plain = (
        "Without positions attention is blind to order (rows permute with the tokens to "
        f"{real(p.equivariance.value, 1)}); one causal layer leaves the last row blind to the order before it "
        f"({real(one, 1)}), two do not ({real(two, 3)})."
    )
    if not p.broken:
        return plain
    told = [f"adding {name} changes its rows by {share:.1%}" for name, share in p.broken]
    return f"{plain} In the same layer {listed(told)}."
