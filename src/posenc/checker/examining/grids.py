"""Tables over rows and columns on a grid that is not square: which half is which axis, in which order cells come."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from posenc.checker.boxes import Array, Rows
from posenc.checker.calling.grids import axes_of
from posenc.checker.gathering import Gathered
from posenc.formulas.tables import grid_positions, sinusoidal_table
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Sinusoidal

HEIGHT, WIDTH = 3, 5
SIZES = (2, 3, 5, 7)
"""Of a grid with more axes: different along each."""


def examine_grid(notes: Gathered, box: Rows, encoding: Sinusoidal) -> None:
    """Compare ``(height * width, dim)`` rows with the wanted table under every order of axes and cells."""
    if axes_of(encoding) > 2:
        examine_axes(notes, box, encoding)
        return
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
                _say(notes, name, order, encoding, table)
                return
    if _dropped(notes, table.reshape(HEIGHT, WIDTH, -1), ("rows", "columns"), loose):
        return
    for name, positions in forms:
        if _permuted(table, sinusoidal_table(encoding.replace(prefix=0), positions), loose):
            notes.found(
                "convention",
                ("layout",),
                f"the channels are those wanted in another order ({name})",
                evidence=[Evidence(name="channel 1 of cell 1", seen=float(table[1, 1]))],
                cause="a fixed permutation of the channels",
                recovered=[Recovered(name="axes", value=name)],
            )
            return
    _no_order(notes, encoding, table, cells, "the table of the grid follows no order of axes and cells")


def examine_axes(notes: Gathered, box: Rows, encoding: Sinusoidal) -> None:
    """A grid of three axes or more, of different sizes: the axes in every order, and an axis that is dropped."""
    axes = axes_of(encoding)
    sizes = SIZES[:axes]
    table = box.calls["grid"](*sizes)
    notes.ran("a grid with different sizes along its axes")
    cells, loose = grid_positions(sizes), 1e-4 + 4 * box.rounding
    if table.shape != (len(cells), encoding.dim):
        notes.found(
            "defect",
            ("width", "axis-order"),
            f"a grid of {' x '.join(map(str, sizes))} gives {table.shape} in place of {(len(cells), encoding.dim)}",
            evidence=[Evidence(name="rows", expected=len(cells), seen=len(table))],
        )
        return
    for axes_in_order in permutations(range(axes)):
        for order in dict.fromkeys((encoding.order, "interleaved", "interleaved_cos_first", "sin|cos", "cos|sin")):
            right = sinusoidal_table(encoding.replace(order=order, prefix=0), cells[:, list(axes_in_order)])
            if np.abs(table - right).max() <= loose:
                named = " ".join(str(a) for a in axes_in_order)
                _say(notes, "rows first", order, encoding, table)
                if list(axes_in_order) != sorted(axes_in_order):
                    notes.found(
                        "convention",
                        ("axis-order",),
                        f"the parts of the channels are those of the axes {named}",
                        evidence=[Evidence(name="channel 0 of cell 1", seen=float(table[1, 0]))],
                        cause="the axes come in another order: names differ, numbers are consistent",
                        recovered=[Recovered(name="axes", value=named, expected=" ".join(map(str, range(axes))))],
                        like="axis-naming",
                    )
                return
    if _dropped(notes, table.reshape(*sizes, -1), tuple(f"axis {a}" for a in range(axes)), loose):
        return
    _no_order(notes, encoding, table, cells, "the table of the grid follows no order of axes")


def _no_order(notes: Gathered, encoding: Sinusoidal, table: Array, cells: Array, title: str) -> None:
    right = sinusoidal_table(encoding.replace(prefix=0), cells)
    k, c = np.unravel_index(int(np.abs(table - right).argmax()), table.shape)
    notes.found(
        "defect",
        ("axis-order", "exponent"),
        title,
        evidence=[Evidence(name=f"channel {c} of cell {k}", expected=float(right[k, c]), seen=float(table[k, c]))],
        first=FirstWrong(position=float(k), pair=int(c), of="channel"),
    )


def _dropped(notes: Gathered, table: Array, names: tuple[str, ...], loose: float) -> bool:
    """Say which axis the encoding does not depend on, if there is one."""
    change = [float(np.ptp(table, axis=a).max()) for a in range(len(names))]
    least = int(np.argmin(change))
    if change[least] >= loose:
        return False
    notes.found(
        "defect",
        ("axis-order",),
        f"the encoding is the same along {names[least]}: an axis is dropped",
        recovered=[Recovered(name="axis dropped", value=names[least])],
        cause="all channels follow the other coordinates",
        evidence=[Evidence(name=f"largest change along {names[least]}", expected=1.0, seen=change[least])],
    )
    return True


def _permuted(table: Array, right: Array, loose: float) -> bool:
    """Whether the columns of one table are those of another in some order, each once."""
    left = list(range(right.shape[1]))
    for column in table.T:
        gaps = np.abs(right[:, left] - column[:, None]).max(axis=0)
        if gaps.min() > loose:
            return False
        left.pop(int(gaps.argmin()))
    return True


def _say(notes: Gathered, name: str, order: str, encoding: Sinusoidal, table: Array) -> None:
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
