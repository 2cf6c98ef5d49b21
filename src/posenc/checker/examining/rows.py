"""A box that gives a row for each position, beside a sinusoidal, seasonal or learned table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Rows
from posenc.checker.examining.along import check_along
from posenc.checker.examining.cosines import floor_of, spread
from posenc.checker.examining.first_row import check_start
from posenc.checker.examining.half_precision import rounding_explains
from posenc.checker.examining.spectra import check_frequencies
from posenc.checker.examining.turning import fit_like
from posenc.checker.gathering import Gathered
from posenc.checker.matching.spectrum import Wanted
from posenc.checker.recovery.angles import FIT_TO, LADDER, ladder
from posenc.checker.recovery.tables import best_order, read_in
from posenc.checker.recovery.waves import fit_columns
from posenc.errors import PosencError, SubjectError
from posenc.formulas.tables import sinusoidal_table
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Sinusoidal


def examine_rows(notes: Gathered, box: Rows, encoding: Sinusoidal, served: int | None = None) -> None:
    """Width, order, frequencies, amplitude, first row, positions of a sinusoidal table."""
    if box.width != encoding.dim:
        notes.found(
            "defect",
            ("width",),
            f"rows are {box.width} wide in place of {encoding.dim}",
            evidence=[Evidence(name="width", expected=encoding.dim, seen=box.width)],
            recovered=[Recovered(name="dim", value=box.width, expected=encoding.dim)],
        )
        return
    if encoding.axes is not None:
        if "grid" in box.calls and len(getattr(encoding.axes, "pairs", ())) > 1:
            from posenc.checker.examining.grids import examine_grid

            examine_grid(notes, box, encoding)
            return
        raise SubjectError("a table over several axes is asked on a grid: a function of (height, width) or (grid_size)")
    top = min(FIT_TO, box.largest if box.largest is not None else FIT_TO)
    at = np.array([p for p in LADDER if p <= top], dtype=np.float64)
    table = box.rows(at)
    notes.ran("rows of the table")
    if not np.isfinite(table).all():
        k = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        notes.found(
            "defect",
            ("precision",),
            f"row {at[k]:g} is not finite",
            first=FirstWrong(position=float(at[k])),
            evidence=[Evidence(name="entry", expected="finite", seen="nan", where=f"row {at[k]:g}")],
        )
        return
    if not np.ptp(table, axis=0).any():
        notes.found(
            "defect",
            ("table-length", "integration"),
            "every position has the same row",
            evidence=[Evidence(name="distinct rows", expected=len(at), seen=1)],
            first=FirstWrong(position=1.0),
            cause="a table of one row is broadcast over the tokens, or positions are ignored",
            recovered=[Recovered(name="distinct rows", value=1, expected=len(at))],
            like="table-too",
        )
        return
    shape = best_order(table, at, box.rounding)
    if shape is None:
        _no_order(notes, box, encoding, at, table)
        return
    _order(notes, encoding, shape.order, table, at)
    wanted = Wanted(encoding)
    waves = shape.waves
    whole = encoding.dim // 2
    right = wanted.theta()[:whole]
    theta = waves.theta
    tolerance = spread(waves, right, box.rounding)
    if len(theta) < wanted.pairs:  # a lone sine ends an odd width: its frequency from the column
        lone = fit_columns(box.rows(np.arange(min(512.0, top + 1)))[:, -1:]).theta
        theta = np.append(theta, lone)
        tolerance = np.append(tolerance, 1e-2)
    low = rounding_explains(waves, right, box.rounding)
    compared = check_frequencies(
        notes,
        theta,
        wanted,
        tolerance,
        floor=floor_of(box.rounding, at),
        what="oscillates",
        dtype=box.dtype,
        rounded=low,
    )
    _amplitude(notes, shape.amplitude, waves.gain, box.rounding, box.width)
    shift = check_start(notes, waves, box.rounding, relative=False, expected=float(encoding.offset))
    _empty_rows(notes, table, at, encoding)
    _far(notes, box, waves, shape.order, served, right if compared.same or low else waves.theta, encoding.padding_row)
    del shift


def _order(notes: Gathered, encoding: Sinusoidal, order: str, table: Array, at: Array) -> None:
    notes.ran("channel order")
    if encoding.dim == 2 and {order, encoding.order} in (
        {"interleaved", "sin|cos"},
        {"interleaved_cos_first", "cos|sin"},
    ):
        return
    if order == encoding.order:
        return
    row = int(np.flatnonzero(at == 1)[0]) if (at == 1).any() else 0
    notes.found(
        "convention",
        ("layout",),
        f"channels are ordered {order} in place of {encoding.order}",
        evidence=[
            Evidence(
                name="channel 1 of row 1",
                expected=float(sinusoidal_table(encoding, at[row : row + 1])[0, 1]),
                seen=float(table[row, 1]),
            )
        ],
        cause="a fixed permutation of the channels: right with weights trained for it",
        like="sincos timestep",
        recovered=[Recovered(name="order", value=order, expected=encoding.order)],
    )
    notes.recover("order", order, encoding.order)


def _amplitude_words(amplitude: float, width: int) -> tuple[str, str | None]:
    for value, verdict, words in (
        (math.sqrt(2 / width), "convention", "rows are scaled to length 1"),
        (math.sqrt(width), "defect", "the table is multiplied by sqrt(d), which belongs to the embeddings"),
        (1 / math.sqrt(width), "convention", "the table is divided by sqrt(d)"),
    ):
        if abs(amplitude / value - 1) < 1e-3:
            return verdict, words
    return "defect", None


def _amplitude(notes: Gathered, amplitude: float, gain: Array, rounding: float, width: int) -> None:
    notes.ran("amplitude")
    notes.measure("amplitude", amplitude)
    if abs(amplitude - 1) > 1e-4 + 4 * rounding:
        verdict, cause = _amplitude_words(amplitude, width)
        notes.found(
            verdict,
            ("integration", "attention-factor"),
            f"sines and cosines have amplitude {amplitude:.6g} in place of 1",
            cause=cause,
            evidence=[Evidence(name="amplitude", expected=1.0, seen=amplitude)],
            shape="a constant factor at every position",
            recovered=[Recovered(name="amplitude", value=amplitude, expected=1.0)],
            remedy="Scale the content, not the table (sqrt(d) belongs to the embeddings), or state the factor.",
        )
    elif len(gain) and np.ptp(gain) > 1e-3 + 16 * rounding:
        notes.found(
            "defect",
            ("integration",),
            "amplitudes differ between pairs",
            first=FirstWrong(pair=int(np.abs(gain - 1).argmax())),
            evidence=[Evidence(name="largest amplitude", expected=1.0, seen=float(gain.max()))],
        )


def _empty_rows(notes: Gathered, table: Array, at: Array, encoding: Sinusoidal) -> None:
    empty = at[np.abs(table).max(axis=1) == 0]
    wanted = [] if encoding.padding_row is None else [float(encoding.padding_row - encoding.offset)]
    if len(empty) and list(empty) != wanted:
        notes.found(
            "defect",
            ("mask-padding",),
            f"row {empty[0]:g} is all zeros",
            first=FirstWrong(position=float(empty[0])),
            evidence=[Evidence(name="rows of zeros", expected=len(wanted), seen=len(empty))],
            like="padding",
        )


def _far(
    notes: Gathered, box: Rows, waves: Any, order: Any, served: int | None, theta: Array, padding: int | None
) -> None:
    at = ladder(box, None if served is None else max(served - 1, 300))
    at = at if padding is None else at[at > padding]
    try:
        table = box.rows(at)
    except PosencError as error:
        notes.note(f"positions up to {at.max():g} are refused: {error}")
        return
    long = read_in(table, at, order)
    check_along(notes, fit_like(long.waves, waves), theta, box.rounding, box.dtype, what="row")


def _no_order(notes: Gathered, box: Rows, encoding: Sinusoidal, at: Array, table: Array) -> None:
    """No pairing keeps its length: every column is fitted by itself."""
    rows = np.arange(float(min(512, (box.largest or 511) + 1)))
    columns = fit_columns(box.rows(rows) if len(rows) > len(at) else table, rows if len(rows) > len(at) else at)
    notes.ran("columns one by one")
    theta, right = columns.theta, np.repeat(Wanted(encoding).theta(), 2)[: encoding.dim]
    fitting = columns.share > 0.99
    notes.measure("columns that are sinusoids", int(fitting.sum()), f"of {len(theta)}, by share of energy over 0.99")
    sines, cosines = theta[0::2], theta[1::2]
    n = min(len(sines), len(cosines))
    evidence = [
        Evidence(
            name="radians per row of channel 2",
            expected=float(right[min(2, len(right) - 1)]),
            seen=float(theta[min(2, len(theta) - 1)]),
        ),
        Evidence(
            name="radians per row of channel 3",
            expected=float(right[min(3, len(right) - 1)]),
            seen=float(theta[min(3, len(theta) - 1)]),
        ),
    ]
    from posenc.checker.matching.tutorials import unequal_pairs

    said = unequal_pairs(theta, encoding)
    if said is not None:
        cause, kinds, recovered = said
        notes.found(
            "defect",
            kinds,
            "the cosine of a pair has another frequency than its sine",
            evidence=evidence,
            cause=cause,
            recovered=recovered,
            like="double-step",
            first=FirstWrong(pair=1),
        )
        for each in recovered:
            notes.recover(each.name, each.value, each.expected)
        return
    live = n and fitting.mean() > 0.6
    if live and np.abs(sines[:n] - cosines[:n]).max() > 1e-3:
        notes.found(
            "defect",
            ("exponent", "layout"),
            "sines and cosines do not come in pairs of one frequency",
            evidence=evidence,
            first=FirstWrong(pair=int(np.abs(sines[:n] - cosines[:n]).argmax())),
        )
    else:
        notes.found(
            "defect",
            ("exponent", "layout"),
            f"only {int(fitting.sum())} of {len(theta)} columns are sinusoids: this is no sinusoidal table",
            evidence=evidence,
        )
