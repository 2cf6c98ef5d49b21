"""Layouts of queries and keys, and the forms in which positions are handed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.calling.bound import BATCH, HEADS, TOKENS, Bound
from posenc.checker.calling.caller import Misshapen
from posenc.checker.calling.stated import stated_layout
from posenc.errors import SubjectError
from posenc.formulas.scalings import frequencies
from posenc.spec import Rotary

FOUR = ("bhtd", "bthd", "tbhd", "thd", "htd", "btd", "tbd", "td")
THREE = ("btd", "tbd", "td", "bhtd", "bthd")
SIZES = {"b": BATCH, "h": HEADS, "t": TOKENS}


def layouts(bound: Bound) -> tuple[str, ...]:
    """Layouts to try, the likeliest first: the told one alone, the one its documentation states before all others."""
    if bound.hints.layout:
        return (bound.hints.layout,)
    stated = stated_layout(bound.caller.function)
    usual = THREE if bound.hints.wants in ("sinusoidal", "learned", "seasonal", "adjusted") else FOUR
    return tuple(dict.fromkeys([stated, *usual])) if stated else usual


def axes_of(layout: str) -> tuple[str, ...]:
    """The letters of a layout, that which several vectors take first: the batch, else the heads.

    Raises:
        SubjectError: a letter is unknown or comes twice, there are no tokens, or channels do not come last.

    >>> axes_of("tbhd"), axes_of("thd")
    (('b', 'h', 't', 'd'), ('h', 't', 'd'))
    """
    known = len(set(layout)) == len(layout) and set(layout) <= set("bhtd") and "t" in layout
    if not known or not layout.endswith("d"):
        raise SubjectError("a layout has the letters b, h, t once at most, t among them, and d at its end", layout)
    return tuple(letter for letter in "bhtd" if letter in layout)


def as_layout(layout: str, x: Array) -> np.ndarray:
    """``(n, tokens, d)`` in a layout; ``n`` takes the batch's place (or the heads'), with one head.

    Raises:
        SubjectError: the layout is none, or has no place for more than one sequence.
    """
    axes = axes_of(layout)
    n, tokens, d = x.shape
    if len(axes) == 2 and n != 1:
        raise SubjectError(f"one sequence at a time in layout {layout}", n)
    lead = {2: (), 3: (n,), 4: (n, 1)}[len(axes)]
    return np.ascontiguousarray(x.reshape(*lead, tokens, d).transpose([axes.index(letter) for letter in layout]))


def from_layout(layout: str, y: np.ndarray, shape: tuple[int, ...]) -> Array:
    """Back to ``(n, tokens, d)``.

    Raises:
        Misshapen: the result is of another shape.
    """
    want = as_layout(layout, np.zeros(shape)).shape
    if y.shape != want:
        raise Misshapen(f"the result has the shape of the input {want}", y.shape)
    back = y.transpose([layout.index(letter) for letter in axes_of(layout)])
    return np.ascontiguousarray(back).reshape(shape)


def axes_wanted(bound: Bound) -> int:
    """How many coordinates a position of the wanted rotation has."""
    e = bound.hints.encoding
    return frequencies(e).axes if isinstance(e, Rotary) else 1


def position_forms(bound: Bound, at: np.ndarray, batch: int) -> Iterator[tuple[str, Any]]:
    """Positions as a subject may want them; ``at`` is ``(tokens,)``, or ``(tokens, axes)`` where axes differ."""
    whole = np.array_equal(at, np.rint(at))
    make = bound.library.whole if whole else bound.library.array
    axes = axes_wanted(bound)
    if axes > 1:
        coordinates = at if at.ndim == 2 else np.repeat(at[:, None], axes, axis=1)
        yield "(tokens, axes)", make(coordinates)
        yield "(batch, tokens, axes)", make(np.repeat(coordinates[None], batch, axis=0))
        yield "(axes, tokens)", make(coordinates.T)
        yield "(axes, batch, tokens)", make(np.repeat(coordinates.T[:, None], batch, axis=1))
        if at.ndim == 2:
            return
    yield "(tokens,)", make(at)
    yield "(1, tokens)", make(at[None])
    yield "(batch, tokens)", make(np.repeat(at[None], batch, axis=0))
    if whole:
        yield "(tokens,) real", bound.library.array(at)
