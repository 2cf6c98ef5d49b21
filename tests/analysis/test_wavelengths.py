"""Wavelengths against lengths: published critical dimensions (Liu et al. 2023) and counts made by hand."""

from __future__ import annotations

import math

import pytest

from posenc.analysis.wavelengths import per_decade, unseen_angles, wavelength_facts, within
from posenc.formulas.scalings import frequencies
from posenc.spec import NTK, Explicit, Linear, Rotary, Yarn


@pytest.mark.parametrize(
    ("base", "trained", "dimension"),
    [(1e4, 4096, 92), (1e4, 2048, 82), (5e5, 8192, 70), (1e6, 32768, 80)],
    ids=["llama-2", "llama-1", "llama-3", "qwen2.5"],
)
def test_critical_dimension_is_the_published_one(base, trained, dimension):
    found = within(frequencies(Rotary(128, base=base)).wavelengths, "trained", trained)
    assert found.critical_dimension == dimension
    # the paper's own formula, theorem 1
    assert dimension == 2 * math.ceil(64 * math.log(trained / (2 * math.pi), base))
    assert found.incomplete == 64 - dimension // 2
    assert found.first_incomplete == dimension // 2


def test_133_of_256_pairs_never_finish_a_turn_within_512():
    theta = [10000 ** (-2 * i / 512) for i in range(256)]
    slow = sum(2 * math.pi / t > 512 for t in theta)
    assert slow == 133
    assert within(frequencies(Rotary(512)).wavelengths, "trained", 512).incomplete == slow


def test_a_turn_completed_exactly_at_the_length_counts():
    f = frequencies(Rotary(4, schedule=Explicit((2 * math.pi / 7, 2 * math.pi / 7.001))))
    assert within(f.wavelengths, "asked", 7).incomplete == 1


def test_unseen_angles_after_interpolation_are_none_and_without_it_are_the_slow_pairs():
    plain = frequencies(Rotary(128))
    beyond = unseen_angles(plain, plain, 4096, 16384)
    assert (beyond.pairs, beyond.first_pair) == (18, 46)
    assert unseen_angles(plain, frequencies(Rotary(128) >> Linear(4.0)), 4096, 16384).pairs == 0
    # YaRN leaves fast pairs alone and slows the slow ones by the whole factor: nothing new either
    assert unseen_angles(plain, frequencies(Rotary(128) >> Yarn(4.0, original=4096)), 4096, 16384).pairs == 0
    # NTK by the same factor slows only the last pair by 4, so the other slow pairs go beyond
    assert unseen_angles(plain, frequencies(Rotary(128) >> NTK(4.0)), 4096, 16384).pairs == 17


def test_largest_unseen_angle_by_hand():
    f = frequencies(Rotary(2, schedule=Explicit((0.01,))))
    found = unseen_angles(f, f, 100, 200)  # met 1 radian, reaches 2
    assert found.largest.value == pytest.approx(1 / (2 * math.pi), rel=1e-12)
    assert unseen_angles(f, f, 100, 10**6).largest.value == pytest.approx(1 - 1 / (2 * math.pi), rel=1e-12)


def test_decades_count_every_turning_pair_once():
    waves = frequencies(Rotary(8)).wavelengths  # 6.28, 62.8, 628, 6283
    assert per_decade(waves) == ((0, 1), (1, 1), (2, 1), (3, 1))
    assert per_decade(frequencies(Rotary(8, keep=0.5)).wavelengths) == ((0, 1), (1, 1))


def test_facts_leave_unknown_lengths_out_and_still_pairs_have_no_wavelength():
    facts = wavelength_facts(frequencies(Rotary(8, keep=0.75)), {"trained": 100, "served": None})
    assert [w.name for w in facts.within] == ["trained"]
    assert facts.wavelengths[3] is None
    assert facts.unseen is None
    assert facts.widest_gap.value == pytest.approx(10.0)
