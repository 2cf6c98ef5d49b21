"""The claims ledger: verdicts, M5's numbers, and broken formulas that flip exactly the claims resting on them."""

from __future__ import annotations

import numpy as np
import pytest

from posenc.analysis.ledger import Ground, ledger
from posenc.analysis.ledger.ground import paired_table, turned
from posenc.formulas.scalings import frequencies
from posenc.formulas.spectrum import Frequencies
from posenc.spec import Arithmetic, Rotary, Sinusoidal

VERDICTS = {
    1: "exact",
    2: "exact",
    3: "exact",
    4: "exact",
    5: "holds within stated bounds",
    6: "counterexample",
    7: "counterexample",
    8: "holds within stated bounds",
    9: "refuted",
    10: "counterexample",
    11: "exact",
    12: "counterexample",
    13: "refuted",
    14: "exact",
    15: "needs training",
    16: "needs training",
    17: "counterexample",
    18: "exact",
    19: "exact",
    20: "holds within stated bounds",
    21: "counterexample",
    22: "refuted",
    23: "needs training",
}


@pytest.fixture(scope="module")
def plain():
    return {c.number: c for c in ledger().claims}


def flipped(ground: Ground) -> set[int]:
    return {c.number for c in ledger(ground).claims if c.verdict != VERDICTS[c.number]}


def test_every_claim_has_its_verdict(plain):
    assert {n: c.verdict for n, c in plain.items()} == VERDICTS


def test_the_numbers_of_the_mission(plain):
    numbers = {n: dict(c.numbers) for n, c in plain.items()}
    assert numbers[2]["defect at d = 7, N = 2000"] == pytest.approx(0.46, abs=0.005)
    assert (numbers[5]["repeat"], numbers[5]["twin"]) == (711, 1)
    assert {k: v for k, v in numbers[6].items() if k.startswith("d=")} == {
        "d=8": 3,
        "d=64": 5,
        "d=128": 11,
        "d=512": 43,
    }
    assert numbers[9] == {"d=64": 725, "d=128": 1707}
    assert numbers[12]["longest"] == pytest.approx(60611.5, abs=0.05)
    assert numbers[12]["half - 1"] == pytest.approx(20000 * np.pi, rel=1e-12)
    assert numbers[13]["pairs"] == 133
    assert (round(numbers[21]["near a day"], 1), round(numbers[21]["near a week"])) == (26.5, 149)
    assert (round(numbers[21]["cycles, day"]), round(numbers[21]["cycles, week"])) == (5, 4)
    assert (numbers[22]["rank"], numbers[22]["energy rank"]) == (131, 109)


def cosine_of_another_frequency(positions, theta):
    """The tutorial's fault: the cosine column uses the next exponent."""
    good = paired_table(positions, theta)
    other = paired_table(positions, theta * 0.9)
    good[:, 1::2] = other[:, 1::2]
    return good


def long_rows(positions, theta):
    return 1.5 * paired_table(positions, theta)


def one_way_turn(x, positions, theta):
    """A rotation with the sign of one sine lost."""
    good = turned(x, positions, theta)
    good[:, 1::2] = np.abs(good[:, 1::2])
    return good


@pytest.mark.parametrize(
    ("ground", "numbers"),
    [
        (Ground(table=cosine_of_another_frequency), {1, 2, 3, 4, 9, 20}),
        (Ground(table=long_rows), {1, 4, 9}),
        (Ground(rotate=one_way_turn), {11}),
        (Ground(frequencies=frequencies(Sinusoidal(512, shift=1.0, order="sin|cos"))), {8, 12}),
        (Ground(frequencies=frequencies(Sinusoidal(512, schedule=Arithmetic()))), {8, 12}),
    ],
    ids=["cosine of another frequency", "long rows", "one-way turn", "half - 1", "arithmetic"],
)
def test_a_broken_formula_flips_the_claims_that_rest_on_it(ground, numbers):
    assert flipped(ground) == numbers


def test_an_exponent_counted_twice_shows_in_the_numbers():
    doubled = Frequencies(theta=frequencies(Sinusoidal(512)).fused ** 2, base=1e4, dim=512)
    found = {c.number: c for c in ledger(Ground(frequencies=doubled)).claims}
    assert dict(found[12].numbers)["longest"] == pytest.approx(2 * np.pi * 1e4 ** (510 / 256), rel=1e-9)
    assert dict(found[13].numbers)["pairs"] > 133


def test_a_model_is_a_ground_of_its_own():
    ground = Ground("rotary(128, base=500000)", frequencies(Rotary(128, base=5e5)), trained=8192)
    found = {c.number: c for c in ledger(ground).claims}
    assert "rotary(128, base=500000)" in found[6].evidence
    assert dict(found[13].numbers) == {"pairs": 29.0, "trained": 8192.0}


def test_every_claim_is_said_in_both_languages_with_its_source(plain):
    for claim in plain.values():
        assert all((claim.claim, claim.evidence, claim.source))
        assert any("\u4e00" <= c <= "\u9fff" for c in claim.claim_zh + claim.evidence_zh)
        for number in ("nan", "inf"):
            assert number not in claim.evidence.lower().split()
