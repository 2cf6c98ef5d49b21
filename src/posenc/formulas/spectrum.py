"""Frequencies: the one place where a base is raised to a power.

Everything downstream (tables, rotations, analysis, modules) takes :class:`Frequencies`, never a spec, so frequencies
that were trained, recovered or read from a file go the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError, SpecError
from posenc.shapes import Float
from posenc.spec import Arithmetic, Explicit, Geometric, Interleave, Mixed, Periods, Random, Rotary, Sinusoidal, Split

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """How far each pair turns for one step along each axis.

    ``angle = positions @ theta``: positions ``(tokens, axes)``, angles ``(tokens, pairs)``.

    Args:
        theta: radians per position, ``(axes, pairs)``; ``(heads, axes, pairs)`` if it differs between heads.
        base: base of the geometric schedule after scaling; None for other schedules. NTK and YaRN refer to it.
        dim: the width that the exponents refer to (twice the pairs, for geometric schedules).
        growth: xPos: log-gain of each pair per position on queries, its negative on keys; ``(pairs,)``.
        gain: factor on cos and sin (so scores get its square).
        logit_scale: factor on the softmax scale that comes with a scaling.
    """

    theta: Array
    base: float | None = None
    dim: int | None = None
    growth: Array = field(default_factory=lambda: np.zeros(0))
    gain: float = 1.0
    logit_scale: float = 1.0

    def __post_init__(self) -> None:
        theta = np.array(self.theta, dtype=np.float64)
        if theta.ndim == 1:
            theta = theta[None]
        if theta.ndim not in (2, 3) or theta.shape[-1] == 0:
            raise ShapeError("theta is (pairs,), (axes, pairs) or (heads, axes, pairs)", theta.shape)
        if not np.isfinite(theta).all():
            raise ShapeError("frequencies are finite", f"{int((~np.isfinite(theta)).sum())} that are not")
        if self.base is not None and not math.isfinite(self.base):
            raise ShapeError("the base after scaling is a finite number", self.base)
        theta.flags.writeable = False
        growth = np.array(self.growth if np.size(self.growth) else np.zeros(theta.shape[-1]), dtype=np.float64)
        growth.flags.writeable = False
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "growth", growth)

    @property
    def axes(self) -> int:
        return int(self.theta.shape[-2])

    @property
    def pairs(self) -> int:
        return int(self.theta.shape[-1])

    @property
    def fused(self) -> Array:
        """``(pairs,)``: radians per step when all axes advance together (text under M-RoPE); one axis: theta itself.

        Raises:
            ShapeError: the frequencies differ between heads.
        """
        if self.theta.ndim == 3:
            raise ShapeError("one frequency for each pair is asked of frequencies that differ between heads")
        return np.asarray(self.theta.sum(axis=0))

    @property
    def wavelengths(self) -> Array:
        """``(pairs,)`` positions per turn; infinite for a pair that does not turn."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(2 * np.pi / np.abs(self.fused))

    def angles(self, positions: Any) -> Array:
        """Angles in radians, ``(..., pairs)``, of positions ``(...)`` with one axis or ``(..., axes)`` with several.

        With frequencies that differ between heads the result is ``(heads, ..., pairs)``.

        Raises:
            ShapeError: positions are not finite real numbers, or their last dimension is not the axes.
        """
        at = np.asarray(positions)
        if at.dtype.kind not in "iuf":
            raise ShapeError("positions are real numbers", at.dtype)
        at = at.astype(np.float64)
        if not np.isfinite(at).all():
            raise ShapeError("positions are finite")
        if self.axes == 1:
            at = at[..., None]
        if at.ndim == 0 or at.shape[-1] != self.axes:
            raise ShapeError(f"positions end in a dimension of {self.axes} axes", at.shape)
        if self.theta.ndim == 2:
            return np.asarray(at @ self.theta)
        return np.stack([at @ theta for theta in self.theta])

    def replace(self, **changes: Any) -> Frequencies:
        return replace(self, **changes)


