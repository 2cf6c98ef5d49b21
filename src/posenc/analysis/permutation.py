"""What attention knows of order: nothing without positions, exactly."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from posenc.records.analysis import PermutationFacts, Quantity
from posenc.shapes import Bool, Float, Int

TOKENS, WIDTH = 11, 24


def permutation_facts(tables: Mapping[str, np.ndarray], *, seed: int = 0) -> PermutationFacts:
    """Permute the tokens of a random attention layer, in float64, and compare.

    Args:
        tables: additive encodings by name, ``(rows, width)``, at least 11 rows; the effect of each is measured after
            scaling its rows to the length of the tokens.
        seed: of the weights, tokens and the permutation.
    """
    rng = np.random.default_rng(seed)
    tokens = rng.standard_normal((TOKENS, WIDTH))
    layers = [rng.standard_normal((3, WIDTH, WIDTH)) / np.sqrt(WIDTH) for _ in range(2)]
    order = rng.permutation(TOKENS)
    plain = attend(tokens, layers[0])
    moved = attend(tokens[order], layers[0])
    constant = rng.standard_normal(WIDTH)
    same = attend((tokens + constant)[order], layers[0]) - attend(tokens + constant, layers[0])[order]
    prefix = np.r_[rng.permutation(TOKENS - 1), TOKENS - 1]
    while (prefix == np.arange(TOKENS)).all():
        prefix = np.r_[rng.permutation(TOKENS - 1), TOKENS - 1]
    return PermutationFacts(
        equivariance=_defect(moved - plain[order], "rows, permutation undone"),
        pooled=_defect(moved.mean(0) - plain.mean(0), "mean over rows"),
        equal_vectors=_defect(same, "the same vector added to every token"),
        broken=tuple((name, broken_by(table, tokens, layers[0], order)) for name, table in tables.items()),
        one_causal_layer=_defect(causal_change(tokens, layers[:1], prefix), "last row, prefix permuted, one layer"),
        two_causal_layers=_defect(causal_change(tokens, layers, prefix), "last row, prefix permuted, two layers"),
    )


def attend(
    x: Float[np.ndarray, "tokens width"], weights: Float[np.ndarray, "3 width width"], causal: bool = False
) -> Float[np.ndarray, "tokens width"]:
    """One head: ``softmax(Q K^T / sqrt(width)) V``."""
    q, k, v = (x @ w for w in weights)
    scores = q @ k.T / np.sqrt(x.shape[1])
    if causal:
        scores = np.where(_lower(len(x)), scores, -np.inf)
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True) @ v)


def causal_change(
    tokens: Float[np.ndarray, "tokens width"], layers: list[np.ndarray], order: Int[np.ndarray, " tokens"]
) -> Float[np.ndarray, " width"]:
    """How the last row of causal layers (with residual) changes when the tokens before it are permuted."""
    outputs = []
    for x in (tokens, tokens[order]):
        for weights in layers:
            x = x + attend(x, weights, causal=True)
        outputs.append(x[-1])
    return np.asarray(outputs[1] - outputs[0])


def broken_by(table: np.ndarray, tokens: np.ndarray, weights: np.ndarray, order: np.ndarray) -> float:
    """Relative change of the permuted rows once the encoding is added: 0 means order is still invisible."""
    rows = np.zeros_like(tokens)
    width = min(table.shape[1], tokens.shape[1])
    rows[:, :width] = table[: len(tokens), :width]
    length = np.sqrt((rows**2).sum(1, keepdims=True))
    rows = rows * np.sqrt(tokens.shape[1]) / np.where(length == 0, 1.0, length)
    before = attend(tokens + rows, weights)[order]
    after = attend(tokens[order] + rows, weights)
    return float(np.sqrt(((after - before) ** 2).sum() / (before**2).sum()))


def _lower(n: int) -> Bool[np.ndarray, "n n"]:
    return np.tri(n, dtype=bool)


def _defect(difference: np.ndarray, note: str) -> Quantity:
    return Quantity(value=float(np.abs(difference).max()), error=1e-13, note=note)
