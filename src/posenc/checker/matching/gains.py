"""A gain that is not the wanted one: left out, squared, inverted, without its quotient, of another factor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from posenc.checker.matching.spectrum import Wanted
from posenc.formulas.scalings import mscale


@dataclass(frozen=True)
class GainReading:
    """What a gain may come from: kinds, words, and a parameter if one was recovered."""

    kinds: tuple[str, ...]
    cause: str
    name: str | None = None
    value: float | None = None


def gain_readings(seen: float, wanted: Wanted, tolerance: float = 2e-3) -> list[GainReading]:
    """Readings of a gain on cos and sin, the likeliest first; empty if nothing known gives it.

    >>> from posenc.spec import Rotary, Yarn
    >>> w = Wanted(Rotary(64) >> Yarn(4, original=4096))
    >>> gain_readings(1.0, w)[0].cause
    'the attention factor 1.13863 is not applied to cos and sin'
    """
    right = wanted.gain()
    found: list[GainReading] = []

    def near(value: float) -> bool:
        return value > 0 and abs(seen - value) <= tolerance * value

    if near(1.0) and right != 1:
        found.append(
            GainReading(("attention-factor",), f"the attention factor {right:.6g} is not applied to cos and sin")
        )
    if near(right * right) and right != 1:
        found.append(
            GainReading(
                ("attention-factor", "double-application"), f"the attention factor {right:.6g} is applied twice"
            )
        )
    if right != 1 and near(1 / right):
        found.append(GainReading(("attention-factor",), f"cos and sin are divided by the attention factor {right:.6g}"))
    if right != 1 and near(math.sqrt(right)):
        found.append(GainReading(("attention-factor",), "the square root of the attention factor is applied"))
    for kind, s in wanted.chain:
        factor = float(s.get("factor") or 0)
        if kind == "yarn" and factor > 1:
            m, all_dim = s.get("mscale"), s.get("mscale_all_dim")
            if near(mscale(factor)) and abs(right - mscale(factor)) > tolerance:
                why = (
                    "mscale and mscale_all_dim are ignored"
                    if m and all_dim
                    else "the explicit attention factor is ignored"
                )
                found.append(
                    GainReading(("attention-factor", "config-parsing"), f"the gain is 0.1 ln({factor:g}) + 1: {why}")
                )
            for name, value in (
                ("mscale", m),
                ("mscale_all_dim", all_dim),
                ("softmax_mscale", s.get("softmax_mscale")),
            ):
                if value and near(mscale(factor, float(value))):
                    found.append(
                        GainReading(("attention-factor",), f"{name} = {value:g} alone is applied to cos and sin")
                    )
                if value and near(mscale(factor, float(value)) ** 2):
                    found.append(
                        GainReading(
                            ("attention-factor",),
                            f"the square that belongs to the softmax scale ({name}) is applied to cos and sin",
                        )
                    )
        if kind == "longrope" and factor > 1:
            original = float(s["original"])
            if near(0.1 * math.log(factor) + 1):
                found.append(GainReading(("attention-factor",), "YaRN's factor 0.1 ln(s) + 1 is used for LongRoPE"))
            if near(math.sqrt(1 + math.log(factor) / math.log(original))) and abs(right - seen) > tolerance:
                found.append(
                    GainReading(("attention-factor", "config-parsing"), "the explicit attention factor is ignored")
                )
    if not found and seen > 1 and any(kind == "yarn" for kind, _ in wanted.chain):
        factor = math.exp((seen - 1) / 0.1)
        found.append(
            GainReading(
                ("attention-factor", "scaling-parameters"),
                f"a gain of 0.1 ln(s) + 1 with s = {factor:.6g}",
                "factor of the gain",
                factor,
            )
        )
    if not found and right == 1 and seen > 1:
        factor = math.exp((seen - 1) / 0.1)
        if factor < 4096 and abs(factor - round(factor)) < 5e-3 * factor:
            found.append(
                GainReading(
                    ("attention-factor",),
                    f"YaRN's attention factor for s = {factor:.4g}, which nobody asked for",
                    "factor of the gain",
                    factor,
                )
            )
    return found
