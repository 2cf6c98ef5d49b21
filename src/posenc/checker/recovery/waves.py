"""Columns of a table as sinusoids: ``a sin(theta m + phi) + c`` fitted column by column, noise and all.

Fast columns show their frequency by themselves. A column that turns less than about once trades its amplitude for its
frequency; it is fitted with the amplitude that the well-determined columns share, which is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array

GRID_ROWS = 384
FIT_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Columns:
    """One sinusoid for each column.

    Args:
        theta: ``(width,)`` radians per row, not negative.
        amplitude: ``(width,)``.
        phase: ``(width,)``: ``phi`` at row position 0; a cosine has pi/2.
        level: ``(width,)``: the constant ``c`` (0 unless it helps clearly).
        share: ``(width,)`` part of the column's energy that the sinusoid explains: 1 is all of it.
        residual: ``(width,)`` root mean square of what is left.
        error: ``(width,)`` standard error of theta.
        constant: ``(width,)`` columns that do not vary.
        tied: ``(width,)`` columns fitted with the shared amplitude.
        shared: that amplitude; None where no column determines one.
    """

    theta: Array
    amplitude: Array
    phase: Array
    level: Array
    share: Array
    residual: Array
    error: Array
    constant: NDArray[np.bool_]
    tied: NDArray[np.bool_]
    shared: float | None

    @property
    def width(self) -> int:
        return len(self.theta)


def fit_columns(table: Array, positions: Array | None = None) -> Columns:
    """Fit every column of ``(rows, width)``; rows stand at ``positions``, 0, 1, 2… unless given.

    >>> m = np.arange(300.0)[:, None]
    >>> c = fit_columns(np.hstack([np.sin(0.5 * m), 2 * np.cos(0.03 * m)]))
    >>> c.theta.round(6).tolist(), c.amplitude.round(6).tolist()
    ([0.5, 0.03], [1.0, 2.0])
    """
    rows = np.arange(len(table), dtype=np.float64) if positions is None else positions
    near = slice(0, FIT_ROWS)
    x, m = table[near], rows[near]
    theta = _coarse(x, m)
    theta = _refined(x, m, theta)
    span = float(m[-1] - m[0]) or 1.0
    amplitude, phase, level, residual = _linear(x, m, theta)
    spread = x.std(axis=0)
    scale = max(float(np.abs(x).max()), 1e-300)
    constant = spread <= 1e-9 * scale
    energy = np.maximum((x**2).sum(0), 1e-300)
    share = 1 - residual**2 * len(x) / energy
    turns = theta * span / (2 * np.pi)
    sure = (turns > 1.0) & (share > 0.5) & ~constant
    shared = float(np.median(amplitude[sure])) if sure.sum() >= 2 else None
    tied = np.zeros(len(theta), dtype=bool)
    if shared is not None and np.std(amplitude[sure]) < 0.2 * shared:
        for j in np.flatnonzero((turns <= 1.0) & ~constant):
            found = _tied(x[:, j], m, shared)
            if found is not None and found[2] <= 1.5 * residual[j] + 1e-3 * shared:
                theta[j], phase[j], residual[j] = found
                amplitude[j], level[j], tied[j] = shared, 0.0, True
        share = 1 - residual**2 * len(x) / energy
    theta = np.where(constant, 0.0, theta)
    noise = np.maximum(residual, 1e-12)
    error = noise / np.maximum(amplitude, 1e-300) * np.sqrt(24.0 / len(x)) / span
    return Columns(theta, amplitude, phase, level, np.clip(share, 0.0, 1.0), residual, error, constant, tied, shared)


def _coarse(x: Array, m: Array) -> Array:
    """The best of a grid: linear over what the rows resolve, logarithmic below one turn."""
    some = x[:GRID_ROWS], m[:GRID_ROWS]
    x, m = some
    span = float(m[-1] - m[0]) or 1.0
    step = float(np.median(np.diff(m))) if len(m) > 1 else 1.0
    fine = np.arange(0.5, span / step, 0.5) * np.pi / span
    grid = np.concatenate([np.geomspace(1e-3 / span, 0.45 * np.pi / span, 40), fine, [np.pi / step]])
    best, theta = np.full(x.shape[1], -np.inf), np.zeros(x.shape[1])
    for start in range(0, len(grid), 64):
        angle = grid[start : start + 64, None] * m
        basis = np.stack([np.sin(angle), np.cos(angle)], axis=-1)  # (g, rows, 2)
        q, _ = np.linalg.qr(basis)
        power = ((q.transpose(0, 2, 1) @ x) ** 2).sum(1)  # (g, width)
        top = power.argmax(0)
        value = power[top, np.arange(x.shape[1])]
        better = value > best
        best, theta = np.where(better, value, best), np.where(better, grid[start + top], theta)
    return theta


def _refined(x: Array, m: Array, theta: Array) -> Array:
    """Golden sections around the coarse frequency, all columns at once, on growing stretches of rows."""
    ratio = (np.sqrt(5) - 1) / 2
    for rows in sorted({min(len(m), GRID_ROWS), len(m)}):
        xs, ms = x[:rows], m[:rows]
        span = float(ms[-1] - ms[0]) or 1.0
        width = np.minimum(0.6 * np.pi / span, 0.6 * np.maximum(theta, 1e-6 / span))
        low, high = np.maximum(theta - width, 1e-9 / span), theta + width
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        fa, fb = _left(xs, ms, a), _left(xs, ms, b)
        for _ in range(34):
            left = fa < fb
            high, low = np.where(left, b, high), np.where(left, low, a)
            new = np.where(left, high - ratio * (high - low), low + ratio * (high - low))
            fn = _left(xs, ms, new)
            a, b = np.where(left, new, b), np.where(left, a, new)
            fa, fb = np.where(left, fn, fb), np.where(left, fa, fn)
        theta = (low + high) / 2
    return theta


def _left(x: Array, m: Array, theta: Array) -> Array:
    """``(width,)``: energy left over by the best sine and cosine of each column's frequency."""
    return np.asarray(((x - _projected(x, m, theta)[0]) ** 2).sum(0))