def scheduled(schedule: Any, pairs: int, dim: float | None = None) -> Float[np.ndarray, " pairs"]:
    """``(pairs,)`` radians per position of a schedule; ``dim``: width of the exponent, twice the pairs by default.

    Geometric (Vaswani et al. 2017, section 3.5): ``theta_i = first * base^(-i / (dim/2 - shift))``.
    """
    half = pairs if dim is None else dim / 2
    i = np.arange(pairs)
    match schedule:
        case Geometric(base=base, keep=keep, shift=shift, first=first):
            theta = first * base ** (-i / (half - shift if pairs > 1 else 1.0))
            theta[int(keep * 2 * pairs // 2) :] = 0.0  # p-RoPE: int(p * head_dim // 2) pairs turn
            return np.asarray(theta)
        case Arithmetic(first=first, last=last):
            return np.linspace(first, last, pairs)
        case Random(sigma=sigma, seed=seed):
            return np.asarray(np.abs(sigma * np.random.default_rng(seed).standard_normal(pairs)))
        case Explicit(theta=values):
            return np.array(values)
        case Periods(periods=periods, harmonics=harmonics):
            return np.concatenate(
                [2 * np.pi * np.arange(1, n + 1) / p for p, n in zip(periods, harmonics, strict=True)]
            )
    raise SpecError("unknown schedule", type(schedule).__name__)


def from_log_base(log_base: float, exponents: Any) -> Array:
    """``theta = exp(-ln(b) u)`` for exponents ``u`` (``2i/d`` in the paper): for searches over ``ln(b)``.

    >>> from_log_base(math.log(10000.0), [0.0, 0.25, 0.5]).round(12).tolist()
    [1.0, 0.1, 0.01]
    """
    return np.asarray(np.exp(-log_base * np.asarray(exponents, dtype=np.float64)))


def frequency(schedule: Any, pair: int, pairs: int, dim: float | None = None) -> float:
    """One frequency of a schedule, the readable truth that :func:`scheduled` must agree with.

    >>> frequency(Geometric(base=10000.0), 1, 4)
    0.1
    """
    half = pairs if dim is None else dim / 2
    match schedule:
        case Geometric(base=base, keep=keep, shift=shift, first=first):
            if pair >= int(keep * 2 * pairs // 2):
                return 0.0
            return first if pair == 0 else first * math.pow(base, -pair / (half - shift))
        case Arithmetic(first=first, last=last):
            return first if pair == 0 else first + (last - first) * pair / (pairs - 1)
        case Explicit(theta=values):
            return values[pair]
        case Periods(periods=periods, harmonics=harmonics):
            listed = [(k, p) for p, n in zip(periods, harmonics, strict=True) for k in range(1, n + 1)]
            harmonic, period = listed[pair]
            return 2 * math.pi * harmonic / period
    return float(scheduled(schedule, pairs, dim)[pair])  # random: the draw itself is the definition


def scheduled_remainder(schedule: Any, pairs: int, dim: float | None = None) -> Array:
    """``(pairs,)``: what rounding to float64 took from a geometric schedule; zeros for the others.

    ``theta + remainder`` has some 30 digits, so that an angle at position 1e7 is right to 1e-15 and not to 1e-9.
    """
    theta = scheduled(schedule, pairs, dim)
    if not isinstance(schedule, Geometric) or pairs == 1:
        return np.zeros(pairs)
    half = pairs if dim is None else dim / 2
    with localcontext() as context:
        context.prec = 50
        ratio = (-Decimal(schedule.base).ln() / Decimal(half - schedule.shift)).exp()
        exact, remainder = Decimal(schedule.first), np.zeros(pairs)
        for i in range(int(np.count_nonzero(theta))):
            remainder[i] = float(exact - Decimal(float(theta[i])))
            exact *= ratio
    return remainder


def unscaled_remainder(encoding: Rotary | Sinusoidal) -> Array:
    """``(axes, pairs)``: what rounding to float64 took from ``unscaled(encoding).theta``; zeros for mixed axes."""
    dim = encoding.rotary_dim if isinstance(encoding, Rotary) else _exponent_width(encoding)
    if isinstance(encoding.axes, Mixed):
        return np.zeros(unscaled(encoding).theta.shape)
    return _over_axes(encoding.schedule, encoding.axes, encoding.pairs, dim, scheduled_remainder)


def unscaled(encoding: Rotary | Sinusoidal) -> Frequencies:
    """Frequencies of a rotary or sinusoidal encoding before its scalings."""
    pairs, schedule, axes = encoding.pairs, encoding.schedule, encoding.axes
    dim = encoding.rotary_dim if isinstance(encoding, Rotary) else _exponent_width(encoding)
    base = schedule.base if isinstance(schedule, Geometric) else None
    theta = _over_axes(schedule, axes, pairs, dim)
    growth = np.zeros(pairs)
    if isinstance(encoding, Rotary) and encoding.xpos_scale_base is not None:
        growth = _xpos_growth(encoding.rotary_dim, encoding.xpos_scale_base)
    return Frequencies(theta=theta, base=base, dim=int(dim), growth=growth)


def _exponent_width(encoding: Sinusoidal) -> int:
    """tensor2tensor floors half the width of an odd table and fills up with zeros; the paper keeps ``d``."""
    return encoding.dim - encoding.dim % 2 if encoding.odd == "zero" else encoding.dim


def _over_axes(schedule: Any, axes: Any, pairs: int, dim: float, scheduled: Callable[..., Array] = scheduled) -> Array:
    if axes is None:
        return scheduled(schedule, pairs, dim)[None]
    if isinstance(axes, Mixed):
        return _mixed(schedule, axes, pairs)
    owner = _owners(axes, pairs)
    if isinstance(axes, Split) and axes.own_schedule:
        line = np.concatenate([scheduled(schedule, n) for n in axes.pairs])
    else:
        line = scheduled(schedule, pairs, dim)
    return np.asarray(line * (owner == np.arange(len(axes.pairs))[:, None]))


def _owners(axes: Split | Interleave, pairs: int) -> NDArray[np.int64]:
    """``(pairs,)``: the axis that turns each pair."""
    if isinstance(axes, Split):
        return np.repeat(np.arange(len(axes.pairs)), axes.pairs)
    owner, count = np.zeros(pairs, dtype=np.int64), len(axes.pairs)
    for axis in range(1, count):  # Qwen3-VL: axis j takes pairs j, j + n, … below n * its count
        owner[axis : count * axes.pairs[axis] : count] = axis
    found = tuple(int((owner == axis).sum()) for axis in range(count))
    if found != axes.pairs:
        raise SpecError("interleaved sections fit between each other", axes.pairs, f"They would come out as {found}.")
    return owner


def _mixed(schedule: Any, axes: Mixed, pairs: int) -> Array:
    """``(heads, 2, pairs)``: a random direction for each head, and one at right angles (Heo et al. 2024)."""
    magnitude = scheduled(schedule, pairs // 2)
    phi = 2 * np.pi * np.random.default_rng(axes.seed).random((axes.heads, 1))
    x = np.concatenate([magnitude * np.cos(phi), magnitude * np.cos(phi + np.pi / 2)], axis=1)
    y = np.concatenate([magnitude * np.sin(phi), magnitude * np.sin(phi + np.pi / 2)], axis=1)
    return np.stack([x, y], axis=1)


def _xpos_growth(dim: int, scale_base: float) -> Array:
    """``ln(zeta_i) / scale_base`` with ``zeta_i = (2i + 0.4 d) / (1.4 d)`` (Sun et al. 2022, equation 14)."""
    zeta = (np.arange(0, dim, 2) + 0.4 * dim) / (1.4 * dim)
    return np.asarray(np.log(zeta) / scale_base)
