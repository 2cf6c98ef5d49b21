"""Rotary scores as a sum over frequency pairs, gathered in bands by wavelength.

``score(m, n) = scale * sum_i q_i^T R((n - m) theta_i) k_i`` over the pairs, plus the channels that are not rotated
(Su et al. 2021, equation 16): each pair's summand depends on positions through its own angle alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from posenc.analysis.shares import Mask, allowed, centred, deviation, share, verdict
from posenc.errors import ShapeError
from posenc.formats.weights import RotaryLayer
from posenc.formulas.rotation import Indices, pairs_of, rotate
from posenc.formulas.scalings import frequencies
from posenc.formulas.spectrum import Array, Frequencies
from posenc.records.decomposition import HeadDecomposition, ScoreTerm

THIRDS = ("fast", "middle", "slow")


def bands_of(f: Frequencies, edges: Sequence[float] | None = None) -> tuple[ScoreTerm, ...]:
    """The pairs in bands: thirds by wavelength (the first ones larger if they do not divide), or between ``edges``.

    Args:
        f: the frequencies.
        edges: increasing wavelengths in positions; band ``j`` holds ``edges[j - 1] <= wavelength < edges[j]``.

    Raises:
        ShapeError: edges that are not positive and increasing.

    >>> [b.pairs for b in bands_of(Frequencies(np.array([1.0, 0.1, 0.01, 0.001])))]
    [(0, 1), (2,), (3,)]
    >>> [b.pairs for b in bands_of(Frequencies(np.array([1.0, 0.1, 0.01, 0.001])), edges=[100])]
    [(0, 1), (2, 3)]
    """
    waves = f.wavelengths
    if edges is None:
        groups = [np.sort(group) for group in np.array_split(np.argsort(waves, kind="stable"), 3)]
        names: Sequence[str] = THIRDS
    else:
        line = np.asarray(edges, dtype=np.float64)
        if line.ndim != 1 or not line.size or not (np.isfinite(line) & (line > 0)).all() or (np.diff(line) <= 0).any():
            raise ShapeError("edges of bands are positive, increasing wavelengths", list(edges)[:8])
        band = np.searchsorted(line, waves, side="right")
        groups = [np.flatnonzero(band == j) for j in range(len(line) + 1)]
        names = [
            f"below {line[0]:g}",
            *(f"{a:g} to {b:g}" for a, b in pairwise(line)),
            f"from {line[-1]:g}",
        ]
    return tuple(_band(name, group, waves) for name, group in zip(names, groups, strict=True))


def _band(name: str, group: Indices, waves: Array) -> ScoreTerm:
    within = waves[group]
    span = None
    if len(within) and np.isfinite(within.min()):
        span = (float(within.min()), float(within.max()) if np.isfinite(within.max()) else None)
    return ScoreTerm(
        name=name,
        meaning=f"{len(group)} frequency pairs",
        pairs=tuple(int(i) for i in group),
        wavelengths=span,
    )


@dataclass(frozen=True, eq=False)
class Turned:
    """Queries and keys after the rotation.

    Args:
        query: ``(heads, tokens, head_dim)``.
        key: the same shape; query heads that share a key head repeat it.
        channels: ``(pairs, 2)``.
        scale: factor on the scores.
    """

    query: Array
    key: Array
    channels: Indices
    scale: float

    def scores(self, head: int, channels: Any = slice(None)) -> Array:
        """``(tokens, tokens)``: the part of a head's scores that these channels make; keys after the query included."""
        return np.asarray(self.scale * (self.query[head][:, channels] @ self.key[head][:, channels].T))

    def bands(self, head: int, bands: Sequence[ScoreTerm]) -> Array:
        """``(bands + 1, tokens, tokens)``: each band's part, then that of the channels that are not rotated."""
        rest = np.setdiff1d(np.arange(self.query.shape[-1]), self.channels)
        groups = [self.channels[list(band.pairs)].ravel() for band in bands] + [rest]
        return np.stack([self.scores(head, c) for c in groups])

    def pair_shares(self, head: int, whole: Array, mask: Mask) -> Array:
        """``(pairs,)``: centring is a projection, so ``<centred term, f> = <term, f> = q_c^T f k_c`` by channel."""
        f = centred(whole, mask)
        by_channel = self.scale * ((f.T @ self.query[head]) * self.key[head]).sum(0) / (f**2).sum()
        return np.asarray(by_channel[self.channels].sum(-1))


