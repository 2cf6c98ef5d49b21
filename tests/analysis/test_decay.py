"""Similarity against distance: Men et al. 2024's first negative distances, MISSION's numbers, brute force."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from posenc.analysis.decay import decay_facts, envelope, local_maxima, record_maxima
from posenc.formulas.scalings import frequencies
from posenc.spec import Rotary

FIRST_NEGATIVE = {  # base: head_dim 64, 96, 128, 256 (direct cosines, PAPERS A1)
    1e4: (725, 1046, 1707, 2653),
    1.5e5: (2774, 5167, 10791, 17176),
    5e5: (9937, 14160, 18438, 37791),
    1e6: (6235, 17156, 27115, 71627),
    5e6: (31099, 64085, 82999, 217693),
    8e6: (37539, 50061, 61936, 147458),
    1e7: (45826, 91248, 144660, 284715),
    500.0: (154, 173, 171, 229),
}


@pytest.mark.parametrize("base", FIRST_NEGATIVE)
@pytest.mark.parametrize(("column", "dim"), list(enumerate((64, 96, 128, 256))))
def test_first_negative_distance(base, column, dim):
    facts = decay_facts(frequencies(Rotary(dim, base=base)), 2048)
    assert facts.first_negative.value == FIRST_NEGATIVE[base][column]


@pytest.mark.parametrize(("dim", "rise"), [(8, 3), (64, 5), (128, 11), (512, 43)])
def test_first_rise(dim, rise):
    facts = decay_facts(frequencies(Rotary(dim)), 500)
    assert facts.first_rise.value == rise


def brute(dim: int, base: float, reach: int) -> list[float]:
    return [
        2 / dim * math.fsum(math.cos(d * base ** (-2 * i / dim)) for i in range(dim // 2)) for d in range(reach + 1)
    ]


def test_every_number_against_a_slow_loop():
    dim, base, reach = 26, 700.0, 613
    kappa = brute(dim, base, reach)
    facts = decay_facts(frequencies(Rotary(dim, base=base)), reach, base=base, points=5000)
    assert facts.curve.x == tuple(range(reach + 1))
    assert facts.curve.y == pytest.approx(kappa, abs=1e-12)
    assert facts.minimum.distance == kappa.index(min(kappa))
    assert facts.sign_changes == sum(a * b < 0 for a, b in pairwise(kappa))
    peaks = [d for d in range(1, reach) if kappa[d] > kappa[d - 1] and kappa[d] > kappa[d + 1]]
    assert facts.maxima == len(peaks)
    lobe = next(d for d, k in enumerate(kappa) if k < 0.5)
    best = sorted((d for d in peaks if d >= lobe), key=lambda d: -kappa[d])[:5]
    assert [a.distance for a in facts.aliases] == best
    assert facts.mean.value == pytest.approx(sum(kappa[1:]) / reach, abs=1e-12)
    assert facts.rms.value == pytest.approx(math.sqrt(sum(k * k for k in kappa[1:]) / reach), abs=1e-12)
    assert facts.long_run_rms.value == pytest.approx(1 / math.sqrt(dim))


def test_the_curve_keeps_its_extremes_when_thinned():
    f = frequencies(Rotary(64))
    facts = decay_facts(f, 50_000, points=100)
    assert len(facts.curve.x) <= 100
    assert min(facts.curve.y) == facts.minimum.similarity
    assert max(facts.curve.y) == 1.0


def test_the_envelope_bounds_the_rest_of_the_curve():
    kappa = np.array(brute(10, 50.0, 97))
    found = envelope(kappa)
    assert found.tolist() == [max(abs(kappa[d:])) for d in range(98)]


def test_near_returns_are_records_after_the_main_lobe():
    kappa = np.array([1, 0.4, 0.1, 0.3, 0.2, 0.25, 0.2, 0.35, 0.3])
    assert record_maxima(kappa, 1) == [3, 7]
    assert local_maxima(kappa).tolist() == [3, 5, 7]


def test_the_limit_is_the_integral():
    mpmath = pytest.importorskip("mpmath")
    base = 10000.0
    facts = decay_facts(frequencies(Rotary(128)), 1000, base=base)
    at = dict(zip(facts.limit.x, facts.limit.y, strict=True))
    for distance in (0.0, 1.0, 10.0, 1000.0):
        want = mpmath.quad(lambda t, d=distance: mpmath.cos(d * base**-t), np.linspace(0, 1, 41).tolist())
        assert at[distance] == pytest.approx(float(want), abs=1e-9)
    assert facts.limit_gap.value > 0.01
    assert decay_facts(frequencies(Rotary(128)), 100).limit is None
