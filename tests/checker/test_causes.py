"""Causes that the recovered numbers determine are named; identify shows direction, keys and where positions start."""

from __future__ import annotations

import math

import numpy as np
import pytest

from posenc.checker.checking import check
from posenc.checker.identifying import identify


def turn(x, angle, sign=1.0, interleaved=False):
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else np.split(x, 2, axis=-1)
    c, s = np.cos(angle), sign * np.sin(angle)
    pieces = [a * c - b * s, b * c + a * s]
    return np.stack(pieces, -1).reshape(x.shape) if interleaved else np.concatenate(pieces, -1)


def rates(d=16, base=1e4):
    return base ** (-np.arange(0, d, 2) / d)


@pytest.mark.parametrize(("log", "name"), [(math.log10, "log10"), (math.log2, "log2")])
def test_another_logarithm_in_the_exponent(log, name):
    def table(positions):
        angle = np.outer(positions, np.exp(-np.arange(0, 46, 2) * (log(5e4) / 46)))
        return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(len(positions), 46)

    (found,) = check(table, "sinusoidal(46, base=50000)", library="numpy").at_least("defect")
    assert f"{name} is taken in place of ln" in str(found.cause)
    assert {r.name: r.value for r in found.recovered}["base"] == pytest.approx(math.exp(log(5e4)), rel=1e-4)


def yarn(slip):
    """YaRN's frequencies with one slip where the ends of the ramp are computed."""
    d, base, original, factor = 64, 1e5, 4096, 40.0
    above = {"log2 turns": math.log2, "log10 turns": math.log10}.get(slip, math.log)
    below = {"log2 base": math.log2, "log10 base": math.log10}.get(slip, math.log)

    def end(turns):
        circle = {"no 2 pi": 1.0, "pi": math.pi}.get(slip, 2 * math.pi)
        return (
            d
            * above(original / (turns * circle))
            / ((1 if slip == "not halved" else 2) * below(1e4 if slip == "base" else base))
        )

    low, high = max(math.floor(end(32)), 0), min(math.ceil(end(1)), d - 1)
    ramp = np.clip((np.arange(d // 2) - low) / max(high - low, 1e-3), 0, 1)
    plain = rates(d, base)
    return plain / factor * ramp + plain * (1 - ramp)


@pytest.mark.parametrize(
    ("slip", "cause"),
    [
        ("log2 base", "log2 is taken of the base"),
        ("log10 base", "log10 is taken of the base"),
        ("log2 turns", "log2 is taken of the turns"),
        ("log10 turns", "log10 is taken of the turns"),
        ("not halved", "the width is not halved"),
        ("no 2 pi", "2 pi is missing"),
        ("pi", "pi in place of 2 pi"),
        ("base", "those of base 10000, not 100000"),
    ],
)
def test_slips_in_the_ends_of_yarns_ramp(slip, cause):
    line = "rotary(64, base=100000) >> yarn(40, original=4096)"
    assert check(yarn(""), line).acquitted
    found = check(yarn(slip), line).at_least("defect")[0]
    assert cause in str(found.cause)


def queries_and_keys(change):
    def rope(q, k):
        angle = np.outer(np.arange(q.shape[-2]), rates())
        return turn(q, angle), change(k, angle)

    return rope


@pytest.mark.parametrize(
    ("change", "title", "kind"),
    [
        (lambda k, angle: turn(k, angle, interleaved=True), "keys pair other channels than queries", "layout"),
        (lambda k, angle: turn(k, 2 * angle), "keys are turned otherwise than queries", "double-application"),
        (lambda k, angle: turn(k, angle + rates()), "keys stand 1 positions away", "offset-cache"),
        (lambda k, angle: 1.5 * turn(k, angle), "keys are multiplied by 1.5", "attention-factor"),
    ],
)
def test_keys_beside_queries(change, title, kind):
    subject = queries_and_keys(change)
    (found,) = check(subject, "rotary(16)", library="numpy", probes=False).at_least("defect")
    assert found.title.startswith(title)
    assert found.kinds[0] == kind
    assert any(note.startswith(title) for note in identify(subject, library="numpy").notes)


def test_keys_like_queries_say_nothing():
    subject = queries_and_keys(turn)
    assert check(subject, "rotary(16)", library="numpy").acquitted
    assert not [n for n in identify(subject, library="numpy").notes if n.startswith("keys")]


@pytest.mark.parametrize(("sign", "words"), [(1.0, "forwards"), (-1.0, "backwards, by -angle")])
def test_the_direction_is_identified(sign, words):
    report = identify(lambda x, positions: turn(x, np.outer(positions, rates()), sign), library="numpy")
    assert {r.name: r.value for r in report.recovered}["direction"] == words
    assert ("turned backwards" in str(report.identified[0].remark)) == (sign < 0)


def test_the_first_position_is_identified():
    report = identify(lambda x, positions: turn(x, np.outer(positions + 2, rates())), library="numpy")
    assert {r.name: r.value for r in report.recovered}["position that the first one stands for"] == pytest.approx(2)


def test_sines_before_cosines_are_identified():
    def pair(positions):
        angle = np.outer(positions, rates())
        return np.sin(angle), np.cos(angle)

    assert "sines before cosines" in str(identify(pair, library="numpy").identified[0].remark)
