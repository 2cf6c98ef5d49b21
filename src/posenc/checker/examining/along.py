"""Errors along positions: rounding of positions and angles, a table's end, a switch of scaling.

Each row is asked which position it really stands for. What the positions became says what happened to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.examining.half_precision import half_precision
from posenc.checker.examining.spectra import SAFE
from posenc.checker.gathering import Gathered, drawn
from posenc.checker.recovery.angles import Waves, all_standing, fit_waves, wrap
from posenc.records.finding import Evidence, FirstWrong, Recovered

FLOAT32 = 2.0**-24


def allowed(waves: Waves, theta: Array, rounding: float) -> Array:
    """``(n, pairs)`` angle error that honest float32 angles and the subject's own rounding explain.

    Frequencies that float32 arithmetic gives (Llama 3's ramp loses 6 ulp) were accepted before: their part is no error
    of positions.
    """
    grown = np.abs(np.outer(waves.positions, waves.theta))
    accepted = np.minimum(np.abs(np.abs(waves.theta) - np.abs(theta)), SAFE * np.abs(theta))
    frequencies = np.outer(np.abs(waves.positions), accepted + 3 * waves.error)
    return np.asarray(4 * rounding + 6 * FLOAT32 * grown + frequencies + 2e-6)


def check_along(
    notes: Gathered,
    waves: Waves,
    theta: Array,
    rounding: float,
    dtype: str,
    *,
    fractional: bool = False,
    what: str = "position",
) -> bool:
    """Look at every examined position, add a finding for what goes wrong, and say whether all is well.

    Args:
        notes: where findings go.
        waves: angles at positions.
        theta: ``(pairs,)`` the frequencies to measure against: recovered ones, so that a wrong base is not told twice.
        rounding: of the subject's results.
        dtype: its name.
        fractional: the positions hold fractions.
        what: what a position is called.
    """
    notes.ran("rounding along positions" if not fractional else "fractional positions")
    unit = waves.z / np.maximum(np.abs(waves.z), 1e-300)
    expected = np.exp(1j * (np.outer(waves.positions, theta) + waves.start))
    gap = np.abs(np.angle(unit * expected.conj()))
    bad = (gap > allowed(waves, theta, rounding)) & (np.abs(waves.z) > 1e-3)
    lost = np.abs(waves.z).max(axis=1) < 1e-3
    finite = np.isfinite(waves.z).all(axis=1)
    if not finite.all():
        at = float(waves.positions[~finite][0])
        notes.found(
            "defect",
            ("precision",),
            f"not a number at {what} {at:g}",
            first=FirstWrong(position=at, dtype=dtype),
            evidence=[Evidence(name="result", expected="finite", seen="nan", where=f"{what} {at:g}")],
        )
        return False
    wrong = bad.any(axis=1) | lost
    notes.measure(
        f"largest angle error{' at fractional positions' if fractional else ''}",
        float(gap.max()),
        f"radians, {what}s up to {waves.positions.max():g}, {dtype}",
    )
    if not wrong.any():
        return True
    reach = max(2.0 * waves.positions.max(), 512.0)
    stands, left = all_standing(unit * np.exp(-1j * waves.start), theta, waves.positions, reach)
    _explain(notes, waves, stands, left, wrong, lost, gap, theta, rounding, dtype, what)
    return False


def _explain(
    notes: Gathered,
    waves: Waves,
    stands: Array,
    left: Array,
    wrong: Any,
    lost: Any,
    gap: Array,
    theta: Array,
    rounding: float,
    dtype: str,
    what: str,
) -> None:
    p = waves.positions
    k = int(np.flatnonzero(wrong)[0])
    pair = int((gap[k] - 0).argmax())
    first = FirstWrong(position=float(p[k]), pair=pair, dtype=dtype)
    evidence = [
        Evidence(
            name="angle",
            expected=float(wrap(p[k] * theta[pair])),
            seen=float(np.angle(waves.z[k, pair])),
            where=f"{what} {p[k]:g}, pair {pair}",
            unit="radians",
        ),
        Evidence(
            name="position that the angles stand for", expected=float(p[k]), seen=float(stands[k]), unit="positions"
        ),
        Evidence(name="largest angle error", expected=0.0, seen=float(gap.max()), unit="radians"),
    ]
    picture = [drawn("largest angle error by position", what, "radians", p, gap.max(axis=1), log=False)]
    clear = bool(np.isfinite(stands).all() and np.median(left[wrong]) < 0.05 + 8 * rounding)
    unit = waves.z / np.maximum(np.abs(waves.z), 1e-300) * np.exp(-1j * waves.start)

    def fits(mapped: Array) -> bool:
        return clear and bool(
            (np.abs(stands - mapped) <= 1e-3 * np.maximum(p, 1) + 0.05 + 20 * rounding)[np.abs(p) > 0].all()
        )

    def say(kinds: tuple[str, ...], title: str, cause: str, shape: str, *recovered: Recovered) -> None:
        like = {"precision": "bf16 autocast fp16-table", "position-rounding": "fractional"}.get(kinds[0], "table")
        notes.found(
            "defect",
            kinds,
            title,
            evidence=evidence,
            first=first,
            shape=shape,
            cause=cause,
            like=like,
            recovered=recovered,
            drawn=picture,
        )
        for each in recovered:
            notes.recover(each.name, each.value, each.expected)

    half = half_precision(p, theta, unit, gap, rounding)
    if half is not None:
        say(*half)
        return
    whole = np.array([np.floor(p), np.rint(p), np.ceil(p)])
    for name, mapped in zip(("floored", "rounded", "ceiled"), whole, strict=True):
        if (p != np.rint(p)).any() and fits(mapped):
            say(
                ("position-rounding",),
                f"fractional positions are {name} to whole ones",
                f"positions are {name} to integers",
                "zero at whole positions",
                Recovered(name="positions", value=name, expected="real"),
            )
            return
    if clear:
        top = float(np.max(stands))
        if fits(np.minimum(p, round(top))) and round(top) < p.max():
            rows = round(top) + 1
            say(
                ("table-length",),
                f"positions from {rows} on are treated as {rows - 1}: the table has {rows} rows and its end is clamped",
                "an index beyond the table is clamped in place of refused",
                "a step at the end of the table",
                Recovered(name="rows of the table", value=rows),
            )
            return
        folded = np.flatnonzero(stands < p - 0.5)
        if len(folded):
            period = round(float(p[folded[0]] - stands[folded[0]]))
            if period > 0 and fits(np.where(p < period, p, p % period)):
                say(
                    ("table-length",),
                    f"positions wrap around after {period} rows",
                    "an index beyond the table starts again at its beginning",
                    "a step at the end of the table",
                    Recovered(name="rows of the table", value=period),
                )
                return
        for last, mapped in _steps(p, stands):
            if fits(mapped):
                say(
                    ("table-length", "offset-cache"),
                    f"from position {last:g} on, tokens are turned as if they "
                    f"stood {_shift(p, stands):g} positions away",
                    "positions jump",
                    "a step",
                    Recovered(name="jump", value=_shift(p, stands), expected=0.0),
                )
                return
    if lost.any():
        at = float(p[lost][0])
        say(
            ("table-length",),
            f"rows from position {at:g} on hold zeros",
            "memory beyond the table is read, or the rest of the result was never filled",
            "a step at the end of the table",
            Recovered(name="rows of the table", value=int(at)),
        )
        return
    far = p >= p[k]
    if far.sum() >= 4 and not wrong[p < p[k]].any():
        z = waves.z[far] * np.exp(-1j * np.outer(p[far], theta))
        steady = fit_waves(p[far] - p[far][0], z)
        if np.abs(steady.residual).max() < 0.05:
            say(
                ("scaling-parameters", "state-leak"),
                f"other frequencies are used from position {p[k]:g} on",
                "a scaling switches with the length that was called for",
                "a step at a threshold",
                Recovered(name="switch", value=float(p[k])),
            )
            return
    growing = np.corrcoef(p[p > 0], gap.max(axis=1)[p > 0])[0, 1] if (p > 0).sum() > 3 else 0.0
    shape = "grows in proportion to the position" if growing > 0.9 else "in bursts at large positions"
    notes.found(
        "defect",
        ("precision", "table-length"),
        f"angles are off from {what} {p[k]:g} on, by up to {gap.max():.3g} radians",
        evidence=evidence,
        first=first,
        shape=shape,
        drawn=picture,
    )


def _steps(p: Array, stands: Array) -> list[tuple[float, Array]]:
    shift = stands - p
    at = np.flatnonzero(np.abs(shift) > 0.5)
    if not len(at):
        return []
    jump = float(np.median(shift[at]))
    first = float(p[at[0]])
    return [(first, np.where(p >= first, p + jump, p))]


def _shift(p: Array, stands: Array) -> float:
    shift = stands - p
    return float(round(float(np.median(shift[np.abs(shift) > 0.5])), 3))
