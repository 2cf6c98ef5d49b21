"""Rotations: published numbers, complex loops, and what makes a rotary encoding relative."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import rotary
from posenc.errors import ShapeError, SpecError
from posenc.formulas import (
    Frequencies,
    adjacent_from_half,
    frequencies,
    half_from_adjacent,
    pairs_of,
    projection_rows,
    rotate,
    shift_matrix,
    sinusoidal_table,
    xpos_centre,
)
from posenc.formulas.rotation import check_rotary
from posenc.spec import Dynamic, Explicit, Mixed, Rotary, Sinusoidal, Split, Yarn

HALF = [-1.6955925368997815, 0.13755173828317435, 2.7886815998294927, 3.975982036013484,
        -4.8088424749423595, 6.323059348076315, 7.086836736850399, 8.011963982027009]  # fmt: skip
INTERLEAVED = [-1.27223251272018, -1.8388649851410237, 1.6839286407314598, 4.707906576486443,
               4.817777167529964, 6.147277703506403, 6.975968536023609, 8.020963968527013]  # fmt: skip
LAYOUTS = [
    Rotary(14),
    Rotary(14, interleaved=True),
    Rotary(14, rotary_dim=6),
    Rotary(14, rotary_dim=6, where="last"),
    Rotary(14, rotary_dim=10, interleaved=True),
    Rotary(14, rotary_dim=10, where="last", interleaved=True),
]


def heads(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize(("interleaved", "published"), [(False, HALF), (True, INTERLEAVED)])
def test_published_rotation(interleaved, published):
    x = np.arange(1.0, 9)[None]
    np.testing.assert_allclose(rotate(x, [3], Rotary(8, interleaved=interleaved))[0], published, rtol=0, atol=2e-15)


@pytest.mark.parametrize("encoding", LAYOUTS, ids=str)
def test_the_complex_loop(encoding):
    x, positions = heads(3, 5, 14), [0, 1, 7, 1000, -3]
    width = encoding.rotary_dim
    first = 14 - width if encoding.where == "last" else 0
    pairs = (rotary.adjacent if encoding.interleaved else rotary.halves)(width, first)
    thetas = [10000 ** (-2 * i / width) for i in range(width // 2)]
    result = rotate(x, positions, encoding)
    for h, t in np.ndindex(3, 5):
        np.testing.assert_allclose(
            result[h, t], rotary.turned(x[h, t], positions[t], thetas, pairs), rtol=0, atol=1e-12
        )
    assert pairs_of(encoding).tolist() == [list(p) for p in pairs]


def test_channels_outside_pass_exactly():
    x = heads(5, 14)
    last = rotate(x, range(5), Rotary(14, rotary_dim=6, where="last"))
    np.testing.assert_array_equal(last[:, :8], x[:, :8])
    assert (last[1:, 8:] != x[1:, 8:]).all()
    np.testing.assert_array_equal(rotate(x, range(5), Rotary(14, rotary_dim=6))[:, 6:], x[:, 6:])


@settings(max_examples=40, deadline=None)
@given(
    encoding=st.sampled_from(LAYOUTS),
    m=st.integers(-(10**6), 10**6),
    n=st.integers(-(10**6), 10**6),
    shift=st.integers(-(10**6), 10**6),
)
def test_scores_see_only_the_difference(encoding, m, n, shift):
    """R(m)^T R(n) = R(n - m), so a common shift changes nothing."""
    q, k = heads(1, 14, seed=1), heads(1, 14, seed=2)
    here = rotate(q, [m], encoding) @ rotate(k, [n], encoding).T
    there = rotate(q, [m + shift], encoding) @ rotate(k, [n + shift], encoding).T
    only = q @ rotate(k, [n - m], encoding).T
    assert here[0, 0] == pytest.approx(there[0, 0], abs=1e-13)
    assert here[0, 0] == pytest.approx(only[0, 0], abs=1e-13)


@settings(max_examples=30, deadline=None)
@given(encoding=st.sampled_from(LAYOUTS), m=st.integers(-(10**6), 10**6), n=st.integers(-(10**6), 10**6))
def test_rotations_compose_keep_norms_and_invert(encoding, m, n):
    x = heads(1, 14)
    once = rotate(x, [m + n], encoding)
    np.testing.assert_allclose(rotate(rotate(x, [m], encoding), [n], encoding), once, rtol=0, atol=1e-14)
    assert np.linalg.norm(once) == pytest.approx(np.linalg.norm(x), rel=1e-14)
    np.testing.assert_allclose(rotate(once, [m + n], encoding, inverse=True), x, rtol=0, atol=1e-14)


def test_one_pass_is_token_by_token_and_rows_broadcast():
    encoding = Rotary(6, base=77.0)
    x = heads(2, 3, 5, 6)
    whole = rotate(x, range(5), encoding)
    np.testing.assert_array_equal(
        np.concatenate([rotate(x[:, :, t : t + 1], [t], encoding) for t in range(5)], 2), whole
    )
    by_row = np.stack([np.arange(5), np.arange(5) + 17])[:, None]  # (batch, 1, tokens)
    result = rotate(x, by_row, encoding)
    np.testing.assert_array_equal(result[0], whole[0])
    np.testing.assert_array_equal(result[1], rotate(x[1], np.arange(5) + 17, encoding))


def test_gain_and_declared_length():
    encoding = Rotary(8) >> Yarn(4, original=32)
    x = heads(3, 8)
    assert np.linalg.norm(rotate(x, range(3), encoding)) / np.linalg.norm(x) == pytest.approx(1.1386294361119891)
    np.testing.assert_allclose(rotate(rotate(x, range(3), encoding), range(3), encoding, inverse=True), x, atol=1e-15)
    longer = Rotary(8) >> Dynamic(2, original=32)
    np.testing.assert_array_equal(rotate(x, range(3), longer, length=32), rotate(x, range(3), Rotary(8)))
    assert not np.allclose(rotate(x, range(3), longer, length=64), rotate(x, range(3), Rotary(8)))


def test_frequencies_of_ones_own():
    x = heads(5, 6)
    mine = Frequencies(theta=np.array([0.5, 0.25, 0.125]), gain=2.0)
    expected = rotate(x, range(5), Rotary(6, schedule=Explicit(theta=(0.5, 0.25, 0.125)))) * 2
    np.testing.assert_array_equal(rotate(x, range(5), Rotary(6), frequencies=mine), expected)
    with pytest.raises(ShapeError, match="3 pairs"):
        rotate(x, range(5), Rotary(6), frequencies=Frequencies(theta=np.ones(2)))


def test_axes_turn_their_own_pairs():
    encoding = Rotary(10, base=100.0, axes=Split((2, 3)))
    x, at = heads(2, 7, 10), heads(7, 2, seed=9) * 20
    thetas = [(1.0, 0.1), (1.0, 100 ** (-1 / 3), 100 ** (-2 / 3))]
    result = rotate(x, at, encoding)
    for h, t in np.ndindex(2, 7):
        angles = [at[t, 0] * w for w in thetas[0]] + [at[t, 1] * w for w in thetas[1]]
        truth = rotary.turned(x[h, t], 1.0, angles, rotary.halves(10))
        np.testing.assert_allclose(result[h, t], truth, rtol=0, atol=1e-13)


def test_mixed_axes_differ_between_heads():
    encoding = Rotary(12, base=10.0, axes=Mixed(heads=5, seed=3))
    x, at = heads(2, 5, 7, 12), heads(7, 2, seed=4) * 9
    theta = frequencies(encoding).theta
    result = rotate(x, at, encoding)
    for b, h, t in np.ndindex(2, 5, 7):
        angles = [at[t, 0] * theta[h, 0, i] + at[t, 1] * theta[h, 1, i] for i in range(6)]
        truth = rotary.turned(x[b, h, t], 1.0, angles, rotary.halves(12))
        np.testing.assert_allclose(result[b, h, t], truth, rtol=0, atol=1e-13)
    by_row = np.broadcast_to(at, (2, 1, 7, 2))
    np.testing.assert_array_equal(rotate(x, by_row, encoding), result)


XPOS = Rotary(8, interleaved=True, xpos_scale_base=512.0)


def test_xpos_published_decay():
    """FORMULAS: zeta .285714 .464286 .642857 .821429; over D = 64 a pair decays by .85505 .908549 .946268 .975711."""
    growth = frequencies(XPOS).growth
    np.testing.assert_allclose(np.exp(growth * 512), [0.285714, 0.464286, 0.642857, 0.821429], atol=5e-7)
    for pair, decay in enumerate([0.85505, 0.908549, 0.946268, 0.975711]):
        one = np.zeros((1, 8))
        one[0, 2 * pair] = 1.0
        turned = rotate(rotate(one, [64], XPOS, role="query"), [-64], Rotary(8, interleaved=True))
        assert turned[0, 2 * pair] == pytest.approx(decay, abs=6e-6)


def test_xpos_scores_are_relative_and_do_not_see_the_centre():
    q, k = heads(1, 8, seed=1), heads(1, 8, seed=2)

    def score(m, n, centre=0.0):
        return float(
            (rotate(q, [m], XPOS, role="query", centre=centre) @ rotate(k, [n], XPOS, role="key", centre=centre).T)[
                0, 0
            ]
        )

    assert score(130, 7) == pytest.approx(score(1130, 1007), abs=1e-12)
    assert score(130, 7) == pytest.approx(score(130, 7, centre=xpos_centre(131)), abs=1e-12)
    assert score(130, 7) != pytest.approx(score(7, 130), abs=1e-2)
    assert [xpos_centre(n) for n in (4, 5)] == [2, 3]  # -(4 // 2) and the floor of -5 / 2
    with pytest.raises(SpecError, match="role"):
        rotate(q, [3], XPOS)
    at_centre = rotate(q, [5], XPOS, role="query", centre=5)
    np.testing.assert_allclose(at_centre, rotate(q, [5], Rotary(8, interleaved=True)), rtol=0, atol=1e-15)
    forth = rotate(q, [3], XPOS, role="query", centre=5)
    np.testing.assert_allclose(rotate(forth, [3], XPOS, role="query", centre=5, inverse=True), q, atol=1e-15)


@pytest.mark.parametrize(("head_dim", "rotary_dim", "where"), [(14, 14, "first"), (14, 6, "first"), (14, 10, "last")])
def test_layouts_into_each_other(head_dim, rotary_dim, where):
    x = heads(5, head_dim)
    fields = {"rotary_dim": rotary_dim, "where": where}
    half, adjacent = Rotary(head_dim, **fields), Rotary(head_dim, interleaved=True, **fields)
    to_half = half_from_adjacent(head_dim, rotary_dim, where)
    np.testing.assert_array_equal(rotate(x[:, to_half], range(5), half), rotate(x, range(5), adjacent)[:, to_half])
    to_adjacent = adjacent_from_half(head_dim, rotary_dim, where)
    np.testing.assert_array_equal(
        rotate(x[:, to_adjacent], range(5), adjacent), rotate(x, range(5), half)[:, to_adjacent]
    )
    np.testing.assert_array_equal(to_half[to_adjacent], np.arange(head_dim))


def test_projection_rows_keep_scores_with_grouped_queries():
    """Weights stored for adjacent pairs, permuted, give the same scores with half pairs; key heads are fewer."""
    w_q, w_k, x = heads(6 * 10, 7, seed=1), heads(2 * 10, 7, seed=2), heads(5, 7, seed=3)
    order = half_from_adjacent(10)

    def scores(w_q, w_k, encoding):
        q, k = ((x @ w.T).reshape(5, -1, 10).transpose(1, 0, 2) for w in (w_q, w_k))
        q, k = rotate(q, range(5), encoding), rotate(k, range(5), encoding)
        return q @ np.repeat(k, 3, axis=0).transpose(0, 2, 1)

    stored = scores(w_q, w_k, Rotary(10, interleaved=True))
    moved = scores(w_q[projection_rows(6, order)], w_k[projection_rows(2, order)], Rotary(10))
    np.testing.assert_allclose(moved, stored, rtol=0, atol=1e-12)
    assert not np.allclose(scores(w_q, w_k, Rotary(10)), stored)


@pytest.mark.parametrize(
    "encoding",
    [
        Sinusoidal(16),
        Sinusoidal(10, order="sin|cos", shift=1.0),
        Sinusoidal(10, order="interleaved_cos_first", base=50.0),
        Sinusoidal(11, order="cos|sin", odd="zero"),
    ],
    ids=str,
)
def test_a_shift_is_a_matrix(encoding):
    """PE(m + k) = M_k PE(m), for every m; FORMULAS: error 5.9e-15 at d = 16, k = 7, positions below 200."""
    m = np.arange(200)
    for k in (7, -3, 0.5, 100_003):
        moved = sinusoidal_table(encoding, m) @ shift_matrix(encoding, k).T
        np.testing.assert_allclose(moved, sinusoidal_table(encoding, m + k), rtol=0, atol=1e-14)


def test_the_shifts_blocks():
    np.testing.assert_allclose(
        shift_matrix(Sinusoidal(2), 3), [[np.cos(3), np.sin(3)], [-np.sin(3), np.cos(3)]], rtol=0, atol=1e-16
    )
    encoding = Sinusoidal(12, axes=Split((4, 2)), order="sin|cos")
    at = np.array([[3, 5], [0, 2]])
    moved = sinusoidal_table(encoding, at) @ shift_matrix(encoding, (2, -7)).T
    np.testing.assert_allclose(moved, sinusoidal_table(encoding, at + np.array([2, -7])), rtol=0, atol=1e-14)


def test_shifts_that_do_not_exist():
    with pytest.raises(SpecError, match="lone sine"):
        shift_matrix(Sinusoidal(7), 1)
    with pytest.raises(SpecError, match="row of zeros"):
        shift_matrix(Sinusoidal(8, padding_row=1), 1)


@pytest.mark.parametrize(
    ("x", "positions", "rule"),
    [
        (np.zeros((3, 7)), [0, 1, 2], "head_dim 8"),
        (np.zeros(8), [0], "head_dim 8"),
        (np.zeros((3, 8)), [0, 1], "broadcast"),
        (np.zeros((3, 8)), 1, r"\(tokens,\)"),
        (np.zeros((3, 8), dtype=complex), [0, 1, 2], "real numbers"),
        (np.zeros((3, 8)), [0, 1, float("nan")], "finite"),
    ],
)
def test_bad_rotations(x, positions, rule):
    with pytest.raises(ShapeError, match=rule):
        rotate(x, positions, Rotary(8))


def test_only_rotaries_rotate():
    with pytest.raises(SpecError, match="only a rotary encoding turns pairs; got sinusoidal"):
        check_rotary(Sinusoidal(8))
    with pytest.raises(ShapeError, match="even and at most"):
        half_from_adjacent(8, 5)
    with pytest.raises(ShapeError, match="at least one head"):
        projection_rows(0, half_from_adjacent(4))
