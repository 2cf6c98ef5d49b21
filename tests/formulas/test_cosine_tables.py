"""Tables of cosines by angle addition against mpmath, near zero and far out."""

from __future__ import annotations

import pytest
from mpmath import mp

from posenc.errors import ShapeError
from posenc.formulas import cosine_table, frequencies
from posenc.formulas.spectrum import unscaled_remainder
from posenc.spec import Mixed, Rotary, Split, Yarn


@pytest.mark.parametrize("start", [0, 10**7 - 1000, 2**40])
def test_half_a_unit_in_the_last_place_at_any_position(start):
    value = Rotary(26, base=500000.0)
    cos, sin = cosine_table(frequencies(value), 1009, start, unscaled_remainder(value))
    assert cos.shape == sin.shape == (1009, 13)
    with mp.workdps(60):
        for row in (0, 1, 31, 32, 33, 500, 1007, 1008):
            for i in range(13):
                angle = (start + row) * mp.mpf(500000) ** (-mp.mpf(2 * i) / 26)
                assert abs(mp.mpf(float(cos[row, i])) - mp.cos(angle)) < 6e-8
                assert abs(mp.mpf(float(sin[row, i])) - mp.sin(angle)) < 6e-8


def test_a_gain_is_included():
    f = frequencies(Rotary(8) >> Yarn(4.0, original=64))
    cos, _ = cosine_table(f, 1)
    assert f.gain > 1.1
    assert abs(cos[0] - f.gain).max() < 1e-7


def test_refusals():
    f = frequencies(Rotary(8))
    assert cosine_table(f, 0)[0].shape == (0, 4)
    for arguments in ((f, -1), (f, 2**30), (f, 3, 2**60)):
        with pytest.raises(ShapeError):
            cosine_table(*arguments)
    for value in (Rotary(8, axes=Split((2, 2))), Rotary(8, axes=Mixed(3))):
        with pytest.raises(ShapeError, match="one axis"):
            cosine_table(frequencies(value), 3)
