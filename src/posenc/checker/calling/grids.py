"""Subjects that make a table for a grid: from its sizes, or from an array that lies on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Rows
from posenc.checker.calling.bound import Bound, result_dtype
from posenc.checker.calling.caller import Misshapen, parts, why
from posenc.errors import PosencError, SubjectError
from posenc.spec import Sinusoidal

LARGEST_SIDE = 128
"""Of a grid that is only made square: more cells than that are not asked for."""
TRIALS = {2: (3, 5), 3: (2, 3, 5)}
"""Sizes of a trial: different along every axis."""


def axes_wanted(bound: Bound) -> int:
    """How many axes the wanted table has; 1 if it is no table of a grid."""
    e = bound.hints.encoding
    return axes_of(e) if isinstance(e, Sinusoidal) else 1


def axes_of(encoding: Sinusoidal) -> int:
    """How many axes a table is for; 1 where its channels are not shared among axes."""
    return len(getattr(encoding.axes, "pairs", ())) or 1


def grid_box(bound: Bound) -> tuple[Rows, str]:
    """A subject that makes a table for a grid of rows and columns, or of more axes.

    Raises:
        SubjectError: it has not one row for each cell.
    """
    roles: dict[str, str] = dict(bound.roles)
    for name in roles:  # beside a height, a width is that of the grid
        if name.lower() == "width" and bound.has("height"):
            bound.roles = {**bound.roles, name: "columns"}
    ways = ("last", "first") if bound.has("x") and not bound.has("grid") else ("",)
    ways = ("", "square") if bound.has("grid") else ways
    failures: list[str] = []
    second: tuple[Rows, str] | None = None
    for channels in ways:
        try:
            made = _tried(bound, channels)
        except PosencError as error:
            failures.append(why(error))
            continue
        if channels in ("", "square") or _begins(made[0].calls["grid"](*TRIALS.get(axes_wanted(bound), (3, 5)))[0]):
            return made
        second = second or made
    if second is not None:
        return second
    raise SubjectError("the subject makes a table for a grid", "; ".join(dict.fromkeys(failures)))


def _tried(bound: Bound, channels: str) -> tuple[Rows, str]:
    axes = 2 if bound.has("height") else max(axes_wanted(bound), 2)
    dtype = "float32"

    def grid(*sizes: int) -> Array:
        nonlocal dtype
        if channels == "square":
            side = max(sizes)
            if side > LARGEST_SIDE:
                raise SubjectError(f"a square grid has at most {LARGEST_SIDE} cells a side", side)
            result = bound.call(grid=side)
            dtype = result_dtype(result)
            whole = _cells(parts(result)[0], (side,) * len(sizes)).reshape(*(side,) * len(sizes), -1)
            return np.ascontiguousarray(whole[tuple(slice(n) for n in sizes)]).reshape(int(np.prod(sizes)), -1)
        if channels:
            shape = (1, *sizes, bound.dim) if channels == "last" else (1, bound.dim, *sizes)
            given: dict[str, Any] = {"x": bound.library.array(np.zeros(shape))}
        else:
            given = {"grid": sizes} if bound.has("grid") else {"height": sizes[0], "columns": sizes[1]}
        result = bound.call(**given)
        dtype = result_dtype(result)
        return _cells(parts(result)[0], sizes)

    width = grid(*TRIALS.get(axes, (3, 5))).shape[1]
    box = Rows(
        width,
        lambda at: grid(int(at.max()) + 1, *(1,) * (axes - 1))[at.astype(int)],
        free=False,
        dtype=dtype,
        calls={"bound": bound, "grid": grid},
    )
    how = {
        "square": "a square grid of that side, cells row by row",
        "last": "an array on a grid, channels last",
        "first": "an array on a grid, channels first",
    }
    return box, bound.describe(f"a table for {how.get(channels, 'a grid (height, width), cells row by row')}")


def _begins(row: Array) -> bool:
    """Whether a row is that of the first cell: sines of 0 and cosines of 0, and nothing else."""
    size = np.abs(row)
    zeros, ones = size < 1e-6, np.abs(size - size.max()) < 1e-3 * size.max()
    return bool((zeros | ones).all() and zeros.any() and not zeros.all())


def _cells(found: np.ndarray, sizes: tuple[int, ...]) -> Array:
    """One row for each cell, the last axis fastest.

    Raises:
        Misshapen: the result is of another shape.
    """
    cells, n = int(np.prod(sizes)), len(sizes)
    found = found.reshape(found.shape[1:]) if found.ndim > 2 and found.shape[0] == 1 else found
    if found.ndim == n + 1 and found.shape[:n] == sizes:
        found = found.reshape(cells, -1)
    if found.ndim == n + 1 and found.shape[1:] == sizes:
        found = np.moveaxis(found, 0, -1).reshape(cells, -1)
    if found.ndim != 2 or len(found) < cells:
        raise Misshapen(f"one row for each of {cells} cells", found.shape)
    return found.astype(np.float64)
