"""The base search against direct cosines: on dense grids of bases, at random bases, and against published values."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from oracles.base_bound import exact, lowest, lowest_of_many
from posenc.analysis.base_search import smallest_base
from posenc.analysis.base_search import sums as sums_module
from posenc.analysis.base_search.excluding import Exclusion
from posenc.analysis.base_search.holding import Walk
from posenc.analysis.base_search.scanning import nearby, scan
from posenc.analysis.base_search.settling import settled_by_formula
from posenc.analysis.base_search.sums import admitted, advance, excluded, exponents, sums, value_error
from posenc.errors import SpecError
from posenc.records.base_search import BaseSearch

SMALL = [(1, 6), (2, 6), (3, 128), (7, 8), (22, 6), (61, 10), (97, 64), (331, 96), (700, 256)]


@pytest.fixture(scope="module")
def at_4096():
    return smallest_base(4096, 128)


# The answer against direct cosines


@pytest.mark.parametrize(("context", "head_dim"), SMALL)
def test_no_base_of_a_dense_grid_lies_below(context, head_dim):
    found = smallest_base(context, head_dim)
    start = found.infimum
    assert 0 <= start.high / start.low - 1 < 1e-9
    assert lowest(context, head_dim, start.high)[0] > -1e-12
    if start.low > 1:
        grid = np.exp(np.linspace(0, math.log(start.low), 4000 if context < 200 else 700))[:-1]
        assert lowest_of_many(context, head_dim, grid).max() < 0
        # just below, the distance that is named is the one that fails
        value, distance = lowest(context, head_dim, start.low * (1 - 1e-7))
        assert (value < 0, distance) == (True, found.lowest_at)
    assert not found.undecided


@pytest.mark.parametrize(("context", "head_dim"), SMALL)
def test_runs_are_feasible_and_what_lies_between_is_not(context, head_dim):
    found = smallest_base(context, head_dim)
    rng = random.Random(context)
    for run in found.runs:
        inside = [rng.uniform(run.begin.high, run.held) for _ in range(50)]
        assert lowest_of_many(context, head_dim, inside).min() >= -1e-12
        if run.end is not None:
            assert lowest(context, head_dim, run.end.high * (1 + 1e-7))[0] < 0
    for run, later in zip(found.runs, found.runs[1:], strict=False):
        between = [rng.uniform(run.end.high, later.begin.low) for _ in range(50)]
        assert lowest_of_many(context, head_dim, between).max() < 1e-12


@pytest.mark.parametrize(("context", "head_dim"), SMALL)
def test_every_larger_base_is_feasible(context, head_dim):
    above = smallest_base(context, head_dim).above
    assert above.exact
    assert above.certified <= above.formula * (1 + 1e-12)
    larger = [above.certified * math.exp(x) for x in np.linspace(0, 12, 200)]
    assert lowest_of_many(context, head_dim, larger).min() > -1e-12
    if above.certified > 1.001:
        value, distance = lowest(context, head_dim, above.certified * (1 - 1e-7))
        assert (value < 0, distance) == (True, above.witness)


def test_published_intervals(at_4096):
    """Feasible in [26952.3392…, 26973.0834], next from 28628.685: not an interval."""
    first, second = at_4096.runs[:2]
    assert first.begin.high == pytest.approx(26952.3395, rel=1e-7)
    assert first.held == pytest.approx(26973.0834, abs=5e-5)
    assert second.begin.high == pytest.approx(28628.685, abs=5e-4)
    assert (at_4096.lowest_at, first.begins_at) == (4012, 4012)
    assert at_4096.above.certified == pytest.approx(5.88e4, rel=2e-3)
    assert lowest(4096, 128, first.begin.high)[0] >= 0
    assert lowest(4096, 128, 28628.0)[0] < 0


@pytest.mark.parametrize(("power", "published"), [(10, 4293.5), (14, 231643.65), (16, 2090179.69)])
def test_published_smallest_bases(power, published):
    """Published values are upper ends of brackets, within 1e-7 (the one for 2^10 comes from a grid of 1e-5)."""
    _, found = Exclusion(2**power, exponents(128)).opening(0.0, 60.0)
    assert math.exp(found.right) <= published * (1 + 1e-9)
    assert math.exp(found.left) == pytest.approx(published, rel=1e-7 if power > 10 else 2e-5)


@pytest.mark.parametrize(("context", "published"), [(2**10, 6019), (2**11, 2.28e4), (2**12, 5.88e4), (2**13, 3.95e5)])
def test_published_bases_above_which_a_grid_is_feasible(context, published):
    assert smallest_base(context, 128).above.certified == pytest.approx(published, rel=3e-3)


@pytest.mark.parametrize("head_dim", [6, 64, 128])
def test_a_longer_context_needs_no_smaller_base(head_dim):
    found = [smallest_base(context, head_dim) for context in (1, 2, 3, 5, 22, 23, 100, 355, 1000)]
    bases = [f.infimum.high for f in found]
    assert bases == sorted(bases)
    assert bases[0] < bases[-1]
    limits = [f.above.certified for f in found]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(limits))
    for f, longer in pairwise(found):  # what serves the longer context serves the shorter one
        assert lowest(f.context, head_dim, longer.infimum.high)[0] > -1e-12


def test_a_context_of_one_takes_every_base():
    found = smallest_base(1, 128)
    assert (found.infimum.low, found.above.exact) == (1.0, True)
    assert found.above.certified == pytest.approx(1.0, abs=1e-12)


# The bounds


CASES = st.tuples(st.integers(1, 20_000), st.floats(0.0, 25.0), st.sampled_from([6, 10, 64, 128]))


@settings(max_examples=150, deadline=None)
@given(CASES)
def test_derivatives_and_their_bound(case):
    distance, t, head_dim = case
    s = sums(np.array([float(distance)]), t, exponents(head_dim))
    with mp.workdps(50):

        def value(x):
            return exact(distance, head_dim, x)

        assert abs(value(t) - float(s.value[0])) <= s.error[0]
        assert abs(mp.diff(value, t) - float(s.slope[0])) <= s.slope_error[0]
        for farther in (0.0, 0.01, 1.0):
            assert abs(mp.diff(value, t + farther, 2)) <= s.bend[0] * (1 + 1e-9)


@settings(max_examples=150, deadline=None)
@given(CASES)
def test_a_step_never_passes_a_sign_change(case):
    distance, t, head_dim = case
    s = sums(np.array([float(distance)]), t, exponents(head_dim))
    sign = -1 if s.value[0] < 0 else 1
    step = float((excluded(s) if sign < 0 else admitted(s))[0])
    assert float((admitted(s) if sign < 0 else excluded(s))[0]) == 0
    if abs(s.value[0]) > s.error[0]:
        assert step > 0
    for share in np.linspace(0, 1, 9):
        assert step == 0 or sign * exact(distance, head_dim, t + share * step) > 0


def test_rounding_is_bounded_for_many_distances():
    """The largest of many errors is neither above the bound nor a thousand times below it."""
    u, rng = exponents(128), np.random.default_rng(3)
    worst = 0.0
    for distance in rng.integers(2**19, 2**20, 60):
        t = float(rng.uniform(10, 20))
        error = abs(exact(int(distance), 128, t) - float(sums(np.array([float(distance)]), t, u).value[0]))
        assert error <= value_error(int(distance), t, u)
        worst = max(worst, float(error / value_error(int(distance), t, u)))
    assert worst > 1e-3


def test_witnesses_cover_every_base_they_pass():
    u, t = exponents(128), math.log(20000.0)
    pool = scan(4096, t, u).found.witnesses
    end = advance(pool, t, 60.0, u, 1e-7)
    assert end > t
    for x in np.linspace(t, end, 200):
        assert min(exact(int(d), 128, float(x)) for d in pool) < 0
    assert advance(pool, t, t + 1e-5, u, 1e-7) >= t + 1e-5


@settings(max_examples=30, deadline=None)
@given(st.floats(3.0, 11.0), st.sampled_from([500, 5000, 9001]))
def test_a_scan_and_its_witnesses(t, context):
    u = exponents(64)
    theta = np.exp(-t * u)
    values = np.cos(np.arange(1, context + 1)[:, None] * theta).mean(1)
    seen = scan(context, t, u)
    assert (values.min() < -1e-12) == (len(seen.found.witnesses) > 0)
    assert (values[seen.found.witnesses.astype(int) - 1] < 0).all()
    assert seen.lowest == pytest.approx(values[seen.distance - 1], abs=1e-11)
    if not len(seen.found.witnesses):
        assert seen.distance == 1 + values.argmin()
    if len(seen.found.witnesses):
        assert seen.found.reach == pytest.approx(float(excluded(sums(seen.found.witnesses[:1], t, u))[0]))
    near = nearby((0, 1), context, t, u)
    assert (values[near.witnesses.astype(int) - 1] < 0).all()
    low = np.flatnonzero(values[:8191] < -1e-6)
    assert (len(low) > 0) <= (len(near.witnesses) > 0)


@pytest.mark.parametrize("base", [26000.0, 26940.0, 28600.0, 40000.0])
def test_nearby_finds_every_negative_sum_there(base):
    """Near the smallest bases few distances are negative, on both sides of the centres of rows."""
    u, t = exponents(128), math.log(base)
    values = np.cos(np.arange(8192)[:, None] * np.exp(-t * u)).mean(1)
    values[4200:] = 1  # beyond the context
    wanted = set(np.flatnonzero(values < -1e-9).tolist())
    assert 0 < len(wanted) <= 48
    found = nearby((0, 1), 4199, t, u).witnesses.tolist()
    assert len(found) == min(16, len(wanted))
    assert set(found) <= wanted


def test_a_walk_stops_where_a_sum_passes_zero():
    u = exponents(128)
    right = Walk(1024, u).hold(math.log(4300), math.log(9000), 99)
    assert (round(math.exp(right.end), 4), right.witness) == (4330.3233, 950)
    left = Walk(1024, u).hold(math.log(4300), math.log(2000), 99)
    assert (round(math.exp(left.end), 4), left.witness) == (4293.4376, 1009)
    assert Walk(1024, u).hold(math.log(7000), math.log(9000), 99) == (math.log(9000), None)
    assert Walk(1024, u).hold(math.log(7000), math.log(9e5), 1).witness is None


@pytest.mark.parametrize(("context", "head_dim"), [(5, 6), (100, 10), (1024, 128)])
def test_the_formula_is_a_bound(context, head_dim):
    t = settled_by_formula(context, exponents(head_dim))
    assert lowest_of_many(context, head_dim, np.exp(t + np.linspace(1e-9, 8, 100))).min() > 0


# What is not decided, what is in use, and use


def test_coarse_rounding_leaves_the_truth_among_the_undecided(monkeypatch):
    """With cosines that are right to 3 digits only, the search may not claim what it cannot know."""
    monkeypatch.setattr(sums_module, "COSINES", 2e-3)
    found = smallest_base(331, 96)
    monkeypatch.undo()
    truth = smallest_base(331, 96).infimum.high
    assert found.infimum.high / found.infimum.low > 1.001
    assert any(b.low <= truth <= b.high for b in (*found.undecided, found.infimum))
    assert lowest(331, 96, found.infimum.high)[0] > 0
    assert found.error > 2e-3


def test_papers_and_models(at_4096):
    used = {u.who: u for u in at_4096.used}
    assert used["Llama-2-7B"].first_negative == 1707
    assert (used["Llama-3-8B"].first_negative, used["Llama-3-8B"].length) == (None, 8192)
    assert used["Llama-3.1-8B"].scaled
    assert not used["Llama-2-7B"].scaled
    for u in at_4096.used:
        if not u.scaled:
            value, _ = lowest(u.first_negative or 4096, 128, u.base)
            assert (value < 0) == (u.first_negative is not None), u
    papers = [u for u in at_4096.used if u.kind == "paper"]
    assert [u.base for u in papers[:2]] == [2.7e4, 2.7e4]
    assert papers[2].base == pytest.approx(32232, rel=1e-4)
    gemma = [u for u in smallest_base(64, 256).used if u.who == "Gemma-3-27B"]
    assert gemma == []  # its width is 128
    local = {u.base for u in at_4096.used if u.who == "Gemma-3-27B"}
    assert local == {1e6}  # layers with a window of 1024 never see such a distance


def test_the_record_is_json_without_loss(at_4096):
    assert BaseSearch.model_validate_json(at_4096.model_dump_json()) == at_4096


def test_another_advance_gives_the_same_answer():
    calls = []

    def idle(distances, t, stop, u, least):
        calls.append(t)
        return t

    ours, theirs = smallest_base(331, 96), smallest_base(331, 96, advance=idle)
    assert len(calls) > 5
    assert theirs.infimum.low == pytest.approx(ours.infimum.low, rel=1e-10)
    assert theirs.effort.scans > ours.effort.scans


def test_progress_and_interruption():
    told = []
    smallest_base(1024, 64, progress=lambda what, share: told.append((what, share)))
    assert {what for what, _ in told} >= {"excluding small bases", "settling large bases"}
    assert all(0 <= share <= 1 for _, share in told)

    def stop(what, share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        smallest_base(2**24, 128, progress=stop)


def test_without_a_walk_the_grid_says_what_it_did(monkeypatch):
    monkeypatch.setattr("posenc.analysis.base_search.settling.WALKED", 100)
    monkeypatch.setattr("posenc.analysis.base_search.settling.MOST", 300)
    found = smallest_base(1024, 128).above
    assert not found.exact
    assert found.certified == found.formula
    assert found.ratio > 1
    assert lowest(1024, 128, found.infeasible)[0] < 0
    assert found.infeasible == pytest.approx(6018.28, rel=found.ratio - 1 + 1e-3)
    thorough = smallest_base(1024, 128, thorough=True).above
    assert (thorough.exact, thorough.ratio) == (True, None)


@pytest.mark.parametrize(
    ("context", "head_dim", "rule"),
    [(0, 128, "context is an integer from 1"), (2**24 + 1, 128, "context"), (True, 128, "context"),
     (1.5, 128, "context"), (64, 4, "head_dim is an integer from 6"), (64, 4098, "head_dim"), (64, 7, "even"),
     (64, None, "head_dim")],
)  # fmt: skip
def test_bad_requests(context, head_dim, rule):
    with pytest.raises(SpecError, match=rule):
        smallest_base(context, head_dim)
