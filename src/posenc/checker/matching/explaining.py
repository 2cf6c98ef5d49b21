"""All hypotheses scored, the best that fits chosen; pairs of faults where no single one fits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.matching.explanation import Explanation, deviation, distance
from posenc.checker.matching.scaled import scaling_hypotheses
from posenc.checker.matching.spectrum import Wanted, minimum
from posenc.checker.matching.unscaled import rounded, schedule_hypotheses


@dataclass(frozen=True)
class Comparison:
    """Recovered frequencies beside the wanted ones.

    Args:
        same: every pair agrees within its tolerance.
        worst: largest relative deviation.
        pair: the first pair that deviates; None if none does.
        count: how many deviate.
        best: the explanation chosen; None where nothing fits.
        others: other explanations that fit as well.
    """

    same: bool
    worst: float
    pair: int | None
    count: int
    best: Explanation | None
    others: tuple[Explanation, ...]


def compare(
    theta: Array, wanted: Wanted, tolerance: Array | float, widths: dict[str, float] | None = None, floor: float = 0.0
) -> Comparison:
    """Compare ``(pairs,)`` recovered frequencies with the wanted ones and explain what differs.

    Args:
        theta: as recovered; the sign is that of the rotation.
        wanted: the wanted frequencies.
        tolerance: relative, for each pair: what the measurement can tell.
        widths: other numbers at hand that a fault may use in place of the right one: ``width:head_dim``,
            ``factor:linear.factor``.
        floor: frequencies below this count as 0.

    >>> from posenc.spec import Rotary
    >>> from posenc.formulas import frequencies
    >>> seen = frequencies(Rotary(64, base=5e5)).fused
    >>> round(compare(seen, Wanted(Rotary(64)), 1e-6).best.recovered[0].value, 3)
    500000.0
    """
    plain = wanted.theta()
    gap = deviation(theta, plain, floor)
    tolerance = np.broadcast_to(np.asarray(tolerance, dtype=np.float64), gap.shape)
    wrong = np.flatnonzero(gap > tolerance)
    if not len(wrong):
        return Comparison(True, float(gap.max(initial=0.0)), None, 0, None, ())
    worst = float(gap.max())
    fits = []
    for each in (*hypotheses(theta, wanted, widths or {}, floor), *together(theta, wanted, floor)):
        if each.theta.shape != theta.shape:
            continue
        left = deviation(theta, each.theta, floor)
        over = float((left / np.maximum(tolerance, 1e-12)).max())
        within = over <= 1.5 or (each.residual < 0.02 * worst and each.residual < 2e-3)
        if within and each.residual < 0.2 * worst:
            fits.append((each.fitted + 0.1 * each.prior + (0.0 if over <= 1.5 else 2.0), each.residual, each))
    fits.sort(key=lambda f: (f[0], f[1]))
    chosen = [f[2] for f in fits]
    best = chosen[0] if chosen else None
    others = tuple(e for e in chosen[1:4] if best and e.key != best.key)
    return Comparison(False, worst, int(wrong[0]), len(wrong), best, others)


def hypotheses(theta: Array, wanted: Wanted, widths: dict[str, float], floor: float) -> Iterator[Explanation]:
    """Every single hypothesis."""
    yield from schedule_hypotheses(theta, wanted, widths, floor)
    yield from scaling_hypotheses(theta, wanted, floor)


def together(theta: Array, wanted: Wanted, floor: float) -> Iterator[Explanation]:
    """Two faults at once: another base with the scaling left out; each half-precision rounding after another base."""
    geometric = wanted.geometric
    if geometric is None or wanted.pairs < 3 or not wanted.chain:
        return
    start = Wanted(wanted.encoding.replace(scaling=()) if hasattr(wanted.encoding, "scaling") else wanted.encoding)
    base, _ = minimum(lambda b: distance(theta, start.theta(base=b), floor), 1.5, 1e12)
    predicted = start.theta(base=base)
    residual = float(deviation(theta, predicted, floor).max())
    from posenc.records.finding import Recovered

    words = "10000, the default of many libraries" if math.isclose(base, 1e4, rel_tol=2e-3) else f"{base:.6g}"
    yield Explanation(
        key="base, unscaled",
        kinds=("config-parsing", "scaling-parameters"),
        cause=f"the base is {words} and no scaling is applied: the whole configuration was not read",
        residual=residual,
        fitted=1,
        recovered=(
            Recovered(name="base", value=base, expected=geometric.base),
            Recovered(name="scaling", value="none", expected=" >> ".join(k for k, _ in wanted.chain)),
        ),
        theta=predicted,
        prior=1 if any(math.isclose(base, b, rel_tol=2e-3) for b in (1e4, 5e5, 1e6)) else 6,
    )
    for dtype in ("bfloat16", "float16"):
        near = rounded(start.theta(), dtype)
        yield Explanation(
            f"unscaled {dtype}",
            ("scaling-parameters", "precision"),
            f"no scaling is applied, and the frequencies were rounded to {dtype}",
            float(deviation(theta, near, floor).max()),
            theta=near,
        )
