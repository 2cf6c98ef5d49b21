"""Angles along positions: frequencies refined by unwrapping, gains, the position each row really stands for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array, Turning
from posenc.checker.recovery.rotation import turned

FIT_TO = 256
"""Frequencies are fitted on positions up to here: every dtype in use still tells these apart."""
LADDER = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 21, 24, 32, 43, 48, 64, 85, 96, 128, 171, 192, 253, 254, 255, 256)
LONG = (
    257,
    258,
    259,
    300,
    341,
    383,
    511,
    512,
    513,
    601,
    700,
    767,
    1021,
    1023,
    1024,
    1025,
    1301,
    1499,
    1531,
    2039,
    2047,
    2048,
    2049,
    2051,
    3001,
    3071,
    3583,
    4093,
    4095,
    4096,
    4097,
)
VERY_LONG = (5003, 6007, 8191, 8192, 8193, 12289, 16381, 16383, 16384, 16385, 24593, 32749, 32767)


@dataclass(frozen=True, eq=False)
class Waves:
    """Pairs that turn with position: ``z[p, i] = gain exp(j theta_i p)``.

    Args:
        positions: ``(n,)`` examined.
        z: ``(n, pairs)`` complex: gain and angle as seen.
        theta: ``(pairs,)`` radians per position, signed, fitted on positions up to :data:`FIT_TO`.
        error: ``(pairs,)`` standard error of theta.
        start: ``(pairs,)`` angle at position 0.
        residual: ``(n, pairs)`` angle seen minus the fit, wrapped.
        gain: ``(pairs,)`` at position 0 (or the first), fitted with ``growth``.
        growth: ``(pairs,)`` log-gain per position.
        not_turning: ``(n, pairs)`` part of the block that is no rotation, absolute; zeros where it was not measured.
    """

    positions: Array
    z: NDArray[np.complex128]
    theta: Array
    error: Array
    start: Array
    residual: Array
    gain: Array
    growth: Array
    not_turning: Array = field(repr=False)

    @property
    def pairs(self) -> int:
        return len(self.theta)

    @property
    def unevenness(self) -> Array:
        """``(pairs,)`` root mean square of the log-gains beside their fit: what rounded cosines and sines leave."""
        near = self.before(max(FIT_TO, np.sort(self.positions)[:9][-1]))
        p = self.positions[near]
        size = np.log(np.maximum(np.abs(self.z[near]), 1e-300))
        left = size - np.log(np.maximum(self.gain, 1e-300)) - np.outer(p, self.growth)
        return np.asarray(np.sqrt((left**2).sum(0) / max(len(p) - 2, 1)))

    @property
    def growth_error(self) -> Array:
        """``(pairs,)`` standard error of ``growth``.

        If a pair's gains are more uneven than float32 leaves them, all were rounded to fewer bits, and slow cosines
        round alike for a long way: then an eighth of bfloat16's unit over the whole range is no growth.
        """
        p = self.positions[self.before(max(FIT_TO, np.sort(self.positions)[:9][-1]))]
        uneven = self.unevenness
        rounded = 2.0**-11 / max(float(np.ptp(p)), 1.0) if uneven.max(initial=0.0) > 2.0**-14 else 0.0
        return np.asarray(rounded + uneven / np.sqrt(max(float(((p - p.mean()) ** 2).sum()), 1e-300)))

    def before(self, position: float) -> NDArray[np.bool_]:
        """Which of the positions lie at or before this one."""
        return np.asarray(self.positions <= position)


def ladder(box: Any, reach: int | None = None) -> Array:
    """Positions to look at, as far as the box goes and as its way of being called affords."""
    far = LADDER + LONG + (VERY_LONG if box.free else ())
    top = min(v for v in (reach, box.largest, far[-1]) if v is not None)
    return np.array([p for p in far if p <= top], dtype=np.float64)


def waves_of(box: Turning, pairs: NDArray[np.int64], positions: Array, turn: Any = None) -> Waves:
    """Turn two sum vectors at many positions and read every pair's block from them."""
    angle, gain, rest = turned(_blocks_at(box, pairs, positions, turn or box.turn))
    return fit_waves(positions, gain * np.exp(1j * angle), rest)


def waves_of_channels(box: Turning, pairs: NDArray[np.int64], positions: Array) -> Waves:
    """Each channel by itself, where the two of a pair turn by different angles: first channels, then second.

    A first channel is ``a cos - b sin``, a second ``b cos + a sin``, each with an angle of its own.
    """
    block = _blocks_at(box, pairs, positions, box.turn)
    first, second = block[..., 0, 0] - 1j * block[..., 0, 1], block[..., 1, 1] + 1j * block[..., 1, 0]
    return fit_waves(positions, np.concatenate([first, second], axis=1))


def _blocks_at(box: Turning, pairs: NDArray[np.int64], positions: Array, turn: Any) -> Array:
    """``(positions, pairs, 2, 2)``: what each pair becomes, from two sums of channels."""
    both = np.zeros((2, 1, box.head_dim))
    both[0, 0, pairs[:, 0]] = 1.0
    both[1, 0, pairs[:, 1]] = 1.0
    out = turn(np.repeat(both, len(positions), axis=1), positions)
    a, b = pairs[:, 0], pairs[:, 1]
    return np.stack([np.stack([out[0][:, a], out[1][:, a]], -1), np.stack([out[0][:, b], out[1][:, b]], -1)], -2)


