"""Sums of cosines in C against 50 digits and against direct cosines, with all instructions this processor has."""

import ctypes
import math
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf

from native.test_rotation_kernels import levels
from oracles.base_bound import exact, lowest_of_many
from posenc.analysis.base_search import sums as plain
from posenc.analysis.base_search.excluding import Exclusion
from posenc.analysis.base_search.holding import Walk
from posenc.analysis.base_search.scanning import nearby, scan
from posenc.analysis.base_search.sums import UNIT, cosines_error, excluded, exponents, sums
from posenc.errors import ShapeError
from posenc.native import find, state, witnesses
from posenc.native.loading import LEVELS, Lows

PLAIN = None


@pytest.fixture(params=levels(), ids=str)
def level(request, monkeypatch):
    """Run with these instructions and put the best back; None is the path without the library."""
    handle = find().handle
    if request.param is PLAIN:
        monkeypatch.setattr(witnesses, "find", lambda: state(Path("none.so"), "0"))
        yield PLAIN
        return
    best = handle.posenc_level()
    assert handle.posenc_use_level(LEVELS.index(request.param)) == 0
    yield request.param
    handle.posenc_use_level(best)


@pytest.fixture
def compiled(level):
    if level is PLAIN:
        pytest.skip("for the library itself")
    return level


