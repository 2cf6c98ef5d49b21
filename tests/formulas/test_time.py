"""Seasons: right phases for real clocks, against exact fractions of a period."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from posenc.errors import ShapeError
from posenc.formulas import seasonal_features, sinusoidal_table, time2vec
from posenc.spec import Seasonal, Sinusoidal

YEAR = 365.2425 * 86400  # 31556952 seconds exactly


def truth(time, period, harmonic):
    """The phase as a fraction of a turn without any rounding, then 40 digits."""
    turns = Fraction(time) * harmonic / Fraction(period)
    part = turns - turns.__floor__()
    with mp.workdps(40):
        angle = 2 * mp.pi * mpf(part.numerator) / mpf(part.denominator)
        return float(mp.sin(angle)), float(mp.cos(angle))


def test_published_row():
    np.testing.assert_allclose(
        seasonal_features(Seasonal((7.0,)), [3])[0], [0.433883739118, -0.900968867902], atol=5e-13
    )


@pytest.mark.parametrize("times", [[1_700_000_000, 1_700_000_001, -5], [1.7e9 + 0.125, 86399.5, -1e9]])
def test_epoch_seconds(times):
    encoding = Seasonal((86400.0, 604800.0, YEAR), harmonics=(3, 1, 2))
    features = seasonal_features(encoding, times)
    assert features.shape == (3, 12)
    for row, t in zip(features, times, strict=True):
        expected = [
            v for p, n in ((86400, 3), (604800, 1), (31556952, 2)) for k in range(1, n + 1) for v in truth(t, p, k)
        ]
        np.testing.assert_allclose(row, expected, rtol=0, atol=2e-15)


def test_epoch_nanoseconds_as_integers():
    now = 1_700_000_000_123_456_789
    day = 86400 * 10**9
    features = seasonal_features(Seasonal((float(day),)), np.array([now, now + day, now + 1], dtype=np.int64))
    np.testing.assert_allclose(features[0], truth(now, day, 1), rtol=0, atol=2e-15)
    np.testing.assert_array_equal(features[1], features[0])
    with pytest.raises(ShapeError, match="whole periods"):
        seasonal_features(Seasonal((0.5,)), np.array([now]))
    unsigned = np.array([2**63 + 11], dtype=np.uint64)
    with pytest.raises(ShapeError, match="whole periods"):
        seasonal_features(Seasonal((7.0,)), unsigned)


@settings(max_examples=60, deadline=None)
@given(
    time=st.one_of(st.integers(-(2**50), 2**50), st.floats(-1e12, 1e12)),
    period=st.floats(1e-2, 1e9),
    harmonic=st.integers(1, 9),
)
def test_any_time_and_period(time, period, harmonic):
    features = seasonal_features(Seasonal((period,), harmonics=(harmonic,)), [time])[0, -2:]
    np.testing.assert_allclose(features, truth(time, period, harmonic), rtol=0, atol=3e-14)


def test_seasons_alone_repeat_and_the_trend_does_not():
    """24 and 168 hours repeat after 168; with a trend no two hours are alike."""
    seasons = Seasonal((24.0, 168.0))
    np.testing.assert_array_equal(seasonal_features(seasons, [5]), seasonal_features(seasons, [5 + 168]))
    trend = Seasonal((24.0, 168.0), trend=1000.0)
    assert trend.dim == 5
    first, later = seasonal_features(trend, [5, 5 + 168])
    np.testing.assert_array_equal(first[:4], later[:4])
    assert (first[4], later[4]) == (0.005, 0.173)


def test_the_same_as_a_sinusoid_of_periods():
    from posenc.spec import Periods

    seasons = Seasonal((24.0, 7.5), harmonics=(2, 3))
    table = Sinusoidal(10, schedule=Periods(periods=(24.0, 7.5), harmonics=(2, 3)))
    times = np.arange(-50, 50)
    np.testing.assert_allclose(seasonal_features(seasons, times), sinusoidal_table(table, times), rtol=0, atol=5e-14)


def test_published_time2vec():
    np.testing.assert_allclose(time2vec(2, [0.5, 1], [0.1, 0.2]), [1.1, 0.8084964038195901], rtol=1e-15)
    assert time2vec(np.zeros((2, 3)), [1, 2, 3, 4, 5], [0, 1, 2, 3, 4])[1, 2].tolist() == [
        0,
        *np.sin([1, 2, 3, 4]).tolist(),
    ]


def test_bad_times():
    for times in ([[1.0]], [math.nan], [math.inf], ["noon"], [True]):
        with pytest.raises(ShapeError, match="finite numbers"):
            seasonal_features(Seasonal((7.0,)), times)
    with pytest.raises(ShapeError, match=r"\(dim,\)"):
        time2vec(1, [1, 2], [1])
