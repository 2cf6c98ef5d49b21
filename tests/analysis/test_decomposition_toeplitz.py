"""The Toeplitz form against least squares over its parameters, and against ``p_m^T A p_n`` itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from posenc.analysis.toeplitz_form import closest_form, off_pair, random_distance, toeplitz_defects, toeplitz_distance
from posenc.errors import ShapeError

PAIRS = [(0, 1), (6, 3), (2, 5)]
THETA = [1.0, 0.37, 0.011]


def table(rows):
    """``(rows, 7)``: pairs (sin, cos) in the channels of PAIRS, channel 4 in none."""
    made = np.zeros((rows, 7))
    for n in range(rows):
        for (s, c), theta in zip(PAIRS, THETA, strict=True):
            made[n, s], made[n, c] = math.sin(n * theta), math.cos(n * theta)
    return made


def exact():
    """``a I + b J`` on each pair."""
    made = np.zeros((7, 7))
    for (i, j), (a, b) in zip(PAIRS, [(1.5, -0.3), (0.0, 2.0), (-0.7, 0.2)], strict=True):
        made[i, i] = made[j, j] = a
        made[j, i], made[i, j] = b, -b
    return made


def spread_of_diagonals(scores):
    """Largest spread inside a diagonal."""
    n = len(scores)
    return max(np.ptp(np.diagonal(scores, k)) for k in range(1 - n, n))


def test_the_form_is_toeplitz_on_a_sinusoid_and_its_distance_is_zero():
    rows = table(29)
    assert spread_of_diagonals(rows @ exact() @ rows.T) < 1e-13
    assert toeplitz_distance(exact(), PAIRS) == 0.0
    assert off_pair(exact(), PAIRS) == 0.0


@pytest.mark.parametrize("entry", [(0, 0), (3, 6), (0, 2), (5, 3), (4, 4), (1, 4)])
def test_any_other_entry_breaks_it(entry):
    """Channel 4 holds a third wave here, so that every entry is seen."""
    rows = table(29)
    rows[:, 4] = np.sin(2.2 * np.arange(29))
    broken = exact()
    broken[entry] += 0.5
    assert spread_of_diagonals(rows @ broken @ rows.T) > 1e-3
    inside = 0.5 if entry in [(0, 0), (3, 6)] else 1.0  # half of such an entry is a I or b J
    size = np.linalg.norm(broken)
    assert toeplitz_distance(broken, PAIRS) == pytest.approx(0.5 * math.sqrt(inside) / size, rel=1e-13)


def test_equal_frequencies_need_more_than_this_form():
    """With one frequency twice the form may join the pairs and stay Toeplitz: the frequencies must be distinct."""
    rows = np.stack([[math.sin(n), math.cos(n), math.sin(n), math.cos(n)] for n in range(17)])
    joined = np.zeros((4, 4))
    joined[0, 2] = joined[1, 3] = 1.0
    assert spread_of_diagonals(rows @ joined @ rows.T) < 1e-13
    assert toeplitz_distance(joined, [(0, 1), (2, 3)]) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_the_closest_form_by_least_squares(seed):
    matrix = np.random.default_rng(seed).standard_normal((7, 7))
    basis = []
    for i, j in PAIRS:
        same, turn = np.zeros((7, 7)), np.zeros((7, 7))
        same[i, i] = same[j, j] = 1.0
        turn[i, j], turn[j, i] = 1.0, -1.0
        basis += [same.ravel(), turn.ravel()]
    design = np.stack(basis, axis=1)
    found, *_ = np.linalg.lstsq(design, matrix.ravel(), rcond=None)
    assert np.abs(closest_form(matrix, PAIRS).ravel() - design @ found).max() < 1e-14
    left = math.sqrt(sum(v * v for v in matrix.ravel() - design @ found) / sum(v * v for v in matrix.ravel()))
    assert toeplitz_distance(matrix, PAIRS) == pytest.approx(left, rel=1e-13)
    inside = sum(matrix[a, b] ** 2 for pair in PAIRS for a in pair for b in pair)
    assert off_pair(matrix, PAIRS) == pytest.approx(1 - inside / (matrix**2).sum(), rel=1e-12)


def test_the_distance_of_a_random_matrix():
    rng = np.random.default_rng(5)
    squares = [toeplitz_distance(rng.standard_normal((7, 7)), PAIRS) ** 2 for _ in range(2000)]
    assert math.sqrt(np.mean(squares)) == pytest.approx(random_distance(7, 3), rel=5e-3)


def test_the_distance_ignores_scale_and_turning_the_pairs():
    matrix = np.random.default_rng(9).standard_normal((7, 7))
    turn = np.eye(7)
    for k, (i, j) in enumerate(PAIRS):
        angle = 0.4 + k
        turn[i, i] = turn[j, j] = math.cos(angle)
        turn[i, j], turn[j, i] = math.sin(angle), -math.sin(angle)
    want = toeplitz_distance(matrix, PAIRS)
    assert toeplitz_distance(-3e5 * matrix, PAIRS) == pytest.approx(want, rel=1e-13)
    assert toeplitz_distance(turn @ matrix @ turn.T, PAIRS) == pytest.approx(want, rel=1e-13)
    assert toeplitz_distance(np.zeros((7, 7)), PAIRS) == 0.0


def test_defects_by_least_squares_over_diagonals_and_rows():
    scores = np.random.default_rng(2).standard_normal((3, 5, 5))
    columns = [np.eye(5, k=k).ravel() for k in range(-4, 5)]
    columns += [np.repeat(np.eye(5)[m], 5) for m in range(5)]
    design = np.stack(columns, axis=1)
    for each, got in zip(scores, toeplitz_defects(scores), strict=True):
        found, *_ = np.linalg.lstsq(design, each.ravel(), rcond=None)
        left = np.linalg.norm(each.ravel() - design @ found)
        size = np.linalg.norm(each - each.mean(1, keepdims=True))
        assert got == pytest.approx(left / size, rel=1e-12)
        assert 0.05 < got < 1


def test_defects_ignore_functions_of_the_query_and_of_the_distance():
    n = np.arange(6)
    free = np.cos(0.3 * (n[:, None] - n) + 1) + (n[:, None] ** 3.0)
    noise = np.random.default_rng(4).standard_normal((6, 6))
    clean, once, constant = toeplitz_defects([free, free + 1e-3 * noise, np.repeat(n[:, None], 6, 1)])
    assert clean < 1e-12
    assert 1e-5 < once < 1e-2
    assert constant is None


@pytest.mark.parametrize(
    ("matrix", "pairs"),
    [
        (np.ones((2, 3)), [(0, 1)]),
        (np.full((2, 2), np.inf), [(0, 1)]),
        (np.ones((2, 2)), [(0, 2)]),
        (np.ones((2, 2)), [(0, 0)]),
        (np.ones((2, 2)), [(-1, 0)]),
        (np.ones((2, 2)), [0, 1]),
        (np.ones((2, 2)), [(0.0, 1.0)]),
    ],
)
def test_what_is_no_square_or_no_pair_is_refused(matrix, pairs):
    with pytest.raises(ShapeError):
        toeplitz_distance(matrix, pairs)
