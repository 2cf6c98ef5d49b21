"""Relative encodings in the score, against loops from the papers and numbers that papers and models give."""

import math

import numpy as np
import pytest

from oracles import relative as oracle
from posenc import formulas
from posenc.errors import ShapeError, SpecError
from posenc.formulas.relative import fire_input, sandwich_ratios
from posenc.spec import (
    Disentangled,
    Fire,
    Kerple,
    RelativeSinusoid,
    Sandwich,
    Shaw,
    Sinusoidal,
    SinusoidalBias,
    TransformerXL,
)

DISTANCES = np.array([[-7, 0, 3], [11, -2, 40]])


def test_kerple_numbers():
    log = formulas.kerple_at(Kerple(2), [1.0, 0.5], [1.0, 2.0], np.arange(5))
    assert log[0] == pytest.approx([0, -0.693147, -1.098612, -1.386294, -1.609438], abs=1e-6)
    assert log[1] == pytest.approx([-0.5 * math.log(1 + 2 * d) for d in range(5)])
    power = formulas.kerple_at(Kerple(1, form="power"), [1.0], [0.5], -np.arange(5))
    assert power[0] == pytest.approx([0, -1, -1.41421, -1.73205, -2], abs=1e-5)


def test_kerple_parameters_are_kept_in_range():
    assert formulas.kerple_at(Kerple(1), [-3.0], [1.0], [5]) == pytest.approx(-0.01 * math.log(6))
    assert formulas.kerple_at(Kerple(1, form="power"), [1.0], [9.0], [3]) == pytest.approx(-9)
    with pytest.raises(ShapeError, match="3 heads"):
        formulas.kerple_at(Kerple(3), [1.0], [1.0], [5])


def test_fire_numbers():
    assert fire_input(Fire(1), 100, 90) == pytest.approx(0.1752547972, abs=1e-6)
    assert fire_input(Fire(1), 1000, 990) == pytest.approx(0.1501904832, abs=1e-6)


def test_fire_against_a_loop():
    rng, value = np.random.default_rng(3), Fire(2, hidden=5, c=0.3, threshold=4.0)
    w1, b1, w2, b2 = rng.normal(size=5), rng.normal(size=5), rng.normal(size=(2, 5)), rng.normal(size=2)
    got = formulas.fire_at(
        value, np.arange(7)[:, None], np.arange(3), w1=w1, b1=b1, w2=w2, b2=b2, c=0.7, multiplier=1.5
    )
    for h in range(2):
        for i in range(7):
            for j in range(3):
                want = oracle.fire(i, j, 0.7, 6.0, 1e-6, w1, b1, w2[h], b2[h])
                assert got[h, i, j] == pytest.approx(want, rel=1e-12)


def test_sandwich_numbers():
    value = Sandwich(8, dim=128, first_pair=1)
    got = formulas.sandwich_at(value, [0, 1, 10, 100, 1000])
    assert got[0] == pytest.approx([64, 62.5533814949, 44.6590939276, 30.6810858296, 10.6103532212], rel=1e-10)
    assert got[7] == pytest.approx(got[0] / 8)
    assert sandwich_ratios(Sandwich(12)) == pytest.approx([8 * h / 12 for h in range(1, 13)])


def test_sandwich_is_the_product_of_two_rows():
    value = Sandwich(3, dim=14)
    products = [oracle.dot(oracle.row(9, 14), oracle.row(m, 14)) for m in range(9)]
    got = formulas.sandwich_at(value, 9 - np.arange(9))
    assert got[1] == pytest.approx(np.array(products) * 3 / 16, rel=1e-12)


@pytest.mark.parametrize("limit", [None, 5])
def test_sinusoidal_bias_is_signed_and_clipped(limit):
    rng, value = np.random.default_rng(4), SinusoidalBias(3, sinusoid=Sinusoidal(10), limit=limit)
    weight = rng.normal(size=(3, 10))
    got = formulas.sinusoidal_bias_at(value, weight, DISTANCES)
    for h in range(3):
        for at, d in np.ndenumerate(DISTANCES):
            want = oracle.dot(weight[h], oracle.row(d if limit is None else oracle.clip(d, limit), 10))
            assert got[h][at] == pytest.approx(want, rel=1e-11)
    both = formulas.sinusoidal_bias_at(value, weight, [4, -4])
    assert abs(both[:, 0] - both[:, 1]).min() > 1e-3


def test_beyond_the_limit_is_the_limit_and_not_nothing():
    far = formulas.relative_sinusoid(Sinusoidal(6), [100, -100], limit=7)
    assert far == pytest.approx(np.array([oracle.row(7, 6), oracle.row(-7, 6)]))


def test_shaw_rows():
    rows = formulas.shaw_rows(Shaw(8, limit=2), np.arange(4)[:, None] - np.arange(4))
    assert rows.tolist() == [[2, 3, 4, 4], [1, 2, 3, 4], [0, 1, 2, 3], [0, 0, 1, 2]]


