"""A trained table beside what the model says of it: rows, width, rows never trained, a sinusoid in its place."""

from __future__ import annotations

import numpy as np

from posenc.checker.boxes import Rows
from posenc.checker.calling.library import plain
from posenc.checker.gathering import Gathered
from posenc.checker.recovery.tables import best_order
from posenc.errors import PosencError
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Learned

STEPS = 7
"""Rows after the first by which a row of a table is recognised."""


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
    if _begins_elsewhere(notes, box, encoding):
        pass  # the rows left over follow from it
    elif box.largest is not None:
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


def _begins_elsewhere(notes: Gathered, box: Rows, encoding: Learned) -> bool:
    """Whether a module counts its positions from another row of its table, and has as many rows as are wanted."""
    if box.free or encoding.prefix:
        return False
    first, rows = first_read(box)
    wanted = (encoding.rows, encoding.rows + encoding.offset)  # a constructor may add the reserved rows itself
    if first is None or first == encoding.offset or rows not in wanted:
        return False
    by = encoding.offset - first
    notes.found(
        "defect",
        ("mask-padding",),
        f"position 0 reads row {first} of the table in place of row {encoding.offset}",
        evidence=[Evidence(name="row that position 0 reads", expected=encoding.offset, seen=first)],
        first=FirstWrong(position=0.0),
        cause="the rows reserved before the first position are not skipped"
        if first < encoding.offset
        else "positions are counted from another number than the wanted one",
        remedy=f"{f'Add {by} to' if by > 0 else f'Subtract {-by} from'} the positions before they meet the table.",
        like="roberta-offset",
        recovered=[Recovered(name="rows before the first position", value=first, expected=encoding.offset)],
    )
    return True


def first_read(box: Rows) -> tuple[int | None, int]:
    """The row of a torch module's own table that position 0 reads, and how many rows it has; None if it is not found.

    Differences of rows are compared: what is added to all rows alike (tokens, segments) is none of the table's.
    """
    bound = box.calls.get("bound")
    function = bound.caller.function if bound is not None else None
    module = function if hasattr(function, "parameters") else getattr(function, "__self__", None)
    if not callable(getattr(module, "named_parameters", None)) or (box.largest is not None and box.largest < STEPS):
        return None, 0
    rows = box.rows(np.arange(STEPS + 1.0))
    close = 1e-5 * max(float(np.abs(rows).max()), 1e-30)
    for held in (*module.parameters(), *module.buffers()):  # type: ignore[union-attr]
        if held.ndim < 2 or held.shape[-1] != box.width or not held.is_floating_point() or held.device.type == "meta":
            continue
        table = plain(held).reshape(-1, box.width)
        steps = np.abs(np.diff(table, axis=0) - (rows[1] - rows[0])).max(axis=1, initial=0.0) <= close
        found = [k for k in np.flatnonzero(steps) if _same_steps(table[k : k + STEPS + 1], rows, close)]
        if len(found) == 1:
            return int(found[0]), len(table)
    return None, 0


def _same_steps(table: np.ndarray, rows: np.ndarray, close: float) -> bool:
    return table.shape == rows.shape and bool(np.abs((table - table[0]) - (rows - rows[0])).max() <= close)
