"""Ramps read from the ratio to unscaled frequencies; numbers that rounded ends hide."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.matching.explanation import deviation


def plateau(left: Callable[[float], float], at: float) -> tuple[float, float]:
    """The range around ``at`` in which a function stays as small as there: rounded ends hide a number.

    >>> tuple(round(v, 4) for v in plateau(lambda v: float(not 2 <= v <= 4), 3.0))
    (2.0, 4.0)
    """
    bound = left(at) * (1 + 1e-6) + 1e-12
    ends = []
    for sign in (-1.0, 1.0):
        inside, outside = 0.0, 1e-4
        while left(at * math.exp(sign * outside)) <= bound and outside < 8:
            inside, outside = outside, outside * 2
        for _ in range(30):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if left(at * math.exp(sign * middle)) <= bound else (inside, middle)
        ends.append(at * math.exp(sign * inside))
    return ends[0], ends[1]


def roundest(low: float, high: float, otherwise: float) -> float:
    """The number in a range that somebody would write: a power of two, else the fewest digits.

    >>> roundest(100000, 140000, 120073.0), roundest(17.1, 20.5, 17.45), roundest(2.5, 2.5, 2.5)
    (131072.0, 20.0, 2.5)
    """
    if high <= low * (1 + 1e-9):
        near = float(f"{otherwise:.6g}")
        return near if abs(near - otherwise) <= 1e-7 * otherwise else otherwise
    powers = [2.0**k for k in range(-4, 40) if low <= 2.0**k <= high]
    if powers:
        return max(powers)
    for digits in range(1, 9):
        step = 10.0 ** (math.floor(math.log10(high)) - digits + 1)
        whole = math.floor(high / step) * step
        if low <= whole:
            return float(f"{whole:.{digits}g}")
    return otherwise


def form_words(form: str) -> str:
    """A ramp in words."""
    return {
        "yarn": "with a ramp in the pair's index, as YaRN has it,",
        "llama3": "with a ramp in turns, as Llama 3 has it,",
    }[form]


def ramp_of(theta: Array, plain: Array) -> tuple[float, int, int, str, float, Array] | None:
    """Factor, first and last pair of the ramp, its form, the residual and the prediction, from the ratio to ``plain``.

    None where the ratio is no ramp from 1 down to ``1 / factor``.
    """
    ratio = theta / plain
    if not np.isfinite(ratio).all() or abs(ratio[0] - 1) > 1e-3 or ratio.min() < 1e-4 or ratio[-1] > 0.999:
        return None
    factor = float(1 / ratio[-1])
    if (np.diff(ratio) > 1e-6).any():
        return None
    share = (1 - ratio) / (1 - 1 / factor)  # 0 kept, 1 divided
    inside = (share > 1e-5) & (share < 1 - 1e-5)
    first = int(np.flatnonzero(share > 1e-5)[0])
    done = np.flatnonzero(share >= 1 - 1e-5)
    last = int(done[0]) if len(done) else len(ratio)
    best: tuple[float, str, Array] | None = None
    for form, axis in (("yarn", np.arange(len(plain), dtype=np.float64)), ("llama3", plain)):
        if inside.sum() >= 2:
            slope, start = np.polyfit(axis[inside], share[inside], 1)
            shape = np.clip(slope * axis + start, 0, 1)
        else:
            shape = share
        predicted = plain * (1 - shape) + plain / factor * shape
        residual = float(deviation(theta, predicted).max())
        if best is None or residual < best[0]:
            best = (residual, form, predicted)
    assert best is not None
    return factor, first, last, best[1], best[0], best[2]
