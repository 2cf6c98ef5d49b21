"""Schedules and axes: frequencies before any scaling."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import kernel
from posenc.errors import ShapeError, SpecError
from posenc.formulas import Frequencies, frequencies
from posenc.formulas.spectrum import frequency, scheduled, scheduled_remainder, unscaled
from posenc.spec import (
    Alibi,
    Arithmetic,
    Explicit,
    Geometric,
    Interleave,
    Mixed,
    Periods,
    Random,
    Rotary,
    Sinusoidal,
    Split,
)


@pytest.mark.parametrize(
    ("encoding", "published"),
    [
        (Rotary(8), [1, 0.1, 0.01, 0.001]),
        (Rotary(8, base=5e5), [1, 0.03760603093086393, 0.001414213562373095, 5.318295896944988e-05]),
        (Sinusoidal(8, shift=1.0), [1, 0.046415888336127774, 0.0021544346900318825, 1e-4]),
        (Rotary(8, keep=0.75), [1, 0.1, 0.01, 0]),  # p-RoPE
        (Rotary(8, keep=0.0), [0, 0, 0, 0]),  # NoPE
        (Rotary(16, rotary_dim=8), [1, 0.1, 0.01, 0.001]),  # partial: the exponent takes the rotated width
        (Sinusoidal(4, schedule=Arithmetic(first=1.0, last=0.5)), [1.0, 0.5]),
        (
            Sinusoidal(6, schedule=Periods(periods=(7.0, 24.0), harmonics=(2, 1))),
            [math.tau / 7, 2 * math.tau / 7, math.tau / 24],
        ),
        (Rotary(4, schedule=Explicit(theta=(0.3, 0.7))), [0.3, 0.7]),
        (Rotary(8, first=2.5), [2.5, 0.25, 0.025, 0.0025]),
    ],
    ids=str,
)
def test_published_frequencies(encoding, published):
    np.testing.assert_allclose(frequencies(encoding).theta[0], published, rtol=2e-15, atol=0)


def test_gemma_4s_proportional_is_not_partial():
    """64 angles and 192 zeros of a head of 512: exponents take the whole head (FORMULAS, Proportional)."""
    theta = frequencies(Rotary(512, base=1e6, keep=0.25)).theta[0]
    assert np.count_nonzero(theta) == 64
    assert not theta[64:].any()
    assert theta[1] == pytest.approx(0.9474635256553754, rel=1e-15)
    assert theta[63] == pytest.approx(0.0333762469429, rel=1e-12)
    partial = frequencies(Rotary(512, rotary_dim=128, base=1e6)).theta[0]
    assert partial[1] == pytest.approx(0.8058421877614819, rel=1e-15)
    assert partial[63] == pytest.approx(1.24e-06, rel=1e-2)


@settings(max_examples=40, deadline=None)
@given(
    half=st.integers(1, 64),
    base=st.floats(1.01, 1e9),
    shift=st.sampled_from([0.0, 0.5, 1.0]),
    first=st.floats(1e-3, 1e3),
)
def test_geometric_against_40_digits_positive_and_falling(half, base, shift, first):
    schedule = Geometric(base=base, shift=shift if half > 2 else 0.0, first=first)
    theta, rest = scheduled(schedule, half), scheduled_remainder(schedule, half)
    assert (theta > 0).all()
    assert (np.diff(theta) <= 0).all()
    with mp.workdps(40):
        for i in range(half):
            exact = mpf(first) * mpf(base) ** (-mpf(i) / (half - mpf(schedule.shift)))
            assert abs(exact - mpf(float(theta[i]))) <= 3e-15 * exact
            assert abs(exact - mpf(float(theta[i])) - mpf(float(rest[i]))) <= 1e-30 * exact
            assert frequency(schedule, i, half) == pytest.approx(theta[i], rel=3e-15)


def test_even_spacing_on_the_log_scale_ends_before_one_over_base():
    """Claim 8: the range ends at b^(-(d-2)/d)."""
    theta = frequencies(Rotary(64)).theta[0]
    steps = np.diff(np.log(theta))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-12)
    assert theta[-1] == pytest.approx(10000 ** (-62 / 64), rel=1e-14)


def test_random_is_reproducible_and_positive():
    one, again, other = (scheduled(Random(sigma=2.0, seed=s), 500) for s in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()
    assert (one > 0).all()
    assert np.sqrt(np.mean(one**2)) == pytest.approx(2.0, rel=0.1)


def test_mrope_sections_cut_one_schedule():
    """Qwen2-VL: sections [16, 24, 24] of one schedule over 64 pairs; text advances all three axes together."""
    f = frequencies(Rotary(128, base=1e6, axes=Split((16, 24, 24), own_schedule=False)))
    plain = frequencies(Rotary(128, base=1e6)).theta[0]
    owners = [0] * 16 + [1] * 24 + [2] * 24
    for pair, owner in enumerate(owners):
        assert f.theta[owner, pair] == plain[pair]
        assert np.count_nonzero(f.theta[:, pair]) == 1
    np.testing.assert_array_equal(f.fused, plain)


def test_axes_that_advance_together_add_up():
    np.testing.assert_allclose(Frequencies(theta=np.array([[0.1, 0.2], [0.3, -0.1]])).fused, [0.4, 0.1], rtol=1e-15)


def test_interleaved_mrope():
    """Qwen3-VL, [24, 20, 20]: 0, 1, 2, 0, 1, 2, … and the last pairs all of axis 0."""
    theta = frequencies(Rotary(128, base=5e6, axes=Interleave((24, 20, 20)))).theta
    owners = np.argmax(theta, axis=0).tolist()
    assert owners == [0, 1, 2] * 20 + [0, 0, 0, 0]
    with pytest.raises(SpecError, match="fit between"):
        unscaled(Rotary(16, axes=Interleave((2, 3, 3))))


def test_axes_with_their_own_schedule_start_anew():
    """Axial vision rotary: base 100, each half of the pairs 1, 100^(-1/n)…"""
    theta = frequencies(Rotary(8, base=100.0, axes=Split((2, 2)))).theta
    np.testing.assert_allclose(theta, [[1, 0.1, 0, 0], [0, 0, 1, 0.1]], rtol=1e-15)


def test_mixed_axes_point_at_right_angles():
    """RoPE-Mixed: magnitudes 1, 10^(-4/8)… in both halves, the second turned by a right angle (d = 8)."""
    theta = frequencies(Rotary(8, base=10.0, axes=Mixed(heads=3, seed=11))).theta
    assert theta.shape == (3, 2, 4)
    np.testing.assert_allclose(np.hypot(*theta.transpose(1, 0, 2)), [[1, 0.31622776601683794] * 2] * 3, rtol=1e-15)
    np.testing.assert_allclose((theta[..., :2] * theta[..., 2:]).sum(1), 0, atol=1e-15)
    assert not np.allclose(theta[0], theta[1])
    with pytest.raises(ShapeError, match="between heads"):
        _ = frequencies(Rotary(8, axes=Mixed(heads=3))).fused


def test_angles_of_positions():
    f = frequencies(Rotary(8, base=100.0, axes=Split((2, 2))))
    np.testing.assert_allclose(f.angles([[3, 5], [7, 11]]), [[3, 0.3, 5, 0.5], [7, 0.7, 11, 1.1]], rtol=1e-15)
    assert frequencies(Rotary(8)).angles(np.zeros((2, 3))).shape == (2, 3, 4)
    assert frequencies(Rotary(8, axes=Mixed(heads=5))).angles(np.zeros((7, 2))).shape == (5, 7, 4)


def test_wavelengths():
    wavelengths = frequencies(Rotary(8, keep=0.75)).wavelengths
    np.testing.assert_allclose(wavelengths[:3], [6.283185307, 62.83185307, 628.3185307], rtol=1e-9)
    assert wavelengths[3] == math.inf


def test_frequencies_are_checked_and_cannot_be_changed():
    with pytest.raises(ShapeError, match="finite"):
        Frequencies(theta=np.array([1.0, math.nan]))
    with pytest.raises(ShapeError, match="theta is"):
        Frequencies(theta=np.zeros((1, 2, 3, 4)))
    with pytest.raises(ShapeError, match="theta is"):
        Frequencies(theta=np.zeros(0))
    mine = np.array([1.0, 0.5])
    f = Frequencies(theta=mine)
    mine[0] = 9.0
    assert f.theta[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        f.theta[0, 0] = 9.0


def test_who_has_frequencies():
    with pytest.raises(SpecError, match="belong to rotary and sinusoidal"):
        inspect.unwrap(frequencies)(Alibi(3))  # past the test run's own type checker
    with pytest.raises(SpecError, match="at least 1"):
        frequencies(Rotary(8), 0)


def test_the_oracle_is_the_papers_frequencies():
    """The kernel's oracle and the package agree on the frequencies that both take."""
    with mp.workdps(40):
        np.testing.assert_allclose(
            [float(t) for t in kernel.geometric(12, 777)], frequencies(Rotary(12, base=777.0)).theta[0], rtol=3e-15
        )
