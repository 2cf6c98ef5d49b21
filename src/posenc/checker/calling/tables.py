"""Subjects that make something from positions, a length, a width: tables, cosines and sines, frequencies, biases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Bias, Box, Buckets, CosSin, Rows, Vector
from posenc.checker.calling.bound import Bound, farthest, result_dtype
from posenc.checker.calling.caller import Misshapen, parts, why
from posenc.checker.calling.roles import signature_of
from posenc.errors import PosencError, SubjectError

WIDEST = 2**16
ASKED = 37
"""Rows of a trial: prime and unlike any width in use."""


def made_box(bound: Bound) -> tuple[Box, str]:
    """A box for a subject without an input to turn.

    Raises:
        SubjectError: what comes back is nothing that is known.
    """
    if bound.has("relative"):
        return _buckets(bound)
    if bound.has("height") or bound.has("grid"):
        return grid_box(bound)
    if bound.has("n_q", "n_k"):
        return _bias(bound, lambda n_q, n_k: {"n_q": n_q, "n_k": n_k})
    if bound.has("positions") or bound.has("length"):
        return _by_position(bound)
    result = bound.call()
    values = parts(result)
    if len(values) == 1 and values[0].ndim == 1 and values[0].dtype.kind == "f":
        slopes = bound.has("heads") and not bound.has("dim")
        box = Vector(
            values[0], holds="slopes" if slopes else "frequencies", dtype=result_dtype(result), calls={"bound": bound}
        )
        return box, bound.describe("slopes" if slopes else "frequencies")
    return fixed_box(values, result_dtype(result), bound)


def fixed_box(values: list[np.ndarray], dtype: str, bound: Bound) -> tuple[Box, str]:
    """A box around arrays that were made once: rows stand at 0, 1, 2…"""
    made = _interpreted(values, None, bound)
    if made is None:
        raise SubjectError(
            "what comes back is a table, cosines and sines, frequencies or a bias", [v.shape for v in values]
        )
    box, words = _of_rows(made[1], dtype, bound)
    return box, bound.describe(words)


def _by_position(bound: Bound) -> tuple[Box, str]:
    free = bound.has("positions")
    failures: list[str] = []
    for form in ("(tokens,)", "(1, tokens)", "(tokens,) real") if free else ("",):
        try:
            return _tried(bound, free, form)
        except PosencError as error:
            failures.append(why(error))
    raise SubjectError("the subject runs", "; ".join(dict.fromkeys(failures)))


def _asked(bound: Bound, free: bool, form: str, at: Array) -> Any:
    if free:
        whole = np.array_equal(at, np.rint(at)) and form != "(tokens,) real"
        make = bound.library.whole if whole else bound.library.array
        given: dict[str, Any] = {"positions": make(at[None] if form == "(1, tokens)" else at)}
        if bound.has("x"):
            given["x"] = bound.library.array(np.zeros((1, len(at), bound.dim)))
        if bound.has("length"):
            given["length"] = int(at.max()) + 1 if bound.has("positions") else len(at)
        return bound.call(**given)
    return bound.call(length=int(at.max()) + 1)


def _tried(bound: Bound, free: bool, form: str) -> tuple[Box, str]:
    result = _asked(bound, free, form, np.arange(float(ASKED)))
    dtype, values = result_dtype(result), parts(result)
    if len(values) == 1 and values[0].ndim >= 3 and values[0].shape[-1] == values[0].shape[-2] == ASKED and not free:
        return _bias(bound, lambda n_q, n_k: {"length": n_k} if n_q == n_k else None)
    made = _interpreted(values, ASKED, bound)
    if made is None:
        raise Misshapen(f"the result has {ASKED} rows for {ASKED} positions", [v.shape for v in values])
    kind, trial = made

    if trial[0].shape[1] > WIDEST:
        raise SubjectError(f"rows are at most {WIDEST} wide", trial[0].shape[1])

    def of(at: Array) -> tuple[np.ndarray, ...]:
        n = len(at) if free else int(at.max()) + 1
        raw = parts(_asked(bound, free, form, at))
        again = _interpreted(raw, n, bound, kind)
        if again is None:
            raise Misshapen(f"the result has {n} rows for {n} positions", [v.shape for v in raw])
        return again[1] if free else tuple(r[at.astype(int)] for r in again[1])

    def works(last: int) -> bool:
        try:
            of(np.array([0.0, float(last)]) if free else np.array([float(last)]))
        except PosencError:
            return False
        return True

    most = 32768 if free else 4098
    largest = farthest(bound, works, most)
    if len(trial) == 1:
        width = trial[0].shape[1]
        box: Box = Rows(
            width=width,
            rows=lambda at: of(at)[0],
            free=free,
            dtype=dtype,
            largest=largest,
            calls={"bound": bound, "form": form},
        )
        return box, bound.describe(f"rows of width {width}")
    box = CosSin(
        cos_sin=lambda at: (of(at)[0], of(at)[1]),
        free=free,
        dtype=dtype,
        largest=largest,
        form=kind,
        calls={"bound": bound, "form": form},
    )
    return box, bound.describe(f"cosines and sines ({kind}), {trial[0].shape[1]} columns")


def _of_rows(rows: tuple[np.ndarray, ...], dtype: str, bound: Bound) -> tuple[Box, str]:
    last = len(rows[0]) - 1

    def check(at: Array) -> Any:
        if (at > last).any() or (at < 0).any():
            raise SubjectError(f"rows run from 0 to {last}", float(at.max()))
        return at.astype(int)

    calls = {"bound": bound}
    if len(rows) == 1:
        width = rows[0].shape[1]
        return Rows(
            width, lambda at: rows[0][check(at)], dtype=dtype, largest=last, calls=calls
        ), f"{last + 1} rows of width {width}"
    box = CosSin(lambda at: (rows[0][check(at)], rows[1][check(at)]), dtype=dtype, largest=last, calls=calls)
    return box, f"{last + 1} rows of cosines and sines"


def _interpreted(
    values: list[np.ndarray], rows: int | None, bound: Bound, kind: str | None = None
) -> tuple[str, tuple[np.ndarray, ...]] | None:
    """``(rows, width)`` arrays of a result and how they were read: one for a table, two for cosines and sines.

    Args:
        values: the arrays that came back.
        rows: how many rows were asked for; None if that is not known.
        bound: knows what is wanted.
        kind: the reading found before, kept for later calls.

    Returns:
        None if no reading fits.
    """
    flat = []
    values = [v for v in values if v.ndim >= 2] or values[:1]
    for value in values[:2]:
        squeezed = _rows_first(value, rows)
        if squeezed is None:
            return None
        flat.append(squeezed)
    if kind is None:
        kind = _kind(flat, bound)
    return None if kind is None else (kind, _READINGS[kind](flat))


def _swapped(flat: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    return flat[1], flat[0]


_READINGS: dict[str, Callable[[list[np.ndarray]], tuple[np.ndarray, ...]]] = {
    "cos, sin": lambda f: (f[0], f[1]),
    "sin, cos": _swapped,
    "complex": lambda f: (f[0].real, f[0].imag),
    "last dimension": lambda f: (f[0][..., 0], f[0][..., 1]),
    "matrices": lambda f: (f[0][..., 0, 0], f[0][..., 1, 0]),
    "angles": lambda f: (np.cos(f[0]), np.sin(f[0])),
    "[cos | sin]": lambda f: (f[0][:, : f[0].shape[1] // 2], f[0][:, f[0].shape[1] // 2 :]),
    "[sin | cos]": lambda f: (f[0][:, f[0].shape[1] // 2 :], f[0][:, : f[0].shape[1] // 2]),
    "cos, sin by turns": lambda f: (f[0][:, ::2], f[0][:, 1::2]),
    "sin, cos by turns": lambda f: (f[0][:, 1::2], f[0][:, ::2]),
    "rows": lambda f: (f[0],),
}


def _kind(flat: list[np.ndarray], bound: Bound) -> str | None:
    first = flat[0]
    unknown = bound.hints.encoding is None
    rotary = bound.hints.wants == "rotary"
    if len(flat) == 2 and flat[0].shape == flat[1].shape and first.ndim == 2 and first.dtype.kind != "c":
        sines_first = np.abs(first[0]).max() < 1e-6 < np.abs(flat[1][0]).max()
        return "sin, cos" if sines_first else "cos, sin"
    if first.dtype.kind == "c":
        return "complex" if first.ndim == 2 else None
    if first.ndim == 3 and first.shape[-1] == 2 and (rotary or unknown):
        return "last dimension"
    if first.ndim == 4 and first.shape[-2:] == (2, 2):
        return "matrices"
    if first.ndim != 2:
        return None
    if (rotary or unknown) and _looks_like_angles(first):
        return "angles"
    if rotary and first.shape[1] % 2 == 0:
        for kind in ("[cos | sin]", "[sin | cos]", "cos, sin by turns", "sin, cos by turns"):
            a, b = _READINGS[kind](flat)
            size = np.hypot(a, b)
            if np.abs(a[0] - size[0]).max() < 1e-6 and np.ptp(size, axis=0).max() < 1e-3:
                return kind
    return "rows"


def _rows_first(value: np.ndarray, rows: int | None) -> np.ndarray | None:
    """The array without dimensions of one, rows first."""
    shape = [n for n in value.shape if n != 1] or [1]
    found = value.reshape([1, *shape] if rows == 1 else shape)
    if rows is None or found.ndim == 0:
        return found if found.ndim >= 2 else None
    if found.ndim == 1:
        return (
            found.reshape(rows, -1)
            if found.size % rows == 0 and rows > 1
            else found.reshape(1, -1)
            if rows == 1
            else None
        )
    if found.shape[0] == rows:
        return found
    if found.ndim == 3 and found.shape[1] == rows:
        return found[0] if np.array_equal(found[0], found[-1]) else None
    if found.ndim == 2 and found.shape[1] == rows:
        return None
    return None


def _looks_like_angles(rows: np.ndarray) -> bool:
    """Each row its number times the same vector."""
    if len(rows) < 4 or np.abs(rows).max() < 1.5:
        return False
    step = rows[1] - rows[0]
    return bool(np.allclose(rows - rows[0], np.arange(len(rows))[:, None] * step, rtol=1e-2, atol=1e-3))


def _bias(bound: Bound, sizes: Callable[[int, int], dict[str, int] | None]) -> tuple[Bias, str]:
    def bias(n_q: int, n_k: int) -> Array:
        given = sizes(n_q, n_k)
        if given is None:  # only square ones can be asked for: the last queries of it
            whole = _heads_first(parts(bound.call(**sizes(n_k, n_k)))[0], n_k, n_k)  # type: ignore[arg-type]
            return whole[:, n_k - n_q :]
        return _heads_first(parts(bound.call(**given))[0], n_q, n_k)

    result = bias(5, 7)
    return Bias(bias=bias, calls={"bound": bound}), bound.describe(f"a bias for {len(result)} heads")


def grid_box(bound: Bound) -> tuple[Rows, str]:
    """A subject that makes a table for a grid of rows and columns.

    Raises:
        Misshapen: it has not one row for each cell.
    """
    values: dict[str, str] = dict(bound.roles)
    for name, role in values.items():  # beside a height, a width is that of the grid
        if name.lower() == "width" and bound.has("height"):
            bound.roles = {**bound.roles, name: "columns"}
        del role

    def grid(height: int, width: int) -> Array:
        given: dict[str, Any] = {"height": height, "columns": width}
        if bound.has("grid"):
            given = {"grid": (height, width)}
        found = parts(bound.call(**given))[0]
        found = found.reshape(found.shape[1:]) if found.ndim > 2 and found.shape[0] == 1 else found
        if found.ndim == 3 and found.shape[:2] == (height, width):
            found = found.reshape(height * width, -1)
        if found.ndim == 3 and found.shape[1:] == (height, width):
            found = np.moveaxis(found, 0, -1).reshape(height * width, -1)
        if found.ndim != 2 or len(found) < height * width:
            raise Misshapen(f"one row for each of {height * width} cells", found.shape)
        return found.astype(np.float64)

    width = grid(3, 5).shape[1]
    box = Rows(
        width, lambda at: grid(int(at.max()) + 1, 1)[at.astype(int)], free=False, calls={"bound": bound, "grid": grid}
    )
    return box, bound.describe("a table for a grid (height, width), cells row by row")


def scores_box(bound: Bound) -> tuple[Bias, str]:
    """A subject that takes scores and returns them with its bias added.

    Raises:
        SubjectError: what comes back is not what went in plus something.
    """
    heads = bound.hints.heads
    offset = next((p.name for p in signature_of(bound.caller.function).parameters if p.role == "offset"), None)
    if offset is not None:
        bound.roles = {**bound.roles, offset: "offset"}

    def bias(n_q: int, n_k: int) -> Array:
        shapes = {"scores": (1, heads, n_q, n_k), "q": (1, heads, n_q, 4), "k": (1, heads, n_k, 4)}
        given: dict[str, Any] = {role: bound.library.array(np.zeros(shape)) for role, shape in shapes.items()}
        given |= {"q_at": bound.library.whole(np.arange(n_k - n_q, n_k)), "k_at": bound.library.whole(np.arange(n_k))}
        return _heads_first(parts(bound.call(**given, offset=n_k - n_q))[0], n_q, n_k)

    if not bias(5, 7).any() and hasattr(bound.caller.function, "parameters"):
        _drawn(bound)  # a trained bias starts at zero: random numbers show where it puts them
    return Bias(bias=bias, calls={"bound": bound}), bound.describe(f"scores of {heads} heads with a bias added")


def _drawn(bound: Bound) -> None:
    """Random numbers in a copy of a module's parameters."""
    import copy

    import torch

    module: Any = copy.deepcopy(bound.caller.function)
    with torch.no_grad():
        for value in module.parameters():
            value.copy_(torch.from_numpy(np.random.default_rng(29).normal(size=tuple(value.shape))))
    bound.caller.function = module


