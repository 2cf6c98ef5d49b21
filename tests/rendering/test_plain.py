"""Text made harmless and numbers made readable."""

from __future__ import annotations

import pytest

from posenc.rendering.plain import figures, inert, short

HOSTILE = "a\x1b[31mred\x1b]8;;http://x\x07\r\n\t\u202e\u2066\x00\x9b31m\u2028\ud800[bold]x[/bold]:smile:"


def test_nothing_that_controls_a_terminal_is_left():
    text = inert(HOSTILE)
    assert text.isprintable()
    assert text.startswith("a\\x1b[31mred")
    text.encode("utf-8")


def test_plain_text_stays():
    assert inert("Qwen2.5-7B θ λ 模型") == "Qwen2.5-7B θ λ 模型"


def test_long_text_is_cut():
    assert short("x" * 7, 5) == "xxxx…"
    assert short("x" * 5, 5) == "xxxxx"


@pytest.mark.parametrize("value", [1.0, 0.999999, 6.2831853, 123456.789, 99999999.0, 1e-4, 9.9999e-5, 3e-7, 2.5e12])
def test_figures_keep_six_digits(value):
    assert float(figures(value)) == pytest.approx(value, rel=1e-5)
    assert len(figures(value)) <= 11


def test_zero_and_none():
    assert (figures(0.0), figures(None)) == ("0", "∞")
