"""Dense scores against loops over single numbers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import biases, rotary
from posenc.errors import ShapeError, SpecError
from posenc.formulas import scores
from posenc.spec import Alibi, Linear, QueryScale, Rotary, Sinusoidal, T5Bias, Unmodelled, Yarn


def heads(*shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


Q, K = heads(6, 5, 10, seed=1), heads(2, 7, 10, seed=2)


def test_without_positions():
    result = scores(Q, K)
    for h, i, j in np.ndindex(6, 5, 7):
        assert result[h, i, j] == pytest.approx(float(Q[h, i] @ K[h // 3, j]) / math.sqrt(10), abs=1e-14)


@pytest.mark.parametrize("interleaved", [False, True])
def test_everything_at_once(interleaved):
    """Rotary with a gain and a softmax factor, ALiBi, T5 and a query scale, grouped heads, queries at the end."""
    rotated = Rotary(10, rotary_dim=6, interleaved=interleaved) >> Yarn(4, original=16, softmax_mscale=1.0)
    t5 = T5Bias(6, num_buckets=8, max_distance=11, bidirectional=False)
    table = heads(8, 6, seed=3)
    chain = (rotated, QueryScale(0.5, original=2, offset=1), Alibi(6), t5)
    result = scores(Q, K, chain, tables={t5: table})
    pairs = (rotary.adjacent if interleaved else rotary.halves)(6)
    from posenc.formulas import frequencies

    f = frequencies(rotated)
    slopes = biases.press_slopes(6)
    for h, i, j in np.ndindex(6, 5, 7):
        m = i + 2
        q = np.array(rotary.turned(Q[h, i], m, f.theta[0], pairs, f.gain)) * (1 + 0.5 * math.log(1 + (m + 1) // 2))
        k = rotary.turned(K[h // 3, j], j, f.theta[0], pairs, f.gain)
        truth = float(q @ k) / math.sqrt(10) * (0.1 * math.log(4) + 1) ** 2
        truth += -slopes[h] * (m - j) + table[biases.bucket(j - m, 8, 11, False), h]
        assert result[h, i, j] == pytest.approx(truth, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(shift=st.integers(-(10**6), 10**6))
@pytest.mark.parametrize(
    "encoding", [Rotary(10), Rotary(10) >> Linear(4), Rotary(10, xpos_scale_base=512.0), Alibi(6)], ids=str
)
def test_relative_encodings_do_not_see_a_common_shift(encoding, shift):
    assert encoding.relative
    at_q, at_k = np.array([2, 3, 5, 7, 11]), np.array([0, 1, 4, 9, 16, 25, 36])
    here = scores(Q, K, encoding, query_positions=at_q, key_positions=at_k, centre=20)
    there = scores(Q, K, encoding, query_positions=at_q + shift, key_positions=at_k + shift, centre=20 + shift)
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-12)


def test_xpos_does_not_see_the_centre():
    encoding = Rotary(10, xpos_scale_base=64.0)
    here, there = (scores(Q, K, encoding, centre=c) for c in (0.0, 33.0))
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-12)
    assert np.abs(here - scores(Q, K, Rotary(10))).max() > 1e-3


def test_query_scale_is_not_relative():
    encoding = QueryScale(0.5, original=4)
    assert not encoding.relative
    at = np.arange(5)
    here, there = (scores(Q, K, encoding, query_positions=at + s) for s in (0, 100))
    assert np.abs(here - there).max() > 0.1


def test_scale_is_ones_own():
    np.testing.assert_allclose(scores(Q, K, scale=1.0), scores(Q, K) * math.sqrt(10), rtol=1e-14)


@pytest.mark.parametrize(
    ("encodings", "error", "rule"),
    [
        (Sinusoidal(10), SpecError, "enters at input.*Add its table"),
        (Unmodelled("dual chunk attention"), SpecError, "enters at unknown"),
        (Alibi(5), ShapeError, "5 heads"),
        (T5Bias(6), ShapeError, "tables holds"),
    ],
)
def test_what_has_no_scores(encodings, error, rule):
    with pytest.raises(error, match=rule):
        scores(Q, K, encodings)


def test_bad_shapes():
    with pytest.raises(ShapeError, match="q is"):
        scores(Q[0], K)
    with pytest.raises(ShapeError, match="multiple"):
        scores(Q[:5], K)
    with pytest.raises(ShapeError, match="at most 2\\^28"):
        scores(np.zeros((1, 2**15, 1)), np.zeros((1, 2**15, 1)))
