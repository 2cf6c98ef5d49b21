"""Compiled subjects: torch.compile captures graphs, without generating code, and runs them at lengths it has not seen.

Results are compared with the plain subject's, and graphs are counted: two lengths teach the compiler that the length
changes, so a third one needs no new graph, unless positions are Python numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import bound_of, is_module
from posenc.checker.probes.recorded import (
    FIRST,
    called,
    farthest_apart,
    made,
    recorded,
    tokens_fit,
    too_much_to_capture,
    unheard,
)
from posenc.checker.probes.registry import Probed, probe
from posenc.records.finding import Evidence, FirstWrong

LENGTHS = (8, 29, 13, 19, 23)
"""Tokens of each call; the longest early, so that a table that grows has grown before graphs are counted."""
CLOSE = 1e-4


@probe("compiled (torch.compile, graphs alone)", Turning, CosSin, Rows)
def compiled(notes: Gathered, p: Probed) -> str | None:
    """The compiled subject at five lengths. Compiled code elsewhere in this process is compiled anew when next run."""
    bound = bound_of(p)
    if bound is None or bound.library.name != "torch":
        return "the subject is not of torch"
    if not tokens_fit(p, LENGTHS):
        return f"the table has fewer than {FIRST + max(LENGTHS)} rows"
    import torch

    calls = recorded(p, LENGTHS)
    with unheard():
        why = too_much_to_capture(calls[0], called(p, made(p)))
    if why is not None:
        return why
    graphs = 0

    def count(graph: Any, _: Any) -> Callable[..., Any]:
        nonlocal graphs
        graphs += 1
        forward: Callable[..., Any] = graph.forward
        return forward

    plain, subject = called(p, made(p)), called(p, made(p))
    torch._dynamo.reset()
    counted: list[int] = []
    try:
        with unheard():
            graph = torch.compile(subject, backend=count)
            for tokens, call in zip(LENGTHS, calls, strict=True):
                expected = call.on(plain)
                try:
                    seen = call.on(graph)
                except Exception as error:
                    said = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:100]}"
                    if not counted:
                        return f"torch.compile refuses it: {said}"
                    _differs(notes, tokens, said, "raises where the plain one answers")
                    return None
                gap = farthest_apart(seen, expected)
                if gap > CLOSE:
                    _differs(notes, tokens, gap, "gives another result than the plain one")
                    return None
                counted.append(graphs)
    finally:
        torch._dynamo.reset()
    if graphs == 0:
        return "torch.compile found nothing to capture"
    notes.measure("graphs compiled for five lengths", graphs)
    if all(later > earlier for earlier, later in itertools.pairwise(counted[1:])):
        _anew(notes, counted, module=is_module(p.value))
    return None


def _anew(notes: Gathered, counted: list[int], *, module: bool) -> None:
    """New graphs for every length: a finding about a module, a note about a plain function."""
    title = "torch.compile makes new graphs for every length"
    if not module:
        notes.note(f"{title}: {counted[-1]} after five")
        return
    notes.found(
        "harmless",
        ("export-compile",),
        title,
        evidence=[
            Evidence(name="graphs after two lengths", seen=counted[1]),
            Evidence(name="graphs after five lengths", expected=counted[1], seen=counted[-1]),
        ],
        cause="positions or lengths are Python numbers (a loop, a list, an int in the arithmetic)",
        remedy="Make positions with torch.arange inside the call.",
        like="export",
    )


def _differs(notes: Gathered, tokens: int, seen: Any, what: str) -> None:
    first = tokens == LENGTHS[0]
    where = f"{tokens} tokens" if first else f"{tokens} tokens, compiled with {LENGTHS[0]}"
    notes.found(
        "defect",
        ("export-compile",),
        f"the compiled subject {what}",
        evidence=[Evidence(name="largest difference" if isinstance(seen, float) else "answer", seen=seen, where=where)],
        cause="a branch for compilation computes something else"
        if first
        else "a table or number was frozen at the first length",
        like="export",
        first=FirstWrong(position=None if first else float(LENGTHS[0])),
    )
