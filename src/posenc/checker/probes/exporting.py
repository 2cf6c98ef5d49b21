"""Captured graphs: exported for a range of lengths, run at another length than the sample's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.calling.caller import parts
from posenc.checker.calling.layouts import as_layout
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import apart, bound_of, is_module
from posenc.checker.probes.registry import Probed, probe
from posenc.records.finding import Evidence, FirstWrong

SAMPLE, OTHER = 8, 13


@probe("traced at another length", Turning, CosSin, Rows)
def traced(notes: Gathered, p: Probed) -> str | None:
    """A traced graph, run at a length above its sample's: a table folded to the sample's length shows."""
    bound = bound_of(p)
    if bound is None or not is_module(bound.caller.function) or p.box.calls.get("form"):
        return "the subject is no module whose positions are those of its tokens"
    roles = [role for role in bound.roles.values() if role in ("x", "q", "k")]
    if len(roles) != len(bound.roles):
        return "it takes more than vectors"
    import torch

    module: Any = bound.caller.function

    def inputs(tokens: int) -> tuple[Any, ...]:
        x = np.random.default_rng(4).normal(size=(1, tokens, bound.dim))
        return tuple(bound.library.array(as_layout(p.box.calls["layout"], x)) for _ in roles)

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            axis = p.box.calls["layout"].index("t")
            dim = torch.export.Dim("tokens", min=2, max=512)
            shapes = tuple({axis: dim} for _ in roles)
            program = torch.export.export(module, inputs(SAMPLE), dynamic_shapes=shapes, strict=False)
            captured = program.module()
        except Exception as error:
            return f"torch.export refuses it: {type(error).__name__}: {str(error).strip()[:100]}"
        eager = parts(module(*inputs(OTHER)))[0]
        try:
            seen = parts(captured(*inputs(OTHER)))[0]
        except Exception as error:
            return f"the captured graph refuses another length: {type(error).__name__}"
    gap = apart(seen, eager)
    if gap > 1e-4:
        notes.found(
            "defect",
            ("export-compile",),
            "the captured graph gives another result at another length than its sample's",
            evidence=[
                Evidence(
                    name="largest difference", expected=0.0, seen=gap, where=f"{OTHER} tokens, captured with {SAMPLE}"
                )
            ],
            first=FirstWrong(position=float(SAMPLE)),
            cause="the table was folded to the sample's length",
            like="export",
        )
    return None