def turned(layer: RotaryLayer, *, mean: bool = False) -> Turned:
    """Turn a layer's queries and keys, as complex numbers ``(a + ib) e^(i m theta)``.

    Args:
        layer: the layer.
        mean: put the sentence's mean query and mean key at every position: what a head would score if every word were
            the average one, which depends on the distance alone.
    """
    f, p = frequencies(layer.encoding, len(layer.words)), layer.projections
    at, channels = f.angles(np.arange(len(layer.words))), pairs_of(layer.encoding)
    query, key = queries_and_keys(layer)
    if mean:
        query, key = (np.repeat(x.mean(1, keepdims=True), x.shape[1], axis=1) for x in (query, key))
    made = []
    for x in (query, key):
        phase = (x[..., channels[:, 0]] + 1j * x[..., channels[:, 1]]) * (f.gain * np.exp(1j * at))
        x[..., channels[:, 0]], x[..., channels[:, 1]] = phase.real, phase.imag
        made.append(x)
    return Turned(made[0], made[1][owners(layer)], channels, p.scale * f.logit_scale)


def whole_scores(layer: RotaryLayer) -> Array:
    """``(heads, tokens, tokens)``: the scores in one piece, by :func:`posenc.formulas.rotation.rotate`."""
    f = frequencies(layer.encoding, len(layer.words))
    at = np.arange(len(layer.words))
    left, right = (rotate(x, at, layer.encoding, frequencies=f) for x in queries_and_keys(layer))
    scale = layer.projections.scale * f.logit_scale
    return np.asarray(scale * (left @ right[owners(layer)].swapaxes(-1, -2)))


def owners(layer: RotaryLayer) -> list[int]:
    """The key head of each query head."""
    return [layer.projections.key_head(h) for h in range(layer.projections.heads)]


def queries_and_keys(layer: RotaryLayer) -> tuple[Array, Array]:
    """``(heads, tokens, head_dim)`` and ``(key_heads, tokens, head_dim)`` before the rotation.

    ``x = w / sqrt(mean(w^2) + eps) * g`` (Zhang and Sennrich 2019), then projections and the heads' own norm.
    """
    p = layer.projections
    x = _rms(layer.words, layer.eps) * layer.norm_weight
    made = []
    for weight, bias, norm in ((p.query, p.query_bias, p.query_norm), (p.key, p.key_bias, p.key_norm)):
        y = x @ weight.swapaxes(-1, -2) + bias[:, None]
        made.append(y if norm is None else _rms(y, p.norm_eps) * norm)
    return made[0], made[1]


def _rms(x: Array, eps: float) -> Array:
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + eps))


def heads_of(layer: RotaryLayer, bands: Sequence[ScoreTerm]) -> tuple[HeadDecomposition, ...]:
    """The record of every head; its terms are the bands, and the channels that are not rotated if there are any."""
    split, average, scores = turned(layer), turned(layer, mean=True), whole_scores(layer)
    mask = allowed(len(layer.words), layer.projections.causal)
    kept = len(bands) + (2 * len(split.channels) < layer.projections.head_dim)
    made = []
    for head, whole in enumerate(scores):
        terms, spread = split.bands(head, bands)[:kept], deviation(whole, mask)
        positional = share(average.scores(head), whole, mask).explained if spread else None
        made.append(
            HeadDecomposition(
                head=head,
                key_head=layer.projections.key_head(head),
                deviation=spread,
                terms=tuple(share(term, whole, mask) for term in terms) if spread else (),
                pair_shares=tuple(split.pair_shares(head, whole, mask).tolist()) if spread else (),
                positional=positional,
                verdict=verdict(positional),
                sum_error=float(np.abs(terms.sum(0) - whole).max()),
            )
        )
    return tuple(made)