def angles(count, seed):
    """Radians of every size up to 2^24, and multiples of a quarter turn, where cosines or sines vanish."""
    rng = np.random.default_rng(seed)
    turns = rng.integers(0, 2**24 * 5 // 8, count) * (np.pi / 2)
    return np.concatenate([10.0 ** rng.uniform(-9, 7.2, count), turns, np.arange(16) * np.pi / 4])


# One distance


def test_a_cosine_and_a_sine_are_right_to_their_bound(compiled):
    """A distance of 2^24 makes the product with the frequency exact, so that the angle is the one that is meant."""
    worst = 0.0
    for x in angles(300, 1):
        value, slope = witnesses.cosine_sums(np.array([2.0**24]), np.array([x / 2**24]), np.array([1.0]))
        with mp.workdps(50):
            worst = max(worst, float(abs(mp.cos(mpf(x)) - value[0])))
            assert abs(x * mp.sin(mpf(x)) - slope[0]) <= x * 2.0**-51 * (1 + 1e-9)
    assert 2.0**-56 < worst <= 2.0**-51


@pytest.mark.parametrize("pairs", [1, 3, 5, 8, 13, 64, 101])
def test_sums_of_random_distances(compiled, pairs):
    u, rng = exponents(2 * pairs), np.random.default_rng(pairs)
    t = float(rng.uniform(0, 20))
    distances = rng.integers(0, 2**24, 7).astype(float)
    found = witnesses.cosine_sums(distances, np.exp(-t * u), u)
    bounds = plain.bounds(distances, t, u)
    for n, distance in enumerate(distances):
        with mp.workdps(50):
            assert abs(exact(int(distance), 2 * pairs, t) - found[0][n]) <= bounds[1][n]
            slope = mp.diff(lambda x, d=int(distance): exact(d, 2 * pairs, x), t)
            assert abs(slope - found[1][n]) <= bounds[2][n]
    x = distances[:, None] * np.exp(-t * u)
    np.testing.assert_allclose(found[0], np.cos(x).mean(1), rtol=0, atol=cosines_error(pairs))


# How far distances exclude bases


@pytest.mark.parametrize("head_dim", [6, 10, 64, 128, 202])
def test_a_reach_is_that_of_the_plain_path(compiled, head_dim):
    u, rng = exponents(head_dim), np.random.default_rng(head_dim)
    met = 0
    for t in (0.0, 0.3, *rng.uniform(1, 20, 8)):
        distances = rng.integers(1, 2**20, 53).astype(float)
        end, reach = witnesses.exclude(distances, t, 60.0, u, cosines_error(len(u)), math.inf)
        x = distances[:, None] * np.exp(-t * u)
        value = np.cos(x).mean(1)
        wanted = excluded(plain.Sums(value, (x * np.sin(x)) @ (u / len(u)), *plain.bounds(distances, t, u)))
        clear = np.abs(value) > 1e-6  # a reach at a sum near 0 is as uncertain as the sum
        np.testing.assert_allclose(reach[clear], wanted[clear], rtol=1e-4, atol=1e-300)
        assert end == t
        met += int((reach > 0).sum())
    assert met > 50


@pytest.mark.parametrize(("context", "head_dim", "base"), [(4096, 128, 20000.0), (700, 6, 3e5), (2**20, 64, 1e6)])
def test_what_distances_exclude_has_a_negative_sum(level, context, head_dim, base):
    u, t = exponents(head_dim), math.log(base)
    pool = scan(context, t, u).found.witnesses
    end = plain.advance(pool, t, 60.0, u, 1e-7)
    assert end > t
    for x in np.linspace(t, end, 50):
        assert min(exact(int(d), head_dim, float(x)) for d in pool) < 0


def test_steps_are_as_many_as_asked_for(compiled):
    u, t = exponents(128), math.log(20000.0)
    pool = scan(4096, t, u).found.witnesses
    error = cosines_error(64)
    one, reach = witnesses.exclude(pool, t, 60.0, u, error, 1e-7, steps=1)
    two, _ = witnesses.exclude(pool, t, 60.0, u, error, 1e-7, steps=2)
    assert (one, witnesses.exclude(pool, t, 60.0, u, error, 1e-7, steps=0)[0]) == (t + reach.max(), t)
    assert two == witnesses.exclude(pool, one, 60.0, u, error, 1e-7, steps=1)[0] > one
    assert witnesses.exclude(pool, t, t, u, error)[0] == t
    assert witnesses.exclude(np.zeros(0), t, 60.0, u, error)[0] == t
    stopped = plain.advance(pool, t, 60.0, u, 1e-7)
    assert stopped == pytest.approx(witnesses.exclude(pool, t, 60.0, u, error, 1e-7, steps=10**6)[0], rel=1e-15)


# The lowest of many distances


@pytest.mark.parametrize(
    ("pairs", "starts", "length", "last", "most"),
    [
        (64, (1,), 4001, 4001, 48), (5, (0, 4096, 12288), 4096, 15000, 17), (3, (0,), 4096, 61, 5),
        (13, (7, 3), 97, 10**5, 400), (64, (2**24 - 5000,), 4096, 2**24, 31), (101, (1,), 20011, 20000, 257),
        (2, (9,), 1, 9, 3), (64, (1,), 2**18 + 4321, 2**19, 53),
    ],
)  # fmt: skip
@pytest.mark.parametrize("offset", [None, 1e-3])
def test_the_lowest_are_those_of_direct_cosines(compiled, pairs, starts, length, last, most, offset):
    theta = np.exp(-11.7 * exponents(2 * pairs))
    found = witnesses.lowest(theta, starts, length, last, most, offset=offset)
    if found is None:
        assert compiled in ("portable", "neon")
        assert length > 4096
        return
    at = np.concatenate([np.arange(max(1, a), min(a + length, last + 1)) for a in starts]).astype(float)
    score = np.concatenate([np.cos(part[:, None] * theta).mean(1) for part in np.array_split(at, len(at) // 5000 + 1)])
    score = score if offset is None else (score - offset) / at
    order = np.argsort(score)[:most]
    assert len(found[0]) == min(most, len(at))
    np.testing.assert_allclose(np.sort(found[1]), score[order], rtol=1e-9, atol=1e-11)
    assert sorted(found[0].tolist()) == sorted(at[order].astype(int).tolist())


def test_only_scores_below_the_limit(compiled):
    theta = np.exp(-9.2 * exponents(128))
    values = np.cos(np.arange(1, 4097)[:, None] * theta).mean(1)
    for limit in (values.min(), float(np.sort(values)[1]), -1.0):
        found = witnesses.lowest(theta, [1], 4096, 4096, 48, limit=limit + 1e-13)
        assert sorted(found[0].tolist()) == sorted((np.flatnonzero(values < limit + 1e-13) + 1).tolist())


def test_many_pairs_are_right_to_their_bound(compiled):
    """The most pairs, far out: products of float32 choose, those of float64 answer."""
    theta = np.exp(-14.0 * exponents(4096))
    distances, scores = witnesses.lowest(theta, [2**23], 1500, 2**24, 11)
    for distance, score in zip(distances, scores, strict=True):
        with mp.workdps(40):
            wanted = sum(mp.cos(int(distance) * mpf(float(x))) for x in theta) / 2048
            assert abs(wanted - score) <= 2048 * UNIT / 8


# The search


def test_all_paths_find_the_same(level):
    """Published smallest bases for width 128, upper ends of brackets of 1e-7."""
    u = exponents(128)
    for context, published in ((2**10, None), (2**12, 26952.3395), (2**14, 231643.65)):
        _, found = Exclusion(context, u).opening(0.0, 60.0)
        if published is not None:
            assert math.exp(found.right) == pytest.approx(published, rel=1e-7)
        if context <= 2**12:
            assert lowest_of_many(context, 128, [math.exp(found.right)])[0] > 0
            assert exact(found.witness, 128, found.left - 1e-9) < 0
    assert math.exp(found.left) == pytest.approx(231643.6468068881, rel=1e-11)
    held = Walk(2**14, u).hold(found.right, found.right + 1, 99)
    assert math.exp(held.end) == pytest.approx(231721.79811824, rel=1e-11)
    near = nearby((2, 3), 2**14, math.log(231643.0), u)
    assert 0 < len(near.witnesses) <= 16
    assert (sums(near.witnesses, math.log(231643.0), u).value < 0).all()


@pytest.mark.parametrize(("power", "published"), [(18, 23662397.3), (20, 65374955.8)])
def test_longer_published_contexts(power, published):
    """With the best instructions."""
    if find().handle is None:
        pytest.skip("without the library the search takes half a minute")
    _, found = Exclusion(2**power, exponents(128)).opening(0.0, 60.0)
    assert math.exp(found.right) <= published * (1 + 1e-9)
    assert math.exp(found.left) == pytest.approx(published, rel=1e-7)


# What is refused


def test_numbers_out_of_range_are_refused(compiled):
    one, theta, u = np.ones(1), np.ones(3), np.zeros(3)
    for distances, angle, exponent in (
        (np.array([2.0**24 + 1]), theta, u), (np.array([-1.0]), theta, u), (np.array([math.nan]), theta, u),
        (one, 2 * theta, u), (one, math.nan * theta, u), (one, np.zeros(2049), np.zeros(2049)), (one, u[:0], u[:0]),
        (one, theta, u[:2]),
    ):  # fmt: skip
        with pytest.raises(ShapeError):
            witnesses.cosine_sums(distances, angle, exponent)
    for t, stop, exponent in ((-1.0, 9.0, u), (math.nan, 9.0, u), (1.0, 701.0, u), (1.0, 9.0, u + 2)):
        with pytest.raises(ShapeError):
            witnesses.exclude(one, t, stop, exponent, 1e-14)
    for starts, length, last in (([-1], 9, 9), ([1], 9, 2**24 + 1), ([1], 0, 9)):
        with pytest.raises(ShapeError):
            witnesses.lowest(theta, starts, length, last, 5)


def test_missing_arrays_and_short_work_are_refused(compiled):
    library = find().handle
    theta, starts, scores = np.ones(3), np.zeros(1, np.int64), np.empty(5)
    distances, work = np.empty(5, np.int64), np.empty(library.posenc_lowest_work(3, 9))
    good = {
        "theta": theta.ctypes.data, "pairs": 3, "starts": starts.ctypes.data, "ranges": 1, "length": 9, "last": 9,
        "limit": 2.0, "most": 5, "scores": scores.ctypes.data, "distances": distances.ctypes.data,
        "work": work.ctypes.data, "room": len(work),
    }  # fmt: skip
    assert library.posenc_lowest(ctypes.byref(Lows(**good))) == 0
    for name, bad in (("theta", 0), ("starts", 0), ("scores", 0), ("distances", 0), ("work", 0), ("most", 0),
                      ("found", -1), ("found", 6), ("room", len(work) - 1), ("length", 2**14), ("pairs", 2049),
                      ("ranges", -1)):  # fmt: skip
        assert library.posenc_lowest(ctypes.byref(Lows(**{**good, name: bad}))) != 0, name
    assert library.posenc_cosine_sums(0, 1, theta.ctypes.data, theta.ctypes.data, 3, scores.ctypes.data, 0) != 0
    end = ctypes.c_double()
    assert library.posenc_exclude(0, 1, 0.0, 1.0, 0, 3, 0.0, 0.0, 1, scores.ctypes.data, ctypes.byref(end)) != 0
