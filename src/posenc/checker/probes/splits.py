"""One pass against a prefill and single tokens: offsets and caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.calling.bound import Bound
from posenc.checker.calling.caller import Caller, parts, why
from posenc.checker.calling.layouts import as_layout, from_layout
from posenc.checker.calling.roles import signature_of
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import apart, asked, bound_of, box_again
from posenc.checker.probes.registry import Probed, probe
from posenc.checker.recovery.angles import standing
from posenc.errors import PosencError
from posenc.records.finding import Evidence, FirstWrong, Recovered

SPLIT = 11
"""Tokens of a pass that is split."""


@probe("prefill and decode", Turning, Rows)
def splits(notes: Gathered, p: Probed) -> str | None:
    """Every split of 11 tokens into a prefill and single tokens, by the offset the subject takes."""
    bound = bound_of(p)
    if bound is None or (p.box.free and p.box.calls.get("form")):
        return "positions are given with every call"
    name = next((q.name for q in signature_of(bound.caller.function).parameters if q.role == "offset"), None)
    if name is None:
        return "the subject takes no offset"
    run = _turned_from(p, bound, name) if {"layout", "packed"} & set(p.box.calls) else _rows_from(p, name)
    x = np.random.default_rng(2).normal(size=(1, SPLIT, bound.dim))
    for which in range(len(run(x, 0))):
        if _split_at(notes, p, x, lambda part, offset, which=which: run(part, offset)[which], which):  # type: ignore[misc]
            break
    return None


def _split_at(
    notes: Gathered, p: Probed, x: np.ndarray, run: Callable[[np.ndarray, int], np.ndarray], which: int
) -> bool:
    """Say where queries (``which`` 0) or keys (1) of a prefill and single tokens differ from those of one pass."""
    n, whole, of = x.shape[1], run(x, 0), (", keys" if which else "")
    for cut in (1, 4, 7):
        pieces = [run(x[:, :cut], 0), *(run(x[:, i : i + 1], i) for i in range(cut, n))]
        gap = apart(np.concatenate(pieces), whole)
        if gap > 8 * p.box.rounding + 1e-5:
            wrong = int(
                np.flatnonzero(np.abs(np.concatenate(pieces) - whole).max(axis=1) > 8 * p.box.rounding + 1e-5)[0]
            )
            stands = _stands(p, pieces[1], x[:, cut])
            notes.found(
                "defect",
                ("offset-cache",),
                "a prefill followed by single tokens gives another result than one pass" + of,
                evidence=[
                    Evidence(
                        name="largest difference", expected=0.0, seen=gap, where=f"prefill of {cut}, then single tokens"
                    )
                ],
                first=FirstWrong(position=float(wrong)),
                cause="the offset is ignored, or a cache is keyed without it",
                like="offset cache-key",
                recovered=[]
                if stands is None
                else [Recovered(name="position of the first single token", value=stands, expected=float(cut))],
            )
            return True
    return False


def _turned_from(p: Probed, bound: Bound, name: str) -> Callable[[np.ndarray, int], list[np.ndarray]]:
    """What the subject makes of ``(1, tokens, d)`` queries from an offset on, and of keys if it takes them."""
    again = Bound(Caller(bound.caller.function, bound.library), {**bound.roles, name: "offset"}, bound.hints, bound.dim)
    inputs = [role for role in ("q", "k", "x") if again.has(role)]

    def run(part: np.ndarray, offset: int) -> list[np.ndarray]:
        if "packed" in p.box.calls:
            return [each[0] for each in p.box.calls["packed"](part, np.arange(part.shape[1]), again, offset=offset)[:2]]
        layout = p.box.calls["layout"]
        given = {role: bound.library.array(as_layout(layout, part)) for role in inputs}
        if again.has("length"):
            given["length"] = part.shape[1]
        made = parts(again.call(**given, offset=offset))[: len(inputs)]
        return [np.asarray(from_layout(layout, each, part.shape)[0]) for each in made]

    return run


def _rows_from(p: Probed, name: str) -> Callable[[np.ndarray, int], list[np.ndarray]]:
    """The rows that the subject makes for as many tokens as there are vectors, from an offset on."""

    def run(part: np.ndarray, offset: int) -> list[np.ndarray]:
        def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *args, **named: function(*args, **{**named, name: offset})

        return [asked(box_again(p, p.value, wrap=wrap), np.arange(float(part.shape[1])))]

    return run


def _stands(p: Probed, seen: np.ndarray, x: np.ndarray) -> float | None:
    """The position at which a token was turned; None for tables."""
    if not isinstance(p.box, Turning):
        return None
    from posenc.checker.matching.spectrum import Wanted
    from posenc.formulas.rotation import pairs_of

    pairs = pairs_of(p.encoding)
    z = (seen[0, pairs[:, 0]] + 1j * seen[0, pairs[:, 1]]) * (x[0, pairs[:, 0]] + 1j * x[0, pairs[:, 1]]).conj()
    at, left = standing(z, Wanted(p.encoding).theta(), near=0.0, reach=64.0)
    return round(at, 3) if left < 0.05 else None


@probe("step by step", CosSin)
def single_rows(notes: Gathered, p: Probed) -> str | None:
    """Single positions against all of them in one call."""
    if bound_of(p) is None or not p.box.free:
        return "positions cannot be chosen"
    top = min(40, p.box.largest if p.box.largest is not None else 40)
    at = np.arange(float(top))
    whole = np.concatenate(p.box.cos_sin(at), axis=1)
    single = []
    for one in at:
        try:
            single.append(np.concatenate(p.box.cos_sin(np.array([one])), axis=1)[0])
        except PosencError as error:
            return f"a single position is refused: {why(error, 100)}"
    gap = apart(np.stack(single), whole)
    if gap <= 8 * p.box.rounding + 1e-5:
        return None
    if getattr(p.encoding, "xpos_scale_base", None) and _same_angles(np.stack(single), whole, p.box.rounding):
        notes.found(
            "convention",
            ("offset-cache",),
            "the centre of xPos follows the call: single positions are scaled otherwise than all of them",
            evidence=[
                Evidence(name="largest difference", expected=0.0, seen=gap, where=f"positions 0 to {int(at[-1])}")
            ],
            cause="the scale counts from half of the last position: right where every call turns all keys anew",
            remedy="Cache keys before they are turned, or fix the centre.",
            like="cache-key",
        )
        return None
    notes.found(
        "defect",
        ("offset-cache", "state-leak"),
        "single positions give another result than one call over all of them",
        evidence=[Evidence(name="largest difference", expected=0.0, seen=gap)],
        like="cache-key",
    )
    return None


def _same_angles(single: np.ndarray, whole: np.ndarray, rounding: float) -> bool:
    """Whether two arrays ``[cos | sin]`` differ in their lengths alone."""
    a, b = (np.split(each, 2, axis=1) for each in (single, whole))
    size = np.hypot(*a) * np.hypot(*b)
    return bool((np.abs(a[0] * b[1] - a[1] * b[0]) <= (8 * rounding + 1e-5) * size).all())
