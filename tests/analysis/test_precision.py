"""What rounding costs: MISSION's collisions, the published proxies (Wang et al. 2024), and exhaustive loops."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from posenc.analysis.precision import SAFE, distinct_rows, first_unsafe, precision_facts, rounded
from posenc.formulas.scalings import frequencies
from posenc.spec import Rotary, Sinusoidal

DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def theta(dim: int, base: float = 1e4) -> np.ndarray:
    return np.array([base ** (-2 * i / dim) for i in range(dim // 2)])


def rows_of(facts, stage):
    return {row.dtype: row for row in facts.rows if row.stage == stage}


@pytest.mark.parametrize(("length", "bfloat16"), [(4096, 5.01), (32768, 40.1), (131072, 160.0)])
def test_rounded_frequencies_cost_what_was_published(length, bfloat16):
    found = rows_of(precision_facts(frequencies(Rotary(128)), length, rows=64), "frequencies")
    assert found["bfloat16"].largest.value == pytest.approx(bfloat16, rel=3e-3)
    worst = max(
        abs(float(ml_dtypes.bfloat16(t)) - t) for t in theta(128).tolist()
    )  # one number at a time, no array of ours
    assert found["bfloat16"].largest.value == pytest.approx(worst * (length - 1), rel=1e-12)


@pytest.mark.parametrize(("length", "distinct"), [(256, 256), (4096, 769), (32768, 1153)])
def test_distinct_bfloat16_positions(length, distinct):
    assert distinct_rows(theta(8), length, "bfloat16", "positions")[0] == distinct


def test_256_and_257_are_one_position_in_bfloat16():
    count, repeat = distinct_rows(theta(128), 300, "bfloat16", "positions")
    assert repeat == 257
    assert count < 300


def test_rows_1_and_711_collide_at_width_2_and_none_at_width_16():
    assert distinct_rows(theta(2), 1000, "bfloat16", "table")[1] == 711
    assert distinct_rows(theta(16), 8192, "bfloat16", "table") == (8192, None)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stage", ["positions", "frequencies", "angles"])
@pytest.mark.parametrize("dim", [2, 14])
def test_first_unsafe_position_by_exhaustion(dtype, stage, dim):
    cast, t = DTYPES[dtype], theta(dim, 700.0)
    length = 5000
    found = None
    with np.errstate(over="ignore"):
        for p in range(length):
            if stage == "positions":
                error = max(abs(float(cast(p)) - p) * x for x in t)
            elif stage == "frequencies":
                error = max(p * abs(float(cast(x)) - x) for x in t)
            else:
                error = max(abs(float(cast(p * x)) - p * x) for x in t)
            if error >= SAFE:
                found = p
                break
    assert first_unsafe(t, length, dtype, stage) == found


def test_one_rounding_of_the_table_is_safe_at_any_position():
    facts = rows_of(precision_facts(frequencies(Rotary(64)), 131072), "table")
    assert all(row.last_safe is None and row.distinct_rows == row.rows for row in facts.values())
    assert facts["bfloat16"].largest.value < 2**-8
    assert facts["float32"].largest.value < 2**-23


def test_float16_positions_end():
    row = rows_of(precision_facts(frequencies(Rotary(8)), 131072, rows=64), "positions")["float16"]
    assert row.overflow == 65520
    assert math.isinf(rounded(65520.0, "float16"))
    assert math.isfinite(rounded(65519.0, "float16"))


def test_the_error_curve_is_finite_and_ends_at_the_length():
    facts = precision_facts(frequencies(Sinusoidal(32)), 10_007, rows=512)
    for row in facts.rows:
        assert row.error.x[-1] == 10_006
        assert all(math.isfinite(y) for y in row.error.y)
