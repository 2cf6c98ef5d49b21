"""Subjects that make something from positions, a length, a width: tables, cosines and sines, frequencies, biases."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Box, CosSin, Rows, Vector
from posenc.checker.calling.bound import Bound, farthest, result_dtype
from posenc.checker.calling.caller import Misshapen, parts, why
from posenc.checker.calling.grids import grid_box
from posenc.checker.calling.pictures import picture_box
from posenc.checker.calling.results import interpreted
from posenc.checker.calling.score_boxes import bias_box, buckets_box
from posenc.checker.calling.tokens import are_tokens
from posenc.errors import PosencError, SubjectError
from posenc.spec import Learned

WIDEST = 2**16
ASKED = 37
"""Rows of a trial: prime and unlike any width in use."""


CARRIERS: dict[str, Callable[[int, int], tuple[int, ...]]] = {
    "(batch, tokens, dim)": lambda tokens, dim: (1, tokens, dim),
    "(tokens, batch, dim)": lambda tokens, dim: (tokens, 1, dim),
    "(batch, heads, tokens, dim)": lambda tokens, dim: (1, 1, tokens, dim),
}
"""Shapes of vectors of which a subject may read how many tokens there are, and nothing else."""
SHAPES: dict[str, Callable[[int, int], tuple[int, ...]]] = {
    "(batch, tokens, dim)": CARRIERS["(batch, tokens, dim)"],
    "(tokens, dim)": lambda tokens, dim: (tokens, dim),
    "(batch, tokens)": lambda tokens, dim: (1, tokens),
}
"""Shapes that a subject may be given in place of vectors."""


def made_box(bound: Bound) -> tuple[Box, str]:
    """A box for a subject without an input to turn.

    Raises:
        SubjectError: what comes back is nothing that is known.
    """
    if bound.has("relative"):
        return buckets_box(bound)
    if bound.has("height") or bound.has("grid"):
        return grid_box(bound)
    if bound.has("n_q", "n_k"):
        return bias_box(bound, lambda n_q, n_k: {"n_q": n_q, "n_k": n_k})
    if bound.has("positions") or bound.has("length") or bound.has("x") or bound.has("shape"):
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
    made = interpreted(values, None, bound)
    if made is None:
        raise SubjectError(
            "what comes back is a table, cosines and sines, frequencies or a bias", [v.shape for v in values]
        )
    box, words = _of_rows(made[1], dtype, bound)
    return box, bound.describe(words)


def _by_position(bound: Bound) -> tuple[Box, str]:
    free = bound.has("positions")
    failures: list[str] = []
    forms: tuple[str, ...] = ("(tokens,)", "(1, tokens)", "(tokens,) real") if free else ("",)
    if bound.has("x") and not free:
        forms = tuple(CARRIERS)
    elif bound.has("shape"):
        forms = tuple(SHAPES)
    for form in forms:
        try:
            return _tried(bound, free, form)
        except PosencError as error:
            failures.append(why(error))
    if bound.has("x") and not free and isinstance(bound.hints.encoding, Learned):
        with contextlib.suppress(PosencError):
            return _of_one_length(bound, bound.hints.encoding)
        with contextlib.suppress(PosencError):
            return picture_box(bound, bound.hints.encoding)
    raise SubjectError("the subject runs", "; ".join(dict.fromkeys(failures)))


def _of_one_length(bound: Bound, wanted: Learned) -> tuple[Box, str]:
    """A table added to as many tokens as it has rows, or to one or two fewer where the subject puts tokens before them.

    Raises:
        SubjectError: no such number of tokens is taken, or another number of rows comes back.
    """
    for before in range(3):
        given = bound.library.array(np.zeros((1, wanted.rows - before, bound.dim)))
        try:
            result = bound.call(x=given)
            found = parts(result)[0]
        except PosencError:
            continue
        if found.shape == (1, wanted.rows, bound.dim):
            box, words = fixed_box([found[0]], result_dtype(result), bound)
            return box, words + (f"; rows before those of the given tokens: {before}" if before else "")
    raise SubjectError(f"tokens for {wanted.rows} rows are taken")


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
    rows = int(at.max()) + 1
    given = {"x": bound.library.array(np.zeros(CARRIERS[form](rows, bound.dim)))} if bound.has("x") else {}
    given |= {"shape": SHAPES[form](rows, bound.dim)} if bound.has("shape") else {}
    return bound.call(**(given | {"length": rows} if bound.has("length") else given))


def _tried(bound: Bound, free: bool, form: str) -> tuple[Box, str]:
    result = _asked(bound, free, form, np.arange(float(ASKED)))
    dtype, values = result_dtype(result), parts(result)
    if len(values) == 1 and values[0].ndim >= 3 and values[0].shape[-1] == values[0].shape[-2] == ASKED and not free:
        return bias_box(bound, lambda n_q, n_k: {"length": n_k} if n_q == n_k else None)
    made = interpreted(values, ASKED, bound)
    if made is None:
        raise Misshapen(f"the result has {ASKED} rows for {ASKED} positions", [v.shape for v in values])
    kind, trial = made

    if trial[0].shape[1] > WIDEST:
        raise SubjectError(f"rows are at most {WIDEST} wide", trial[0].shape[1])
    if free and len(trial) == 1 and are_tokens(bound):
        raise SubjectError("positions are given to the subject", "what it takes are ids of tokens")

    def of(at: Array) -> tuple[np.ndarray, ...]:
        n = len(at) if free else int(at.max()) + 1
        raw = parts(_asked(bound, free, form, at))
        again = interpreted(raw, n, bound, kind)
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
