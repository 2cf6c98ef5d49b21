"""Relative encodings in the score beyond ALiBi and T5, one formula each; relative positions are ``i - j`` here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError
from posenc.formulas.spectrum import Array, scheduled
from posenc.formulas.tables import check_entries, sinusoidal_table
from posenc.spec import Disentangled, Fire, Geometric, Kerple, Sandwich, Shaw, Sinusoidal, SinusoidalBias, TransformerXL

SMALLEST = 0.01
"""KERPLE's parameters are kept at this or more (the authors' code)."""


def kerple_at(encoding: Kerple, r1: Any, r2: Any, distance: Any) -> Array:
    """KERPLE's bias ``(num_heads, ...)`` for ``i - j`` of shape ``(...)`` (Chi et al. 2022, equations 3 and 4).

    ``log``: ``-r1 ln(1 + r2 D)``, ``power``: ``-r1 D^r2``, ``D = |i - j|``.

    Args:
        r1, r2: ``(num_heads,)``; raised to 0.01, and ``r2`` of a power kept at 2 or less.

    >>> kerple_at(Kerple(1), [1.0], [1.0], [1, 2]).round(6).tolist()
    [[-0.693147, -1.098612]]
    """
    d = np.abs(np.asarray(distance, dtype=np.float64))
    a, b = (np.maximum(_per_head(r, encoding.num_heads, d.ndim), SMALLEST) for r in (r1, r2))
    return -a * np.log1p(b * d) if encoding.form == "log" else -a * np.float_power(d, np.minimum(b, 2.0))


def fire_at(
    encoding: Fire,
    query: Any,
    key: Any,
    *,
    w1: Any,
    b1: Any,
    w2: Any,
    b2: Any,
    c: float | None = None,
    multiplier: float = 1.0,
) -> Array:
    """FIRE's bias ``(num_heads, ...)`` for positions of queries and keys that broadcast (Li et al. 2023, equation 7).

    ``x = psi(i - j) / (psi(max(L, i)) + eps)``, ``psi(x) = ln(|c x| + 1)``; ``w2 relu(w1 x + b1) + b2``.

    Args:
        w1, b1: ``(hidden,)``. w2: ``(num_heads, hidden)``. b2: ``(num_heads,)``.
        c: the encoding's own unless given. multiplier: trained factor on the threshold ``L``.
    """
    x = fire_input(encoding, query, key, c=c, multiplier=multiplier)
    hidden = np.maximum(x[..., None] * np.asarray(w1, dtype=np.float64) + np.asarray(b1), 0.0)
    return np.moveaxis(hidden @ np.asarray(w2, dtype=np.float64).T + np.asarray(b2), -1, 0)


def fire_input(encoding: Fire, query: Any, key: Any, *, c: float | None = None, multiplier: float = 1.0) -> Array:
    """What FIRE's network reads, shape of ``query - key``.

    >>> fire_input(Fire(1), 100, 90).round(6).item()
    0.175255
    """
    i, j = (np.asarray(p, dtype=np.float64) for p in (query, key))
    rate = encoding.c if c is None else c
    longest = np.maximum(abs(encoding.threshold * multiplier), i)
    return np.asarray(np.log(np.abs(rate * (i - j)) + 1) / (np.log(np.abs(rate * longest) + 1) + encoding.eps))


def sandwich_at(encoding: Sandwich, distance: Any) -> Array:
    """Sandwich's bias ``(num_heads, ...)`` for ``i - j``: ``H / (compression h) sum_i cos((i - j) theta_i)``.

    Ratios as in the authors' appendix: ``8 h / H`` divides the similarity of head ``h = 1..H``.

    >>> sandwich_at(Sandwich(8, dim=128, first_pair=1), [0, 1]).round(4)[0].tolist()
    [64.0, 62.5534]
    """
    d = np.asarray(distance, dtype=np.float64)
    waves = np.cos(np.multiply.outer(d, sandwich_theta(encoding))).sum(-1)
    return np.asarray(waves / _per_head(sandwich_ratios(encoding), encoding.num_heads, d.ndim))


def sandwich_theta(encoding: Sandwich) -> Array:
    """``(dim / 2,)`` radians per position; ``base^(-2i/dim)`` from the encoding's first pair on."""
    pairs = encoding.dim // 2 + encoding.first_pair
    theta: Array = np.asarray(scheduled(Geometric(base=encoding.base), pairs, encoding.dim), dtype=np.float64)
    return theta[encoding.first_pair :]


def sandwich_ratios(encoding: Sandwich) -> Array:
    """``(num_heads,)``: ``compression h / H``.

    >>> sandwich_ratios(Sandwich(4)).tolist()
    [2.0, 4.0, 6.0, 8.0]
    """
    return encoding.compression * np.arange(1, encoding.num_heads + 1) / encoding.num_heads


def relative_sinusoid(sinusoid: Sinusoidal, distance: Any, limit: int | None = None) -> Array:
    """``PE(clip(i - j))`` ``(..., dim)``; the sines of ``-D`` are those of ``D`` with the other sign.

    >>> relative_sinusoid(Sinusoidal(2), [-9, 9], limit=3).round(4).tolist()
    [[-0.1411, -0.99], [0.1411, -0.99]]
    """
    d = np.asarray(distance)
    d = d if limit is None else np.clip(d, -limit, limit)
    check_entries(*d.shape, sinusoid.dim)
    return sinusoidal_table(sinusoid, d.reshape(-1)).reshape(*d.shape, sinusoid.dim)


