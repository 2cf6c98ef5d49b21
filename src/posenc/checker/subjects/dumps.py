"""Dumps: ``q_before``, ``q_after`` and ``positions``, what one can get out of any engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.recovery.angles import Waves, fit_waves
from posenc.errors import ShapeError


def is_dump(arrays: dict[str, Any]) -> bool:
    """Whether arrays are a dump."""
    names = {name.rsplit(".", 1)[-1] for name in arrays}
    return {"q_before", "q_after"} <= names or {"k_before", "k_after"} <= names


def rows_of(arrays: dict[str, Any], which: str = "q") -> tuple[Array, Array, Array]:
    """``(rows, head_dim)`` before, after and the position of each row.

    Dimensions: ``(…, tokens, head_dim)``, positions ``(tokens,)`` or ``(batch, tokens)``; where tokens stand before the
    heads, the positions' length says so.

    Raises:
        ShapeError: shapes do not fit each other.
    """
    named = {name.rsplit(".", 1)[-1]: np.asarray(value, dtype=np.float64) for name, value in arrays.items()}
    before, after = named[f"{which}_before"], named[f"{which}_after"]
    if before.shape != after.shape or before.ndim < 2:
        raise ShapeError(
            f"{which}_before and {which}_after have one shape (…, tokens, head_dim)", (before.shape, after.shape)
        )
    if not np.isfinite(before).all() or not np.isfinite(after).all():
        raise ShapeError("a dump holds finite numbers", "nan or infinity")
    positions = named.get("positions", np.arange(before.shape[-2], dtype=np.float64))
    tokens = positions.shape[-1] if positions.ndim else 0
    lead = before.shape[:-1]
    if lead[-1] == tokens:
        at = np.broadcast_to(
            positions if positions.ndim == 1 else positions.reshape(positions.shape[0], *[1] * (len(lead) - 2), tokens),
            lead,
        )
    elif len(lead) >= 2 and lead[-2] == tokens:
        at = np.broadcast_to(positions[..., None], lead)
    else:
        raise ShapeError(f"positions are those of the tokens, {lead[-1]} of them", positions.shape)
    d = before.shape[-1]
    return before.reshape(-1, d), after.reshape(-1, d), at.reshape(-1)


def pairs_from(before: Array, after: Array, at: Array) -> tuple[Array, dict[str, Any]]:
    """Pairs of a dump: channels whose joint length is kept on every row; and what was measured on the way.

    Tries the two usual pairings at every width, first and last; the widest that explains the dump wins.
    """
    d = before.shape[1]
    moved = np.abs(after - before).max(axis=0) > 1e-6 * np.abs(before).max()
    channels = np.flatnonzero(moved)
    best: tuple[float, Array, dict[str, Any]] | None = None
    for width in range(2, d + 1, 2):
        for first in {0, d - width}:
            for name in ("half", "adjacent"):
                i = np.arange(width // 2)
                pairs = np.stack([i, i + width // 2] if name == "half" else [2 * i, 2 * i + 1], axis=1) + first
                covered = set(pairs.ravel().tolist())
                if not set(channels.tolist()) <= covered:
                    continue
                left = _unexplained(before, after, at, pairs)
                key = left + 1e-9 * width
                if best is None or key < best[0] - 1e-12:
                    best = (key, pairs, {"layout": name, "width": width, "first": first, "residual": left})
    if best is None:
        i = np.arange(d // 2)
        return np.stack([i, i + d // 2], axis=1), {"layout": "half", "width": d, "first": 0, "residual": 1.0}
    return best[1], best[2]


def _unexplained(before: Array, after: Array, at: Array, pairs: Array) -> float:
    """Energy that one rotation with gain for each position and pair leaves over."""
    b = before[:, pairs[:, 0]] + 1j * before[:, pairs[:, 1]]
    a = after[:, pairs[:, 0]] + 1j * after[:, pairs[:, 1]]
    left = total = 0.0
    for p in np.unique(at)[:64]:
        rows = at == p
        z = (a[rows] * b[rows].conj()).sum(0) / np.maximum((np.abs(b[rows]) ** 2).sum(0), 1e-300)
        size = np.abs(z)
        if rows.sum() == 1:  # one row can be turned into any other of its length: the length must be kept
            z = np.where(np.abs(size - np.median(size)) < 0.02 * np.median(size), z, 0)
        left += float((np.abs(a[rows] - z * b[rows]) ** 2).sum())
        total += float((np.abs(a[rows]) ** 2).sum())
    return left / max(total, 1e-300)


def waves_of_dump(before: Array, after: Array, at: Array, pairs: Any) -> Waves:
    """The angle and gain of every pair at every position of a dump."""
    b = before[:, pairs[:, 0]] + 1j * before[:, pairs[:, 1]]
    a = after[:, pairs[:, 0]] + 1j * after[:, pairs[:, 1]]
    where = np.unique(at)
    z = np.stack(
        [(a[at == p] * b[at == p].conj()).sum(0) / np.maximum((np.abs(b[at == p]) ** 2).sum(0), 1e-300) for p in where]
    )
    return fit_waves(where, z)
