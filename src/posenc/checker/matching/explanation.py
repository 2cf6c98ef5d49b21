"""One explanation of frequencies that are not the wanted ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.records.finding import Recovered


@dataclass(frozen=True)
class Explanation:
    """A hypothesis that was scored.

    Args:
        key: short name of the hypothesis.
        kinds: of the taxonomy, the likeliest first.
        cause: what would give these numbers, in one sentence without a stop.
        residual: largest relative deviation of a frequency from the hypothesis.
        fitted: how many parameters were fitted: fewer is better at equal residual.
        recovered: the parameters.
        theta: the predicted frequencies.
        gain: the predicted gain; None where the hypothesis says nothing of it.
        readings: other readings of the same numbers.
        convention: right with weights trained for it.
        prior: smaller is likelier among equals.
    """

    key: str
    kinds: tuple[str, ...]
    cause: str
    residual: float
    fitted: int = 0
    recovered: tuple[Recovered, ...] = ()
    theta: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    gain: float | None = None
    readings: tuple[str, ...] = ()
    convention: bool = False
    prior: int = 0

    def replace(self, **changes: Any) -> Explanation:
        return replace(self, **changes)


def deviation(theta: Array, predicted: Array, floor: float = 0.0) -> Array:
    """``(pairs,)`` relative deviations; pairs below ``floor`` in both count as equal.

    >>> deviation(np.array([1.0, 0.11, 0.0]), np.array([1.0, 0.1, 0.0])).round(6).tolist()
    [0.0, 0.090909, 0.0]
    """
    size = np.maximum(np.abs(theta), np.abs(predicted))
    gap = np.abs(theta - predicted)
    return np.where(size <= floor, 0.0, gap / np.maximum(size, 1e-300))


def distance(theta: Array, predicted: Array, floor: float) -> float:
    """Root mean square of log ratios: smooth in the parameters, whatever the size of the frequencies."""
    a, b = np.abs(theta), np.abs(predicted)
    live = (a > floor) | (b > floor)
    if not live.any():
        return 0.0
    ratio = np.log(np.maximum(a[live], floor or 1e-300) / np.maximum(b[live], floor or 1e-300))
    return float(np.sqrt((ratio**2).mean())) + (0.0 if np.isfinite(ratio).all() else 1e9)
