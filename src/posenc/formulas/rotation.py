"""Rotary encodings: queries and keys turned by position, the channels of a pair, one layout into the other."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError, SpecError
from posenc.formulas.phases import coordinates, cos_sin
from posenc.formulas.scalings import frequencies as frequencies_of
from posenc.formulas.spectrum import Array, Frequencies, unscaled, unscaled_remainder
from posenc.formulas.tables import COSINE, SINE, channel_waves
from posenc.shapes import Float
from posenc.spec import Rotary, Sinusoidal

Indices = NDArray[np.int64]
Role = Literal["query", "key"]


def pairs_of(encoding: Rotary) -> Indices:
    """``(pairs, 2)``: the two channels of a head that each pair turns.

    >>> pairs_of(Rotary(6)).tolist(), pairs_of(Rotary(6, rotary_dim=4, where="last", interleaved=True)).tolist()
    ([[0, 3], [1, 4], [2, 5]], [[2, 3], [4, 5]])
    """
    i, width = np.arange(encoding.pairs), encoding.rotary_dim
    first = encoding.head_dim - width if encoding.where == "last" else 0
    pairs = (2 * i, 2 * i + 1) if encoding.interleaved else (i, i + width // 2)
    return np.stack(pairs, axis=1) + first


def rotate(
    x: Any,
    positions: Any,
    encoding: Rotary,
    *,
    length: int | None = None,
    frequencies: Frequencies | None = None,
    role: Role | None = None,
    centre: float = 0.0,
    inverse: bool = False,
) -> Array:
    """Turn each pair ``(a, b)`` of ``x`` to ``gain (a cos - b sin, b cos + a sin)``, ``angle = positions @ theta``.

    Su et al. 2021, equation 34; xPos: Sun et al. 2022, ``exp(+growth * (p - centre))`` on queries, its inverse on
    keys.

    Args:
        x: ``(..., tokens, head_dim)``.
        positions: ``(tokens,)``, or leading dimensions that broadcast with those of ``x``; one more dimension of axes
            at the end if the encoding has axes.
        encoding: layout and frequencies.
        length: declared length, for scalings that depend on it.
        frequencies: used instead of the encoding's own (trained, recovered or read ones).
        role: ``query`` or ``key``; needed by xPos, where the two differ.
        centre: xPos counts positions from here (:func:`xpos_centre`); the scores do not depend on it.
        inverse: undo the rotation, gain and growth included.

    Returns:
        float64 of the shape of ``x``; channels that are not rotated pass unchanged.

    Raises:
        ShapeError: ``x`` or ``positions`` do not fit the encoding.
        SpecError: the encoding is no rotary, or xPos without a role.
    """
    check_rotary(encoding)
    f = frequencies_of(encoding, length) if frequencies is None else frequencies
    values = np.asarray(x)
    if values.dtype.kind not in "iuf":
        raise ShapeError("x holds real numbers", values.dtype)
    if values.ndim < 2 or values.shape[-1] != encoding.head_dim:
        raise ShapeError(f"x is (..., tokens, head_dim) with head_dim {encoding.head_dim}", values.shape)
    if f.pairs != encoding.pairs:
        raise ShapeError(f"the encoding has {encoding.pairs} pairs", f"frequencies of {f.pairs}")
    at = coordinates(positions, f.axes)
    if at.ndim < 2:
        raise ShapeError("positions are (tokens,), or (tokens, axes) with axes", np.shape(positions))
    cos, sin = cos_sin(at, f.theta)
    try:
        np.broadcast_to(cos[..., 0], values.shape[:-1])
    except ValueError:
        raise ShapeError(
            f"positions broadcast with {values.shape[:-1]}, x without its channels", cos.shape[:-1]
        ) from None
    gain = f.gain * _growth(f, at, role, centre)
    gain, sin = (1.0 / gain, -sin) if inverse else (gain, sin)
    a, b = pairs_of(encoding).T
    result = values.astype(np.float64)
    left, right = result[..., a], result[..., b]
    result[..., a] = gain * (left * cos - right * sin)
    result[..., b] = gain * (right * cos + left * sin)
    return result


def _growth(f: Frequencies, at: Array, role: Role | None, centre: float) -> Array:
    """xPos' gain of each token and pair, ``(..., tokens, pairs)``; 1 without xPos."""
    if not f.growth.any():
        return np.ones(1)
    if role not in ("query", "key"):
        raise SpecError('xPos turns queries and keys differently: role is "query" or "key"', role)
    if f.axes != 1:
        raise SpecError("xPos is defined for one axis", f"{f.axes} axes")
    grown: Array = np.exp((1.0 if role == "query" else -1.0) * (at - centre) * f.growth)
    return grown


