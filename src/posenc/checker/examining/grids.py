"""Tables over rows and columns on a grid that is not square: which half is which axis, in which order cells come."""

from __future__ import annotations

import numpy as np

from posenc.checker.boxes import Array, Rows
from posenc.checker.gathering import Gathered
from posenc.formulas.tables import grid_positions, sinusoidal_table
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Sinusoidal

HEIGHT, WIDTH = 3, 5


def examine_grid(notes: Gathered, box: Rows, encoding: Sinusoidal) -> None:
    """Compare ``(height * width, dim)`` rows with the wanted table under every order of axes and cells."""
    table = box.calls["grid"](HEIGHT, WIDTH)
    notes.ran("a grid that is not square")
    cells = grid_positions((HEIGHT, WIDTH))
    turned = grid_positions((WIDTH, HEIGHT))
    prefix = len(table) - len(cells)
    table = table[prefix:] if 0 < prefix <= 8 and not table[:prefix].any() else table
    if table.shape != (len(cells), encoding.dim):
        notes.found(
            "defect",
            ("width", "axis-order"),
            f"a grid of {HEIGHT} x {WIDTH} gives {table.shape} in place of {(len(cells), encoding.dim)}",
            evidence=[Evidence(name="rows", expected=len(cells), seen=len(table))],
        )
        return
    loose = 1e-4 + 4 * box.rounding
    # positions by axis of the encoding: the first axis of the wanted one is the row, or the column, as the value says
    forms: tuple[tuple[str, Array], ...] = (
        ("rows first", cells),
        ("columns first", cells[:, ::-1]),
        ("cells column by column, rows first", np.stack([turned[:, 1], turned[:, 0]], axis=1)),
        ("cells column by column, columns first", turned),
        (
            "height and width exchanged, rows first",
            np.stack([cells[:, 0] * 0 + np.arange(len(cells)) // HEIGHT, np.arange(len(cells)) % HEIGHT], axis=1),
        ),
        (
            "height and width exchanged, columns first",
            np.stack([np.arange(len(cells)) % HEIGHT, np.arange(len(cells)) // HEIGHT], axis=1),
        ),
    )
    for order in dict.fromkeys((encoding.order, "interleaved", "interleaved_cos_first", "sin|cos", "cos|sin")):
        for name, positions in forms:
            right = sinusoidal_table(encoding.replace(order=order, prefix=0), positions)
            if np.abs(table - right).max() <= loose:
                _say(notes, name, order, encoding, table, cells)
                return
    axis_of = [float(np.ptp(table.reshape(HEIGHT, WIDTH, -1), axis=a).max()) for a in (0, 1)]
    if min(axis_of) < loose:
        lost = "rows" if axis_of[0] < loose else "columns"
        notes.found(
            "defect",
            ("axis-order",),
            f"the encoding is the same along {lost}: an axis is dropped",
            recovered=[Recovered(name="axis dropped", value=lost)],
            cause="both halves of the channels follow one coordinate",
            evidence=[Evidence(name=f"largest change along {lost}", expected=1.0, seen=min(axis_of))],
        )
        return
    right = sinusoidal_table(encoding.replace(prefix=0), cells)
    k, c = np.unravel_index(int(np.abs(table - right).argmax()), table.shape)
    notes.found(
        "defect",
        ("axis-order", "exponent"),
        "the table of the grid follows no order of axes and cells",
        evidence=[Evidence(name=f"channel {c} of cell {k}", expected=float(right[k, c]), seen=float(table[k, c]))],
        first=FirstWrong(position=float(k), pair=int(c), of="channel"),
    )


def _say(notes: Gathered, name: str, order: str, encoding: Sinusoidal, table: Array, cells: Array) -> None:
    del cells
    notes.recover("axes", name)
    if order != encoding.order:
        notes.found(
            "convention",
            ("layout",),
            f"channels are ordered {order} in place of {encoding.order}",
            recovered=[Recovered(name="order", value=order, expected=encoding.order)],
            evidence=[Evidence(name="channel 1 of cell 1", seen=float(table[1, 1]))],
            cause="a fixed permutation of the channels",
        )
    if name == "rows first":
        return
    if name == "columns first":
        notes.found(
            "convention",
            ("axis-order",),
            "the first half of the channels is that of the column, the second that of the row",
            evidence=[Evidence(name="channel 0 of cell 1 (row 0, column 1)", expected=0.0, seen=float(table[1, 0]))],
            cause="the grid is built with the width first: names differ, numbers are consistent",
            like="axis-naming",
            recovered=[Recovered(name="axes", value="columns first", expected="rows first")],
            remedy="Nothing with its own weights; do not exchange the halves of a trained model.",
        )
        return
    notes.found(
        "defect",
        ("axis-order",),
        f"cells come in the wrong order: {name}",
        evidence=[Evidence(name="channel 0 of cell 1", expected=0.0, seen=float(table[1, 0]))],
        first=FirstWrong(position=1.0),
        cause="rows and columns are exchanged where the grid is flattened; square grids hide it",
        like="axis-grid",
        recovered=[Recovered(name="cells", value=name, expected="row by row")],
    )
