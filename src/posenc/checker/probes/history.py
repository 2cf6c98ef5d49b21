"""Results that depend on earlier calls: lengths, offsets, dtypes seen before; two equal calls that differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.calling.caller import why
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import apart, asked, bound_of, box_again, fresh
from posenc.checker.probes.registry import Probed, probe
from posenc.errors import PosencError
from posenc.records.finding import Evidence, FirstWrong, Recovered

SHORT, LONG = 13, 2311


def differs(notes: Gathered, box: Any) -> bool:
    """The same call twice: what is made anew in every call differs, and then nothing else can be told."""
    if not isinstance(box, Turning | CosSin | Rows):
        return False
    at = np.arange(float(min(SHORT, (box.largest if box.largest is not None else SHORT) + 1)))
    first, second = asked(box, at), asked(box, at)
    notes.ran("two equal calls")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return False
    gap = apart(first, second)
    if gap <= 4 * box.rounding + 1e-6:
        return False
    notes.found(
        "defect",
        ("integration",),
        "two equal calls give different results",
        evidence=[Evidence(name="largest difference", expected=0.0, seen=gap, where="the same input twice")],
        cause="a part (a projection, a random table, dropout) is made anew in every call",
        remedy="Create learned and random parts once, in the constructor, as registered modules.",
    )
    return True


@probe("short, long, short", Turning, CosSin, Rows)
def history(notes: Gathered, p: Probed) -> str | None:
    """A short row, a long one, the short one again, beside a fresh subject."""
    if bound_of(p) is None:
        return "the subject is an array"
    top = min(LONG, p.box.largest if p.box.largest is not None else LONG)
    original = next(
        (
            int(s.fields()["original"] if s.kind == "as_executed" else getattr(s, "original", 0) or 0)
            for s in getattr(p.encoding, "scaling", ())
        ),
        0,
    )
    if original and p.box.largest is None:
        top = max(top, min(2 * original + 7, 40000 if p.box.free else 4097))
    try:
        box = box_again(p, fresh(p))
        clean = box_again(p, fresh(p))
    except PosencError:
        box = clean = p.box
    short, long = np.arange(float(SHORT)), np.append(np.arange(float(SHORT)), float(top))
    first = asked(box, short)
    asked(box, long)
    third = asked(box, short)
    alone = asked(clean, short) if clean is not box else first
    gap = max(apart(first, third), apart(third, alone))
    if gap > 8 * p.box.rounding + 1e-5:
        wrong = (
            np.flatnonzero(np.abs(third - alone).max(axis=1) > 8 * p.box.rounding + 1e-5)
            if third.shape == alone.shape
            else [0]
        )
        notes.found(
            "defect",
            ("state-leak", "scaling-parameters"),
            "a short row gives another result after a long one",
            evidence=[
                Evidence(
                    name="largest difference from a fresh subject",
                    expected=0.0,
                    seen=gap,
                    where=f"{SHORT} tokens after {top + 1}",
                )
            ],
            first=FirstWrong(position=float(wrong[0]) if len(wrong) else None),
            shape="only after a long call",
            cause="frequencies or tables that grew for the long row are kept",
            like="leak",
        )
    return None


@probe("two offsets of one length", Turning, CosSin, Rows)
def offsets(notes: Gathered, p: Probed) -> str | None:
    """Two calls of equal length and different offsets or positions, on one subject."""
    bound = bound_of(p)
    if bound is None:
        return "the subject is an array"
    try:
        box = box_again(p, fresh(p))
    except PosencError:
        box = p.box
    if not getattr(box, "free", False):
        return "positions cannot be chosen: they are those of the tokens"
    shift = 8.0
    if box.largest is not None and box.largest < 20:  # type: ignore[union-attr]
        return "the table is too short"
    low = np.arange(4.0)
    asked(box, low)
    second = asked(box, low + shift)
    both = asked(box, np.arange(12.0))
    gap = apart(second, both[8:12])
    if gap > 8 * p.box.rounding + 1e-5:
        same = apart(second, asked(box, low)) < 1e-6
        notes.found(
            "defect",
            ("offset-cache",),
            "a second call at other positions gives another result than one call over all of them",
            evidence=[
                Evidence(name="largest difference", expected=0.0, seen=gap, where="positions 8 to 11 after 0 to 3")
            ],
            cause="a cache is keyed by the length alone: the second call answers with the first one's positions"
            if same
            else None,
            recovered=[Recovered(name="first position of the second call", value=0.0, expected=shift)] if same else [],
            first=FirstWrong(position=shift),
            like="cache-key",
        )
    return None


@probe("another dtype first", Turning, CosSin, Rows)
def dtype_first(notes: Gathered, p: Probed) -> str | None:
    """A call in bfloat16, then one in float32, beside a fresh subject: a cache without the dtype keeps the first."""
    bound = bound_of(p)
    if bound is None or bound.library.name not in ("torch", "mlx", "jax", "keras"):
        return "the subject takes no bfloat16"
    if p.loaded.fresh is None:
        return "the subject cannot be made anew"
    value = fresh(p)
    try:
        low = box_again(p, value, dtype="bfloat16")
        asked(low, np.arange(600.0) if low.largest is None or low.largest >= 599 else np.arange(float(low.largest + 1)))  # type: ignore[union-attr]
    except PosencError as error:
        return f"bfloat16 is refused: {why(error, 120)}"
    box = box_again(p, value)
    top = min(599, box.largest if box.largest is not None else 599)  # type: ignore[union-attr]
    at = np.arange(float(top + 1))
    gap = apart(asked(box, at), asked(box_again(p, fresh(p)), at))
    if gap > 1e-4:
        notes.found(
            "defect",
            ("offset-cache", "precision"),
            "a call in float32 after one in bfloat16 is still that of bfloat16",
            evidence=[
                Evidence(
                    name="largest difference from a fresh subject", expected=0.0, seen=gap, where=f"positions to {top}"
                )
            ],
            cause="a cache is kept without regard to the dtype",
            like="cache-key",
            first=FirstWrong(dtype="float32"),
        )
    return None
