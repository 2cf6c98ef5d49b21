"""Reading a result: rows, cosines and sines, complex numbers, angles; the reading found first is kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from posenc.checker.calling.bound import Bound


def interpreted(
    values: list[np.ndarray], rows: int | None, bound: Bound, kind: str | None = None
) -> tuple[str, tuple[np.ndarray, ...]] | None:
    """``(rows, width)`` arrays of a result and how they were read: one for a table, two for cosines and sines.

    Args:
        values: the arrays that came back.
        rows: how many rows were asked for; None if that is not known.
        bound: knows what is wanted.
        kind: the reading found before, kept for later calls.

    Returns:
        None if no reading fits.
    """
    flat = []
    values = [v for v in values if v.ndim >= 2] or values[:1]
    for value in values[:2]:
        squeezed = _rows_first(value, rows)
        if squeezed is None:
            return None
        flat.append(squeezed)
    if kind is None:
        kind = _kind(flat, bound)
    return None if kind is None else (kind, _READINGS[kind](flat))


def _swapped(flat: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    return flat[1], flat[0]


_READINGS: dict[str, Callable[[list[np.ndarray]], tuple[np.ndarray, ...]]] = {
    "cos, sin": lambda f: (f[0], f[1]),
    "sin, cos": _swapped,
    "complex": lambda f: (f[0].real, f[0].imag),
    "last dimension": lambda f: (f[0][..., 0], f[0][..., 1]),
    "matrices": lambda f: (f[0][..., 0, 0], f[0][..., 1, 0]),
    "angles": lambda f: (np.cos(f[0]), np.sin(f[0])),
    "angles, gain": lambda f: (f[1] * np.cos(f[0]), f[1] * np.sin(f[0])),
    "[cos | sin]": lambda f: (f[0][:, : f[0].shape[1] // 2], f[0][:, f[0].shape[1] // 2 :]),
    "[sin | cos]": lambda f: (f[0][:, f[0].shape[1] // 2 :], f[0][:, : f[0].shape[1] // 2]),
    "cos, sin by turns": lambda f: (f[0][:, ::2], f[0][:, 1::2]),
    "sin, cos by turns": lambda f: (f[0][:, 1::2], f[0][:, ::2]),
    "rows": lambda f: (f[0],),
}


def _kind(flat: list[np.ndarray], bound: Bound) -> str | None:
    first = flat[0]
    unknown = bound.hints.encoding is None
    rotary = bound.hints.wants == "rotary"
    if len(flat) == 2 and flat[0].shape == flat[1].shape and first.ndim == 2 and first.dtype.kind != "c":
        if (rotary or unknown) and _looks_like_angles(first):
            return "angles, gain"
        sines_first = np.abs(first[0]).max() < 1e-6 < np.abs(flat[1][0]).max()
        return "sin, cos" if sines_first else "cos, sin"
    if first.dtype.kind == "c":
        return "complex" if first.ndim == 2 else None
    if first.ndim == 3 and first.shape[-1] == 2 and (rotary or unknown):
        return "last dimension"
    if first.ndim == 4 and first.shape[-2:] == (2, 2):
        return "matrices"
    if first.ndim != 2:
        return None
    if (rotary or unknown) and _looks_like_angles(first):
        return "angles"
    if rotary and first.shape[1] % 2 == 0:
        for kind in ("[cos | sin]", "[sin | cos]", "cos, sin by turns", "sin, cos by turns"):
            a, b = _READINGS[kind](flat)
            size = np.hypot(a, b)
            if np.abs(a[0] - size[0]).max() < 1e-6 and np.ptp(size, axis=0).max() < 1e-3:
                return kind
    return "rows"


def _rows_first(value: np.ndarray, rows: int | None) -> np.ndarray | None:
    """The array without dimensions of one, rows first."""
    shape = [n for n in value.shape if n != 1] or [1]
    found = value.reshape([1, *shape] if rows == 1 else shape)
    if rows is None or found.ndim == 0:
        return found if found.ndim >= 2 else None
    if found.ndim == 1:
        return (
            found.reshape(rows, -1)
            if found.size % rows == 0 and rows > 1
            else found.reshape(1, -1)
            if rows == 1
            else None
        )
    if found.shape[0] == rows:
        return found
    if found.ndim == 3 and found.shape[1] == rows:
        return found[0] if np.array_equal(found[0], found[-1]) else None
    if found.ndim == 2 and found.shape[1] == rows:
        return None
    return None


def _looks_like_angles(rows: np.ndarray) -> bool:
    """Each row its number times the same vector."""
    if len(rows) < 4 or np.abs(rows).max() < 1.5:
        return False
    step = rows[1] - rows[0]
    return bool(np.allclose(rows - rows[0], np.arange(len(rows))[:, None] * step, rtol=1e-2, atol=1e-3))
