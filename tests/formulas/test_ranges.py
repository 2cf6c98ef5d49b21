"""Minimum, first fall and aliases of long ranges against the whole range stored, and against 60 digits far out."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from oracles import kernel
from posenc.errors import ShapeError
from posenc.formulas import aliases, first_below, frequencies, minimum
from posenc.formulas.ranges import GROWTH, tiles
from posenc.spec import Rotary

LLAMA2 = frequencies(Rotary(128))


def plain(thetas, start, stop, weights=None):
    """Cosines of every distance, with one neighbour on each side."""
    values = np.cos(np.arange(start - 1, stop + 1)[:, None] * np.asarray(thetas))
    return values.mean(1) if weights is None else values @ np.asarray(weights)


def peaks(values, start, count):
    """Local maxima of a range given with its neighbours, largest first."""
    inner = values[1:-1]
    found = np.flatnonzero((inner > values[:-2]) & (inner > values[2:]))
    return [(start + int(i), float(inner[i])) for i in sorted(found, key=lambda i: -inner[i])[:count]]


@settings(max_examples=40, deadline=None)
@given(
    thetas=st.lists(st.floats(0.01, 3), min_size=2, max_size=5, unique=True),
    start=st.integers(-4000, 4000),
    count=st.integers(1, 2500),
)
def test_short_ranges(thetas, start, count):
    """The value found is the smallest there is, wherever the range begins and ends."""
    values = plain(thetas, start, start + count)
    where, least = minimum(np.array(thetas), start, start + count)
    assert least == pytest.approx(values[1:-1].min(), abs=1e-11)
    assert start <= where < start + count
    assert values[where - start + 1] == pytest.approx(least, abs=1e-11)


@pytest.mark.parametrize("stop", [100, GROWTH[0], GROWTH[0] + 1, 9 * GROWTH[0] + 1, 150_001, 163_957])
def test_the_minimum_at_every_border(stop):
    """A slow clock is lowest at its last distance: no tile, stretch or rest may lose it."""
    thetas = np.array([math.pi / (stop - 1)])
    assert minimum(thetas, 0, stop)[0] == stop - 1
    assert minimum(thetas, 0, stop - 1)[0] == stop - 2
    assert first_below(thetas, -1 + 1e-13, start=0, stop=stop) == stop - 1
    assert first_below(thetas, -1 + 1e-13, start=0, stop=stop - 1) is None


def test_the_first_of_equals():
    assert minimum(np.array([0.0]), 5, 400_000) == (5, 1.0)


def test_the_first_of_many_below():
    values = plain(LLAMA2.fused, 1, 400_001)[1:-1]
    for threshold in (0.3, 0.0, -0.1, -0.2, -0.3):
        assert first_below(LLAMA2, threshold, stop=400_001) == 1 + int(np.argmax(values < threshold))


@pytest.mark.parametrize(("start", "stop"), [(-5, 200_003), (1, 90), (1707, 150_000), (60_001, 60_040)])
def test_aliases_are_the_largest_local_maxima(start, stop):
    found = aliases(LLAMA2, stop, start=start, count=7)
    wanted = peaks(plain(LLAMA2.fused, start, stop), start, 7)
    assert [p.distance for p in found] == [d for d, _ in wanted]
    np.testing.assert_allclose([p.similarity for p in found], [v for _, v in wanted], rtol=0, atol=1e-11)


def test_a_peak_at_the_border_of_two_tiles_is_found_once():
    """One clock with a period of 65536: its first return lies where tiles of rows meet."""
    theta = np.array([2 * math.pi / 65536])
    for start in (1, 2, 1000):
        assert sorted(p.distance for p in aliases(theta, 200_000, start=start, count=9)) == [65536, 131072, 196608]
    assert [p.distance for p in aliases(theta, 65537, start=5)] == [65536]
    assert aliases(theta, 65536, start=5) == ()


def test_aliases_begin_after_the_main_lobe():
    theta = np.array([1.0, 0.1])
    lobe = first_below(theta, 0.5, stop=99)
    assert aliases(theta, 999) == aliases(theta, 999, start=lobe)
    assert aliases(theta, 3) == ()
    assert aliases(np.array([0.0]), 10**4) == ()


def test_weights():
    thetas, weights = np.array([1.0, 0.37, 0.011]), [0.5, -0.3, 2.0]
    values = plain(thetas, 3, 5003, weights)
    assert minimum(thetas, 3, 5003, weights=weights)[0] == 3 + int(values[1:-1].argmin())
    assert aliases(thetas, 5003, start=3, count=1, weights=weights)[0].distance == peaks(values, 3, 1)[0][0]
    assert first_below(thetas, 1.0, start=3, stop=5003, weights=weights) == 3 + int(np.argmax(values[1:-1] < 1.0))


def test_far_out():
    """Beyond 10^9 the values have all the digits that the goal of 1e-11 asks for."""
    start = 10**9 - 200_000
    found = [minimum(LLAMA2, start, 10**9), tuple(aliases(LLAMA2, 10**9, start=start, count=1)[0])]
    with mp.workdps(60):
        for where, value in found:
            assert abs(kernel.kappa(where, LLAMA2.fused.tolist()) - value) < 1e-14


def test_progress_reaches_the_end():
    told = []
    minimum(LLAMA2, 5, 3_000_005, progress=lambda done, total: told.append((done, total)))
    assert [total for _, total in told] == [3_000_000] * len(told)
    done = [d for d, _ in told]
    assert done == sorted(set(done))
    assert done[-1] == 3_000_000
    assert max(np.diff(done)) <= 2**21


def test_an_interrupt_in_the_middle_stops():
    def stop(done, total):
        if done > 10**6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        minimum(LLAMA2, 0, 10**12, progress=stop)


def test_memory_does_not_grow_with_the_range():
    few = frequencies(Rotary(8))
    tracemalloc.start()
    minimum(few, 0, 2**23)
    aliases(few, 2**23, start=2**22)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20  # the range itself would take 64 MiB


def test_tiles_cover_a_range_once():
    at = 17
    for tile in tiles(LLAMA2, 17, 300_000, lowest=True):
        values = tile.values()
        assert tile.first == at
        assert tile.extreme == values.min()
        at += len(values)
    assert at == 300_000


def test_bad_requests():
    with pytest.raises(ShapeError, match="not empty"):
        minimum(LLAMA2, 5, 5)
    with pytest.raises(ShapeError, match="a threshold is a number"):
        first_below(LLAMA2, math.nan, stop=9)
    for count in (0, 1001, True):
        with pytest.raises(ShapeError, match="between 1 and 1000"):
            aliases(LLAMA2, 99, count=count)
