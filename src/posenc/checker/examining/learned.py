"""A trained table beside what the model says of it: rows, width, rows never trained, a sinusoid in its place."""

from __future__ import annotations

import numpy as np

from posenc.checker.boxes import Rows
from posenc.checker.gathering import Gathered
from posenc.checker.recovery.tables import best_order
from posenc.errors import PosencError
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Learned


def examine_learned(notes: Gathered, box: Rows, encoding: Learned) -> None:
    """Rows and width, equal rows, rows of zeros."""
    notes.ran("learned table")
    if box.width != encoding.dim:
        notes.found(
            "defect",
            ("width",),
            f"rows are {box.width} wide in place of {encoding.dim}",
            evidence=[Evidence(name="width", expected=encoding.dim, seen=box.width)],
            recovered=[Recovered(name="dim", value=box.width, expected=encoding.dim)],
        )
    admitted = encoding.rows - encoding.offset - encoding.prefix
    if box.largest is not None:
        notes.measure("rows", box.largest + 1, f"{encoding.rows} wanted")
        if box.largest + 1 not in ((encoding.rows, admitted) if box.calls else (encoding.rows,)):
            notes.found(
                "defect",
                ("table-length", "mask-padding"),
                f"there are {box.largest + 1} rows in place of {encoding.rows}",
                evidence=[Evidence(name="rows", expected=encoding.rows, seen=box.largest + 1)],
                like="table-size",
                cause="the rows reserved before the first position are not counted"
                if box.largest + 1 == admitted
                else None,
                recovered=[Recovered(name="rows of the table", value=box.largest + 1, expected=encoding.rows)],
            )
    rows = int(min(admitted, (box.largest if box.largest is not None else admitted - 1) + 1, 4096))
    try:
        table = box.rows(np.arange(float(rows)))
    except PosencError as error:
        notes.skipped("rows", str(error))
        return
    _, first, counts = np.unique(table.round(12), axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        again = int(first[counts > 1].min())
        notes.found(
            "defect",
            ("table-length", "buffer-state-dict"),
            f"{int((counts[counts > 1] - 1).sum())} rows repeat others",
            evidence=[Evidence(name="distinct rows", expected=rows, seen=len(counts))],
            first=FirstWrong(position=float(again)),
            cause="rows that were never trained or filled, or positions that share a row",
        )
    shape = best_order(table, np.arange(float(rows)), box.rounding)
    if shape is not None:
        notes.found(
            "convention",
            ("buffer-state-dict",),
            "the table holds sinusoids, not a trained one",
            evidence=[
                Evidence(name="order", seen=shape.order),
                Evidence(
                    name="radians per row of pair 1", seen=float(shape.waves.theta[min(1, shape.waves.pairs - 1)])
                ),
            ],
            cause="a fixed table stored as a trained one",
            remedy="Nothing, if the model was trained with it.",
        )
