"""Additive scores expanded around content alone, to second order in the positions.

Put ``u(e) = word + type + e position``. The normalised vector is ``g (a + e b) / s(e) + beta`` with ``a`` and ``b``
centred and ``s(e)^2 = mean((a + e b)^2) + eps``, so that with ``r_k`` the Taylor coefficients of ``1 / s`` at 0

    y_0 = a r_0,   y_1 = b r_0 + a r_1,   y_2 = b r_1 + a r_2
    r_0 = s_0^-1,  r_1 = -c s_0^-3,       r_2 = (3/2) c^2 s_0^-5 - (1/2) v s_0^-3      (c = mean(ab), v = mean(b^2))

and the score of order 2 is ``q_2 k_0 + q_1 k_1 + q_0 k_2``; ``q_1 k_1`` is the only part that joins both positions. The
approximation is good where positions are small beside words; the numbers say how good.
"""

from __future__ import annotations

import numpy as np

from posenc.analysis.additive import whole_scores
from posenc.analysis.shares import allowed, centred, deviation
from posenc.formats.weights import AdditiveLayer
from posenc.formulas.spectrum import Array
from posenc.records.decomposition import Expansion


def score_orders(layer: AdditiveLayer) -> tuple[Array, Array, Array, Array]:
    """``(heads, tokens, tokens)`` of order 0, 1 and 2 in the positions, and the mixed part of order 2."""
    p = layer.projections
    a = layer.words + layer.types
    b = layer.positions[: len(layer.words)]
    a, b = a - a.mean(-1, keepdims=True), b - b.mean(-1, keepdims=True)
    c, v = (a * b).mean(-1, keepdims=True), (b * b).mean(-1, keepdims=True)
    r0 = 1 / np.sqrt((a * a).mean(-1, keepdims=True) + layer.eps)
    r1, r2 = -c * r0**3, 1.5 * c**2 * r0**5 - 0.5 * v * r0**3
    inputs = [layer.norm_weight * y for y in (a * r0, b * r0 + a * r1, b * r1 + a * r2)]
    inputs[0] = inputs[0] + layer.norm_bias
    q = [y @ p.query.swapaxes(-1, -2) for y in inputs]
    k = [y @ p.key.swapaxes(-1, -2) for y in inputs]
    q[0], k[0] = q[0] + p.query_bias[:, None], k[0] + p.key_bias[:, None]
    scale = p.scale

    def product(i: int, j: int) -> Array:
        return np.asarray(scale * (q[i] @ k[j].swapaxes(-1, -2)))

    mixed = product(1, 1)
    return product(0, 0), product(1, 0) + product(0, 1), product(2, 0) + mixed + product(0, 2), mixed


def expansion(layer: AdditiveLayer) -> Expansion:
    """How well the scores are described by content and a second-order correction for the positions."""
    mask = allowed(len(layer.words), layer.projections.causal)
    exact = whole_scores(layer)
    constant = [deviation(scores, mask) == 0 for scores in exact]
    exact, zero, one, two, mixed = (centred(x, mask) for x in (exact, *score_orders(layer)))
    word = layer.words + layer.types
    place = layer.positions[: len(layer.words)]
    word_size, place_size = (np.linalg.norm(x - x.mean(-1, keepdims=True)) for x in (word, place))
    second = np.linalg.norm(two)

    def error(approximation: Array, of: Array) -> float:
        return float(np.linalg.norm(of - approximation) / np.linalg.norm(of))

    best = zero + one + two
    return Expansion(
        position_size=float(place_size / word_size) if word_size else None,
        errors=None if all(constant) else (error(zero, exact), error(zero + one, exact), error(best, exact)),
        head_errors=tuple(None if c else error(best[h], exact[h]) for h, c in enumerate(constant)),
        mixed=float(np.linalg.norm(mixed) / second) if second else None,
    )
