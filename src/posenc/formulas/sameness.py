"""Same value is ``==``; same encoding is here: whatever the spelling, number against number.

Encodings are reduced to what they compute (the frequency of every pair, the pair of every channel, gains, slopes),
and length-dependent ones are compared below and above every length at which their numbers change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.formulas.biases import alibi_slopes
from posenc.formulas.rotation import pairs_of
from posenc.formulas.scalings import frequencies
from posenc.formulas.spectrum import Array, Frequencies
from posenc.formulas.tables import COSINE, SINE, ZERO, channel_waves
from posenc.spec import Alibi, Rotary, Seasonal, Sinusoidal

TOLERANCE = 1e-12


@dataclass(frozen=True)
class Difference:
    """One number in which two encodings differ.

    Args:
        what: what the number is, in words.
        where: index of the pair, head, channel or axis it belongs to; None for the whole encoding.
        left, right: the two numbers (or words).
        length: the declared length at which they differ; None where the length does not matter.
        is_convention: the same encoding with its channels laid out differently, which is harmless as long as the
            weights are stored for the same layout.
    """

    what: str
    where: int | None
    left: float | int | str | bool | None
    right: float | int | str | bool | None
    length: int | None = None
    is_convention: bool = False

    def __str__(self) -> str:
        where = "" if self.where is None else f" {self.where}"
        length = "" if self.length is None else f" at length {self.length}"
        return f"{self.what}{where}{length}: {self.left} and {self.right}{' (a convention)' * self.is_convention}"


def same(left: Any, right: Any, *, tolerance: float = TOLERANCE, layout: bool = False) -> bool:
    """Whether two encodings are the same encoding, however they are spelled.

    Args:
        left, right: encodings.
        tolerance: relative, for each number.
        layout: count the pairing of channels too, as for one and the same stored weight; otherwise it is a
        convention.

    >>> from posenc.spec import NTK
    >>> same(Rotary(4) >> NTK(3), Rotary(4, base=90000.0)), same(Rotary(4), Rotary(4, interleaved=True), layout=True)
    (True, False)
    """
    return all(d.is_convention and not layout for d in _differences(left, right, tolerance))


def differences(left: Any, right: Any, *, tolerance: float = TOLERANCE) -> list[Difference]:
    """Where two encodings differ, number against number; empty if they are the same encoding.

    A number that differs at several declared lengths is reported once, at the shortest.

    >>> [str(d) for d in differences(Rotary(4), Rotary(4, base=1e6, interleaved=True))]
    ['pairing: (i, i + 2) and (2i, 2i + 1) (a convention)', 'frequency of pair 1: 0.01 and 0.001']
    """
    return list(_differences(left, right, tolerance))


def _differences(left: Any, right: Any, tolerance: float) -> Iterator[Difference]:
    if left == right:
        return
    waves = (Sinusoidal, Seasonal)
    if isinstance(left, Rotary) and isinstance(right, Rotary):
        yield from _rotary(left, right, tolerance)
    elif isinstance(left, waves) and isinstance(right, waves):
        yield from _waves(left, right, tolerance)
    elif left.kind != right.kind:
        yield Difference("kind", None, left.kind, right.kind)
    elif isinstance(left, Alibi):
        yield from _fields(left, right, ("num_heads", "symmetric"), tolerance)
        if left.num_heads == right.num_heads:
            a, b = (alibi_slopes(e.num_heads, e.max_bias) for e in (left, right))
            yield from _numbers("slope of head", a, b, tolerance)
    else:
        yield from _fields(left, right, tuple(type(left).model_fields), tolerance)


def _fields(left: Any, right: Any, names: tuple[str, ...], tolerance: float) -> Iterator[Difference]:
    for name in names:
        a, b = getattr(left, name), getattr(right, name)
        if not _close(a, b, tolerance):
            plain = all(isinstance(v, float | int | str | None) for v in (a, b))
            yield Difference(name, None, a if plain else str(a), b if plain else str(b))


def _coordinates(left: Any, right: Any) -> Iterator[Difference]:
    a, b = (getattr(getattr(e, "axes", None), "coordinates", "index") for e in (left, right))
    if a != b:
        yield Difference("coordinates", None, a, b)


def _close(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= tolerance * max(abs(a), abs(b))
    return bool(a == b)


def _numbers(what: str, left: Array, right: Array, tolerance: float, length: int | None = None) -> Iterator[Difference]:
    apart = np.abs(left - right) > tolerance * np.maximum(np.abs(left), np.abs(right))
    for i in np.flatnonzero(apart):
        yield Difference(what, int(i), float(left[i]), float(right[i]), length)


def _rotary(left: Rotary, right: Rotary, tolerance: float) -> Iterator[Difference]:
    yield from _fields(left, right, ("head_dim", "learned"), tolerance)
    yield from _coordinates(left, right)
    shapes = [frequencies(e).theta.shape for e in (left, right)]
    for what, axis in (("axes", -2), ("heads", -3)):
        a, b = (s[axis] if len(s) >= -axis else 1 for s in shapes)
        if a != b:
            yield Difference(what, None, a, b)
    if left.head_dim != right.head_dim or shapes[0][:-1] != shapes[1][:-1]:
        return
    if left.rotary_dim != right.rotary_dim and not _only_still_pairs_apart(left, right):
        yield Difference("rotary_dim", None, left.rotary_dim, right.rotary_dim)
        return
    if left.rotary_dim == right.rotary_dim and not np.array_equal(pairs_of(left), pairs_of(right)):
        if left.where != right.where:
            yield Difference("where", None, left.where, right.where)
        if left.interleaved != right.interleaved:
            yield Difference("pairing", None, _pairing(left), _pairing(right), is_convention=True)
    seen: set[tuple[str, int | None]] = set()
    for length in _lengths(left, right):
        for d in _at_length(left, right, length, tolerance):
            if (d.what, d.where) not in seen:
                seen.add((d.what, d.where))
                yield d


def _pairing(encoding: Rotary) -> str:
    return "(2i, 2i + 1)" if encoding.interleaved else f"(i, i + {encoding.rotary_dim // 2})"


def _lengths(left: Rotary, right: Rotary) -> list[int | None]:
    """Within, at and beyond every length at which numbers change; several beyond, for those that change on."""
    thresholds = set()
    for scaling in (*left.scaling, *right.scaling):
        if getattr(scaling, "needs_length", False):
            thresholds.add((scaling.fields() if scaling.kind == "as_executed" else dict(scaling))["original"])
    beyond = {n for t in thresholds for n in (t, t + 1, 2 * t + 1, 7 * t + 3)}
    return [1, *sorted(beyond - {1})] if beyond else [None]


def _at_length(left: Rotary, right: Rotary, length: int | None, tolerance: float) -> Iterator[Difference]:
    a, b = (frequencies(e, length) for e in (left, right))
    for what, x, y in (
        ("gain on cos and sin", a.gain, b.gain),
        ("factor on the softmax scale", a.logit_scale, b.logit_scale),
    ):
        if not _close(x, y, tolerance):
            yield Difference(what, None, x, y, length)
    pairs = min(a.pairs, b.pairs)  # the rest, if any, stands still (checked before)
    many = a.theta.ndim == 3 or a.axes > 1
    for index in np.ndindex(a.theta.shape[:-1]):
        names = ("head", "axis")[-len(index) :]
        of = ", ".join(f"{n} {i}" for n, i in zip(names, index, strict=True))
        what = f"frequency on {of} of pair" if many else "frequency of pair"
        yield from _numbers(what, a.theta[index][:pairs], b.theta[index][:pairs], tolerance, length)
    yield from _numbers("growth of pair", a.growth[:pairs], b.growth[:pairs], tolerance, length)


def _only_still_pairs_apart(left: Rotary, right: Rotary) -> bool:
    """Whether the wider one only adds pairs that do nothing, at frequency 0 and gain 1."""
    narrow, wide = sorted((left, right), key=lambda e: e.rotary_dim)
    n = narrow.pairs
    still: list[Frequencies] = [frequencies(wide, length) for length in _lengths(left, right)]
    alike = np.array_equal(pairs_of(narrow), pairs_of(wide)[:n])
    return alike and all(f.gain == 1 and not f.theta[..., n:].any() and not f.growth[n:].any() for f in still)


def _waves(left: Any, right: Any, tolerance: float) -> Iterator[Difference]:
    if left.dim != right.dim:
        yield Difference("dim", None, left.dim, right.dim)
        return
    a, b = _channels(left), _channels(right)
    for name, default in (("offset", 0), ("padding_row", None), ("prefix", 0), ("learned", False)):
        x, y = getattr(left, name, default), getattr(right, name, default)
        if x != y:
            yield Difference(name, None, x, y)
    yield from _coordinates(left, right)
    if len(a[1]) != len(b[1]):
        yield Difference("axes", None, len(a[1]), len(b[1]))
        return
    for i in np.flatnonzero(a[0] != b[0]):
        yield Difference("function of channel", int(i), WORDS[a[0][i]], WORDS[b[0][i]])
    for axis in range(len(a[1])):
        what = "frequency of channel" if len(a[1]) == 1 else f"frequency on axis {axis} of channel"
        yield from _numbers(what, a[1][axis], b[1][axis], tolerance)


TREND = 3
WORDS = {ZERO: "zero", SINE: "sine", COSINE: "cosine", TREND: "trend"}


def _channels(encoding: Any) -> tuple[NDArray[np.int64], Array]:
    """What each channel holds, ``(dim,)``, and its radians per unit along each axis, ``(axes, dim)``."""
    if isinstance(encoding, Sinusoidal):
        wave, pair = channel_waves(encoding)
        return wave, np.asarray(frequencies(encoding).theta[:, pair] * (wave != ZERO))
    theta = [
        2 * np.pi * k / period
        for period, harmonics in zip(encoding.periods, encoding.harmonics, strict=True)
        for k in range(1, harmonics + 1)
    ]
    wave, rate = np.tile(np.array([SINE, COSINE]), len(theta)), np.repeat(theta, 2)
    if encoding.trend is not None:
        wave, rate = np.append(wave, TREND), np.append(rate, 1 / encoding.trend)
    return wave, np.asarray(rate[None])
