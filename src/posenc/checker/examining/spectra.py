"""Recovered frequencies, gains and growth beside those of the wanted encoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.gathering import Gathered, drawn
from posenc.checker.matching.explaining import Comparison, compare
from posenc.checker.matching.explanation import Explanation, deviation
from posenc.checker.matching.gains import gain_readings
from posenc.checker.matching.spectrum import Wanted
from posenc.checker.recovery.angles import Waves
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Rotary

SAFE = 6e-6
"""Relative: what float32 arithmetic loses when it raises a base to a power, whichever way it is written."""


def widths_of(wanted: Wanted, more: dict[str, float] | None = None) -> dict[str, float]:
    """Numbers at hand that a fault may use in place of the right one."""
    found = dict(more or {})
    e = wanted.encoding
    if isinstance(e, Rotary):
        found["width:head_dim"] = e.head_dim
        found["width:rotary_dim"] = e.rotary_dim
    found["width:pairs"] = wanted.pairs
    for kind, settings in wanted.chain:
        if settings.get("factor"):
            found[f"factor:{kind}.factor"] = float(settings["factor"])
    return found


def check_frequencies(
    notes: Gathered,
    theta: Array,
    wanted: Wanted,
    tolerance: Array | float,
    *,
    widths: dict[str, float] | None = None,
    floor: float = 0.0,
    what: str = "turns",
    dtype: str | None = None,
    of: str = "pair",
    trained: bool = False,
    rounded: bool = False,
) -> Comparison:
    """Compare frequencies pair by pair and add a finding for what differs.

    Args:
        notes: where findings go.
        theta: ``(pairs,)`` recovered, signed.
        wanted: the wanted ones.
        tolerance: relative, what the measurement can tell.
        widths: further numbers that a fault may use (``width:…``, ``factor:…``).
        floor: below this a frequency counts as 0.
        what: ``turns`` for rotations, ``oscillates`` for tables.
        dtype: of the subject, for the record.
        of: what an index counts.
        trained: the numbers are stored ones, which a model may have been trained with.
        rounded: rounding of positions or angles explains the angles seen: that is told elsewhere, not as frequencies.
    """
    notes.ran("frequencies")
    result = compare(theta, wanted, tolerance, widths_of(wanted, widths), floor)
    notes.measure("largest relative deviation of a frequency", result.worst, f"{len(theta)} {of}s")
    if result.same or rounded:
        return result
    plain = wanted.theta()
    i = result.pair or 0
    at = int(np.argmax(deviation(theta, plain, floor)))
    evidence = [_evidence(i, theta, plain, of)]
    if at != i:
        evidence.append(_evidence(at, theta, plain, of))
    curve = drawn(
        f"radians per position by {of}",
        of,
        "radians per position",
        np.arange(len(theta)),
        np.abs(theta),
        np.abs(plain),
        log=True,
    )
    first = FirstWrong(pair=i, of=of, dtype=dtype)
    best = result.best
    length = "" if wanted.length is None else f" (rows of length {wanted.length})"
    title = f"{result.count} of {len(theta)} {of}s {_verb(what)} at another frequency than wanted{length}"
    if best is None:
        notes.found(
            "defect",
            ("exponent", "scaling-parameters"),
            title,
            evidence=evidence,
            first=first,
            shape="the error grows with the position",
            drawn=[curve],
            remedy="No known fault gives these frequencies; the numbers above are what was recovered.",
        )
        return result
    verdict = "convention" if best.convention else "defect"
    if trained and best.key == "rounded float16":
        verdict = "convention"
    others = [*best.readings, *(o.cause for o in result.others)]
    cause = best.cause + ("" if not others else ". Other readings: " + "; ".join(others[:3]))
    evidence.append(Evidence(name="largest deviation from this explanation", seen=best.residual, expected=0.0))
    notes.found(
        verdict,
        _kinds(best, wanted),
        title,
        evidence=evidence,
        first=first,
        shape="the error grows in proportion to the position",
        cause=cause,
        like=f"{best.key} {wanted.chain[0][0] if wanted.chain else ''}",
        remedy="Use the wanted base; read it from the configuration in every spelling." if best.key == "base" else None,
        recovered=best.recovered,
        drawn=[curve],
    )
    for each in best.recovered:
        notes.recover(each.name, each.value, each.expected, each.error)
    return result


def _kinds(best: Explanation, wanted: Wanted) -> tuple[str, ...]:
    if best.key.startswith("rounded"):
        return ("precision", "buffer-state-dict")
    del wanted
    return best.kinds


def _verb(what: str) -> str:
    return {"turns": "turn", "oscillates": "oscillate"}.get(what, what)


def _evidence(i: int, theta: Array, plain: Array, of: str) -> Evidence:
    ratio = f", ratio {theta[i] / plain[i]:.6g}" if plain[i] else ""
    return Evidence(
        name=f"radians per position of {of} {i}{ratio}",
        expected=float(plain[i]),
        seen=float(theta[i]),
        where=f"{of} {i}",
        unit="radians",
    )


def check_gain(notes: Gathered, waves: Waves, wanted: Wanted, tolerance: float, pairs: Sequence[int]) -> None:
    """Compare gains (and xPos' growth) with the wanted ones.

    Args:
        notes: where findings go.
        waves: their ``gain`` and ``growth``; what rounding left uneven in them is allowed for.
        wanted: the wanted ones.
        tolerance: relative.
        pairs: indices of the pairs, for the evidence.
    """
    notes.ran("gain")
    f = wanted.frequencies()
    right, gain, growth = f.gain, waves.gain, waves.growth
    tolerance += 2 * float(waves.unevenness.max(initial=0.0))
    unsure = 4 * tolerance / 256 + 8 * waves.growth_error
    if (np.abs(growth) > unsure + 1e-7).any() or np.abs(f.growth).any():
        _check_growth(notes, gain, growth, f, unsure)
        return
    if not len(gain):
        return
    middle = float(np.median(gain))
    notes.measure("gain on cos and sin", middle, f"wanted {right:.6g}")
    if np.ptp(gain) > 8 * tolerance * max(middle, 1e-300):
        worst = int(np.abs(gain - right).argmax())
        if abs(middle - right) <= tolerance * right:
            notes.found(
                "defect",
                ("attention-factor",),
                "the gain differs between pairs",
                first=FirstWrong(pair=pairs[worst]),
                evidence=[Evidence(name="gain", expected=right, seen=float(gain[worst]), where=f"pair {pairs[worst]}")],
            )
            return
    if abs(middle - right) <= tolerance * right:
        return
    said = gain_readings(middle, wanted)
    recovered = [Recovered(name="attention factor", value=middle, expected=right)]
    recovered += [Recovered(name=r.name, value=r.value) for r in said[:1] if r.name]
    notes.found(
        "defect",
        said[0].kinds if said else ("attention-factor",),
        f"cos and sin are multiplied by {middle:.6g} in place of "
        f"{right:.6g}: scores are off by {(middle / right) ** 2:.4g}",
        evidence=[
            Evidence(name="gain on cos and sin", expected=right, seen=middle),
            Evidence(name="factor on scores", expected=1.0, seen=(middle / right) ** 2),
        ],
        shape="a constant factor at every position",
        cause="; or ".join(r.cause for r in said) or None,
        like="factor",
        recovered=recovered,
    )
    notes.recover("attention factor", middle, right)


def _check_growth(notes: Gathered, gain: Array, growth: Array, f: Any, unsure: Array) -> None:
    right = f.growth
    gap = np.abs(growth - right)
    scale = max(float(np.abs(right).max()), float(np.abs(growth).max()), 1e-300)
    notes.measure(
        "largest growth per position", float(np.abs(growth).max()), f"wanted {float(np.abs(right).max()):.6g}"
    )
    if (gap <= 0.02 * scale + unsure).all():
        with np.errstate(all="ignore"):
            centres = -np.log(gain / f.gain)[np.abs(right) > 0.2 * scale] / right[np.abs(right) > 0.2 * scale]
        if len(centres) and np.ptp(centres) < 0.05 * abs(np.median(centres)) + 1 and abs(np.median(centres)) > 0.5:
            notes.found(
                "harmless",
                ("offset-cache",),
                f"xPos counts from position {np.median(centres):.6g}",
                cause="scores depend on differences alone, as long as queries and cached keys share this centre",
                evidence=[Evidence(name="centre", expected=0.0, seen=float(np.median(centres)), unit="positions")],
                remedy="Keep the centre constant for the life of a cache.",
            )
        return
    if not right.any():
        cause = "an xPos growth that nobody asked for"
    elif np.abs(growth + right).max() <= 0.02 * scale:
        cause = "the growth has the opposite sign: queries shrink and keys grow"
    elif np.abs(growth).max() <= 1e-7:
        cause = "the growth of xPos is missing"
    else:
        live = np.abs(right) > 0.2 * scale
        ratio = float(np.median(growth[live] / right[live])) if live.any() else math.nan
        cause = f"the growth is {ratio:.4g} times the wanted one (scale base {1 / ratio:.4g} times)" if ratio else None  # type: ignore[assignment]
    i = int((gap - unsure).argmax())
    notes.found(
        "defect",
        ("scaling-parameters", "attention-factor"),
        "gains grow with position otherwise than wanted",
        cause=cause,
        evidence=[
            Evidence(name="log gain per position", expected=float(right[i]), seen=float(growth[i]), where=f"pair {i}")
        ],
        shape="exponential in the position",
        first=FirstWrong(pair=i),
    )
