"""Scores of attention with position encodings, dense and slow: the truth that fast paths are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posenc.errors import ShapeError, SpecError
from posenc.formulas.biases import alibi_at, query_scale, t5_at
from posenc.formulas.relative import fire_at, kerple_at, sandwich_at, sinusoidal_bias_at
from posenc.formulas.rotation import rotate
from posenc.formulas.scalings import frequencies
from posenc.formulas.spectrum import Array
from posenc.formulas.tables import check_entries
from posenc.spec import Alibi, Fire, Kerple, QueryScale, Rotary, Sandwich, SinusoidalBias, T5Bias


def scores(
    q: Any,
    k: Any,
    encodings: Any = (),
    *,
    query_positions: Any = None,
    key_positions: Any = None,
    length: int | None = None,
    scale: float | None = None,
    centre: float = 0.0,
    tables: Mapping[Any, Any] | None = None,
) -> Array:
    """``scale * (rotated q) . (rotated k) + biases`` before any mask and softmax.

    Args:
        q: ``(heads, n_q, head_dim)``.
        k: ``(kv_heads, n_k, head_dim)``; each key head serves ``heads / kv_heads`` query heads in a row.
        encodings: one encoding, or those of a layer in order; none is no position.
        query_positions, key_positions: ``(n,)`` or ``(n, axes)``; 0, 1, 2… for keys and the last of these for
        queries. length: declared length, for scalings that depend on it.
        scale: ``1 / sqrt(head_dim)`` unless given (T5: 1). A scaling's own factor on the softmax scale is multiplied
        in. centre: where xPos counts from.
        tables: for each bias what is trained: T5's table ``(num_buckets, num_heads)``, a mapping of the arguments of
        ``kerple_at`` and ``fire_at``, the weights ``(num_heads, dim)`` of a sinusoidal bias.

    Returns:
        ``(heads, n_q, n_k)`` float64.

    Raises:
        SpecError: an encoding enters at the input, or is not modelled.
        ShapeError: shapes do not fit.
    """
    chain = encodings if isinstance(encodings, Sequence) else (encodings,)
    query, key = np.asarray(q, dtype=np.float64), np.asarray(k, dtype=np.float64)
    if query.ndim != 3 or key.ndim != 3 or query.shape[2] != key.shape[2] or not key.shape[0]:
        raise ShapeError("q is (heads, n_q, head_dim) and k (kv_heads, n_k, head_dim)", (query.shape, key.shape))
    (heads, n_q, width), (kv_heads, n_k, _) = query.shape, key.shape
    if heads % kv_heads:
        raise ShapeError("the query heads are a multiple of the key heads", (heads, kv_heads))
    check_entries(heads, n_q, n_k)
    key_at = np.arange(n_k) if key_positions is None else np.asarray(key_positions)
    query_at = np.arange(n_k - n_q, n_k) if query_positions is None else np.asarray(query_positions)
    key = np.repeat(key, heads // kv_heads, axis=0)
    factor = 1 / math.sqrt(width) if scale is None else scale
    bias = np.zeros((heads, n_q, n_k))
    for encoding in chain:
        match encoding:
            case Rotary():
                query = rotate(query, query_at, encoding, length=length, role="query", centre=centre)
                key = rotate(key, key_at, encoding, length=length, role="key", centre=centre)
                factor *= frequencies(encoding, length).logit_scale
            case QueryScale():
                query = query * query_scale(encoding, query_at)[:, None]
            case Alibi() | T5Bias() | Kerple() | Fire() | Sandwich() | SinusoidalBias():
                bias += _bias(encoding, heads, query_at, key_at, tables or {})
            case _:
                where, remedy = getattr(encoding, "enters", "unknown"), None
                if where == "input":
                    remedy = "Add its table to the input first."
                elif where in ("score", "query_key"):
                    remedy = "Its own formula in posenc.formulas computes it from the content."
                rule = "scores take encodings of queries and keys, and biases that positions decide alone; this one"
                raise SpecError(f"{rule} enters at {where}", str(encoding), remedy)
    return np.asarray(factor * (query @ key.transpose(0, 2, 1)) + bias)


def _bias(encoding: Any, heads: int, query_at: Any, key_at: Any, tables: Mapping[Any, Any]) -> Array:
    if encoding.num_heads != heads:
        raise ShapeError(f"{encoding.kind} has a bias for each of its {encoding.num_heads} heads", f"{heads} heads")
    if query_at.ndim != 1 or key_at.ndim != 1:
        raise ShapeError(f"{encoding.kind} has one axis", (query_at.shape, key_at.shape))
    relative = key_at[None] - query_at[:, None]
    match encoding:
        case Alibi():
            return alibi_at(encoding, relative)
        case Sandwich():
            return sandwich_at(encoding, -relative)
    if encoding not in tables:
        raise ShapeError("tables holds what is trained of each bias", str(encoding))
    trained = tables[encoding]
    match encoding:
        case Kerple():
            return kerple_at(encoding, trained["r1"], trained["r2"], relative)
        case Fire():
            return fire_at(encoding, query_at[:, None], key_at[None], **trained)
        case SinusoidalBias():
            return sinusoidal_bias_at(encoding, trained, -relative)
    return t5_at(encoding, trained, relative)
