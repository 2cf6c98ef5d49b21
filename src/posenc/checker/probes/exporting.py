"""Exported graphs: captured once for a range of lengths, run at another length than the sample's."""

from __future__ import annotations

from typing import Any

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import bound_of, is_module
from posenc.checker.probes.recorded import (
    FIRST,
    Call,
    called,
    farthest_apart,
    made,
    recorded,
    tokens_fit,
    too_much_to_capture,
    unheard,
)
from posenc.checker.probes.registry import Probed, probe
from posenc.records.finding import Evidence, FirstWrong, Recovered

SAMPLE, OTHER, LONG = 8, 13, 421
CLOSE = 1e-4


@probe("exported (torch.export), run at another length", Turning, CosSin, Rows)
def exported(notes: Gathered, p: Probed) -> str | None:
    """An exported graph at lengths beside its sample's: a table or position frozen at the sample's length shows."""
    bound = bound_of(p)
    if bound is None or bound.library.name != "torch":
        return "the subject is not of torch"
    if not tokens_fit(p, (OTHER,)):
        return f"the table has fewer than {FIRST + OTHER} rows"
    long = LONG if tokens_fit(p, (LONG,)) else OTHER
    sample, other, beyond = recorded(p, (SAMPLE, OTHER, long))
    fixed = _fixed(sample, other)
    if fixed is not None:
        return f"it takes {fixed}, which a graph holds fixed"
    with unheard():
        why = too_much_to_capture(sample, called(p, made(p)))
    if why is not None:
        return why
    import torch

    value = made(p)
    with unheard(), torch.no_grad():
        try:
            graph = torch.export.export(
                _held(called(p, value), value, sample),
                (_leaves(sample),),
                dynamic_shapes=(_ranges(sample, other),),
                strict=False,
            ).module()
        except Exception as error:
            return f"torch.export refuses it: {_said(error)}"
        plain = called(p, made(p))
        for tokens, call in ((SAMPLE, sample), (OTHER, other), (long, beyond)):
            expected = call.on(plain)
            try:
                seen = call.on(lambda *args, **named: graph(_leaves(Call(args, named))))
            except Exception as error:
                if tokens == OTHER:
                    return f"the exported graph refuses another length: {_said(error)}"
                _bounded(notes, tokens, _said(error))
                return None
            gap = farthest_apart(seen, expected)
            if gap > CLOSE:
                _differs(notes, tokens, gap)
                return None
    return None


def _bounded(notes: Gathered, tokens: int, said: str) -> None:
    notes.found(
        "harmless",
        ("export-compile",),
        "the exported graph refuses rows that the subject itself takes",
        evidence=[Evidence(name="answer", expected="a result", seen=said, where=f"{tokens} tokens")],
        first=FirstWrong(position=float(OTHER)),
        cause="a branch on the length (a table that grows when it is too short) is fixed by the sample",
        remedy="Make the table as long as the longest row before exporting, or compute angles inside the call.",
        like="export",
    )


def _differs(notes: Gathered, tokens: int, gap: float) -> None:
    where = f"{tokens} tokens, exported with {SAMPLE}"
    notes.found(
        "defect",
        ("export-compile",),
        "the exported graph gives another result"
        + ("" if tokens == SAMPLE else " at another length than its sample's"),
        evidence=[Evidence(name="largest difference", expected=0.0, seen=gap, where=where)],
        first=FirstWrong(position=None if tokens == SAMPLE else float(SAMPLE)),
        cause="a branch for export computes something else"
        if tokens == SAMPLE
        else "a table or position was frozen at the sample's length",
        recovered=[Recovered(name="tokens at which the graph is wrong", value=tokens)],
        like="export",
    )


def _held(function: Any, value: Any, sample: Call) -> Any:
    """A module that calls the subject with its arguments packed in one list."""
    import torch
    from torch.utils._pytree import tree_flatten, tree_unflatten

    shape = tree_flatten((sample.args, sample.named))[1]

    class Held(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            if is_module(value):
                self.held = value

        def forward(self, leaves: list[Any]) -> Any:
            args, named = tree_unflatten(leaves, shape)
            return function(*args, **named)

    return Held()


def _leaves(call: Call) -> list[Any]:
    """The tensors and numbers of a call, in order."""
    from torch.utils._pytree import tree_leaves

    found: list[Any] = tree_leaves((call.args, call.named))
    return found


def _fixed(sample: Call, other: Call) -> str | None:
    """A Python number among the arguments that changes with the length."""
    for a, b in zip(_leaves(sample), _leaves(other), strict=True):
        if isinstance(a, int | float) and a != b:
            return f"a Python number ({a} for {SAMPLE} tokens)"
    return None


def _ranges(sample: Call, other: Call) -> list[Any]:
    """For each argument, the dimensions that change with the length."""
    import torch

    def one(a: Any, b: Any) -> Any:
        if not isinstance(a, torch.Tensor) or a.shape == b.shape:
            return None
        sizes = enumerate(zip(a.shape, b.shape, strict=True))
        return {i: torch.export.Dim.DYNAMIC for i, (m, n) in sizes if m != n}

    return [one(a, b) for a, b in zip(_leaves(sample), _leaves(other), strict=True)]


def _said(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0].strip()[:100]}"
