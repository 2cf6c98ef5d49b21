"""When does ``p_m^T A p_n`` depend on ``m - n`` alone, and how far is a real matrix from that?

For rows ``p_n`` of pairs ``(sin n theta_i, cos n theta_i)`` with distinct frequencies between 0 and pi, the form
``p_m^T A p_n`` is Toeplitz exactly when ``A`` is ``a_i I + b_i J`` on each pair, ``J = [[0, -1], [1, 0]]``, and zero
elsewhere: every other entry of ``A`` contributes waves in ``m`` and ``n`` that no other entry can cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posenc.errors import ShapeError
from posenc.formulas.spectrum import Array


def closest_form(matrix: Any, pairs: Any) -> Array:
    """The matrix ``a I + b J`` on each pair that is closest to ``matrix`` (Frobenius).

    ``a = (A_00 + A_11) / 2``, ``b = (A_10 - A_01) / 2``: the projections on two orthogonal matrices of square norm 2.

    Args:
        matrix: ``(width, width)``.
        pairs: ``(pairs, 2)`` channels, none twice.

    Raises:
        ShapeError: not square, not finite, or pairs that are no pairs of its channels.

    >>> closest_form([[1.0, -5.0], [3.0, 3.0]], [(0, 1)]).tolist()
    [[2.0, -4.0], [4.0, 2.0]]
    """
    real, at = _checked(matrix, pairs)
    i, j = at.T
    a, b = (real[i, i] + real[j, j]) / 2, (real[j, i] - real[i, j]) / 2
    form = np.zeros_like(real)
    form[i, i] = form[j, j] = a
    form[j, i], form[i, j] = b, -b
    return form


def toeplitz_distance(matrix: Any, pairs: Any) -> float:
    """``|A - closest| / |A|`` (Frobenius), 0 to 1: 0 exactly when the form is Toeplitz; 0 for the zero matrix.

    Args:
        matrix: ``(width, width)``, for example ``W_q^T W_k`` of a head.
        pairs: ``(pairs, 2)`` channels of the table: ``(2i, 2i + 1)`` for the paper's order.

    Raises:
        ShapeError: see :func:`closest_form`.

    >>> toeplitz_distance([[2.0, -1.0], [1.0, 2.0]], [(0, 1)]), toeplitz_distance([[1.0, 0.0], [0.0, -1.0]], [(0, 1)])
    (0.0, 1.0)
    """
    real, at = _checked(matrix, pairs)
    size = np.linalg.norm(real)
    return float(np.linalg.norm(real - closest_form(real, at)) / size) if size else 0.0


def off_pair(matrix: Any, pairs: Any) -> float:
    """The part of ``|A|^2`` outside the pairs' 2 x 2 blocks, 0 to 1."""
    real, at = _checked(matrix, pairs)
    inside = sum(float((real[r, c] ** 2).sum()) for r in at.T for c in at.T)
    whole = float((real**2).sum())
    return max(0.0, 1 - inside / whole) if whole else 0.0


def random_distance(width: int, pairs: int) -> float:
    """Root mean square distance of a matrix with independent entries: ``sqrt(1 - 2 pairs / width^2)``."""
    return float(np.sqrt(1 - 2 * pairs / width**2))


def toeplitz_defects(scores: Any) -> list[float | None]:
    """Relative distance (Frobenius) of each matrix from the nearest ``f(m - n) + g(m)``, rows' means taken out first.

    A function ``g`` of the query alone cancels in the softmax, so neither the distance nor the size counts it. Least
    squares with ``f`` eliminated: ``(n I - C^T D^-1 C) g = row sums - C^T D^-1 diagonal sums``, ``C`` saying which
    diagonal passes through which row, ``D`` the lengths of the diagonals.

    Args:
        scores: ``(matrices, n, n)``.

    Returns:
        A number from 0 to 1 for each matrix; None where nothing is left without the rows' means.

    Raises:
        ShapeError: no squares of finite numbers.

    >>> [round(d, 9) for d in toeplitz_defects([[[0.0, 1.0, 5.0], [12.0, 10.0, 11.0], [7.0, 2.0, 0.0]]])]
    [0.0]
    """
    real = np.asarray(scores, dtype=np.float64)
    if real.ndim != 3 or real.shape[1] != real.shape[2] or not real.size or not np.isfinite(real).all():
        raise ShapeError("scores are squares of finite numbers", real.shape)
    n = real.shape[1]
    diagonal = np.arange(n)[:, None] - np.arange(n) + n - 1
    lengths = np.bincount(diagonal.ravel())
    through = np.zeros((2 * n - 1, n))
    through[diagonal, np.arange(n)[:, None]] = 1.0
    solve = np.linalg.pinv(n * np.eye(n) - (through.T / lengths) @ through, rcond=1e-10, hermitian=True)
    return [_defect(each, diagonal, lengths, through, solve) for each in real]


def _defect(scores: Array, diagonal: Any, lengths: Any, through: Array, solve: Array) -> float | None:
    left = scores - scores.mean(-1, keepdims=True)
    size = float(np.linalg.norm(left))
    if size <= 1e-13 * float(np.linalg.norm(scores)):
        return None
    sums = np.bincount(diagonal.ravel(), weights=left.ravel())
    rows = solve @ (left.sum(-1) - through.T @ (sums / lengths))
    means = (sums - through @ rows) / lengths
    return float(np.linalg.norm(left - rows[:, None] - means[diagonal]) / size)


def adjacent_pairs(width: int) -> tuple[tuple[int, int], ...]:
    """``(2i, 2i + 1)``: the channels of the pairs of the paper's table; the last channel of an odd width is in none."""
    return tuple((2 * i, 2 * i + 1) for i in range(width // 2))


def _checked(matrix: Any, pairs: Sequence[tuple[int, int]] | Any) -> tuple[Array, Any]:
    real = np.asarray(matrix, dtype=np.float64)
    if real.ndim != 2 or real.shape[0] != real.shape[1] or not np.isfinite(real).all():
        raise ShapeError("the matrix is a square of finite numbers", real.shape)
    at = np.asarray(pairs)
    if at.ndim != 2 or at.shape[1] != 2 or at.dtype.kind not in "iu":
        raise ShapeError("pairs are (pairs, 2) channels", at.shape)
    if len(np.unique(at)) != at.size or at.min(initial=0) < 0 or at.max(initial=-1) >= len(real):
        raise ShapeError(f"pairs are different channels from 0 to {len(real) - 1}", at.tolist()[:4])
    return real, at
