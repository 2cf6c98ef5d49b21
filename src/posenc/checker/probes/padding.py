"""Rows behind padding on the left, where a table's module is told which tokens are real."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Rows
from posenc.checker.calling.caller import Caller, parts, why
from posenc.checker.calling.roles import signature_of
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import bound_of
from posenc.checker.probes.registry import Probed, probe
from posenc.errors import PosencError
from posenc.records.finding import Evidence, FirstWrong, Recovered

TOKENS, PAD = 11, 3


@probe("left padding", Rows)
def left_padding(notes: Gathered, p: Probed) -> str | None:
    """A row of 11 tokens, and one of 8 behind 3 of padding: the second one's tokens are at 0, 1, 2…"""
    bound = bound_of(p)
    if bound is None or not bound.has("x"):
        return "the subject takes no rows of tokens"
    told = next((q for q in signature_of(bound.caller.function).parameters if q.role in ("begins", "mask")), None)
    if told is None:
        return "the subject is not told where a row begins"
    begins = np.array([0, PAD])
    said = begins if told.role == "begins" else np.arange(TOKENS) >= begins[:, None]
    x = bound.library.array(np.zeros((2, TOKENS, bound.dim)))
    name = next(n for n, role in bound.roles.items() if role == "x")
    given: dict[str, Any] = {name: x}
    call = Caller(bound.caller.function, bound.library)
    call(given)  # what takes no batch at all is no failure of the padding
    alone = p.box.rows(np.arange(float(TOKENS - PAD)))
    try:
        found = parts(call({**given, told.name: bound.library.whole(said)}))[0]
    except PosencError as error:
        notes.found(
            "defect",
            ("mask-padding",),
            f"told where rows begin ({told.name}), the subject fails",
            evidence=[Evidence(name="result for rows that begin at 0 and 3", expected="a table for each row",
                               seen=why(error, 160), where=f"2 rows of {TOKENS} tokens")],
            cause="positions that differ from row to row have one dimension more than the code allows",
            like="padding",
        )  # fmt: skip
        return None
    if found.shape != (2, TOKENS, alone.shape[1]):
        return f"the result has the shape {found.shape}"
    gap = float(np.abs(found[1, PAD:] - alone).max())
    if gap > 8 * p.box.rounding + 1e-5:
        counted = float(np.abs(found[1] - found[0]).max()) <= 8 * p.box.rounding + 1e-5
        notes.found(
            "defect",
            ("mask-padding",),
            "a row behind padding on the left gets other positions than alone",
            evidence=[Evidence(name="largest difference", expected=0.0, seen=gap, where=f"{PAD} tokens of padding")],
            first=FirstWrong(position=0.0),
            cause="padding is counted: positions are those of the columns" if counted else None,
            recovered=[Recovered(name="position of the first real token", value=float(PAD), expected=0.0)]
            if counted
            else [],
            like="padding",
        )
    return None
