"""Positions made from the content, against loops from the papers."""

import math

import numpy as np
import pytest

from oracles import relative as oracle
from posenc import formulas
from posenc.errors import ShapeError, SpecError
from posenc.spec import Cope, Forgetting, SelectiveRotary


def test_cope_numbers():
    got = formulas.cope_positions([[0.3, -1.0, 2.0, 0.5]])
    assert got[0] == pytest.approx([2.346640347, 1.772197831, 1.503256409, 0.622459331], abs=1e-9)
    assert formulas.cope_positions([[0.3, -1.0, 2.0, 0.5]], positions=3)[0, 0] == 2.0


def test_cope_against_a_loop():
    rng, value = np.random.default_rng(1), Cope(3, positions=4)
    q, vectors = rng.normal(size=(2, 7, 3)), rng.normal(size=(3, 4))
    logits = np.where(np.tril(np.ones((7, 7))) > 0, rng.normal(size=(2, 7, 7)) + 1, -np.inf)
    got = formulas.cope_scores(value, logits, q, vectors)
    for h in range(2):
        want = oracle.cope(logits[h].tolist(), q[h], vectors, 4)
        assert got[h].tolist() == [pytest.approx(line, rel=1e-11) for line in want]
    with pytest.raises(ShapeError, match="vectors"):
        formulas.cope_scores(value, logits, q, vectors.T)


def test_forgetting_numbers():
    value = Forgetting(8, num_heads=1, form="softplus")
    b = formulas.forgetting_positions(value, [0.0, 1.0, -1.0, 0.5])
    assert b == pytest.approx([-0.693147, -2.006409, -2.319671, -3.293748], abs=1e-6)
    assert b[3] - b == pytest.approx([-2.600600, -1.287339, -0.974076, 0], abs=1e-6)


def test_forgetting_is_the_product_of_gates():
    gates = np.random.default_rng(2).normal(size=7)
    b = formulas.forgetting_positions(Forgetting(8, num_heads=1), gates)
    for i in range(7):
        for j in range(i + 1):
            assert b[i] - b[j] == pytest.approx(oracle.forgotten(gates, i, j), abs=1e-12)


def test_the_two_forms_differ_by_a_sign():
    gates = np.random.default_rng(2).normal(size=7)
    fox, cable = (Forgetting(8, num_heads=1, form=form) for form in ("log_sigmoid", "softplus"))
    assert formulas.forgetting_positions(fox, gates) == pytest.approx(formulas.forgetting_positions(cable, -gates))
    assert (fox.bias, cable.bias) == (True, False)


def test_selective_phases_against_a_loop():
    rng, value = np.random.default_rng(3), SelectiveRotary(6, head_dim=4, num_heads=3, rank=5, window=3, base=100.0)
    x, down, up, kernel = (rng.normal(size=s) for s in ((7, 6), (5, 6), (6, 5), (6, 3)))
    got = formulas.selective_phases(value, x, down=down, up=up, kernel=kernel)
    read = []
    for token in x:
        unit = []
        for h in range(3):
            share = token[2 * h : 2 * h + 2]
            unit += [c / math.sqrt(sum(v * v for v in share) + 1e-6) for c in share]
        low = [oracle.dot(line, unit) for line in down]
        read.append([oracle.dot(line, low) for line in up])
    for h in range(3):
        for pair in range(2):
            channel, total = 2 * h + pair, 0.0
            for t in range(7):
                total += sum(kernel[channel][2 - lag] * read[t - lag][channel] for lag in range(3) if t >= lag)
                assert got[h, t, pair] == pytest.approx(total * 100.0 ** (-pair / 2), rel=1e-10)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [({"head_dim": 5, "num_heads": 3}, "head_dim is even"), ({"head_dim": 4, "num_heads": 4}, "equal share")],
)
def test_impossible_selective_values(fields, rule):
    with pytest.raises(SpecError, match=rule):
        SelectiveRotary(6, **fields)
