"""Layouts of queries and keys, and the forms in which positions are handed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.calling.bound import BATCH, HEADS, TOKENS, Bound
from posenc.checker.calling.caller import Misshapen
from posenc.errors import SubjectError

FOUR = ("bhtd", "bthd", "thd", "htd", "btd", "td")


THREE = ("btd", "tbd", "td", "bhtd", "bthd")


SIZES = {"b": BATCH, "h": HEADS, "t": TOKENS}


def layouts(bound: Bound) -> tuple[str, ...]:
    """Layouts to try, the likeliest first."""
    if bound.hints.layout:
        return (bound.hints.layout,)
    return THREE if bound.hints.wants in ("sinusoidal", "learned", "seasonal", "adjusted") else FOUR


def as_layout(layout: str, x: Array) -> np.ndarray:
    """``(n, tokens, d)`` in a layout; ``n`` takes the batch's place, one head."""
    n, tokens, d = x.shape
    order = {"bhtd": (n, 1, tokens, d), "bthd": (n, tokens, 1, d), "btd": (n, tokens, d)}
    if layout in order:
        return x[:, None].reshape(order[layout])
    if layout == "tbd":
        return np.ascontiguousarray(x.transpose(1, 0, 2))
    if layout == "thd":
        return np.ascontiguousarray(x.transpose(1, 0, 2))
    if layout == "htd":
        return x
    if layout == "td" and n == 1:
        return np.asarray(x[0])
    raise SubjectError(f"one sequence at a time in layout {layout}", n)


def from_layout(layout: str, y: np.ndarray, shape: tuple[int, ...]) -> Array:
    """Back to ``(n, tokens, d)``.

    Raises:
        Misshapen: the result is of another shape.
    """
    n, tokens, d = shape
    want = as_layout(layout, np.zeros(shape)).shape
    if y.shape != want:
        raise Misshapen(f"the result has the shape of the input {want}", y.shape)
    if layout in ("tbd", "thd"):
        return np.ascontiguousarray(y.transpose(1, 0, 2))
    return y.reshape(n, tokens, d)


def position_forms(bound: Bound, at: np.ndarray, batch: int) -> Iterator[tuple[str, Any]]:
    """Positions as a subject may want them."""
    whole = np.array_equal(at, np.rint(at))
    make = bound.library.whole if whole else bound.library.array
    yield "(tokens,)", make(at)
    yield "(1, tokens)", make(at[None])
    yield "(batch, tokens)", make(np.repeat(at[None], batch, axis=0))
    if whole:
        yield "(tokens,) real", bound.library.array(at)
