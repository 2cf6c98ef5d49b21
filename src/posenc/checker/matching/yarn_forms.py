"""Known wrong ways to compute YaRN."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.matching.explanation import Explanation, deviation
from posenc.checker.matching.spectrum import Wanted, run
from posenc.formulas.scalings import based, blend, ramp, turning_pair
from posenc.records.finding import Recovered

FACTORS = {
    "log2 is taken of the base": math.log(2),
    "log10 is taken of the base": math.log(10),
    "log2 is taken of the turns": 1 / math.log(2),
    "log10 is taken of the turns": 1 / math.log(10),
    "the width is not halved": 2.0,
    "half the width is halved again": 0.5,
}
"""Slips that multiply both ends of the ramp."""


def _up(pairs: int, ends: tuple[float, ...], dim: int, truncate: bool) -> Array:
    """The ramp between two ends, as YaRN rounds and bounds them."""
    low, high = (math.floor(ends[0]), math.ceil(ends[1])) if truncate else ends
    low, high = max(low, 0), min(high, dim - 1)
    return np.asarray(np.clip((np.arange(pairs) - low) / max(high - low, 1e-3), 0.0, 1.0))


def _other_ends(
    theta: Array,
    pairs: int,
    ends: tuple[float, float],
    kept_and_divided: tuple[Array, Array],
    dim: int,
    s: dict[str, Any],
    floor: float,
) -> Iterator[Explanation]:
    """Both ends of the ramp multiplied by what a slip in their formula gives."""
    kept, divided = kept_and_divided
    for words, factor in FACTORS.items():
        moved = (ends[0] * factor, ends[1] * factor)
        predicted = blend(divided, kept, _up(pairs, moved, dim, bool(s["truncate"])))
        yield Explanation(
            "ends",
            ("scaling-parameters",),
            f"in the ends of the ramp {words}: {moved[0]:.4g} and {moved[1]:.4g} in place of {ends[0]:.4g} and "
            f"{ends[1]:.4g}",
            float(deviation(theta, predicted, floor).max()),
            0,
            (Recovered(name="ends of the ramp over the wanted ones", value=factor, expected=1.0),),
            predicted,
        )


def yarn_forms(theta: Array, wanted: Wanted, i: int, s: dict[str, Any], floor: float) -> Iterator[Explanation]:
    """YaRN's ramp upside down, its upper end clamped to the pairs, its factor inside the power."""
    try:
        f = run(wanted.start(), wanted.chain[:i], wanted.length)
        base, dim = based(f, "yarn")
    except (ArithmeticError, ValueError):
        return
    fast, slow, original, factor = (float(s[n]) for n in ("beta_fast", "beta_slow", "original", "factor"))
    kept, divided = f.fused, f.fused / factor
    up = ramp(f, original, fast, slow, truncate=bool(s["truncate"]))
    low, high = (turning_pair(turns, original, dim, base) for turns in (fast, slow))

    def said(key: str, cause: str, predicted: Array, *recovered: Recovered) -> Explanation:
        residual = float(deviation(theta, predicted, floor).max())
        return Explanation(key, ("scaling-parameters",), cause, residual, 0, recovered, predicted)

    yield said("ramp", "the ramp is upside down: fast pairs are scaled and slow ones kept", blend(kept, divided, up))
    for truncate in (True, False):
        a, b = (math.floor(low), math.ceil(high)) if truncate else (low, high)
        clamped = min(b, f.pairs - 1)
        if clamped < min(b, dim - 1):
            shape = np.clip((np.arange(f.pairs) - max(a, 0)) / max(clamped - max(a, 0), 1e-3), 0, 1)
            words = "the upper end of the ramp is clamped to the last pair (half the width less one)"
            rounded = "" if truncate == bool(s["truncate"]) else ", and its ends are rounded otherwise than asked"
            yield said(
                "clamp",
                words + rounded,
                blend(divided, kept, shape),
                Recovered(name="ramp end", value=float(clamped), expected=float(min(b, dim - 1))),
            )
    try:
        geometric = wanted.geometric
        inside = wanted.start(base=geometric.base * factor).fused if geometric is not None else divided
        yield said(
            "inside",
            "the factor stands inside the power: (factor * base)^(-2i/d) in place of base^(-2i/d) / factor",
            blend(inside, kept, up),
        )
    except (ArithmeticError, ValueError):
        pass
    yield from _other_ends(theta, f.pairs, (low, high), (kept, divided), dim, s, floor)
    for name, turned in (
        ("2 pi is missing where turns are counted", 1 / (2 * math.pi)),
        ("half of the pair's turns are counted: pi in place of 2 pi", 0.5),
    ):
        ends = tuple(turning_pair(turns * turned, original, dim, base) for turns in (fast, slow))
        for truncate in (True, False):
            yield said(
                "turns", f"in the ends of the ramp {name}", blend(divided, kept, _up(f.pairs, ends, dim, truncate))
            )
    if base != 10000.0:
        ends = tuple(turning_pair(turns, original, dim, 10000.0) for turns in (fast, slow))
        yield said(
            "base of the ramp",
            f"the ends of the ramp are those of base 10000, not {base:g}",
            blend(divided, kept, _up(f.pairs, ends, dim, bool(s["truncate"]))),
            Recovered(name="base of the ramp", value=10000.0, expected=base),
        )
    yield said("linear", f"every pair is divided by {factor:g}: the ramp is missing", divided)
