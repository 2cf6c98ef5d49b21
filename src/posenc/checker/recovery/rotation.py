"""The whole matrix of a black box at a few positions: its pairs, what it leaves alone, and how far it is from turning.

A rotation is linear in its input at a fixed position, so the images of the basis vectors are its matrix. Which channels
mix says which are pairs; the 2 x 2 blocks say the angle and the gain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array, Turning

FIRST_POSITIONS = (0, 1, 2, 3, 5, 11)
"""Where the whole matrix is taken."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """What the matrices at a few positions say.

    Args:
        pairs: ``(n, 2)`` channels that mix with each other and nothing else, the smaller first.
        still: channels that mix with none and keep their value.
        scaled: channels that mix with none and are multiplied by something else than 1, with that factor.
        tangled: groups of three channels and more that mix.
        at_zero: largest deviation of the matrix at position 0 from a multiple of the identity.
        order: ``(head_dim,)``: output channel of each input channel at position 0, where that is a permutation.
        gain_at_zero: the multiple.
        nonlinear: largest deviation of the image of a sum from the sum of images.
        matrices: ``(positions, head_dim, head_dim)``, columns are images of basis vectors, output order undone.
        positions: of the matrices.
    """

    pairs: NDArray[np.int64]
    still: tuple[int, ...]
    scaled: tuple[tuple[int, float], ...]
    tangled: tuple[tuple[int, ...], ...]
    at_zero: float
    order: NDArray[np.int64] | None
    gain_at_zero: float
    nonlinear: float
    matrices: Array = field(repr=False)
    positions: tuple[int, ...] = FIRST_POSITIONS

    @property
    def head_dim(self) -> int:
        return int(self.matrices.shape[1])

    @property
    def reordered(self) -> bool:
        """Whether position 0 writes channels elsewhere than it read them."""
        return self.order is not None and not np.array_equal(self.order, np.arange(len(self.order)))


def blocks(box: Turning, turn: Any = None, positions: tuple[int, ...] = FIRST_POSITIONS) -> Blocks:
    """Take the matrix of a box at a few positions and split the channels into pairs.

    Args:
        box: the box.
        turn: its ``turn_key`` to look at keys; ``turn`` otherwise.
        positions: where, as far as the box goes; ascending.
    """
    turn = turn or box.turn
    positions = tuple(p for p in positions if box.largest is None or p <= box.largest)
    d, at = box.head_dim, np.array(positions, dtype=np.float64)
    basis = np.repeat(np.eye(d)[:, None], len(at), axis=1)
    images = turn(basis, at)  # (basis vector, position, channel)
    matrices = np.ascontiguousarray(images.transpose(1, 2, 0))
    weights = 0.25 + np.arange(1, d + 1) / (d + 3.0)  # asymmetric, so that no two channels can stand for each other
    mixed = turn(np.broadcast_to(weights, (1, len(at), d)).copy(), at)[0]
    whole = np.abs(matrices @ weights - mixed).max()
    zero = matrices[int(np.flatnonzero(at == 0)[0])] if (at == 0).any() else np.eye(d)
    order = _permutation(zero)
    if order is not None and not np.array_equal(order, np.arange(d)):
        back = np.zeros((d, d))
        back[np.arange(d), order] = 1.0
        matrices = back @ matrices
        zero = back @ zero
    gain = float(np.median(np.diag(zero)))
    groups = _groups(matrices, 8 * box.rounding)
    pairs = np.array([g for g in groups if len(g) == 2], dtype=np.int64).reshape(-1, 2)
    still, scaled = [], []
    for group in groups:
        if len(group) == 1:
            values = matrices[:, group[0], group[0]]
            factor = float(values[np.abs(values - 1).argmax()])
            (still.append(group[0]) if abs(factor - 1) <= 4 * box.rounding else scaled.append((group[0], factor)))
    return Blocks(
        pairs=pairs,
        still=tuple(still),
        scaled=tuple(scaled),
        tangled=tuple(tuple(g) for g in groups if len(g) > 2),
        at_zero=float(np.abs(zero - gain * np.eye(d)).max()),
        order=order,
        gain_at_zero=gain,
        nonlinear=float(whole),
        matrices=matrices,
        positions=positions,
    )


def _permutation(matrix: Array) -> NDArray[np.int64] | None:
    """Where a (scaled) permutation sends each channel; None if the matrix is none."""
    peak = np.abs(matrix).max(axis=0)
    if not (peak > 0).all():
        return None
    sent = np.abs(matrix).argmax(axis=0)
    rest = np.abs(matrix).sum(axis=0) - peak
    if (matrix[sent, np.arange(len(sent))] < 0).any():  # a quarter turn moves channels too, with a sign
        return None
    if len(np.unique(sent)) < len(sent) or (rest > 1e-3 * peak).any():
        return None
    return np.asarray(sent)


def _groups(matrices: Array, noise: float) -> list[list[int]]:
    """Channels that mix at any of the positions, connected; noise decides only where nothing is exactly zero."""
    off = np.abs(matrices).max(axis=0)
    np.fill_diagonal(off, 0.0)
    exact = (off == 0).mean() > 0.5  # a channel that is not read contributes an exact zero
    linked = off > (1e-13 if exact else noise)
    linked |= linked.T
    seen, groups = np.zeros(len(off), dtype=bool), []
    for start in range(len(off)):
        if seen[start]:
            continue
        group, front = [start], [start]
        seen[start] = True
        while front:
            for other in np.flatnonzero(linked[front.pop()] & ~seen):
                seen[other] = True
                group.append(int(other))
                front.append(int(other))
        groups.append(sorted(group))
    return groups


def block_of(matrices: Array, pairs: NDArray[np.int64]) -> Array:
    """``(positions, pairs, 2, 2)`` blocks of the pairs."""
    a, b = pairs[:, 0], pairs[:, 1]
    rows = np.stack(
        [np.stack([matrices[:, a, a], matrices[:, a, b]], -1), np.stack([matrices[:, b, a], matrices[:, b, b]], -1)], -2
    )
    return np.asarray(rows)


def turned(block: Array) -> tuple[Array, Array, Array]:
    """Angle, gain and residual of 2 x 2 blocks ``(..., 2, 2)``: the nearest ``gain * rotation`` and what is left over.

    >>> [round(float(v), 6) for v in turned(2 * np.array([[0.0, -1.0], [1.0, 0.0]]))]
    [1.570796, 2.0, 0.0]
    """
    even, odd = block[..., 0, 0] + block[..., 1, 1], block[..., 1, 0] - block[..., 0, 1]
    rest = np.hypot(block[..., 0, 0] - block[..., 1, 1], block[..., 1, 0] + block[..., 0, 1]) / 2
    return np.arctan2(odd, even), np.hypot(even, odd) / 2, rest
