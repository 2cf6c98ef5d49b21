"""Tables of the other encodings (seasonal, hierarchical, one-hot…) against their own formula, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Rows
from posenc.checker.gathering import Gathered
from posenc.checker.recovery.waves import fit_columns
from posenc.errors import PosencError, SubjectError
from posenc.formulas.time import seasonal_features
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Seasonal


def examine_other(notes: Gathered, box: Rows, encoding: Any) -> None:
    """Width, then the numbers.

    Raises:
        SubjectError: no formula is known for this encoding.
    """
    if not isinstance(encoding, Seasonal):
        raise SubjectError("no table is computed for this encoding", encoding.kind)
    notes.ran("seasonal table")
    if box.width != encoding.dim:
        total, harmonics = 2 * sum(encoding.periods), 2 * sum(encoding.harmonics)
        cause = None
        if abs(box.width - total) < 1e-9:
            cause = (
                f"the width is twice the sum of the periods ({total:g}); two channels for each harmonic are {harmonics}"
            )
        elif any(abs(box.width - 2 * p) < 1e-9 for p in encoding.periods):
            cause = "the width is twice one period"
        notes.found(
            "defect",
            ("width",),
            f"rows are {box.width} wide in place of {encoding.dim}",
            cause=cause,
            evidence=[Evidence(name="width", expected=encoding.dim, seen=box.width)],
            recovered=[Recovered(name="width", value=box.width, expected=encoding.dim)],
        )
        notes.recover("width", box.width, encoding.dim)
        _periods(notes, box, encoding)
        return
    at = np.arange(float(min(400, (box.largest if box.largest is not None else 399) + 1)))
    table, right = box.rows(at), np.asarray(seasonal_features(encoding, at))
    gap = np.abs(table - right)
    notes.measure("largest deviation from the formula", float(gap.max()))
    if gap.max() <= 4 * box.rounding + 1e-4:
        return
    order = _permutation(table, right)
    if order is not None:
        notes.found(
            "convention",
            ("layout",),
            "the channels stand in another order",
            recovered=[Recovered(name="order", value=str(order[:8]))],
            evidence=[Evidence(name="channel 1 of row 1", expected=float(right[1, 1]), seen=float(table[1, 1]))],
            cause="a fixed permutation of the channels",
        )
        return
    k, c = np.unravel_index(int(gap.argmax()), gap.shape)
    notes.found(
        "defect",
        ("time-unit",),
        "the channels do not follow the wanted periods",
        first=FirstWrong(position=float(at[k]), pair=int(c), of="channel"),
        evidence=[Evidence(name=f"channel {c} of row {at[k]:g}", expected=float(right[k, c]), seen=float(table[k, c]))],
        like="time",
    )
    _periods(notes, box, encoding)


def _permutation(table: Array, right: Array) -> list[int] | None:
    order = []
    for column in table.T:
        gap = np.abs(right - column[:, None]).max(axis=0)
        if gap.min() > 1e-3:
            return None
        order.append(int(gap.argmin()))
    return order if len(set(order)) == len(order) else None


def _periods(notes: Gathered, box: Rows, encoding: Seasonal) -> None:
    """The periods that the columns really have."""
    rows = min(512, (box.largest if box.largest is not None else 511) + 1)
    try:
        columns = fit_columns(box.rows(np.arange(float(rows))))
    except PosencError:
        return
    good = (columns.share > 0.95) & (columns.theta > 1e-6)
    periods = sorted({round(float(2 * np.pi / t), 3) for t in columns.theta[good]})
    notes.recover("periods", str(periods[:12]), str(list(encoding.periods)))
    missing = [
        p for p in encoding.periods if not any(abs(p / k - found) < 0.02 * p for found in periods for k in (1, 2, 3))
    ]
    if missing:
        notes.found(
            "defect",
            ("time-unit",),
            f"no channel has the period {missing[0]:g}",
            evidence=[Evidence(name="periods", expected=str(list(encoding.periods)), seen=str(periods[:8]))],
            cause="another field or unit of time is read",
            like="time-hour",
        )
