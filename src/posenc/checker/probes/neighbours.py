"""Two objects of one class made with different numbers: what lies outside them is shared, and must not be confused."""

from __future__ import annotations

import inspect as signatures
from typing import Any

import numpy as np

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.calling.constructing import arguments_for, constructed
from posenc.checker.calling.roles import ROLE_OF
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import apart, asked, bound_of, box_again
from posenc.checker.probes.registry import Probed, probe
from posenc.records.finding import Evidence

TIMES = (3.0, 7.0)
"""The bases of the two objects, in units of the wanted one."""


@probe("objects with other bases", Turning, CosSin, Rows)
def neighbours(notes: Gathered, p: Probed) -> str | None:
    """One object with another base, then a second, then the first again."""
    bound = bound_of(p)
    if bound is None or signatures.isroutine(p.value):
        return "the subject is no object"
    if getattr(getattr(p.encoding, "schedule", None), "base", None) is None or bound.dim < 4:
        return "no base is wanted that shows"
    cls: Any = type(p.value)
    given, unknown = arguments_for(cls, p.hints)
    if unknown or not any(ROLE_OF.get(name.lower()) == "base" for name in given):
        return "the constructor takes no base, or more than the wanted encoding says"
    at = np.arange(1.0, 1.0 + min(11, 11 if p.box.largest is None else p.box.largest))
    boxes, answers = [], []
    for times in TIMES:
        made = constructed(cls, p.hints.replace(base=p.hints.base * times))
        boxes.append(box_again(p, made))
        answers.append(asked(boxes[-1], at))
    near = 8 * p.box.rounding + 1e-5
    where = f"bases {p.hints.base * TIMES[0]:g} and {p.hints.base * TIMES[1]:g}, positions 1 to {int(at[-1])}"
    if apart(*answers) <= near:
        notes.found(
            "defect",
            ("state-leak", "config-parsing"),
            "two objects made with different bases answer alike",
            evidence=[
                Evidence(name="largest difference", expected="more than rounding", seen=apart(*answers), where=where)
            ],
            cause="a table outside the object is kept without regard to the base: whoever comes first decides "
            "(or the base is never read)",
            remedy="Key a shared cache on every number that changes its content, or keep the table in the object.",
            like="cache-key",
        )
        return None
    gap = apart(answers[0], asked(boxes[0], at))
    if gap > near:
        notes.found(
            "defect",
            ("state-leak", "config-parsing"),
            "an object answers otherwise once another with another base was asked",
            evidence=[Evidence(name="largest difference", expected=0.0, seen=gap, where=where)],
            cause="a table outside the object is kept without regard to the base: whoever comes last decides",
            remedy="Key a shared cache on every number that changes its content, or keep the table in the object.",
            like="cache-key",
        )
    return None
