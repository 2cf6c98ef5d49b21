"""The adapter protocol: a subject that says itself what it is, in NumPy.

An object with one of these methods is taken at its word, and nothing is guessed::

    rotate(x, positions)         x (n, tokens, head_dim) -> the same shape; head_dim is an attribute
    table(positions)             (tokens,) -> (tokens, width)
    cos_sin(positions)           (tokens,) -> two arrays (tokens, pairs)
    bias(n_q, n_k)               -> (heads, n_q, n_k)
    attention(q, k, v, positions)  (heads, tokens, head_dim) each -> the same; head_dim and heads are attributes
"""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Attention, Bias, Box, CosSin, Rows, Turning
from posenc.checker.calling.hints import Hints

WORD = "posenc_adapter"
"""An attribute of this name, set to True, says that an object speaks the protocol."""


def adapted(subject: Any, hints: Hints) -> Box | None:
    """The box of a subject that speaks the protocol; None for others."""
    if isinstance(subject, type) or getattr(subject, WORD, False) is not True:
        return None
    dtype = str(getattr(subject, "dtype", "float32"))
    largest = getattr(subject, "largest", None)
    head_dim = int(getattr(subject, "head_dim", hints.dims[0]))
    calls = {"adapter": subject}

    def f64(function: Any) -> Any:
        return lambda *a, **k: np.asarray(function(*a, **k), dtype=np.float64)

    if hasattr(subject, "attention"):
        return Attention(
            head_dim,
            int(getattr(subject, "heads", 2)),
            f64(subject.attention),
            frozenset(getattr(subject, "takes", ())),
            dtype=dtype,
            calls=calls,
        )
    if hasattr(subject, "rotate"):
        key = f64(subject.rotate_key) if hasattr(subject, "rotate_key") else None
        return Turning(head_dim, f64(subject.rotate), key, dtype=dtype, largest=largest, calls=calls)
    if hasattr(subject, "cos_sin"):

        def cos_sin(at: Any) -> tuple[Any, Any]:
            cos, sin = subject.cos_sin(at)
            return np.asarray(cos, dtype=np.float64), np.asarray(sin, dtype=np.float64)

        return CosSin(
            cos_sin,
            dtype=dtype,
            largest=largest,
            calls=calls,
        )
    if hasattr(subject, "bias"):
        return Bias(f64(subject.bias), dtype=dtype, calls=calls)
    if hasattr(subject, "table"):
        width = np.asarray(subject.table(np.arange(2.0))).shape[1]
        return Rows(int(width), f64(subject.table), dtype=dtype, largest=largest, calls=calls)
    return None