def sinusoidal_bias_at(encoding: SinusoidalBias, weight: Any, distance: Any) -> Array:
    """``w_h . PE(clip(i - j))`` ``(num_heads, ...)`` with weights ``(num_heads, dim)``."""
    rows = relative_sinusoid(encoding.sinusoid, distance, encoding.limit)
    return np.moveaxis(rows @ np.asarray(weight, dtype=np.float64).T, -1, 0)


def shaw_rows(encoding: Shaw, distance: Any) -> NDArray[np.int64]:
    """Which of the ``2 limit + 1`` vectors belongs to ``i - j``: ``clip(j - i, -limit, limit) + limit``.

    >>> shaw_rows(Shaw(8, limit=2), [0, -1, -3, 2]).tolist()
    [2, 3, 4, 0]
    """
    rows = np.clip(-np.asarray(distance, dtype=np.int64), -encoding.limit, encoding.limit) + encoding.limit
    return np.asarray(rows)


def transformer_xl_scores(
    encoding: TransformerXL, q: Any, k: Any, distance: Any, *, u: Any, v: Any, weight: Any
) -> Array:
    """``((q_i + u) . k_j + (q_i + v) . W_R R_(i-j)) / sqrt(head_dim)`` (Dai et al. 2019, section 3.3).

    Args:
        q: ``(heads, n_q, head_dim)``. k: ``(heads, n_k, head_dim)``.
        distance: ``(n_q, n_k)`` of ``i - j``.
        u, v: ``(heads, head_dim)``. weight: ``W_R`` ``(heads * head_dim, width of R)``.
    """
    query, key = (np.asarray(x, dtype=np.float64) for x in (q, k))
    rows = relative_sinusoid(encoding.sinusoid, distance, encoding.limit) @ np.asarray(weight, dtype=np.float64).T
    rows = rows.reshape(*rows.shape[:-1], encoding.num_heads, encoding.head_dim)
    content = np.einsum("hid,hjd->hij", query + np.asarray(u)[:, None], key)
    position = np.einsum("hid,ijhd->hij", query + np.asarray(v)[:, None], rows)
    return np.asarray((content + position) / np.sqrt(encoding.head_dim))


def disentangled_rows(encoding: Disentangled, distance: Any) -> NDArray[np.int64]:
    """The table's row for ``i - j``: ``clip(bucket(i - j) + span, 0, 2 span - 1)`` (He et al. 2020, equation 3).

    Without ``max_distance`` a bucket is the distance itself; with it, distances beyond ``mid = span / 2`` count
    ``mid + ceil((mid - 1) ln(D / mid) / ln((max_distance - 1) / mid))`` (DeBERTa v2).

    >>> v3 = Disentangled(64, num_heads=12, span=256, max_distance=512)
    >>> (disentangled_rows(v3, [0, 128, 129, 256, 511, -511]) - 256).tolist()
    [0, 128, 129, 192, 255, -255]
    """
    d = np.asarray(distance, dtype=np.int64)
    if encoding.max_distance is not None:
        mid = encoding.span // 2
        far = np.clip(np.abs(d), mid, encoding.max_distance)  # from there on the last row
        d = np.where(np.abs(d) <= mid, d, np.sign(d) * (mid + _log_steps(far, mid, encoding.max_distance - 1)))
    return np.asarray(np.clip(d + encoding.span, 0, 2 * encoding.span - 1))


def _log_steps(far: NDArray[np.int64], mid: int, last: int) -> NDArray[np.int64]:
    """``ceil((mid - 1) ln(far / mid) / ln(last / mid))``; within 1e-12 of a whole number it is that number."""
    value = np.log(far / mid) * ((mid - 1) / math.log(last / mid))
    return np.ceil(value - 1e-12 * mid).astype(np.int64)


def disentangled_scores(
    encoding: Disentangled, q: Any, k: Any, distance: Any, *, table: Any, key: Any = None, query: Any = None
) -> Array:
    """``(q_i . k_j + q_i . W_K P_d(i,j) + k_j . W_Q P_d) / sqrt(terms head_dim)`` (He et al. 2020, equation 4).

    The last ``d`` is ``d(i,j)`` (the authors' code), or ``d(j,i)`` as printed.

    Args:
        q: ``(heads, n_q, head_dim)``. k: ``(heads, n_k, head_dim)``. distance: ``(n_q, n_k)`` of ``i - j``.
        table: ``P`` ``(2 span, dim)``, normalised already where the encoding says so.
        key, query: ``W_K`` and ``W_Q`` ``(heads * head_dim, dim)``, for the terms that the encoding has.
    """
    q, k = (np.asarray(x, dtype=np.float64) for x in (q, k))
    rows, d = np.asarray(table, dtype=np.float64), np.asarray(distance)
    if rows.shape != (2 * encoding.span, encoding.dim):
        raise ShapeError(f"the table is ({2 * encoding.span}, {encoding.dim})", rows.shape)
    score = q @ k.transpose(0, 2, 1)
    shape = (2 * encoding.span, encoding.num_heads, encoding.head_dim)
    if encoding.content_to_position:
        projected = (rows @ np.asarray(key, dtype=np.float64).T).reshape(shape)
        score = score + np.einsum("hid,ijhd->hij", q, projected[disentangled_rows(encoding, d)])
    if encoding.position_to_content:
        projected = (rows @ np.asarray(query, dtype=np.float64).T).reshape(shape)
        score = score + np.einsum(
            "hjd,ijhd->hij", k, projected[disentangled_rows(encoding, -d if encoding.as_printed else d)]
        )
    return np.asarray(score / np.sqrt(encoding.terms * encoding.head_dim))


def _per_head(values: Any, heads: int, dims: int) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (heads,):
        raise ShapeError(f"there is one number for each of {heads} heads", array.shape)
    return array.reshape(-1, *[1] * dims)
