"""Positions that run along another dimension than that of the tokens."""

from __future__ import annotations

from typing import Any

from posenc.checker.calling.caller import WrongAxis
from posenc.checker.calling.hints import Hints
from posenc.checker.gathering import Gathered
from posenc.records.finding import Evidence, Recovered


def astray(notes: Gathered, wrong: WrongAxis) -> None:
    """Positions that run along another dimension than the user, or its documentation, gives the tokens."""
    said = ", the layout of its documentation," if wrong.stated else ""
    names = {"b": "the batch", "h": "the heads", "d": "the channels"}
    along = names.get(wrong.axis, wrong.axis)
    notes.found(
        "defect",
        ("axis-order",),
        f"positions run along {along}, not along the tokens",
        evidence=[Evidence(name="dimension along which equal vectors differ", expected="t", seen=wrong.axis)],
        cause=f"dimension {wrong.layout.index(wrong.axis)} of ({', '.join(wrong.layout)}){said} is taken for the "
        "tokens; the rest is examined with the two exchanged",
        remedy="Take the length from the dimension of the tokens, and line the table up with it.",
        recovered=[Recovered(name="layout", value=wrong.exchanged, expected=wrong.layout)],
    )


def batch_second(notes: Gathered, box: Any, hints: Hints) -> None:
    """Token ids that a subject takes with the batch in the second dimension, where nobody said so."""
    if box.calls.get("tokens") != "tb" or hints.layout is not None:
        return
    notes.found(
        "convention",
        ("axis-order",),
        "positions run along the first dimension of the token ids",
        evidence=[Evidence(name="shape of token ids in which rows follow positions", seen="(tokens, batch)")],
        cause="the length is taken from the first dimension: right only where the batch comes second",
        remedy="For ids of shape (batch, tokens), take the length from the last dimension; for (tokens, batch), say "
        "--layout tbd.",
        recovered=[Recovered(name="layout", value="tbd", expected="btd")],
    )
