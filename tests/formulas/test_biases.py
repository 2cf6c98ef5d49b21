"""Biases: published slopes and buckets, integer loops, transformers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import biases as oracle
from posenc.errors import ShapeError
from posenc.formulas import (
    alibi_at,
    alibi_bias,
    alibi_slopes,
    query_scale,
    relative_positions,
    t5_bias,
    t5_buckets,
)
from posenc.spec import Alibi, QueryScale, T5Bias


@pytest.mark.parametrize(
    ("heads", "published"),
    [
        (3, [0.0625, 0.00390625, 0.25]),
        (6, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]),
        (8, [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]),
        (12, [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625,
              0.7071067812, 0.3535533906, 0.1767766953, 0.0883883476]),
        (1, [0.00390625]),
    ],
)  # fmt: skip
def test_published_slopes(heads, published):
    np.testing.assert_allclose(alibi_slopes(heads), published, rtol=0, atol=5e-11)


@pytest.mark.parametrize("heads", [2, 5, 16, 20, 31, 71, 112])
def test_the_authors_recursion(heads):
    np.testing.assert_allclose(alibi_slopes(heads), oracle.press_slopes(heads), rtol=1e-14)


def test_max_bias_is_the_exponents_range():
    np.testing.assert_allclose(alibi_slopes(4, max_bias=16), np.square(alibi_slopes(4)), rtol=1e-15)
    assert alibi_slopes(4, max_bias=3.0)[-1] == 0.125


def test_published_alibi_row():
    assert alibi_bias(Alibi(3), 3, 3)[0, 2].tolist() == [-0.125, -0.0625, 0.0]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(("n_q", "n_k", "offset"), [(3, 5, 0), (3, 5, 2), (1, 7, 6), (5, 3, -4)])
def test_alibi_loop(symmetric, n_q, n_k, offset):
    slopes = oracle.press_slopes(6)
    bias = alibi_bias(Alibi(6, symmetric=symmetric), n_q, n_k, offset)
    assert bias.shape == (6, n_q, n_k)
    for h, slope in enumerate(slopes):
        truth = oracle.shares(n_q, n_k, offset, lambda i, j, m=slope: -m * (abs(i - j) if symmetric else i - j))
        np.testing.assert_allclose(bias[h], truth, rtol=1e-14)


def test_alibi_of_real_positions():
    np.testing.assert_allclose(alibi_at(Alibi(3), [-2.5, 0.0])[2], [-0.625, 0.0], rtol=1e-15)


RELATIVE = [-200, -128, -127, -64, -32, -16, -15, -8, -7, -1, 0, 1, 7, 8, 15, 16, 32, 64, 127, 128, 200]
BOTH = [15, 15, 15, 14, 12, 10, 9, 8, 7, 1, 0, 17, 23, 24, 25, 26, 28, 30, 31, 31, 31]
CAUSAL = [31, 31, 31, 26, 21, 16, 15, 8, 7, 1, *[0] * 11]


def test_published_buckets():
    assert t5_buckets(RELATIVE).tolist() == BOTH
    assert t5_buckets(RELATIVE, bidirectional=False).tolist() == CAUSAL
    everything = t5_buckets(np.arange(-5000, 5001))
    assert set(range(32)) - set(everything.tolist()) == {16}, "the bucket of distance 0 ahead is never used"


@pytest.mark.parametrize("both", [True, False])
def test_buckets_of_transformers(both):
    """float32 logarithms there, exact here: equal within 300 of each other."""
    import torch
    from transformers.models.t5.modeling_t5 import T5Attention

    relative = torch.arange(-300, 301)
    theirs = T5Attention._relative_position_bucket(relative, bidirectional=both, num_buckets=32, max_distance=128)
    assert t5_buckets(relative.numpy(), bidirectional=both).tolist() == theirs.tolist()


@settings(max_examples=60, deadline=None)
@given(
    quarter=st.integers(1, 24),
    farther=st.integers(1, 3000),
    both=st.booleans(),
    relative=st.lists(st.integers(-4000, 4000), min_size=1, max_size=20),
)
def test_buckets_by_whole_numbers(quarter, farther, both, relative):
    buckets = 4 * quarter
    farthest = (quarter if both else 2 * quarter) + farther
    truth = [oracle.bucket(r, buckets, farthest, both) for r in relative]
    assert t5_buckets(relative, buckets, farthest, bidirectional=both).tolist() == truth


@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (32, 8192), (64, 256), (128, 10**6), (40, 1250)])
def test_buckets_at_their_edges(buckets, farthest):
    """Every distance at which a bucket starts, and the one before: where a rounded logarithm goes wrong."""
    exact = buckets // 4
    edges = {int(exact * (farthest / exact) ** (k / exact)) + e for k in range(exact + 1) for e in (-1, 0, 1, 2)}
    relative = [-e for e in sorted(edges)]
    assert t5_buckets(relative, buckets, farthest).tolist() == [oracle.bucket(r, buckets, farthest) for r in relative]


def test_float32_would_be_wrong():
    """10 steps to 10 * 2^5 in exact powers: each edge is a whole number that a rounded logarithm may miss."""
    edges = [5 * 2**k for k in range(6)]
    buckets = t5_buckets([-e for e in edges], 20, 5 * 2**5)
    assert buckets.tolist() == [5, 6, 7, 8, 9, 9]


def test_many_buckets_are_bounded_work():
    assert t5_buckets([-(2**20)], 2**20, 2**40).tolist() == [2**18 + (2**18 * 2 // 22)]
    assert int(t5_buckets([-(2**30)], 2**15, 2**40, bidirectional=False)[0]) == 2**14 + 2**14 * 16 // 26


def test_buckets_never_fall_with_distance():
    steps = np.diff(t5_buckets(-np.arange(4000), 32, 1000))
    assert steps.min() == 0
    assert steps.max() == 1


@pytest.mark.parametrize("both", [True, False])
def test_bias_from_a_table(both):
    encoding = T5Bias(5, num_buckets=12, max_distance=37, bidirectional=both)
    table = np.random.default_rng(0).standard_normal((12, 5))
    bias = t5_bias(encoding, table, 7, 11, offset=3)
    assert bias.shape == (5, 7, 11)
    for h in range(5):
        truth = oracle.shares(7, 11, 3, lambda i, j, h=h: table[oracle.bucket(j - i, 12, 37, both), h])
        np.testing.assert_array_equal(bias[h], truth)
    with pytest.raises(ShapeError, match=r"table is \(12, 5\)"):
        t5_bias(encoding, table.T, 7, 11)


def test_query_scale_loop():
    """Llama 4: beta 0.1 over 8192, counted from position + 1; Ministral 3 counts from the position."""
    import math

    positions = [0, 8190, 8191, 8192, 16383, 10**6]
    for offset in (0, 1):
        truth = [1 + 0.1 * math.log(1 + (p + offset) // 8192) for p in positions]
        np.testing.assert_allclose(
            query_scale(QueryScale(0.1, original=8192, offset=offset), positions), truth, rtol=1e-15
        )


def test_bad_biases():
    with pytest.raises(ShapeError, match="at least one head"):
        alibi_slopes(0)
    with pytest.raises(ShapeError, match="at most 2\\^28"):
        alibi_bias(Alibi(64), 2**16, 2**16)
    with pytest.raises(ShapeError, match="no fewer than 0"):
        relative_positions(-1, 3)
    with pytest.raises(ShapeError, match="integers"):
        t5_buckets([0.5])
    with pytest.raises(ShapeError, match="max_distance exceeds"):
        t5_buckets([1], 32, 8)