@pytest.mark.parametrize("limit", [None, 2])
def test_transformer_xl_against_a_loop(limit):
    rng, value = np.random.default_rng(5), TransformerXL(4, num_heads=3, limit=limit)
    q, k, u, v = (
        rng.normal(size=(3, 5, 4)),
        rng.normal(size=(3, 7, 4)),
        rng.normal(size=(3, 4)),
        rng.normal(size=(3, 4)),
    )
    weight, distance = rng.normal(size=(12, 12)), np.arange(2, 7)[:, None] - np.arange(7)
    got = formulas.transformer_xl_scores(value, q, k, distance, u=u, v=v, weight=weight)
    for h in range(3):
        for i in range(5):
            for j in range(7):
                d = i + 2 - j if limit is None else oracle.clip(i + 2 - j, limit)
                r = oracle.row(d, 12, order="sin|cos")
                projected = [oracle.dot(weight[h * 4 + c], r) for c in range(4)]
                content = oracle.dot(q[h, i] + u[h], k[h, j])
                assert got[h, i, j] == pytest.approx((content + oracle.dot(q[h, i] + v[h], projected)) / 2, rel=1e-11)


def test_transformer_xl_row():
    want = [0.14112, 0.29552, 0.029996, 0.003, -0.98999, 0.95534, 0.99955, 0.9999955]
    sinusoid = TransformerXL(4, num_heads=2).sinusoid
    assert formulas.relative_sinusoid(sinusoid, 3) == pytest.approx(want, abs=1e-5)


def test_log_buckets_of_deberta():
    v3 = Disentangled(64, num_heads=12, span=256, max_distance=512)
    distance = [0, 1, 127, 128, 129, 256, 511, -511, 1000, -1000]
    assert (formulas.disentangled_rows(v3, distance) - 256).tolist() == [0, 1, 127, 128, 129, 192, 255, -255, 255, -256]
    plain = Disentangled(64, num_heads=12, span=4)
    assert formulas.disentangled_rows(plain, [-9, -4, -1, 0, 3, 9]).tolist() == [0, 0, 3, 4, 7, 7]


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize(("one", "other"), [(True, True), (True, False), (False, True)])
def test_disentangled_against_a_loop(one, other, printed):
    rng = np.random.default_rng(6)
    terms = {"content_to_position": one, "position_to_content": other, "as_printed": printed}
    value = Disentangled(3, num_heads=2, dim=5, span=4, **terms)
    q, k = rng.normal(size=(2, 7, 3)), rng.normal(size=(2, 7, 3))
    table, key, query = rng.normal(size=(8, 5)), rng.normal(size=(6, 5)), rng.normal(size=(6, 5))
    distance = np.arange(7)[:, None] - np.arange(7)
    got = formulas.disentangled_scores(value, q, k, distance, table=table, key=key, query=query)
    for h in range(2):
        for i in range(7):
            for j in range(7):
                there, back = (max(0, min(7, d + 4)) for d in (i - j, j - i if printed else i - j))
                score = oracle.dot(q[h, i], k[h, j])
                if one:
                    score += oracle.dot(q[h, i], [oracle.dot(key[h * 3 + c], table[there]) for c in range(3)])
                if other:
                    score += oracle.dot(k[h, j], [oracle.dot(query[h * 3 + c], table[back]) for c in range(3)])
                assert got[h, i, j] == pytest.approx(score / math.sqrt(3 * (1 + one + other)), rel=1e-11)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: SinusoidalBias(3, sinusoid=Sinusoidal(8, offset=2)), "no prefix and no offset"),
        (lambda: RelativeSinusoid(Sinusoidal(8, padding_row=0)), "padding row"),
        (lambda: Shaw(8, keys=False, values=False), "neither"),
        (lambda: Sandwich(3, dim=7), "whole pairs"),
        (lambda: Disentangled(8, num_heads=2, span=8, max_distance=4), "max_distance exceeds"),
        (
            lambda: Disentangled(8, num_heads=2, content_to_position=False, position_to_content=False),
            "at least one term",
        ),
    ],
)
def test_impossible_values(make, rule):
    with pytest.raises(SpecError, match=rule):
        make()


def test_scores_take_the_new_biases():
    rng = np.random.default_rng(7)
    q, k = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4))
    encodings = [Kerple(2), Sandwich(2, dim=6), SinusoidalBias(2, sinusoid=Sinusoidal(6)), Fire(2, hidden=3)]
    weight = rng.normal(size=(2, 6))
    trained = {
        encodings[0]: {"r1": [1.0, 0.5], "r2": [0.3, 2.0]},
        encodings[2]: weight,
        encodings[3]: {"w1": np.ones(3), "b1": np.zeros(3), "w2": rng.normal(size=(2, 3)), "b2": np.zeros(2)},
    }
    d = np.arange(2, 5)[:, None] - np.arange(5)
    want = formulas.scores(q, k)
    want = want + formulas.kerple_at(encodings[0], [1.0, 0.5], [0.3, 2.0], d) + formulas.sandwich_at(encodings[1], d)
    want = want + formulas.sinusoidal_bias_at(encodings[2], weight, d)
    want = want + formulas.fire_at(encodings[3], np.arange(2, 5)[:, None], np.arange(5), **trained[encodings[3]])
    assert formulas.scores(q, k, encodings, tables=trained) == pytest.approx(want, rel=1e-12)
    with pytest.raises(SpecError, match=r"enters at score.*posenc\.formulas"):
        formulas.scores(q, k, Shaw(4))
