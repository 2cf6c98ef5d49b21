"""Shares of a sum in its terms, after what the softmax takes out was taken out."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from posenc.formulas.spectrum import Array
from posenc.records.decomposition import TermShare

Mask = NDArray[np.bool_]
POSITIONAL, CONTENT = 0.9, 0.1
CONSTANT = 1e-13
"""Scores whose rows deviate from their means by less than this, relative to their size, are constant rows."""


def allowed(tokens: int, causal: bool) -> Mask:
    """``(queries, keys)``: which keys a query attends to."""
    every = np.ones((tokens, tokens), dtype=np.bool_)
    return np.tril(every) if causal else every


def centred(scores: Array, mask: Mask) -> Array:
    """The scores minus each row's mean over the allowed keys; 0 elsewhere. An orthogonal projection."""
    kept = np.where(mask, scores, 0.0)
    return np.where(mask, scores - kept.sum(-1, keepdims=True) / mask.sum(-1, keepdims=True), 0.0)


def deviation(scores: Array, mask: Mask) -> float:
    """Root mean square of the centred scores; exactly 0 where it is only rounding."""
    size = float(np.abs(np.where(mask, scores, 0.0)).max())
    found = float(np.sqrt((centred(scores, mask) ** 2).sum() / mask.sum()))
    return found if found > CONSTANT * size else 0.0


def share(term: Array, scores: Array, mask: Mask) -> TermShare:
    """Share and explained part of one term; the scores must have a deviation."""
    whole, part = centred(scores, mask), centred(term, mask)
    square = float((whole**2).sum())
    return TermShare(
        share=float((part * whole).sum()) / square, explained=1 - float(((whole - part) ** 2).sum()) / square
    )


def verdict(positional: float | None) -> Literal["positional", "mixed", "content", "constant"]:
    """The word for a positional part."""
    if positional is None:
        return "constant"
    return "positional" if positional >= POSITIONAL else "content" if positional <= CONTENT else "mixed"


def softmax(scores: Array, mask: Mask) -> Array:
    """Attention over the allowed keys."""
    kept = np.where(mask, scores, -np.inf)
    weights = np.exp(kept - kept.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))
