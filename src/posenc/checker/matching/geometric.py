"""A geometric schedule fitted to frequencies, and what its base may mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from posenc.checker.boxes import Array


@dataclass(frozen=True)
class GeometricFit:
    """``theta_i = first * exp(-step i)``.

    Args:
        first: radians per position of pair 0.
        step: fall of the logarithm from pair to pair.
        residual: largest relative deviation of a frequency from the fit.
        error: standard error of ``step``.
        used: how many pairs the fit rests on.
    """

    first: float
    step: float
    residual: float
    error: float
    used: int

    def base(self, width: float) -> float:
        """The base whose exponents are ``-2 i / width``; infinite where no float holds it."""
        power = self.step * width / 2
        return math.exp(power) if power < 700 else math.inf


def fit_geometric(theta: Array, weight: Array | None = None) -> GeometricFit | None:
    """Least squares on the logarithms; None where fewer than two pairs turn.

    >>> f = fit_geometric(np.array([1.0, 0.1, 0.01]))
    >>> round(f.base(6), 6), round(f.first, 9)
    (1000.0, 1.0)
    """
    size = np.abs(theta)
    live = np.flatnonzero(size > 1e-12)
    if len(live) < 2:
        return None
    y, w = np.log(size[live]), np.ones(len(live)) if weight is None else np.maximum(weight[live], 1e-12)
    w = w / w.sum()
    mx, my = (w * live).sum(), (w * y).sum()
    spread = (w * (live - mx) ** 2).sum()
    slope = float((w * (live - mx) * (y - my)).sum() / spread)
    left = y - my - slope * (live - mx)
    error = float(np.sqrt((w * left**2).sum() / spread / max(len(live) - 2, 1)))
    return GeometricFit(math.exp(my - slope * mx), -slope, float(np.abs(np.expm1(left)).max()), error, len(live))


def readings(
    step: float, base: float, dim: int, others: dict[str, float], tolerance: float = 2e-3
) -> list[tuple[str, str]]:
    """What the fall from pair to pair may come from, given the wanted base and width: (key, words), likeliest first.

    Args:
        step: the fall seen.
        base, dim: wanted: the fall is ``2 ln(base) / dim``.
        others: other widths at hand by name (``head_dim``), and factors (``factor``).
        tolerance: relative, on the fall.
    """
    wanted = 2 * math.log(base) / dim
    found: list[tuple[str, str]] = []

    def near(value: float) -> bool:
        return abs(step - value) <= tolerance * abs(value)

    if near(2 * wanted):
        found.append(
            (
                "doubled",
                f"the exponent counts the index twice, or the base is {base * base:g}, the square of {base:g}, which "
                "give the same numbers: made with another base, only the first gives that base's square",
            )
        )
    if near(wanted / 2):
        found.append(
            ("halved", f"the exponent counts the index once in place of twice, or the base is {math.sqrt(base):g}")
        )
    half = dim / 2
    if half > 1 and near(math.log(base) / (half - 1)):
        found.append(("half-1", f"the denominator is half the width less one ({half - 1:g}), as in tensor2tensor"))
    if near(2.0):
        found.append(("floored", "the coefficient is -1 for each channel: -ln(base)/d//2 is floored as a whole"))
    for name, width in others.items():
        if name.startswith("width:") and width > 0 and width != dim and near(2 * math.log(base) / width):
            found.append(("denominator", f"the exponent is divided by {name[6:]} = {width:g} in place of {dim}"))
    for name, factor in others.items():
        if name.startswith("factor:") and factor > 1 and dim > 2:
            stretched = math.log(base) + dim / (dim - 2) * math.log(factor)
            if near(2 * stretched / dim):
                found.append(("ntk", f"the base is stretched by NTK with {name[7:]} = {factor:g}"))
            if near(2 * (math.log(base) + math.log(factor)) / dim):
                found.append(("base-times", f"the base is multiplied by {name[7:]} = {factor:g}"))
    if near(2 * math.log(10000.0) / dim) and abs(base - 10000.0) > 1:
        found.append(("default", "the base is 10000, the default of many libraries: the configured one was not read"))
    return found
