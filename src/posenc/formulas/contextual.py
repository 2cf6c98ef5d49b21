"""Positions made from the content, one sequence at a time: contextual counts, forgetting, selective angles."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.errors import ShapeError
from posenc.formulas.spectrum import Array, scheduled
from posenc.spec import Cope, Forgetting, Geometric, SelectiveRotary


def cope_positions(scores: Any, positions: int | None = None) -> Array:
    """``p_ij = min(sum_(t=j..i) sigmoid(score_it), positions - 1)`` (Golovneva et al. 2024, equation 3).

    Args:
        scores: ``(..., n_q, n_k)``, ``-inf`` where a key is hidden: such a key counts nothing.
        positions: trained positions; None for no limit.

    >>> cope_positions([[0.3, -1.0, 2.0, 0.5]]).round(6).tolist()
    [[2.34664, 1.772198, 1.503256, 0.622459]]
    """
    s = np.asarray(scores, dtype=np.float64)
    gates = np.exp(-np.logaddexp(0.0, -s))
    counts = np.cumsum(gates[..., ::-1], axis=-1)[..., ::-1]
    return counts if positions is None else np.minimum(counts, positions - 1.0)


def cope_scores(encoding: Cope, scores: Any, q: Any, vectors: Any) -> Array:
    """``score_ij + q_i . e[p_ij]`` with ``e`` linear between whole positions (equations 4 and 5).

    Args:
        scores: ``(heads, n_q, n_k)`` scaled and masked. q: ``(heads, n_q, head_dim)``.
        vectors: ``e`` ``(head_dim, positions)``.
    """
    e = np.asarray(vectors, dtype=np.float64)
    if e.shape != (encoding.head_dim, encoding.positions):
        raise ShapeError(f"the vectors are ({encoding.head_dim}, {encoding.positions})", e.shape)
    at = cope_positions(scores, encoding.positions)
    low = np.floor(at).astype(np.int64)
    part = at - low
    z = np.asarray(q, dtype=np.float64) @ e
    below = np.take_along_axis(z, low, -1)
    above = np.take_along_axis(z, np.minimum(low + 1, encoding.positions - 1), -1)
    return np.asarray(scores) + below * (1 - part) + above * part


def forgetting_positions(encoding: Forgetting, gates: Any) -> Array:
    """``b_t = sum_(s <= t) log f_s``; the bias of query i and key j is ``b_i - b_j``.

    Args:
        gates: ``w x + b`` ``(..., tokens)``. ``log f`` is ``log sigmoid`` of it (Lin et al. 2025), or ``-softplus``
            (Veisi et al. 2025).

    >>> forgetting_positions(Forgetting(8, num_heads=1, form="softplus"), [0.0, 1.0, -1.0]).round(6).tolist()
    [-0.693147, -2.006409, -2.319671]
    """
    z = np.asarray(gates, dtype=np.float64)
    return np.cumsum(-np.logaddexp(0.0, -z if encoding.form == "log_sigmoid" else z), axis=-1)


def selective_phases(encoding: SelectiveRotary, x: Any, *, down: Any, up: Any, kernel: Any) -> Array:
    """Angles ``(heads, tokens, pairs)`` of a selective rotary for tokens ``x`` ``(tokens, dim)``.

    Args:
        down: ``W_1`` ``(rank, dim)``. up: ``W_2`` ``(heads * pairs, rank)``.
        kernel: ``(heads * pairs, window)``; its last column meets the token itself.
    """
    tokens = np.asarray(x, dtype=np.float64)
    heads, pairs, window = encoding.num_heads, encoding.head_dim // 2, encoding.window
    shares = tokens.reshape(len(tokens), heads, -1)
    norm = np.sqrt((shares * shares).sum(-1, keepdims=True) + SMALL)
    read = (shares / norm).reshape(len(tokens), -1) @ np.asarray(down).T @ np.asarray(up).T
    before = np.concatenate([np.zeros((window - 1, heads * pairs)), read])
    steps = sum(before[w : w + len(tokens)] * np.asarray(kernel)[:, w] for w in range(window))
    theta = scheduled(Geometric(base=encoding.base), pairs, encoding.head_dim)
    return np.asarray(np.cumsum(steps, axis=0).reshape(-1, heads, pairs).swapaxes(0, 1) * theta)


SMALL = 1e-6
"""Added to the square of a norm before its root (the authors' kernel library)."""
