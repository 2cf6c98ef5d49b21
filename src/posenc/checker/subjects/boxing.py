"""Arrays as boxes: a vector, a table, cosines and sines, a bias, by their shapes and by what is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Bias, Box, CosSin, Rows, Vector
from posenc.checker.subjects.arrays import check_numbers, stored_dtype
from posenc.errors import ShapeError, SubjectError


def box_of_arrays(arrays: dict[str, np.ndarray], wants: str | None) -> tuple[Box, str]:
    """A box for arrays by name, and in words what they were taken for.

    Raises:
        SubjectError, ShapeError: they are nothing that is known.
    """
    named = {name.rsplit(".", 1)[-1].lower(): value for name, value in arrays.items()}
    if {"cos", "sin"} <= set(named):
        cos, sin = (_rows(check_numbers(named[n], n)) for n in ("cos", "sin"))
        if cos.shape != sin.shape:
            raise ShapeError("cos and sin have one shape", (cos.shape, sin.shape))
        return cos_sin_of(cos, sin, stored_dtype(named["cos"])), f"cosines and sines for positions 0 to {len(cos) - 1}"
    if len(arrays) != 1:
        raise SubjectError("one array, a pair cos and sin, or a dump q_before, q_after, positions", sorted(arrays)[:8])
    name, value = next(iter(arrays.items()))
    dtype = stored_dtype(value)
    values = check_numbers(value, name)
    squeezed = np.asarray(values).reshape([n for n in values.shape if n != 1] or [1])
    if squeezed.dtype.kind == "c":
        table = _rows(squeezed)
        return cos_sin_of(
            table.real.copy(), table.imag.copy(), dtype
        ), f"complex rotations for positions 0 to {len(table) - 1}"
    if squeezed.ndim == 1:
        holds = "slopes" if wants == "alibi" else "frequencies"
        return Vector(squeezed, holds, dtype), f"{len(squeezed)} {holds}"
    if squeezed.ndim == 3 and squeezed.shape[-1] == 2 and wants in (None, "rotary") and squeezed.shape[0] != 2:
        return cos_sin_of(squeezed[..., 0], squeezed[..., 1], dtype), "cosines and sines in the last dimension"
    if squeezed.ndim == 3 or (
        squeezed.ndim == 2 and wants in ("alibi", "t5_bias") and squeezed.shape[0] == squeezed.shape[1]
    ):
        return bias_of(squeezed if squeezed.ndim == 3 else squeezed[None], dtype), "a bias (heads, queries, keys)"
    if squeezed.ndim == 2 and squeezed.shape[0] == squeezed.shape[1] and wants is None and _toeplitz(squeezed):
        return bias_of(squeezed[None], dtype), "a bias (queries, keys): constant along diagonals"
    if squeezed.ndim == 2:
        return table_box(squeezed, dtype, wants)
    raise ShapeError("an array is (n,), (rows, width) or (heads, queries, keys)", values.shape)


def _toeplitz(values: Array) -> bool:
    if len(values) < 4:
        return False
    return bool(
        np.allclose(values[1:, 1:], values[:-1, :-1], atol=1e-6 * max(np.abs(values).max(), 1e-300))
    ) and not np.array_equal(values, np.eye(len(values)))


def _rows(values: Array) -> Array:
    found = values.reshape([n for n in values.shape if n != 1] or [1])
    if found.ndim != 2:
        raise ShapeError("cosines and sines are (positions, columns)", values.shape)
    return found


def within(last: int, at: Array) -> Any:
    """Row numbers, refused beyond the last row."""
    if (at > last).any() or (at < 0).any() or (at != np.rint(at)).any():
        raise SubjectError(f"rows run from 0 to {last}", float(at.max()))
    return at.astype(int)


def cos_sin_of(cos: Array, sin: Array, dtype: str) -> CosSin:
    """A box around two arrays."""
    last = len(cos) - 1
    return CosSin(lambda at: (cos[within(last, at)], sin[within(last, at)]), dtype=dtype, largest=last)


def table_box(values: Array, dtype: str, wants: str | None) -> tuple[Box, str]:
    """A table, or angles or packed cosines where a rotary is wanted."""
    last = len(values) - 1
    if wants == "rotary":
        half = values.shape[1] // 2
        step = values[1] - values[0] if len(values) > 1 else values[0]
        if np.abs(values).max() > 1.5 and np.allclose(
            values - values[0], np.arange(len(values))[:, None] * step, rtol=1e-2, atol=1e-3
        ):
            return cos_sin_of(np.cos(values), np.sin(values), dtype), "angles by position"
        for first, second, words in (
            (values[:, :half], values[:, half:], "[cos | sin]"),
            (values[:, half:], values[:, :half], "[sin | cos]"),
        ):
            if half and np.abs(second[0]).max() < 1e-6 and np.abs(first[0] - np.abs(first[0])).max() < 1e-6:
                return cos_sin_of(first, second, dtype), f"a packed table {words}"
    return Rows(
        values.shape[1], lambda at: values[within(last, at)], dtype=dtype, largest=last
    ), f"a table of {len(values)} rows and width {values.shape[1]}"


def bias_of(values: Array, dtype: str) -> Bias:
    """A box around a bias: its last queries and first keys... asked for within its size."""
    _, rows, columns = values.shape

    def bias(n_q: int, n_k: int) -> Array:
        n_k = min(n_k, columns)
        n_q = min(n_q, rows, n_k)
        end = rows - (columns - n_k)
        return values[:, max(end - n_q, 0) : end, :n_k]

    return Bias(bias, dtype, largest=columns)
