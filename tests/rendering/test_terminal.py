"""What the terminal shows: inert names, every fact, any width."""

from __future__ import annotations

import pytest

from posenc.analysis.comparison import diff
from posenc.analysis.inspection import inspect
from posenc.records import Assumption, UnreadKey
from posenc.rendering import terminal
from posenc.rendering.facts import selection
from readings import LLAMA31, reading

EVIL = "\x1b[2J[red]evil[/red]\r:skull:"


def shown(record, width: int = 80) -> str:
    to = terminal.console(width=width)
    return terminal.text_of(terminal.inspection(record, width), to)


def test_the_answer_is_on_the_screen():
    text = shown(inspect(reading(LLAMA31, trained=131072, served=131072), similarity=False))
    for expected in ("0-28", "29-34", "35-63", "stretched", "20473564", "2900.06", "pairs 39-63 (25 of 64)", "0, 64"):
        assert expected in text


def test_the_table_has_both_ends_and_every_border():
    spectrum = inspect(reading(LLAMA31), similarity=False).parts[0].encodings[0].spectrum
    chosen = selection(spectrum.states, 64)
    assert [i for i in chosen if i is not None] == [0, 1, 2, 28, 29, 34, 35, 61, 62, 63]
    assert chosen.count(None) == 3
    assert chosen[3] is None


@pytest.mark.parametrize("pairs", [1, 2, 3, 5])
def test_short_tables_are_whole(pairs):
    spectrum = inspect(reading(f"rotary({2 * pairs}, base=10)"), similarity=False).parts[0].encodings[0].spectrum
    assert selection(spectrum.states, pairs) == list(range(pairs))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_lines_fit_the_terminal(width):
    record = inspect(reading(f"{LLAMA31} + query_scale(0.1, original=8192)", served=131072), similarity=False)
    assert max(map(len, shown(record, width).split("\n"))) <= width


@pytest.mark.parametrize("width", [60, 80, 120])
def test_columns_never_break_numbers(width):
    text = shown(inspect(reading(LLAMA31), similarity=False), width)
    assert "20473564" in text
    assert "2559196" in text


def test_hostile_names_are_inert():
    record = inspect(
        reading(
            "rotary(6)",
            name=EVIL,
            source=EVIL,
            model_type=EVIL,
            assumed=(Assumption(key=EVIL, value=EVIL, why=EVIL),),
            unread=(UnreadKey(key=EVIL, value=EVIL),),
            faults=(EVIL,),
            notes=(EVIL,),
        ),
        similarity=False,
    )
    text = shown(record, 100)
    assert "\x1b" not in text
    assert "\r" not in text
    assert text.count("\\x1b[2J[red]evil[/red]\\r:skull:") == 10


def test_hostile_names_in_a_comparison_are_inert():
    found = diff(reading("rotary(6)", name=EVIL), reading("rotary(6, base=7)", name=EVIL, notes=(EVIL,)))
    text = terminal.text_of(terminal.difference(found), terminal.console(width=100))
    assert "\x1b" not in text
    assert "[red]evil[/red]" in text


def test_a_comparison_shows_both_numbers():
    found = diff(reading("rotary(6)"), reading("rotary(6, base=10100)"))
    text = terminal.text_of(terminal.difference(found), terminal.console(width=80))
    assert "0.04641588834" in text
    assert f"{10100 ** (-1 / 3):.9f}" in text
    assert "geometric base 10000 against 10100" in text
    assert "first of 2 of 3 that differ" in text


def test_no_position_is_said():
    assert "none (NoPE)" in shown(inspect(reading("none")))
