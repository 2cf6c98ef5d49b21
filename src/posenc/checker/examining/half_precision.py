"""Where a half-precision type entered: positions, frequencies or angles, by the angles it would give."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.matching.unscaled import rounded
from posenc.checker.recovery.angles import Waves
from posenc.records.finding import Recovered


def rounding_explains(waves: Waves, theta: Array, rounding: float) -> bool:
    """Whether a half-precision type somewhere gives these angles from the given frequencies, and exact ones do not."""
    unit = waves.z / np.maximum(np.abs(waves.z), 1e-300) * np.exp(-1j * waves.start)
    gap = np.abs(np.angle(unit * np.exp(-1j * np.outer(waves.positions, theta))))
    if gap.max(initial=0.0) <= 16 * rounding + 1e-5:
        return False
    found = half_precision(waves.positions, theta, unit, gap, rounding)
    return found is not None and found[4].name not in ("dtype of the frequencies",)


def half_precision(
    p: Array, theta: Array, unit: Any, gap: Array, rounding: float
) -> tuple[tuple[str, ...], str, str, str, Recovered] | None:
    """Where a half-precision type entered: the simulated angles that come nearest, if they come near."""
    tries: list[tuple[float, tuple[tuple[str, ...], str, str, str, Recovered]]] = []
    for name in ("bfloat16", "float16"):
        low_p, low_theta = rounded(p, name), rounded(theta, name)
        last = {"bfloat16": 256, "float16": 2048}[name]
        forms = (
            (
                np.outer(low_p, theta),
                ("precision",),
                f"positions are held in {name}: from {last} on, neighbours share one angle",
                f"positions were rounded to {name} before they met the frequencies",
                "exact up to a power of two, then in bursts",
                "positions",
            ),
            (
                np.outer(p, low_theta),
                ("precision", "buffer-state-dict"),
                f"frequencies are held in {name}",
                f"the frequencies were rounded to {name}",
                "grows in proportion to the position",
                "frequencies",
            ),
            (
                np.outer(low_p, low_theta),
                ("precision", "buffer-state-dict"),
                f"positions and frequencies are held in {name}",
                f"positions and frequencies were rounded to {name}",
                "grows in proportion to the position",
                "positions",
            ),
            (
                rounded(np.outer(p, theta), name),
                ("precision",),
                f"angles are held in {name}",
                f"angles were rounded to {name} before cosine and sine",
                "grows in proportion to the angle, in bursts",
                "angles",
            ),
            (
                rounded(np.outer(p, low_theta), name),
                ("precision",),
                f"angles are held in {name}",
                f"frequencies and angles were rounded to {name} before cosine and sine",
                "grows in proportion to the angle, in bursts",
                "angles",
            ),
            (
                rounded(np.outer(low_p, low_theta), name),
                ("precision",),
                f"angles are held in {name}",
                f"positions, frequencies and angles were rounded to {name} before cosine and sine",
                "grows in proportion to the angle, in bursts",
                "angles",
            ),
        )
        for angle, kinds, title, cause, shape, where in forms:
            if not np.isfinite(angle).all() or np.array_equal(angle, np.outer(p, theta)):
                continue
            rest = float(np.abs(np.angle(unit * np.exp(-1j * angle))).max())
            tries.append(
                (
                    rest,
                    (
                        kinds,
                        title,
                        cause,
                        shape,
                        Recovered(name=f"dtype of the {where}", value=name, expected="float32"),
                    ),
                )
            )
    rest, best = min(tries, key=lambda t: t[0], default=(np.inf, None))
    return best if rest <= 0.05 * gap.max() + 8 * rounding else None
