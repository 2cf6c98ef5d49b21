"""What is added to scores, and factors on queries: ALiBi, T5's buckets, the query scale of Llama 4."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError
from posenc.formulas.phases import coordinates
from posenc.formulas.tables import check_entries
from posenc.shapes import Float
from posenc.spec import Alibi, QueryScale, T5Bias

FARTHEST_RELATIVE = 2**53


def relative_positions(n_q: int, n_k: int, offset: int = 0) -> NDArray[np.int64]:
    """``(n_q, n_k)``: key position minus query position; query ``i`` stands at position ``i + offset``.

    A cache of ``n_k`` keys with ``n_q`` new queries at its end has ``offset = n_k - n_q``.

    >>> relative_positions(1, 3, offset=2).tolist()
    [[-2, -1, 0]]
    """
    if n_q < 0 or n_k < 0:
        raise ShapeError("there are no fewer than 0 queries and keys", (n_q, n_k))
    check_entries(n_q, n_k)
    return np.arange(n_k, dtype=np.int64) - (np.arange(n_q, dtype=np.int64)[:, None] + offset)


def alibi_slopes(num_heads: int, max_bias: float = 8.0) -> Float[np.ndarray, " heads"]:
    """``(num_heads,)`` slopes ``m_h`` of ALiBi (Press et al. 2021, section 3; the authors' code for other counts).

    ``m_h = 2^(-max_bias h / n)``, ``h = 1..n``, for a power of two ``n``. Otherwise the slopes of the power of two
    below, completed with every other one of the power of two above.

    Raises:
        ShapeError: no heads.

    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    if num_heads < 1:
        raise ShapeError("there is at least one head", num_heads)
    n = 1 << (num_heads.bit_length() - 1)
    below = np.exp2(-max_bias * np.arange(1, n + 1) / n)
    above = np.exp2(-max_bias * np.arange(1, 2 * n + 1, 2) / (2 * n))
    return np.concatenate([below, above[: num_heads - n]])


def alibi_bias(encoding: Alibi, n_q: int, n_k: int, offset: int = 0) -> Float[np.ndarray, "heads queries keys"]:
    """``(num_heads, n_q, n_k)``: ``-m_h (i - j)``, or ``-m_h |i - j|`` if symmetric.

    Keys after the query get a positive bias unless symmetric: the formula is for causal attention, where a mask hides
    them. BLOOM adds ``m_h j`` instead: the same up to a constant for each row, which the softmax does not see.

    >>> alibi_bias(Alibi(3), 1, 3, offset=2)[0].tolist()
    [[-0.125, -0.0625, 0.0]]
    """
    check_entries(encoding.num_heads, n_q, n_k)
    return alibi_at(encoding, relative_positions(n_q, n_k, offset))


def alibi_at(encoding: Alibi, relative: Any) -> Float[np.ndarray, heads * relative]:
    """ALiBi's bias for relative positions ``(...)``, key minus query, integer or real: ``(num_heads, ...)``."""
    steps = np.asarray(relative, dtype=np.float64)
    if encoding.symmetric:
        steps = -np.abs(steps)
    slopes = alibi_slopes(encoding.num_heads, encoding.max_bias)
    return np.asarray(slopes.reshape(-1, *[1] * steps.ndim) * steps)


def t5_buckets(
    relative: Any, num_buckets: int = 32, max_distance: int = 128, *, bidirectional: bool = True
) -> NDArray[np.int64]:
    """The bucket of each relative position ``j - i`` (Raffel et al. 2019, section 2.1), by exact arithmetic.

    With ``n`` buckets for a sign and ``e = n // 2``: distances below ``e`` have a bucket each; from there
    ``e + floor((n - e) ln(r / e) / ln(max_distance / e))``, at most ``n - 1``. Bidirectional: ``n`` is half the
    buckets, and keys after the query take the second half (of which the first bucket stays unused). Causal: keys
    after the query share bucket 0. Where the logarithm falls on a whole number, or too near to tell in float64, it is
    compared exactly.

    Args:
        relative: ``(...)`` integers, key minus query.

    Returns:
        ``(...)`` integers below ``num_buckets``.

    Raises:
        ShapeError: the relative positions are not integers.

    >>> t5_buckets([-200, -16, -1, 0, 1, 16, 128]).tolist()
    [15, 10, 1, 0, 17, 26, 31]
    """
    step = np.asarray(relative)
    if step.dtype.kind not in "iu":
        raise ShapeError("relative positions are integers", step.dtype)
    step = step.astype(np.int64)
    n = num_buckets // 2 if bidirectional else num_buckets
    distance = np.abs(step) if bidirectional else np.maximum(-step, 0)
    first = np.where(step > 0, n, 0) if bidirectional else 0
    exact = n // 2
    if not 0 < exact < max_distance:
        raise ShapeError("max_distance exceeds the distances that have a bucket each", (max_distance, exact))
    far = np.clip(distance, exact, max_distance)
    large = np.minimum(exact + _log_buckets(far, exact, max_distance, n - exact), n - 1)
    return np.asarray(first + np.where(distance < exact, distance, large))


def _log_buckets(far: NDArray[np.int64], exact: int, farthest: int, count: int) -> NDArray[np.int64]:
    """``floor(count ln(far / exact) / ln(farthest / exact))`` for ``exact <= far <= farthest``."""
    value = np.log(far / exact) * (count / math.log(farthest / exact))
    bucket = np.floor(value).astype(np.int64)
    whole = np.rint(value)
    close = np.abs(value - whole) <= 1e-12 * (1 + count)
    for distance, k in {(int(r), int(w)) for r, w in zip(far[close], whole[close], strict=True)}:
        bucket[close & (far == distance)] = k if _reaches(distance, k, exact, farthest, count) else k - 1
    return bucket


def _reaches(distance: int, k: int, exact: int, farthest: int, count: int) -> bool:
    """Whether ``(distance / exact)^count >= (farthest / exact)^k``, in integers where they stay small."""
    shared = math.gcd(count, k)
    count, k = count // shared, k // shared
    if count <= 4096:
        left: int = distance**count * exact ** max(k - count, 0)
        right: int = farthest**k * exact ** max(count - k, 0)
        return left >= right
    with localcontext() as context:
        context.prec = 60
        gap = count * (Decimal(distance) / exact).ln() - k * (Decimal(farthest) / exact).ln()
        return gap > 0  # equal is impossible: numbers below 2^48 have no ratio above 1 that is a 4096th power


def t5_bias(
    encoding: T5Bias, table: Any, n_q: int, n_k: int, offset: int = 0
) -> Float[np.ndarray, "heads queries keys"]:
    """``(num_heads, n_q, n_k)`` from a trained table ``(num_buckets, num_heads)``.

    T5 does not divide its scores by ``sqrt(d)``.

    Raises:
        ShapeError: the table is not of the encoding's shape.
    """
    check_entries(encoding.num_heads, n_q, n_k)
    return t5_at(encoding, table, relative_positions(n_q, n_k, offset))


def t5_at(encoding: T5Bias, table: Any, relative: Any) -> Float[np.ndarray, heads * relative]:
    """T5's bias for integer relative positions ``(...)``, key minus query: ``(num_heads, ...)``."""
    numbers = np.asarray(table, dtype=np.float64)
    if numbers.shape != (encoding.num_buckets, encoding.num_heads):
        raise ShapeError(f"a T5 table is ({encoding.num_buckets}, {encoding.num_heads})", numbers.shape)
    buckets = t5_buckets(relative, encoding.num_buckets, encoding.max_distance, bidirectional=encoding.bidirectional)
    return np.moveaxis(numbers[buckets], -1, 0)


def query_scale(encoding: QueryScale, positions: Any) -> Float[np.ndarray, "*positions"]:
    """``1 + beta ln(1 + floor((p + offset) / original))`` for positions ``(...)``.

    >>> query_scale(QueryScale(0.1, original=8192, offset=1), [0, 8191]).round(6).tolist()
    [1.0, 1.069315]
    """
    at = coordinates(positions, 1)[..., 0]
    return np.asarray(1 + encoding.beta * np.log1p(np.floor((at + encoding.offset) / encoding.original)))
