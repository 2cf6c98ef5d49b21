"""Odd widths and fractional positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.calling.caller import clipped, why
from posenc.checker.calling.constructing import constructed
from posenc.checker.calling.discovering import discover
from posenc.checker.examining.along import check_along
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import bound_of
from posenc.checker.probes.dtypes import reader
from posenc.checker.probes.registry import Probed, probe
from posenc.checker.recovery.angles import Waves, ladder
from posenc.errors import PosencError
from posenc.records.finding import Evidence
from posenc.spec import Sinusoidal

REFUSALS = ("ValueError", "AssertionError", "NotImplementedError", "SpecError", "KeyError")


@probe("an odd width", Rows)
def odd_width(notes: Gathered, p: Probed) -> str | None:
    """A table one channel wider, of an odd width: made, or clearly refused."""
    bound = bound_of(p)
    if not isinstance(p.encoding, Sinusoidal) or p.encoding.dim % 2:
        return "the wanted width is odd itself" if isinstance(p.encoding, Sinusoidal) else "no sinusoid is wanted"
    if p.encoding.axes is not None or bound is None:
        return "the subject is an array"
    width = p.encoding.dim + 1
    value: Any = p.value
    hints = bound.hints.replace(
        encoding=p.encoding.replace(dim=width, odd="lone_sine", order="interleaved"), dims=(width,)
    )
    if isinstance(p.loaded.value, type):
        try:
            value = constructed(p.loaded.value, hints)
        except PosencError as error:
            _refused(notes, why(error), width)
            return None
    elif not bound.has("dim"):
        return "the width cannot be chosen"
    try:
        box, _, _ = discover(value, hints.replace(call=tuple(bound.roles.values()), library=bound.library.name))
    except PosencError as error:
        _refused(notes, why(error), width)
        return None
    table = box.rows(np.arange(5.0))  # type: ignore[union-attr]
    if table.shape[1] != width or not np.isfinite(table).all():
        notes.found(
            "convention",
            ("odd-dimension",),
            f"a table of width {width} comes out {table.shape[1]} wide",
            evidence=[Evidence(name="width", expected=width, seen=table.shape[1])],
            like="odd",
        )
    return None


def _refused(notes: Gathered, said: str, width: int) -> None:
    if any(name in said for name in REFUSALS):
        notes.note(f"an odd width ({width}) is refused: {clipped(said, 120)}")
        return
    notes.found(
        "convention",
        ("odd-dimension",),
        f"an odd width ({width}) fails with an error about shapes in place of a clear refusal",
        evidence=[
            Evidence(
                name="what was raised", expected="a table, or a refusal that names the width", seen=clipped(said, 160)
            )
        ],
        cause="ceil(d/2) frequencies are written into floor(d/2) cosine channels",
        like="odd",
    )


@probe("fractional positions", Turning, CosSin, Rows)
def fractional(notes: Gathered, p: Probed) -> str | None:
    """Positions between whole ones, where positions may be chosen."""
    bound = bound_of(p)
    if bound is None or not p.box.free or not (bound.has("positions") or bound.has("ready")):
        return "positions are those of the tokens"
    if notes.has("precision", "exponent", "scaling-parameters", "layout"):
        return "it fails at whole positions"
    if getattr(p.encoding, "needs_length", False) or p.encoding.kind not in ("rotary", "sinusoidal"):
        return "the encoding depends on the length"
    read = reader(p.box)
    base = ladder(p.box, 256)
    whole = read(p.box, base)
    at = np.array([0.0, 0.5, 1.25, 2.75, 3.5, 7.25, 12.5, 20.75])
    try:
        seen = read(p.box, at)
    except PosencError as error:
        return f"fractional positions are refused: {why(error, 100)}"
    tried = Gathered()
    moved = Waves(
        at, seen.z, whole.theta, whole.error, whole.start, seen.residual, seen.gain, seen.growth, seen.not_turning
    )
    check_along(tried, moved, whole.theta, p.box.rounding, p.box.dtype, fractional=True)
    matters = p.encoding.kind in ("seasonal", "fourier") or getattr(p.encoding, "axes", None) is not None
    for finding in tried.findings:
        title = finding.title
        notes.findings.append(
            finding.model_copy(update={"title": title, "verdict": "defect" if matters else "convention"})
        )
    return None
