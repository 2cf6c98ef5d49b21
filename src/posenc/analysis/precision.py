"""What rounding costs, by dtype and by where it happens."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from posenc.formulas.spectrum import Frequencies
from posenc.records import thinned
from posenc.records.analysis import PrecisionFacts, PrecisionRow, Quantity
from posenc.shapes import Float, Int

Dtype = Literal["float32", "bfloat16", "float16"]
Stage = Literal["positions", "frequencies", "angles", "table"]
DTYPES: tuple[Dtype, ...] = ("float32", "bfloat16", "float16")
STAGES: tuple[Stage, ...] = ("positions", "frequencies", "angles", "table")
SAFE = 0.01
"""Radians; an angle error below this is called safe."""
ROWS = 8192
CHUNK = 4096


def precision_facts(frequencies: Frequencies, length: int, *, rows: int = ROWS) -> PrecisionFacts:
    """Round at each stage in each dtype and compare with float64.

    Args:
        frequencies: one frequency for each pair.
        length: positions 0..length-1 are asked about; errors are drawn over all of them.
        rows: how many rows from 0 are compared with each other, at most.
    """
    theta = frequencies.fused
    return PrecisionFacts(
        rows=tuple(_row(theta, length, min(rows, length), dtype, stage) for dtype in DTYPES for stage in STAGES)
    )


def rounded(values: Any, dtype: Dtype) -> Float[np.ndarray, "*shape"]:
    """Values after one rounding to ``dtype``, as float64; infinite where the dtype ends."""
    with np.errstate(over="ignore"):
        if dtype == "bfloat16":
            import ml_dtypes

            return np.array(np.asarray(values, dtype=np.float64).astype(ml_dtypes.bfloat16), dtype=np.float64)
        return np.array(np.asarray(values, dtype=np.float64).astype(dtype), dtype=np.float64)


def angle_error(
    theta: Float[np.ndarray, " pairs"], at: Int[np.ndarray, " n"], dtype: Dtype, stage: Stage
) -> Float[np.ndarray, "n pairs"]:
    """Absolute angle error in radians when only ``stage`` is rounded; infinite where the dtype overflows.

    For ``table`` it is the angle between the rounded and the exact (cos, sin).
    """
    p = at.astype(np.float64)[:, None]
    with np.errstate(invalid="ignore"):
        match stage:
            case "positions":
                error = np.abs(rounded(p, dtype) - p) * np.abs(theta)
            case "frequencies":
                error = p * np.abs(rounded(theta, dtype) - theta)
            case "angles":
                error = np.abs(rounded(p * theta, dtype) - p * theta)
            case "table":
                cos, sin = np.cos(p * theta), np.sin(p * theta)
                c, s = rounded(cos, dtype), rounded(sin, dtype)
                error = np.abs(np.arctan2(cos * s - sin * c, cos * c + sin * s))
    return np.where(np.isnan(error), 0.0 if stage != "angles" else np.inf, error)


def rounded_rows(
    theta: Float[np.ndarray, " pairs"], at: Int[np.ndarray, " n"], dtype: Dtype, stage: Stage
) -> Float[np.ndarray, "n columns"]:
    """Rows that are equal exactly when the table rows at these positions are."""
    p = at.astype(np.float64)[:, None]
    match stage:
        case "positions":
            return rounded(p, dtype)
        case "frequencies":
            return np.asarray(p * rounded(theta, dtype))
        case "angles":
            return rounded(p * theta, dtype)
        case _:
            return rounded(np.concatenate([np.cos(p * theta), np.sin(p * theta)], axis=1), dtype)


def _row(theta: np.ndarray, length: int, rows: int, dtype: Dtype, stage: Stage) -> PrecisionRow:
    at = _sampled(length)
    error = np.concatenate(
        [angle_error(theta, at[i : i + CHUNK], dtype, stage).max(axis=1) for i in range(0, len(at), CHUNK)]
    )
    finite = np.isfinite(error)
    distinct, first_repeat = distinct_rows(theta, rows, dtype, stage)
    unsafe = first_unsafe(theta, length, dtype, stage)
    ends = [p for p in (unsafe, first_repeat) if p is not None]
    overflow = None if finite.all() else _first_overflow(theta, dtype, stage, length)
    return PrecisionRow(
        dtype=dtype,
        stage=stage,
        error=thinned(at[finite], error[finite], points=256),
        largest=Quantity(
            value=float(error[finite].max()),
            note=f"radians, over {len(at)} positions below {length}" + ("" if finite.all() else ", where finite"),
        ),
        distinct_rows=distinct,
        rows=rows,
        last_safe=min(ends) - 1 if ends else None,
        overflow=overflow,
    )


def _sampled(length: int) -> Int[np.ndarray, " n"]:
    """Positions that show the error: the first 2048, then a logarithmic sample with its neighbours, and the last."""
    if length <= CHUNK:
        return np.arange(length)
    spread = np.geomspace(2048, length - 1, 512).astype(np.int64)
    near = (spread[:, None] + np.arange(-1, 3)).ravel()
    return np.unique(np.concatenate([np.arange(2048), near[near < length], [length - 1]]))


def distinct_rows(theta: np.ndarray, rows: int, dtype: Dtype, stage: Stage) -> tuple[int, int | None]:
    """Number of different rows among the first ``rows``, and the first row that repeats an earlier one."""
    found = np.concatenate(
        [rounded_rows(theta, np.arange(i, min(i + CHUNK, rows)), dtype, stage) for i in range(0, rows, CHUNK)]
    )
    as_bytes = np.ascontiguousarray(found + 0.0).view(np.dtype((np.void, found.dtype.itemsize * found.shape[1])))
    _, first = np.unique(as_bytes.ravel(), return_index=True)
    if len(first) == rows:
        return rows, None
    repeats = np.setdiff1d(np.arange(rows), first)
    return len(first), int(repeats[0])


def first_unsafe(theta: np.ndarray, length: int, dtype: Dtype, stage: Stage) -> int | None:
    """First position below ``length`` with an angle error of 0.01 rad or more.

    The start is where the error *can* reach it (half a unit in the last place), so nothing before it is missed.
    """
    fastest = float(np.abs(theta).max())
    if fastest == 0:
        return None
    digits = {"float32": 24, "bfloat16": 8, "float16": 11}[dtype]
    match stage:
        case "frequencies":
            worst = float(np.abs(rounded(theta, dtype) - theta).max())
            first = int(np.ceil(SAFE / worst)) if worst > 0 else length
            return first if first < length else None
        case "positions":
            start = 2**digits
        case "angles":
            start = int(SAFE * 2**digits / fastest / 2)
        case _:
            start = 0
    while start < length:
        at = np.arange(start, min(start + CHUNK, length))
        unsafe = np.flatnonzero((angle_error(theta, at, dtype, stage) >= SAFE).any(axis=1))
        if len(unsafe):
            return int(at[unsafe[0]])
        if stage == "table" and start >= CHUNK:  # one rounding of cos and sin does not grow with position
            return None
        start += CHUNK
    return None


def _first_overflow(theta: np.ndarray, dtype: Dtype, stage: Stage, length: int) -> int | None:
    """First position whose rounding is infinite, by bisection (the angles grow with position)."""
    factor = 1.0 if stage == "positions" else float(np.abs(theta).max())
    low, high = 0, length - 1
    if np.isfinite(rounded(high * factor, dtype)):
        return None
    while low < high:
        middle = (low + high) // 2
        if np.isfinite(rounded(middle * factor, dtype)):
            low = middle + 1
        else:
            high = middle
    return low
