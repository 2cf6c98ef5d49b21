"""The first row: which position it stands for, and whether a shift of all of them matters."""

from __future__ import annotations

import numpy as np

from posenc.checker.gathering import Gathered
from posenc.checker.recovery.angles import Waves, standing, wrap
from posenc.records.finding import Evidence, Recovered


def check_start(notes: Gathered, waves: Waves, rounding: float, *, relative: bool, expected: float = 0.0) -> float:
    """Which position the first row stands for; a common shift is harmless under a relative encoding.

    Returns:
        The shift in positions, 0 if there is none (or it is no shift).
    """
    notes.ran("first position")
    start = waves.start
    loose = 8 * rounding + 1e-4
    if np.abs(start).max(initial=0.0) <= loose:
        shift = 0.0
    else:
        shift, rest = standing(np.exp(1j * start), waves.theta, near=0.0, reach=64.0)
        if rest > 0.02 + loose or not np.isfinite(shift):
            if np.abs(wrap(start - np.pi / 2)).max() < loose * 4 or np.abs(wrap(start + np.pi / 2)).max() < loose * 4:
                notes.found(
                    "defect",
                    ("layout",),
                    "sine and cosine are swapped: position 0 is turned by a quarter turn",
                    evidence=[Evidence(name="angle at position 0", expected=0.0, seen=float(start[0]), unit="radians")],
                    cause="cos and sin were handed over in the wrong order",
                    recovered=[Recovered(name="sin and cos", value="swapped")],
                )
            else:
                i = int(np.abs(start).argmax())
                notes.found(
                    "defect",
                    ("layout",),
                    "position 0 is not the identity",
                    evidence=[
                        Evidence(
                            name="angle at position 0",
                            expected=0.0,
                            seen=float(start[i]),
                            where=f"pair {i}",
                            unit="radians",
                        )
                    ],
                )
            return 0.0
    near = round(shift)
    shift = float(near) if abs(shift - near) < 0.02 else shift
    if abs(shift - expected) < 0.02:
        return shift
    evidence = [
        Evidence(name="position that the first one stands for", expected=expected, seen=shift, unit="positions")
    ]
    recovered = [Recovered(name="offset", value=shift, expected=expected)]
    if relative:
        notes.found(
            "harmless",
            ("offset-cache",),
            f"every position is shifted by {shift:g}",
            evidence=evidence,
            recovered=recovered,
            cause="scores depend on differences alone, as long as queries and keys are shifted alike",
            remedy="Nothing, if queries and cached keys share the shift.",
        )
    else:
        verdict = "convention" if expected == 0 else "defect"
        notes.found(
            verdict,
            ("mask-padding", "offset-cache"),
            f"position 0 reads row {shift:g} in place of {expected:g}",
            evidence=evidence,
            recovered=recovered,
            cause="rows are reserved before the first position (a padding index)",
            like="padding",
        )
    notes.recover("offset", shift, expected)
    return shift
