"""Tables as arrays: the numbers of MISSION M5 and A5, and small cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from posenc.analysis.permutation import permutation_facts
from posenc.analysis.symmetry import (
    entropy_rank,
    shift_error,
    shift_matrix,
    table_facts,
    toeplitz_defect,
)
from posenc.errors import ShapeError


def paper_table(rows: int, dim: int, base: float = 10000.0) -> np.ndarray:
    """Slow loop over the formula; odd widths end with a lone sine."""
    return np.array(
        [[(math.cos if j % 2 else math.sin)(p / base ** (2 * (j // 2) / dim)) for j in range(dim)] for p in range(rows)]
    )


def test_effective_rank_of_the_paper_table():
    facts = table_facts(paper_table(512, 512))
    assert facts.rank.value == 131
    assert facts.energy_rank.value == 109
    assert round(facts.entropy_rank.value) == 93


def test_a_lone_sine_breaks_toeplitz_and_norm():
    facts = table_facts(paper_table(2000, 7))
    assert facts.toeplitz_defect.value == pytest.approx(0.46, abs=0.005)
    even = table_facts(paper_table(2000, 8))
    assert even.toeplitz_defect.value < 1e-9
    assert even.norm == pytest.approx((2.0, 2.0))
    assert facts.norm[1] - facts.norm[0] > 0.1
    assert even.shift_error.value < 1e-9 < 1e-5 < facts.shift_error.value


def test_one_hot_is_toeplitz_and_says_nothing():
    facts = table_facts(np.eye(64))
    assert facts.toeplitz_defect.value == 0
    assert facts.kernel.y[1:] == (0.0,) * 63
    assert facts.nearest_rows.value == pytest.approx(math.sqrt(2))
    assert facts.entropy_rank.value == pytest.approx(64)
    assert facts.shift_error.value is None  # as many rows as columns: any table has such a map


def test_equal_rows_are_counted_and_found():
    table = paper_table(13, 6)
    table[11] = table[3]
    facts = table_facts(table)
    assert facts.distinct_rows.value == 12
    assert facts.nearest_rows.value == 0
    assert set(facts.nearest_pair) == {3, 11}


def test_toeplitz_defect_by_hand():
    kernel = np.array([[1.0, 5.0, 9.0], [5.0, 1.5, 5.25], [9.0, 5.25, 1.0]])
    assert toeplitz_defect(kernel) == 0.5


def test_the_shift_matrix_moves_the_paper_table():
    table, theta = paper_table(40, 10), np.array([10000 ** (-2 * i / 10) for i in range(5)])
    np.testing.assert_allclose(table[:-7] @ shift_matrix(theta, 7).T, table[7:], atol=1e-12)
    with pytest.raises(AssertionError):  # cosines first transposes the blocks
        np.testing.assert_allclose(table[:-7] @ shift_matrix(theta, 7), table[7:], atol=1e-3)
    assert shift_error(np.random.default_rng(3).standard_normal((97, 11))) > 0.1


def test_entropy_rank_of_equal_singular_values_is_their_number():
    assert entropy_rank(np.full(7, 2.5)) == pytest.approx(7)
    assert entropy_rank(np.array([1.0, 0.0, 0.0])) == pytest.approx(1)


@pytest.mark.parametrize(
    "bad", [np.zeros(5), np.zeros((1, 5)), np.array([[1.0, math.nan], [0, 0]]), np.array([["a", "b"], ["c", "d"]])]
)
def test_what_is_no_table_is_refused(bad):
    with pytest.raises(ShapeError):
        table_facts(bad)


def test_attention_without_positions_is_blind_to_order():
    facts = permutation_facts({"sinusoidal": paper_table(11, 24), "constant": np.ones((11, 24))})
    assert facts.equivariance.value < 1e-13
    assert facts.pooled.value < 1e-13
    assert facts.equal_vectors.value < 1e-13
    assert facts.one_causal_layer.value < 1e-13 < 1e-2 < facts.two_causal_layers.value
    broken = dict(facts.broken)
    assert broken["constant"] < 1e-13 < 1e-2 < broken["sinusoidal"]
