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
    yield said("linear", f"every pair is divided by {factor:g}: the ramp is missing", divided)
