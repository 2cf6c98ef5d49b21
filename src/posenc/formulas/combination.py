"""How position vectors join the content: added, concatenated, weighted, gated."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.errors import SpecError
from posenc.formulas.spectrum import Array

COMBINATIONS = ("add", "concat", "weighted", "gated")


def combined(
    content: Any,
    positions: Any,
    how: str = "add",
    *,
    content_scale: float = 1.0,
    weight: Any = None,
    bias: Any = None,
) -> Array:
    """Content and position vectors joined, in float64.

    With ``x`` the content times ``content_scale`` and ``p`` the position vectors: ``add``: ``x + p`` (Vaswani et al.
    2017, section 3.4, whose content scale is ``sqrt(d)``); ``concat``: ``W [x, p] + b``; ``weighted``: ``x + w p``;
    ``gated``: ``g x + (1 - g) p`` with ``g = sigmoid(W [x, p] + b)``.

    Args:
        content: ``(..., d)``.
        positions: ``(..., d_p)``; ``d_p = d`` except for ``concat``.
        how: one of the four.
        content_scale: factor on the content.
        weight: ``W`` ``(d, d + d_p)``, or the number ``w``.
        bias: ``b`` ``(d,)``.

    >>> combined([3.0, 4.0], [1.0, 0.0], "weighted", weight=0.5).tolist()
    [3.5, 4.0]
    """
    x = content_scale * np.asarray(content, dtype=np.float64)
    p = np.asarray(positions, dtype=np.float64)
    if how == "add":
        return np.asarray(x + p)
    if how == "weighted":
        return np.asarray(x + float(weight) * p)
    if how not in COMBINATIONS:
        raise SpecError(f"a combination is one of {', '.join(COMBINATIONS)}", how)
    p = np.broadcast_to(p, (*x.shape[:-1], p.shape[-1]))
    both = np.concatenate([x, p], axis=-1) @ np.asarray(weight, dtype=np.float64).T
    both = both + (0.0 if bias is None else np.asarray(bias, dtype=np.float64))
    if how == "concat":
        return np.asarray(both)
    gate = 1 / (1 + np.exp(-both))
    return np.asarray(gate * x + (1 - gate) * p)
