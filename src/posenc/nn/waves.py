"""Sinusoids of a distance without a vector for each distance: ``sin((i - j) t) = sin it cos jt - cos it sin jt``.

A weighting of ``PE(i - j)`` is the product of a query's channels with a key's, and a weighted sum of ``PE(i - j)`` over
keys comes from the sums of the keys' cosines and sines. Angles are exact at any position (:mod:`posenc.nn.turns`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc.formulas.relative import relative_sinusoid
from posenc.formulas.spectrum import Array, unscaled, unscaled_remainder
from posenc.formulas.tables import COSINE, SINE, channel_waves
from posenc.nn.turns import cos_sin, exact_on, phases, turns_of
from posenc.spec import Sinusoidal

Numbers = dict[str, Tensor]


def derived_waves(theta: Array, remainder: Array | None = None) -> dict[str, Any]:
    """Frequencies ``(pairs,)`` and their turns, shaped for :func:`waves_at`."""
    return {"theta": theta.reshape(1, 1, 1, 1, -1).copy(), "turns": turns_of(theta, remainder).reshape(1, 1, 1, 1, -1)}


def derived_sinusoid(sinusoid: Sinusoidal, limit: int | None = None) -> dict[str, Any]:
    """Frequencies, which channel holds what, and the rows of all distances up to a limit, ``(2 limit + 1, dim)``."""
    wave, pair = channel_waves(sinusoid)
    pairs = sinusoid.pairs
    held = {}
    for name, function in (("sine", SINE), ("cosine", COSINE)):
        held[name] = np.full(pairs, sinusoid.dim, dtype=np.int64)  # past the last channel: a weight of 0
        held[name][pair[wave == function]] = np.flatnonzero(wave == function)
    source = np.where(wave == SINE, pair, np.where(wave == COSINE, pairs + pair, 2 * pairs))
    rows = {} if limit is None else {"rows": relative_sinusoid(sinusoid, np.arange(-limit, limit + 1))}
    waves = derived_waves(unscaled(sinusoid).theta[0], unscaled_remainder(sinusoid)[0])
    return {**waves, **held, "source": source.astype(np.int64), **rows}


def waves_at(ids: Tensor, numbers: Numbers, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines ``(batch | 1, heads | 1, tokens, pairs)`` at positions ``(batch | 1, heads | 1, tokens)``."""
    phase, rest = phases(ids.unsqueeze(0), numbers["turns"], numbers["theta"])
    cos, sin = cos_sin(phase, rest, exact=exact_on(ids.device, dtype))
    return cos.to(dtype), sin.to(dtype)


def key_channels(cos: Tensor, sin: Tensor) -> Tensor:
    """``[cos jt | sin jt]``, twice as wide as the pairs."""
    return torch.cat((cos, sin), -1)


def query_channels(cos: Tensor, sin: Tensor, on_sine: Tensor, on_cosine: Tensor) -> Tensor:
    """What meets :func:`key_channels` to ``sum of on_sine sin((i - j) t) + on_cosine cos((i - j) t)``."""
    return torch.cat((on_sine * sin + on_cosine * cos, on_cosine * sin - on_sine * cos), -1)


def by_pair(weights: Tensor, numbers: Numbers) -> tuple[Tensor, Tensor]:
    """Weights ``(..., dim)`` of a sinusoid's channels as those of each pair's sine and cosine."""
    padded = torch.nn.functional.pad(weights, (0, 1))
    return padded[..., numbers["sine"]], padded[..., numbers["cosine"]]


def weighted_rows(weights: Tensor, q_waves: tuple[Tensor, Tensor], keys: Tensor, numbers: Numbers) -> Tensor:
    """``sum over j of weights_ij PE(i - j)``.

    Args:
        weights: ``(batch, heads, queries, keys)``.
        q_waves: cosines and sines of the queries.
        keys: :func:`key_channels` of the keys.

    Returns:
        ``(batch, heads, queries, dim)``.
    """
    cos_sum, sin_sum = (weights @ keys).chunk(2, -1)
    cos, sin = q_waves
    sine, cosine = sin * cos_sum - cos * sin_sum, cos * cos_sum + sin * sin_sum
    return torch.cat((sine, cosine, torch.zeros_like(sine[..., :1])), -1)[..., numbers["source"]]
