"""Known schedules that frequencies follow, in round numbers, and how sure that is."""

from __future__ import annotations

import math
from typing import Any

from posenc.checker.boxes import Array
from posenc.checker.matching.explanation import deviation
from posenc.checker.matching.geometric import fit_geometric
from posenc.checker.matching.ramps import form_words, ramp_of
from posenc.errors import PosencError
from posenc.formulas.scalings import frequencies
from posenc.formulas.spectrum import scheduled
from posenc.spec import Geometric, parse


def spectra(theta: Array, width: int) -> list[tuple[dict[str, Any], float, str | None]]:
    """Known schedules that frequencies follow: parameters, residual, remark; the best first.

    >>> import numpy as np
    >>> spectra(np.array([1.0, 0.1, 0.01, 0.001]), 8)[0][0]["base"]
    10000.0
    """
    found: list[tuple[dict[str, Any], float, str | None]] = []
    fit = fit_geometric(theta)
    if fit is None:
        return found
    if fit.residual < 0.02:
        base, first = fit.base(width), fit.first
        if 1 < base < 1e30:
            near = rounded_to(base, max(1e-6, 3 * fit.residual * max(1.0, math.log(base))))
            remark = None
            half = width / 2
            shifted = math.exp(fit.step * (half - 1)) if half > 1 and fit.step * half < 600 else 0.0
            parameters: dict[str, Any] = {"base": near}
            if abs(first - 1) > 1e-3 + fit.residual:
                parameters["first"] = rounded_to(first, max(1e-6, 3 * fit.residual))
            root = math.sqrt(near)
            if is_round(rounded_to(shifted, 1e-5)) and not is_round(near):
                parameters |= {"base": rounded_to(shifted, 1e-5), "shift": 1.0}
                remark = f"or base {base:.6g} with the paper's denominator"
            elif near >= 1e6 and is_round(root) and root in (1e3, 1e4, 1e5):
                remark = (
                    f"base {root:g} with an exponent that counts the index "
                    "twice gives the same frequencies; its longest "
                    f"wavelength {2 * math.pi / theta[-1]:.4g} tells that such a "
                    f"table was hardly meant to reach {2 * math.pi * root:.4g}"
                )
            found.append((parameters, fit.residual, remark or _as_a_scaling(parameters, width, base)))
    if fit.residual >= 1e-4:
        for base in (1e4, 5e5, 1e6, 1e5, 5e6, 1.5e5, 1e7, 8e6, 2.5e5, 5e4):
            plain = scheduled(Geometric(base=base), len(theta), float(width))
            ramp = ramp_of(theta, plain)
            if ramp is None:
                continue
            factor, start, end, form, residual, _ = ramp
            if residual < 1e-3:
                where = f"{form_words(form)} from pair {start} to {end}"
                exact = _published(theta, width, base, factor, form)
                scaling = exact[0] if exact else f" with a scaling by {factor:.6g}"
                if len(exact) > 1:
                    where += f"; or{exact[1].replace(' >>', '')}: rounded ends hide which"
                found.append(({"base": base, "scaling": scaling}, residual, where))
    return sorted(found, key=lambda f: f[1])


ORIGINALS = tuple(2**k for k in range(10, 19))


def _published(theta: Array, width: int, base: float, factor: float, form: str) -> list[str]:
    """The scalings in notation, with the numbers that models are published with, that give these frequencies."""
    found = []
    for original in ORIGINALS:
        ends = (
            (f"llama3({factor:g}, original={original})",)
            if form == "llama3"
            else tuple(f"yarn({factor:g}, original={original}{t})" for t in ("", ", truncate=False"))
        )
        for line in ends:
            try:
                value: Any = parse(f"rotary({width}, base={base:.17g}) >> {line}")[0]
                predicted = frequencies(value).fused
            except (PosencError, ArithmeticError):
                continue
            if deviation(theta, predicted).max() < 2e-5:
                found.append(f" >> {line}")
    return found


def _as_a_scaling(parameters: dict[str, Any], width: int, base: float) -> str | None:
    """What makes a first frequency or a base that nobody writes: linear interpolation, an NTK-aware base."""
    first = float(parameters.get("first", 1.0))
    if is_round(rounded_to(1 / first, 1e-5)) and first < 1:
        return f"or linear({rounded_to(1 / first, 1e-5):g}): every position divided by it"
    if first != 1 or is_round(float(parameters["base"])) or width <= 2:
        return None
    for plain in (1e4, 5e5, 1e6):
        factor = (base / plain) ** ((width - 2) / width)
        near = rounded_to(factor, 1e-4)
        if 1 < near <= 1024 and is_round(near):
            return f"or base {plain:g} >> ntk({near:g})"
    return None


def rounded_to(value: float, relative: float) -> float:
    """The number with the fewest digits within a relative distance."""
    for digits in range(1, 8):
        near = float(f"{value:.{digits - 1}e}")
        if abs(near - value) <= relative * abs(value):
            return near
    return value


def is_round(value: float) -> bool:
    return value > 0 and float(f"{value:.1e}") == value


def confidence(residual: float, share: float | None = None) -> str:
    """How sure an identification is, with its reason.

    >>> confidence(1e-7), confidence(0.5)
    ('certain: within rounding', 'poor: only a resemblance')
    """
    if share is not None and share < 0.9:
        return f"low: sinusoids explain {100 * share:.0f} % of the energy"
    if residual < 2e-5:
        return "certain: within rounding"
    if residual < 2e-3:
        return "high: within half-precision rounding"
    return "fair: noise or training may hide the exact numbers" if residual < 0.05 else "poor: only a resemblance"


def some_of(theta: Array) -> str:
    shown = [f"{v:.6g}" for v in (theta if len(theta) <= 6 else [*theta[:3], *theta[-2:]])]
    return ", ".join(shown if len(theta) <= 6 else [*shown[:3], "…", *shown[3:]])
