"""Subjects that turn the tokens of a whole grid: one for each cell, row by row, as many as they were built for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from posenc.checker.boxes import Array, Turning
from posenc.checker.calling.bound import BATCH, HEADS, Bound, result_dtype
from posenc.checker.calling.caller import parts, why
from posenc.checker.calling.layouts import as_layout, from_layout, layouts
from posenc.errors import PosencError, SubjectError

SIDES = (16, 14, 24, 32, 8)
"""Sides of square grids in use, for subjects that hold no table to tell."""


def turned_grid_box(bound: Bound) -> tuple[Turning, str]:
    """A box for a subject that turns one sequence of a fixed length: the cells of a square grid.

    Raises:
        SubjectError: it takes no such sequence.
    """
    failures: list[str] = []
    inputs = ("q", "k") if bound.has("q", "k") else ("q",) if bound.has("q") else ("x",)
    for side in _sides(bound):
        for layout in layouts(bound):
            try:
                return _tried(bound, side, layout, inputs)
            except PosencError as error:
                failures.append(why(error))
    raise SubjectError("the subject turns the cells of a grid", "; ".join(dict.fromkeys(failures[:2])))


def _sides(bound: Bound) -> Iterator[int]:
    """Sides of the grids that the arrays a subject holds have a row for each cell of, then those in use."""
    owner = getattr(bound.caller.function, "__self__", bound.caller.function)
    held = [*getattr(owner, "__dict__", {}).values(), *(getattr(owner, "_buffers", None) or {}).values()]
    found = {}
    for value in held:
        for rows in getattr(value, "shape", ())[:-1]:
            side = round(float(rows) ** 0.5)
            if side > 3 and side * side == rows:
                found[side] = True
    yield from dict.fromkeys([*found, *SIDES])


def _tried(bound: Bound, side: int, layout: str, inputs: tuple[str, ...]) -> tuple[Turning, str]:
    d, cells = bound.dim, side * side

    def run(x: Array) -> tuple[list[Array], str]:
        result = bound.call(**{role: bound.library.array(as_layout(layout, x)) for role in inputs})
        return [from_layout(layout, each, x.shape) for each in parts(result)[: len(inputs)]], result_dtype(result)

    n = BATCH if "b" in layout else HEADS if "h" in layout else 1
    vector = np.random.default_rng(7).normal(size=d)
    found, dtype = run(np.broadcast_to(vector, (n, cells, d)))
    if np.ptp(found[0], axis=1).max() < 1e-6 or np.ptp(found[0], axis=0).max() > 1e-6:
        raise SubjectError("the result varies along tokens alone", f"in layout ({', '.join(layout)}) it does not")
    if np.abs(run(np.zeros((n, cells, d)))[0][0]).max() > 1e-9:
        raise SubjectError("vectors of zeros stay zeros", "they do not")

    def turned(x: Array, positions: Array, which: int) -> Array:
        """``(n, tokens, d)`` at ``(tokens,)`` equal or ``(tokens, 2)`` coordinates, each token in its own cell."""
        at = np.asarray(positions)
        at = np.repeat(at[:, None], 2, axis=1) if at.ndim == 1 else at
        if (at != np.rint(at)).any() or (at < 0).any() or (at >= side).any():
            raise SubjectError(f"coordinates are whole numbers from 0 to {side - 1}", float(at.max(initial=0)))
        where = (at[:, 0] * side + at[:, 1]).astype(int)
        out = np.empty(x.shape)
        step = 1 if layout == "td" else max(1, 2**23 // (cells * d))
        for start in range(0, len(x), step):
            part = x[start : start + step]
            whole = np.zeros((len(part), cells, d))
            whole[:, where] = part
            out[start : start + step] = run(whole)[0][which][:, where]
        return out

    box = Turning(
        head_dim=d,
        turn=lambda x, at: turned(x, at, 0),
        turn_key=(lambda x, at: turned(x, at, 1)) if len(inputs) == 2 else None,
        free=False,
        dtype=dtype,
        largest=side - 1,
        calls={"bound": bound, "axes": 2, "cells": side},
    )
    words = f"turned, layout ({', '.join(layout)}), tokens are the cells of a grid of {side} x {side}, row by row"
    return box, bound.describe(words)