def _heads_first(value: np.ndarray, n_q: int, n_k: int) -> Array:
    """``(heads, n_q, n_k)`` of a bias in a usual shape.

    Raises:
        Misshapen: it is of none.
    """
    if value.ndim == 4 and value.shape[0] == 1:
        value = value[0]
    if value.ndim == 4 and value.shape[1] == 1:
        value = value[:, 0]
    if value.ndim == 2:
        value = value[None]
    if value.ndim == 3 and value.shape[1:] == (n_q, n_k):
        return value.astype(np.float64)
    if value.ndim == 3 and value.shape[:2] == (n_q, n_k):
        return np.moveaxis(value, -1, 0).astype(np.float64)
    if value.ndim == 3 and value.shape[1] == 1 and value.shape[2] == n_k:  # the last row alone: BLOOM's form
        return np.repeat(value, n_q, axis=1).astype(np.float64)
    raise Misshapen(f"a bias has the shape (heads, {n_q}, {n_k})", value.shape)


def _buckets(bound: Bound) -> tuple[Box, str]:
    def buckets(relative: Any) -> Any:
        found = parts(bound.call(relative=bound.library.whole(relative)))[0]
        if found.shape != np.shape(relative):
            raise Misshapen(f"one bucket for each of {np.shape(relative)}", found.shape)
        return np.rint(found).astype(np.int64)

    if parts(bound.call(relative=bound.library.whole(np.arange(-5, 6))))[0].dtype.kind != "i":
        raise SubjectError("buckets are integers")
    buckets(np.arange(-5, 6))
    return Buckets(buckets, calls={"bound": bound}), bound.describe("buckets of relative positions (key - query)")
