"""One encoding in two spellings is the same; one number changed is found where it is."""

import numpy as np
import pytest

from posenc.formulas import Difference, differences, frequencies, same
from posenc.spec import (
    NTK,
    Alibi,
    Dynamic,
    Explicit,
    Factors,
    Interleave,
    Learned,
    Linear,
    Llama3,
    LongRope,
    Mixed,
    Periods,
    QueryScale,
    Rotary,
    Seasonal,
    Sinusoidal,
    Split,
    T5Bias,
    Unmodelled,
    Yarn,
    executable,
)


def explicit(encoding, **fields):
    return Rotary(encoding.head_dim, schedule=Explicit(theta=tuple(frequencies(encoding).theta[0].tolist())), **fields)


YARN = Rotary(32) >> Yarn(4, original=256)
FACTORS = tuple((frequencies(Rotary(32)).theta[0] / frequencies(YARN).theta[0]).tolist())
GAIN = frequencies(YARN).gain

SAME = {
    "geometric and its numbers": (Rotary(32), explicit(Rotary(32))),
    "NTK and its base": (Rotary(32) >> NTK(4), Rotary(32, base=1e4 * 4 ** (32 / 30))),
    "two halves and one quarter": (Rotary(32) >> Linear(2) >> Linear(2), Rotary(32) >> Linear(4)),
    "yarn and its factors": (YARN, Rotary(32) >> Factors(FACTORS, attention_factor=GAIN)),
    "yarn as longrope": (
        YARN,
        Rotary(32) >> LongRope(1, original=99, short_factor=FACTORS, long_factor=FACTORS, attention_factor=GAIN),
    ),
    "yarn's gain said twice": (YARN, Rotary(32) >> Yarn(4, original=256, attention_factor=GAIN)),
    "mscale said as the default": (YARN, Rotary(32) >> Yarn(4, original=256, mscale=0.707)),
    "factor one": (Rotary(32), Rotary(32) >> Llama3(1, original=64)),
    "dynamic, twice": (Rotary(32) >> Dynamic(2, original=64), Rotary(32) >> Linear(1) >> Dynamic(2, original=64)),
    "as executed": (Rotary(32) >> Factors((3.0,) * 16), Rotary(32) >> executable("linear", factor=3.0)),
    "one pair has one layout": (Rotary(2), Rotary(2, interleaved=True)),
    "sections of one axis": (Rotary(32), Rotary(32, axes=Split((16,)))),
    "interleaved sections of one pair each": (
        Rotary(4, axes=Split((1, 1), own_schedule=False)),
        Rotary(4, axes=Interleave((1, 1))),
    ),
    "pairs that stand still": (
        Rotary(8, rotary_dim=4, interleaved=True),
        Rotary(8, interleaved=True, schedule=Explicit(theta=(1.0, 0.01, 0.0, 0.0))),
    ),
    "seasons as a sinusoid": (
        Seasonal((24.0, 7.0), harmonics=(2, 1)),
        Sinusoidal(6, schedule=Periods(periods=(24.0, 7.0), harmonics=(2, 1))),
    ),
    "a harmonic is a period": (Seasonal((24.0,), harmonics=(2,)), Seasonal((24.0, 12.0))),
    "orders of one pair": (Sinusoidal(2), Sinusoidal(2, order="sin|cos")),
    "equal values": (T5Bias(5), T5Bias(5)),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_in_two_spellings(name):
    left, right = SAME[name]
    assert differences(left, right) == []
    assert same(left, right, layout=True)
    assert same(right, left)


LONG = {"short_factor": (1.0,) * 16, "long_factor": (2.0,) * 16}
DIFFERENT = {
    "base": (Rotary(32), Rotary(32, base=10100.0), "frequency of pair", range(1, 16), None),
    "kind": (Rotary(32), Alibi(4), "kind", [None], None),
    "head_dim": (Rotary(32), Rotary(16), "head_dim", [None], None),
    "partial": (Rotary(32), Rotary(32, rotary_dim=16), "rotary_dim", [None], None),
    "where": (Rotary(32, rotary_dim=8), Rotary(32, rotary_dim=8, where="last"), "where", [None], None),
    "learned": (Rotary(32), Rotary(32, learned=True), "learned", [None], None),
    "gain": (YARN, Rotary(32) >> Factors(FACTORS), "gain on cos and sin", [None], None),
    "logit": (
        YARN,
        Rotary(32) >> Yarn(4, original=256, softmax_mscale=1.0),
        "factor on the softmax scale",
        [None],
        None,
    ),
    "one explicit number": (
        explicit(Rotary(32)),
        explicit(Rotary(32)).replace(
            theta=tuple(t * (1 + 3e-12 * (i == 7)) for i, t in enumerate(frequencies(Rotary(32)).theta[0].tolist()))
        ),
        "frequency of pair",
        [7],
        None,
    ),
    "long set only": (
        Rotary(32) >> LongRope(2, original=64, **LONG),
        Rotary(32) >> LongRope(2, original=64, **{**LONG, "long_factor": (2.0,) * 15 + (2.5,)}),
        "frequency of pair",
        [15],
        65,
    ),
    "short set only": (
        Rotary(32) >> LongRope(2, original=64, **LONG),
        Rotary(32) >> LongRope(2, original=64, **{**LONG, "short_factor": (1.0, 1.25) + (1.0,) * 14}),
        "frequency of pair",
        [1],
        1,
    ),
    "threshold": (
        Rotary(32) >> LongRope(2, original=64, attention_factor=1.0, **LONG),
        Rotary(32) >> LongRope(2, original=80, attention_factor=1.0, **LONG),
        "frequency of pair",
        range(16),
        65,
    ),
    "dynamic factor": (
        Rotary(32) >> Dynamic(2, original=64),
        Rotary(32) >> Dynamic(3, original=64),
        "frequency of pair",
        range(1, 16),
        65,
    ),
    "dynamic dropped": (Rotary(32) >> Dynamic(2, original=64), Rotary(32), "frequency of pair", range(1, 16), 65),
    "axes": (Rotary(32), Rotary(32, axes=Split((8, 8))), "axes", [None], None),
    "heads": (Rotary(32, axes=Mixed(3)), Rotary(32, axes=Mixed(5)), "heads", [None], None),
    "sections": (
        Rotary(8, axes=Split((2, 2), own_schedule=False)),
        Rotary(8, axes=Interleave((2, 2))),
        "frequency on axis 0 of pair",
        [1, 2],
        None,
    ),
    "coordinates": (
        Rotary(8, axes=Split((2, 2))),
        Rotary(8, axes=Split((2, 2), coordinates="unit")),
        "coordinates",
        [None],
        None,
    ),
    "growth": (
        Rotary(8, xpos_scale_base=512.0),
        Rotary(8, xpos_scale_base=256.0),
        "growth of pair",
        range(4),
        None,
    ),
    "still pairs with a gain": (
        Rotary(8, rotary_dim=4, interleaved=True) >> Factors((1.0, 1.0), attention_factor=2.0),
        Rotary(8, interleaved=True, schedule=Explicit(theta=(1.0, 0.01, 0.0, 0.0)))
        >> Factors((1.0,) * 4, attention_factor=2.0),
        "rotary_dim",
        [None],
        None,
    ),
    "order": (Sinusoidal(4), Sinusoidal(4, order="sin|cos"), "function of channel", [1, 2], None),
    "sinusoid's dim": (Sinusoidal(4), Sinusoidal(6), "dim", [None], None),
    "denominator": (Sinusoidal(8), Sinusoidal(8, shift=1.0), "frequency of channel", range(2, 8), None),
    "offset": (Sinusoidal(8), Sinusoidal(8, offset=2), "offset", [None], None),
    "padding": (Sinusoidal(8), Sinusoidal(8, padding_row=1), "padding_row", [None], None),
    "trained frequencies": (Sinusoidal(8), Sinusoidal(8, learned=True), "learned", [None], None),
    "prefix": (Sinusoidal(8), Sinusoidal(8, prefix=1), "prefix", [None], None),
    "odd": (Sinusoidal(7), Sinusoidal(7, odd="zero"), "function of channel", [6], None),
    "trend": (Seasonal((7.0,), trend=2.0), Seasonal((7.0,), trend=3.0), "frequency of channel", [2], None),
    "max_bias": (Alibi(3), Alibi(3, max_bias=4.0), "slope of head", range(3), None),
    "symmetric": (Alibi(3), Alibi(3, symmetric=True), "symmetric", [None], None),
    "alibi heads": (Alibi(3), Alibi(4), "num_heads", [None], None),
    "buckets": (T5Bias(3), T5Bias(3, max_distance=256), "max_distance", [None], None),
    "beta": (QueryScale(0.1, original=64), QueryScale(0.2, original=64), "beta", [None], None),
    "rows": (Learned(8, shape=(5,)), Learned(8, shape=(7,)), "shape", [None], None),
    "name": (Unmodelled("a"), Unmodelled("b"), "name", [None], None),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_difference_is_found_where_it_is(name):
    left, right, what, where, length = DIFFERENT[name]
    found = [d for d in differences(left, right) if d.what == what]
    if name in ("denominator", "odd"):  # other numbers follow
        found = [d for d in found if d.where in set(where)]
    assert [d.where for d in found] == list(where)
    assert {d.length for d in found} == {length}
    assert not any(d.is_convention for d in found)
    assert not same(left, right)
    mirrored = [(d.where, d.right, d.left) for d in differences(right, left) if d.what == what]
    assert [(d.where, d.left, d.right) for d in found] == [m for m in mirrored if m[0] in set(where)]


@pytest.mark.parametrize(
    "name", ["base", "gain", "long set only", "threshold", "one explicit number", "max_bias", "padding"]
)
def test_nothing_else_is_reported(name):
    left, right, what, _, _ = DIFFERENT[name]
    assert {d.what for d in differences(left, right)} == {what}


def test_both_numbers_are_shown():
    found = differences(Rotary(4), Rotary(4, base=1e6))
    assert found == [Difference("frequency of pair", 1, found[0].left, found[0].right)]
    assert (found[0].left, found[0].right) == (pytest.approx(0.01), pytest.approx(0.001))
    assert str(differences(Sinusoidal(8), Sinusoidal(8, offset=2))[0]) == "offset: 0 and 2"
    beyond = differences(Rotary(4) >> Dynamic(2, original=64), Rotary(4))[0]
    assert str(beyond).startswith("frequency of pair 1 at length 65: 0.009")


def test_a_channel_of_zeros_has_no_frequency():
    found = differences(Sinusoidal(5, odd="zero"), Sinusoidal(5, odd="zero", first=2.0))
    assert [d.where for d in found] == [0, 1, 2, 3]


def test_pairing_is_a_convention():
    left, right = Rotary(32, rotary_dim=8), Rotary(32, rotary_dim=8, interleaved=True)
    found = differences(left, right)
    assert [(d.what, d.left, d.right, d.is_convention) for d in found] == [
        ("pairing", "(i, i + 4)", "(2i, 2i + 1)", True)
    ]
    assert same(left, right)
    assert not same(left, right, layout=True)
    both = differences(left, right.replace(base=11000.0))
    assert [d.is_convention for d in both] == [True, False, False, False]
    assert not same(left, right.replace(base=11000.0))


def test_tolerance_is_relative_and_symmetric():
    left, right = Rotary(8), Rotary(8, base=10001.0)
    assert not same(left, right, tolerance=7e-5)
    assert same(left, right, tolerance=8e-5)
    assert same(right, left, tolerance=8e-5)
    half = [Rotary(2, schedule=Explicit(theta=(t,))) for t in (1.0, 0.5)]
    assert same(*half, tolerance=0.5)
    assert same(*half[::-1], tolerance=0.5)
    assert not same(*half, tolerance=0.49)
    tiny = [Rotary(2, schedule=Explicit(theta=(t,))) for t in (1e-300, 1.001e-300)]
    assert not same(*tiny)
    assert np.isfinite(differences(*tiny)[0].left)