def _projected(x: Array, m: Array, theta: Array) -> tuple[Array, Array, Array]:
    angle = m[:, None] * theta
    s, c = np.sin(angle), np.cos(angle)
    ss, cc, sc = (s * s).sum(0), (c * c).sum(0), (s * c).sum(0)
    xc = (x * c).sum(0)
    # Gram-Schmidt: cosine first, the sine's own part after it, which stays stable for slow columns
    u = s - c * (sc / np.maximum(cc, 1e-300))
    uu = (u * u).sum(0)
    beta = np.where(uu > 1e-18 * np.maximum(ss, 1e-300), (x * u).sum(0) / np.maximum(uu, 1e-300), 0.0)
    alpha = (xc - beta * sc) / np.maximum(cc, 1e-300)
    return alpha * c + beta * s, beta, alpha


def _linear(x: Array, m: Array, theta: Array) -> tuple[Array, Array, Array, Array]:
    fitted, beta, alpha = _projected(x, m, theta)
    residual = np.sqrt(((x - fitted) ** 2).mean(0))
    return np.hypot(alpha, beta), np.arctan2(alpha, beta), np.zeros(len(theta)), residual


def _tied(x: Array, m: Array, amplitude: float) -> tuple[float, float, float] | None:
    """Frequency, phase and residual of a slow column whose amplitude is known; None if it does not fit.

    Starts on a grid of frequencies, each with the phase that fits it best, then Gauss-Newton from the best three.
    """
    if np.abs(x).max() > 1.5 * amplitude:
        return None
    span = float(m[-1] - m[0]) or 1.0
    starts = []
    for theta in np.geomspace(1e-5, 2 * np.pi, 48) / span:
        s, c = np.sin(theta * m), np.cos(theta * m)
        phases = np.linspace(-np.pi, np.pi, 16, endpoint=False)
        fits = amplitude * (np.cos(phases)[:, None] * s + np.sin(phases)[:, None] * c)
        left = ((x - fits) ** 2).sum(1)
        starts.append((float(left.min()), float(theta), float(phases[left.argmin()])))
    found = [_newton(x, m, amplitude, theta, phi) for _, theta, phi in sorted(starts)[:3]]
    best = min((f for f in found if f is not None), key=lambda f: f[2], default=None)
    if best is None:
        return None
    theta, phi, left = best
    if theta < 0:
        theta, phi = -theta, np.pi - phi
    return theta, float(np.angle(np.exp(1j * phi))), left


def _newton(x: Array, m: Array, amplitude: float, theta: float, phi: float) -> tuple[float, float, float] | None:
    for _ in range(20):
        value = phi + theta * m
        slope = amplitude * np.cos(value)
        step, *_ = np.linalg.lstsq(np.stack([slope * m, slope], axis=1), x - amplitude * np.sin(value), rcond=None)
        theta, phi = theta + float(step[0]), phi + float(step[1])
        if abs(step[0]) * (m[-1] - m[0]) > 20:
            return None
    left = float(np.sqrt(((x - amplitude * np.sin(phi + theta * m)) ** 2).mean()))
    return (theta, phi, left) if np.isfinite(left) else None
