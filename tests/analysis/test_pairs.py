"""Channels of pairs against the tables and rotations that use them; bands against hand-made ratios."""

from __future__ import annotations

import numpy as np
import pytest

from posenc.analysis.pairs import axis_of, bands, channels, full_factor, layout, runs
from posenc.formulas.spectrum import unscaled
from posenc.formulas.tables import SINE, channel_waves
from posenc.spec import Rotary, parse


@pytest.mark.parametrize(
    "notation",
    [
        "sinusoidal(10)",
        "sinusoidal(7)",
        "sinusoidal(10, order='interleaved_cos_first')",
        "sinusoidal(7, order='interleaved_cos_first')",
        "sinusoidal(10, order='sin|cos')",
        "sinusoidal(11, order='cos|sin', odd='zero')",
        "sinusoidal(20, order='sin|cos', axes=split((3, 7)))",
        "sinusoidal(20, order='cos|sin', axes=split((3, 7)))",
    ],
)
def test_channels_of_a_table_are_those_it_is_filled_by(notation):
    (encoding,) = parse(notation)
    wave, pair = channel_waves(encoding)
    for i, found in enumerate(channels(encoding)):
        holding = np.flatnonzero((pair == i) & (wave != 0)).tolist()
        assert sorted(found) == holding
        if len(found) == 2:
            assert wave[found[0]] == SINE


@pytest.mark.parametrize(
    ("notation", "first", "last"),
    [
        ("rotary(10)", (0, 5), (4, 9)),
        ("rotary(10, interleaved=True)", (0, 1), (8, 9)),
        ("rotary(14, rotary_dim=6)", (0, 3), (2, 5)),
        ("rotary(14, rotary_dim=6, where='last')", (8, 11), (10, 13)),
        ("rotary(14, rotary_dim=6, where='last', interleaved=True)", (8, 9), (12, 13)),
    ],
)
def test_channels_of_a_rotary(notation, first, last):
    (encoding,) = parse(notation)
    found = channels(encoding)
    assert (found[0], found[-1], len(found)) == (first, last, encoding.pairs)


def test_every_channel_belongs_to_one_pair():
    (encoding,) = parse("rotary(26, rotary_dim=22)")
    assert sorted(c for pair in channels(encoding) for c in pair) == list(range(22))
    assert "first 22 of the head's 26" in layout(encoding)


def test_axes_own_their_pairs():
    (sections,) = parse("rotary(22, axes=split((2, 5, 4), own_schedule=False))")
    assert axis_of(sections, unscaled(sections)) == (0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2)
    (in_turn,) = parse("rotary(22, axes=interleave((5, 3, 3)))")
    assert axis_of(in_turn, unscaled(in_turn)) == (0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0)
    assert axis_of(Rotary(22), unscaled(Rotary(22))) is None


def test_bands_name_what_happens():
    found = bands([1.0, 1.0, 1.5, 3.9999, 4.0, 4.0, None, 0.5, 9.0], 4.0)
    assert [(b.effect, b.pairs) for b in found] == [
        ("kept", (0, 1)),
        ("blended", (2, 3)),
        ("stretched", (4, 5)),
        ("still", (6, 6)),
        ("shortened", (7, 7)),
        ("own ratio", (8, 8)),
    ]
    assert found[1].ratio == (1.5, 3.9999)
    assert found[3].ratio is None


def test_the_full_factor_follows_the_chain_and_the_length():
    assert full_factor(parse("rotary(16) >> linear(2) >> ntk(3)")[0], None) == 6
    assert full_factor(parse("rotary(16) >> dynamic(2, original=512)")[0], 1024) == 3
    assert full_factor(parse("rotary(16) >> resonance()")[0], None) is None
    assert full_factor(Rotary(16), None) is None


def test_runs_of_nothing():
    assert runs([]) == ()
