"""Similarity over ranges against 60 digits, and its continuous limit against the integral."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import kernel
from posenc.errors import ShapeError, SpecError
from posenc.formulas import (
    continuous_limit,
    first_below,
    frequencies,
    minimum,
    similarity,
    similarity_at,
    similarity_blocks,
)
from posenc.formulas.similarities import turns
from posenc.spec import Mixed, Rotary, Split

LLAMA2 = frequencies(Rotary(128))


def error_at(values, start, picked, thetas, weights=None):
    with mp.workdps(60):
        truth = [kernel.kappa(start + int(i), [float(t) for t in thetas], weights) for i in picked]
        return float(max(abs(t - mpf(float(values[i]))) for t, i in zip(truth, picked, strict=True)))


@pytest.mark.parametrize("start", [0, 2**20 - 2**15, 10**9, 2**52 - 2**15, -(10**7)])
def test_right_at_fifty_distances_of_a_range(start):
    """Goal 1e-11 to 2^20 and 1e-10 at 1e9, for the float64 frequencies handed over; what comes out is 1e-15."""
    values = similarity(LLAMA2, start, start + 2**15)
    picked = [0, 2**15 - 1, *np.random.default_rng(1).integers(0, 2**15, 50)]
    assert error_at(values, start, picked, LLAMA2.fused) < 1e-15


def test_right_for_the_papers_own_frequencies():
    """With frequencies that are not rounded to float64 the goal of 1e-11 at distances up to 2^20 still holds."""
    start = 2**20 - 2**13
    values = similarity(LLAMA2, start, 2**20)
    with mp.workdps(40):
        exact = kernel.geometric(128, 10000)
        for i in np.random.default_rng(2).integers(0, 2**13, 50):
            assert abs(kernel.kappa(start + int(i), exact) - mpf(float(values[i]))) < 1e-11


@settings(max_examples=40, deadline=None)
@given(
    thetas=st.lists(st.floats(0, 4), min_size=1, max_size=7),
    start=st.integers(-5000, 5000),
    count=st.integers(1, 3000),
)
def test_every_distance_of_a_short_range(thetas, start, count):
    """Ragged rows, one pair, frequencies of 0: each value equals the plain sum of cosines."""
    truth = np.cos(np.arange(start, start + count)[:, None] * np.array(thetas)).mean(1)
    np.testing.assert_allclose(similarity(np.array(thetas), start, start + count), truth, rtol=0, atol=1e-11)


def test_weights_for_each_pair():
    thetas, weights = [1.0, 0.37, 0.011], [0.5, 0.3, 2.0]
    values = similarity(np.array(thetas), 0, 999, weights=weights)
    assert values[0] == pytest.approx(2.8, rel=1e-15)
    assert error_at(values, 0, [0, 1, 500, 998], thetas, weights) < 1e-14


def test_even_one_at_zero_and_bounded():
    values = similarity(LLAMA2, -1000, 1001)
    np.testing.assert_allclose(values, values[::-1], rtol=0, atol=1e-15)
    assert values[1000] == pytest.approx(1.0, abs=1e-15)
    assert (np.abs(values) <= 1 + 1e-15).all()


def test_long_run_mean_and_rms():
    """A6: mean 0, RMS 1 / sqrt(d) over a long run far out (slow pairs have turned many times)."""
    values = similarity(frequencies(Rotary(64, base=100.0)), 10**6, 10**6 + 2**18)
    assert abs(values.mean()) < 2e-3
    assert float(np.sqrt(np.mean(values**2))) == pytest.approx(1 / 8, rel=0.02)


def test_blocks_are_the_range_in_pieces():
    pieces = list(similarity_blocks(LLAMA2, -77, 5000, size=999))
    assert [first for first, _ in pieces] == list(range(-77, 5000, 999))
    np.testing.assert_allclose(
        np.concatenate([b for _, b in pieces]), similarity(LLAMA2, -77, 5000), rtol=0, atol=1e-15
    )


def test_blocks_take_bounded_memory():
    tracemalloc.start()
    for _ in similarity_blocks(frequencies(Rotary(8)), 0, 2**22, size=2**15):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20  # the range itself would take 32 MiB


def test_scattered_distances():
    distances = np.array([[0.0, 0.5], [1e9 + 0.25, -3.0]])
    values = similarity_at(LLAMA2, distances)
    with mp.workdps(60):
        for i, d in np.ndenumerate(distances):
            assert abs(kernel.kappa(float(d), LLAMA2.fused.tolist()) - mpf(float(values[i]))) < 1e-15


@pytest.mark.parametrize(
    ("dim", "base", "published"),
    [(64, 1e4, 725), (96, 1e4, 1046), (128, 1e4, 1707), (256, 1e4, 2653), (64, 5e5, 9937), (128, 5e5, 18438),
     (128, 500.0, 171),     (128, 1e6, 27115)],
)  # fmt: skip
def test_first_negative_distance_of_common_bases(dim, base, published):
    f = frequencies(Rotary(dim, base=base))
    assert first_below(f, stop=40_000) == published
    assert first_below(f, stop=published) is None
    assert first_below(f, start=published, stop=published + 1) == published


@pytest.mark.parametrize("where", [16384, 16385, 16386])
def test_no_distance_falls_between_blocks(where):
    """The first block that is looked at ends before 16385; a single slow clock is lowest at half a turn."""
    assert first_below(np.array([math.pi / where]), -1 + 1e-9, stop=50_000) == where


def test_minimum():
    values = similarity(LLAMA2, 1, 300_000)
    where, least = minimum(LLAMA2, 1, 300_000)
    assert where == 1 + int(values.argmin())
    assert least == pytest.approx(values.min(), abs=1e-15)
    assert minimum(np.array([math.pi]), 0, 6)[0] in (1, 3, 5)
    assert minimum(np.array([0.0]), 5, 9) == (5, 1.0)


def test_the_first_rise():
    """Claim 6: kappa first rises at D 3 to 4, 5 to 6, 11 to 12, 43 to 44 for d = 8, 64, 128, 512."""
    for dim, last in ((8, 3), (64, 5), (128, 11), (512, 43)):
        steps = np.diff(similarity(frequencies(Rotary(dim)), 0, 100))
        assert int(np.argmax(steps > 0)) == last


def test_axes_of_text_advance_together():
    split = frequencies(Rotary(16, axes=Split((3, 5), own_schedule=False)))
    np.testing.assert_array_equal(similarity(split, 0, 99), similarity(frequencies(Rotary(16)), 0, 99))
    with pytest.raises(ShapeError, match="between heads"):
        similarity(frequencies(Rotary(8, axes=Mixed(heads=3))), 0, 9)


def test_angle_addition():
    cos, sin = turns(10**12 + 7, 3, 1000, np.array([1.0, 0.01]))
    with mp.workdps(60):
        for j in (0, 1, 31, 32, 999):
            angle = mpf(10**12 + 7 + 3 * j)
            assert abs(mp.cos(angle) - mpf(float(cos[j, 0]))) < 1e-15
            assert abs(mp.sin(angle * mpf(0.01)) - mpf(float(sin[j, 1]))) < 1e-15


PUBLISHED_LIMIT = {
    1e2: [0.986570243735424, 0.947930970535179, 0.365331113879749, -0.0743843841180606, 0.0100501711438088],
    1e4: [0.99328444335115, 0.973962771209821, 0.682394263104481, 0.436773293208559, 0.187690642511779],
    5e5: [0.995286476881561, 0.981724957989465, 0.777078479945381, 0.604679849442002, 0.429664961019152],
}


@pytest.mark.parametrize("base", PUBLISHED_LIMIT)
def test_published_limit(base):
    distances = [0.5, 1, 10, 100, 1000]
    np.testing.assert_allclose(continuous_limit(distances, base), PUBLISHED_LIMIT[base], rtol=0, atol=2e-15)
    assert continuous_limit(0, base) == 1.0
    np.testing.assert_array_equal(continuous_limit([-10.0], base), continuous_limit([10.0], base))


@pytest.mark.parametrize("distance", [1e-5, 9.9e-4, 1.01e-3, 0.3, 41.5])
def test_limit_is_the_integral(distance):
    with mp.workdps(30):
        truth = float(kernel.integral(mpf(distance), 5000))
    assert float(continuous_limit(distance, 5000.0)) == pytest.approx(truth, abs=3e-15)


def test_finite_sums_approach_the_limit():
    distances = np.arange(1, 200)
    gaps = [
        np.abs(similarity_at(frequencies(Rotary(d)), distances) - continuous_limit(distances, 1e4)).max()
        for d in (64, 1024, 2**14)
    ]
    assert gaps[0] > 10 * gaps[1] > 100 * gaps[2]


def test_bad_ranges():
    for start, stop, rule in (
        (0, 0, "not empty"),
        (5, 3, "not empty"),
        (0, 2**29, "at most 2\\^28"),
        (2**53, 2**53 + 1, "2\\^52"),
    ):
        with pytest.raises(ShapeError, match=rule):
            similarity(LLAMA2, start, stop)
    with pytest.raises(ShapeError, match="integers"):
        similarity(LLAMA2, True, 3)
    with pytest.raises(ShapeError, match="one for each of the 64 pairs"):
        similarity(LLAMA2, 0, 3, weights=[1.0])
    with pytest.raises(ShapeError, match="finite"):
        similarity(np.array([math.inf]), 0, 3)
    with pytest.raises(ShapeError, match="1 to 2\\^28"):
        similarity_blocks(LLAMA2, 0, 3, size=0)
    with pytest.raises(ShapeError, match="distances are finite"):
        similarity_at(LLAMA2, [math.nan])
    with pytest.raises(SpecError, match="above 1"):
        continuous_limit([1.0], 1.0)
