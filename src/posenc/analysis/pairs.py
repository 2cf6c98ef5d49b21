"""Which channels form a pair, which axis turns it, and which runs of pairs a scaling treats alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from posenc.formulas.spectrum import Array, Frequencies
from posenc.records.inspection import Band, Effect, Span
from posenc.spec import Mixed, Rotary, Sinusoidal, Split

EQUAL = 1e-9
"""Two ratios closer than this (relative) are the same ratio."""


def runs(indices: Iterable[int]) -> tuple[Span, ...]:
    """Sorted indices as runs, both ends included.

    >>> runs([0, 1, 2, 5, 7, 8])
    ((0, 2), (5, 5), (7, 8))
    """
    found: list[list[int]] = []
    for index in indices:
        if found and index == found[-1][1] + 1:
            found[-1][1] = index
        else:
            found.append([index, index])
    return tuple((a, b) for a, b in found)


def channels(encoding: Rotary | Sinusoidal) -> tuple[tuple[int, ...], ...]:
    """The channels of every pair: of a head for a rotary, of a row (sine, cosine) for a table.

    >>> channels(Rotary(8, rotary_dim=4, where="last"))
    ((4, 6), (5, 7))
    >>> channels(Sinusoidal(5))
    ((0, 1), (2, 3), (4,))
    """
    n = encoding.pairs
    if isinstance(encoding, Rotary):
        start = encoding.head_dim - encoding.rotary_dim if encoding.where == "last" else 0
        if encoding.interleaved:
            return tuple((start + 2 * i, start + 2 * i + 1) for i in range(n))
        return tuple((start + i, start + i + n) for i in range(n))
    lone = encoding.dim % 2 == 1 and encoding.odd == "lone_sine"
    if encoding.order.startswith("interleaved"):
        first = encoding.order == "interleaved"
        both = [(2 * i, 2 * i + 1) if first else (2 * i + 1, 2 * i) for i in range(n)]
        return (*both[:-1], (2 * (n - 1),)) if lone else tuple(both)
    found: list[tuple[int, ...]] = []
    for width in encoding.axes.pairs if isinstance(encoding.axes, Split) else (n,):  # an axis has channels of its own
        start = 2 * len(found)
        block = [(start + i, start + i + width) for i in range(width)]
        found += block if encoding.order == "sin|cos" else [(b, a) for a, b in block]
    return tuple(found)


def layout(encoding: Rotary | Sinusoidal) -> str:
    """Which channels take part and which form a pair, in words."""
    n = encoding.pairs
    if isinstance(encoding, Rotary):
        pair = "(2i, 2i + 1)" if encoding.interleaved else f"(i, i + {n})"
        if encoding.rotary_dim == encoding.head_dim:
            return f"pairs {pair} of the head's {encoding.head_dim} channels"
        return f"pairs {pair} of the {encoding.where} {encoding.rotary_dim} of the head's {encoding.head_dim} channels"
    order = {
        "interleaved": "sine, cosine, sine, cosine …",
        "interleaved_cos_first": "cosine, sine, cosine, sine …",
        "sin|cos": "all sines, then all cosines",
        "cos|sin": "all cosines, then all sines",
    }[encoding.order]
    lone = "a lone cosine" if encoding.order == "interleaved_cos_first" else "a lone sine"
    odd = f"; {'a column of zeros' if encoding.odd == 'zero' else lone} at the end" if encoding.dim % 2 else ""
    each = ", for each axis" if isinstance(encoding.axes, Split) else ""
    return f"{encoding.dim} channels: {order}{each}{odd}"


def axis_of(encoding: Rotary | Sinusoidal, f: Frequencies) -> tuple[int | None, ...] | None:
    """The axis that turns each pair; None with one axis, or where every pair turns with all of them."""
    if f.axes == 1 or isinstance(encoding.axes, Mixed):
        return None
    owner, turns = np.abs(f.theta).argmax(axis=0), np.abs(f.theta).max(axis=0) > 0
    return tuple(int(a) if t else None for a, t in zip(owner, turns, strict=True))


def along(f: Frequencies) -> Array:
    """``(pairs,)`` radians per position: all axes together; a pair's own direction (head 0) where heads differ."""
    return f.fused if f.theta.ndim == 2 else np.asarray(np.linalg.norm(f.theta[0], axis=0))


def wavelengths(theta: Array) -> list[float | None]:
    """Positions per turn; None for a pair that does not turn, or so little that the number overflows."""
    return _quotients(np.full(len(theta), 2 * np.pi), np.abs(theta))


def ratios(unscaled: Array, theta: Array) -> list[float | None]:
    """Wavelength after over before; None where either does not turn."""
    return _quotients(unscaled, theta)


def _quotients(above: Array, below: Array) -> list[float | None]:
    """``above / below``; None where it is no finite positive number."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        quotient = above / below
    return [float(q) if q and np.isfinite(q) else None for q in quotient]


def bands(ratio: list[float | None], factor: float | None) -> tuple[Band, ...]:
    """Neighbouring pairs that a scaling treats alike; ``factor`` is its full factor where it has one."""
    found: list[tuple[Effect, int, list[float]]] = []
    for i, r in enumerate(ratio):
        effect = _effect(r, factor)
        if not found or found[-1][0] != effect:
            found.append((effect, i, []))
        if r is not None:
            found[-1][2].append(r)
    ends = [start - 1 for _, start, _ in found[1:]] + [len(ratio) - 1]
    return tuple(
        Band(effect=effect, pairs=(start, end), ratio=(min(values), max(values)) if values else None)
        for (effect, start, values), end in zip(found, ends, strict=True)
    )


def _effect(ratio: float | None, factor: float | None) -> Effect:
    if ratio is None:
        return "still"
    if abs(ratio - 1) <= EQUAL:
        return "kept"
    if factor is None:
        return "own ratio"
    if factor > 1 and abs(ratio / factor - 1) <= EQUAL:
        return "stretched"
    if 1 < ratio < factor:
        return "blended"
    return "shortened" if ratio < 1 else "own ratio"


def full_factor(encoding: Any, length: int | None) -> float | None:
    """What a fully stretched pair is divided by; None where the pairs have factors of their own, or nothing scales."""
    product = 1.0
    for scaling in getattr(encoding, "scaling", ()):
        fields = scaling.fields() if scaling.kind == "as_executed" else dict(scaling)
        rule = scaling.rule if scaling.kind == "as_executed" else scaling.kind
        if rule in ("longrope", "resonance", "factors"):
            return None
        factor = fields["factor"]
        if rule == "dynamic":
            factor = factor * max(length or 0, fields["original"]) / fields["original"] - (factor - 1)
        product *= factor
    return product if getattr(encoding, "scaling", ()) else None
