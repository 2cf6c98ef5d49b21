"""Cosines and sines at any position, against 60 digits."""

import numpy as np
import pytest
from mpmath import mp, mpf

from posenc.errors import ShapeError
from posenc.formulas.phases import coordinates, cos_sin

THETA = np.array([1.0, 0.7310585786300049, 0.1, 3.0517578125e-05, 1e-9, 0.0])


def worst(positions, theta, remainder=None):
    cos, sin = cos_sin(np.array(positions, dtype=np.float64)[:, None], theta[None], remainder)
    low = np.zeros_like(theta) if remainder is None else remainder[0]
    errors = []
    with mp.workdps(60):
        for i, p in enumerate(positions):
            for j, t in enumerate(theta):
                angle = mpf(float(p)) * (mpf(float(t)) + mpf(float(low[j])))
                errors += [abs(mp.cos(angle) - mpf(float(cos[i, j]))), abs(mp.sin(angle) - mpf(float(sin[i, j])))]
    return float(max(errors))


@pytest.mark.parametrize("farthest", [1, 1000, 10**7, 10**9, 10**12, 2**53])
def test_right_to_round_off_at_any_integer_position(farthest):
    positions = [*np.floor(np.random.default_rng(7).random(23) * farthest).tolist(), farthest, -farthest]
    assert worst(positions, THETA) < 4e-16


def test_right_at_real_positions():
    assert worst([0.1, -1234567.875, 1e9 / 3, 2.5e-7], THETA) < 4e-16


def test_the_plain_product_is_not_enough():
    """What this module is for: without it the error at 1e9 is a million times larger."""
    p, t = 999_999_937.0, 0.7310585786300049
    with mp.workdps(60):
        exact = mp.cos(mpf(p) * mpf(t))
        assert abs(exact - mpf(float(np.cos(p * t)))) > 1e-9
        assert abs(exact - mpf(float(cos_sin(np.array([[p]]), np.array([[t]]))[0][0, 0]))) < 4e-16


def test_remainder_is_part_of_the_frequency():
    assert worst([3.0, 10.0**7, 2.0**40], THETA, np.full((1, 6), 3e-17)) < 4e-16


def test_several_axes_add_their_angles():
    theta = np.array([[0.5, 0.0, 0.1], [0.0, 0.125, 0.3]])
    at = np.array([[3.0, 1e9 + 7], [-2e8, 5.0]])
    cos, sin = cos_sin(at, theta)
    with mp.workdps(60):
        for i, j in np.ndindex(2, 3):
            angle = sum(mpf(float(at[i, a])) * mpf(float(theta[a, j])) for a in range(2))
            assert abs(mp.cos(angle) - mpf(float(cos[i, j]))) < 4e-16
            assert abs(mp.sin(angle) - mpf(float(sin[i, j]))) < 4e-16


def test_heads_broadcast():
    theta = np.arange(1.0, 31).reshape(5, 2, 3) / 10
    cos, _ = cos_sin(np.arange(14.0).reshape(7, 2), theta)
    assert cos.shape == (5, 7, 3)
    assert cos[4, 6, 2] == pytest.approx(np.cos(12 * theta[4, 0, 2] + 13 * theta[4, 1, 2]), abs=1e-14)


@pytest.mark.parametrize(
    ("positions", "axes", "rule"),
    [
        ([1.0, float("nan")], 1, "finite"),
        ([float("inf")], 1, "finite"),
        ([2**53 + 2], 1, "at most 2\\^53"),
        (["a"], 1, "real numbers"),
        ([True], 1, "real numbers"),
        ([1j], 1, "real numbers"),
        ([[1.0, 2.0, 3.0]], 2, "dimension of 2 axes"),
        (1.0, 2, "dimension of 2 axes"),
    ],
)
def test_positions_that_are_none(positions, axes, rule):
    with pytest.raises(ShapeError, match=rule):
        coordinates(positions, axes)