def xpos_centre(length: int) -> int:
    """Where torchscale counts xPos from: position ``p`` grows by ``p - ceil(length / 2)``."""
    return (length + 1) // 2


def check_rotary(encoding: Any) -> None:
    """Refuse what is no rotary encoding."""
    if not isinstance(encoding, Rotary):
        raise SpecError("only a rotary encoding turns pairs", getattr(encoding, "kind", type(encoding).__name__))


def half_from_adjacent(head_dim: int, rotary_dim: int | None = None, where: str = "first") -> Indices:
    """Channels to take so that pairs ``(2i, 2i + 1)`` become pairs ``(i, i + rotary_dim / 2)``.

    With ``p = half_from_adjacent(d)``: ``half(x[p]) == interleaved(x)[p]``.

    >>> half_from_adjacent(6).tolist()
    [0, 2, 4, 1, 3, 5]
    """
    width = head_dim if rotary_dim is None else rotary_dim
    if width % 2 or not 0 < width <= head_dim:
        raise ShapeError(f"rotary_dim is even and at most head_dim = {head_dim}", width)
    first = head_dim - width if where == "last" else 0
    order = np.arange(head_dim)
    order[first : first + width] = first + np.arange(width).reshape(-1, 2).T.ravel()
    return order


def adjacent_from_half(head_dim: int, rotary_dim: int | None = None, where: str = "first") -> Indices:
    """Channels to take so that pairs ``(i, i + rotary_dim / 2)`` become pairs ``(2i, 2i + 1)``.

    >>> adjacent_from_half(6).tolist()
    [0, 3, 1, 4, 2, 5]
    """
    return np.argsort(half_from_adjacent(head_dim, rotary_dim, where))


def projection_rows(heads: int, channels: Indices) -> Indices:
    """The same change of layout for the rows of a projection weight (or its bias): head by head.

    Call it with the number of query heads for the query weight and of key/value heads for the key weight, whose heads
    are fewer with grouped queries: ``w_q[projection_rows(32, p)]``, ``w_k[projection_rows(8, p)]``.

    >>> projection_rows(2, adjacent_from_half(4)).tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    if heads < 1:
        raise ShapeError("a projection has at least one head", heads)
    return np.asarray((np.arange(heads)[:, None] * len(channels) + channels).ravel())


def shift_matrix(encoding: Sinusoidal, shift: Any) -> Float[np.ndarray, "dim dim"]:
    """``M_k`` with ``PE(m + k) = M_k PE(m)``, ``PE`` as a column: blocks ``[[cos, sin], [-sin, cos]]`` of (sin, cos).

    Args:
        encoding: the sinusoid.
        shift: ``k``, or one coordinate for each axis.

    Raises:
        SpecError: a lone sine of an odd width has no such matrix; neither has a table with a padding row.
    """
    f = unscaled(encoding)
    wave, pair = channel_waves(encoding)
    if encoding.dim % 2 and encoding.odd == "lone_sine":
        raise SpecError("a lone sine has no linear shift: its cosine is missing", f"dim={encoding.dim}")
    if encoding.padding_row is not None:
        raise SpecError("a row of zeros cannot be shifted into another", f"padding_row={encoding.padding_row}")
    cos, sin = (
        part[0] for part in cos_sin(coordinates(shift, f.axes).reshape(1, -1), f.theta, unscaled_remainder(encoding))
    )
    s, c = (np.flatnonzero(wave == w)[np.argsort(pair[wave == w])] for w in (SINE, COSINE))
    matrix = np.zeros((encoding.dim, encoding.dim))
    matrix[s, s], matrix[s, c], matrix[c, s], matrix[c, c] = cos, sin, -sin, cos
    return matrix