def fit_waves(positions: Array, z: NDArray[np.complex128], rest: Array | None = None) -> Waves:
    """Fit ``angle = start + theta p`` and ``log gain = log g + growth p`` pair by pair, unwrapping as positions grow.

    >>> p = np.arange(20.0)
    >>> w = fit_waves(p, 1.5 * np.exp(1j * np.outer(p, [1.0, -0.25])))
    >>> w.theta.round(9).tolist(), w.gain.round(9).tolist()
    ([1.0, -0.25], [1.5, 1.5])
    """
    order = np.argsort(positions, kind="stable")
    p, w = positions[order], np.angle(z[order])
    use = p <= max(FIT_TO, p[min(8, len(p) - 1)])
    q, phi = p[use], w[use]
    first = phi[0]
    steps = q - q[0]
    theta = np.zeros(z.shape[1])
    unwrapped = np.zeros_like(phi)
    unwrapped[0] = first
    weight = total = 0.0
    product = np.zeros(z.shape[1])
    for k in range(1, len(q)):
        if steps[k] <= 0:
            unwrapped[k] = unwrapped[k - 1]
            continue
        guess = first + theta * steps[k]
        unwrapped[k] = guess + wrap(phi[k] - guess)
        product = product + steps[k] * (unwrapped[k] - first)
        total += steps[k] ** 2
        weight += 1
        theta = product / total
    if len(q) >= 3:  # a free start, which matters where position 0 is not among the rows or is shifted
        mean = steps.mean()
        spread = ((steps - mean) ** 2).sum()
        theta = ((steps - mean)[:, None] * unwrapped).sum(0) / spread
        start = unwrapped.mean(0) - theta * mean - theta * q[0]
    else:
        start = first - theta * q[0]
    start = wrap(start)
    left = wrap(phi - start - np.outer(q, theta))
    noise = np.maximum(1e-2, 4 * np.sqrt((left**2).mean(0)))  # rounded angles let the fit miss a start of zero
    seen_at_zero = q[0] == 0 and (np.abs(first) < 1e-2).all() and (np.abs(start) < noise).all()
    if seen_at_zero and np.abs(start).max() < 8 * np.abs(left).max() + 1e-6:
        theta, start = theta_through_zero(q, unwrapped), np.zeros_like(start)
    residual = wrap(np.angle(z) - start - np.outer(positions, theta))
    inside = residual[positions <= q[-1]]
    error = np.sqrt((inside**2).mean(0)) / max(np.sqrt((steps**2).sum()), 1.0)
    size = np.log(np.maximum(np.abs(z[order][use]), 1e-300))
    growth = np.zeros(z.shape[1])
    level = size.mean(0)
    if len(q) >= 3:
        mean = q.mean()
        growth = ((q - mean)[:, None] * size).sum(0) / ((q - mean) ** 2).sum()
        level = size.mean(0) - growth * mean
    return Waves(
        positions=positions,
        z=z,
        theta=theta,
        error=error,
        start=start,
        residual=residual,
        gain=np.exp(level),
        growth=growth,
        not_turning=np.zeros(z.shape) if rest is None else rest,
    )


def theta_through_zero(q: Array, unwrapped: Array) -> Array:
    """Least squares of ``angle = theta p`` without a free start."""
    return np.asarray((q[:, None] * unwrapped).sum(0) / (q**2).sum())


def wrap(angle: Any) -> Array:
    """The same angle in (-pi, pi]."""
    return np.asarray(np.pi - (np.pi - np.asarray(angle)) % (2 * np.pi))


def standing(
    z: NDArray[np.complex128], theta: Array, near: float | None = None, reach: float = 8192.0
) -> tuple[float, float]:
    """The position at which pairs of these frequencies would show these angles, and the largest angle left over.

    Args:
        z: ``(pairs,)`` angles as complex numbers.
        theta: ``(pairs,)``.
        near: where to look first.
        reach: how far to look where that does not fit.
    """
    at, left = all_standing(z[None], theta, np.array([np.nan if near is None else near]), reach)
    return float(at[0]), float(left[0])


def all_standing(z: NDArray[np.complex128], theta: Array, near: Array, reach: float = 8192.0) -> tuple[Array, Array]:
    """:func:`standing` for rows ``(n, pairs)``, with one search table for all of them."""
    live = np.abs(theta) > 1e-12
    if not live.any():
        return np.full(len(z), np.nan), np.zeros(len(z))
    unit, theta = (z / np.maximum(np.abs(z), 1e-300))[:, live], theta[live]
    table: tuple[Array, NDArray[np.complex64]] | None = None
    heaviest = np.argsort(-np.abs(theta))[:12]
    heaviest = np.union1d(heaviest, np.linspace(0, len(theta) - 1, min(len(theta), 8)).astype(int))
    at, left = np.zeros(len(z)), np.zeros(len(z))
    for k, row in enumerate(unit):
        found = [] if np.isnan(near[k]) else [_settle(row, theta, float(near[k]))]
        if not found or found[0][1] > 0.02:
            if table is None:
                coarse = np.arange(0.0, reach, max(0.5 / np.abs(theta).max(), reach / 2**16))
                table = coarse, np.exp(-1j * np.outer(theta[heaviest], coarse)).astype(np.complex64)
            score = (row[heaviest].astype(np.complex64) @ table[1]).real
            found += [_settle(row, theta, float(table[0][best])) for best in np.argsort(-score)[:3]]
        at[k], left[k] = min(found, key=lambda c: c[1])
    return at, left


def _settle(unit: NDArray[np.complex128], theta: Array, at: float) -> tuple[float, float]:
    for _ in range(6):
        off = np.angle(unit * np.exp(-1j * theta * at))
        at += float((theta * off).sum() / (theta * theta).sum())
    return at, float(np.abs(np.angle(unit * np.exp(-1j * theta * at))).max())
