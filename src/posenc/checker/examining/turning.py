"""A box that turns queries and keys, beside a rotary encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array, Turning
from posenc.checker.examining.along import check_along
from posenc.checker.examining.coordinates import check_coordinates
from posenc.checker.examining.first_row import check_start
from posenc.checker.examining.half_precision import rounding_explains
from posenc.checker.examining.keys import check_keys
from posenc.checker.examining.layout import Layout, check_layout, layout_of
from posenc.checker.examining.matrices import check_linear, check_order, in_order, not_finite, tangled
from posenc.checker.examining.spectra import SAFE, check_frequencies, check_gain
from posenc.checker.gathering import Gathered
from posenc.checker.matching.spectrum import Wanted
from posenc.checker.recovery.angles import (
    FIT_TO,
    LADDER,
    Waves,
    fit_waves,
    ladder,
    waves_of,
    waves_of_channels,
    wrap,
)
from posenc.checker.recovery.rotation import Blocks, blocks
from posenc.errors import PosencError
from posenc.formulas.rotation import pairs_of
from posenc.records.finding import Evidence, Recovered
from posenc.spec import Rotary


def examine_turning(notes: Gathered, box: Turning, encoding: Rotary, served: int | None = None) -> None:
    """Everything about one rotation, findings in order of what hides what: layout, frequencies, gains, positions."""
    found = blocks(box)
    notes.ran("matrix at single positions")
    if not_finite(notes, found.matrices, np.array(found.positions, dtype=np.float64)):
        return
    layout = layout_of(found.pairs, found.head_dim)
    notes.measure("pairs that turn", len(found.pairs), layout.words)
    check_linear(notes, box, found)
    spread = tangled(notes, found, encoding)
    if spread is not None:  # pairs say nothing more; their channels may
        _channels(notes, box, found, spread, served)
        return
    check_order(notes, box, found)
    box = in_order(box, found)
    encoding, pairs = check_layout(notes, box, found, layout, encoding)
    if not len(pairs):
        return
    wanted = Wanted(encoding)
    indices = _indices(pairs, encoding)
    theta, waves = _short(notes, box, found, pairs, indices, encoding)
    check_keys(notes, box, pairs, waves)
    _values(notes, box)
    if wanted.encoding.axes is not None:
        check_coordinates(notes, box, encoding, pairs)
    if theta is not None:
        _far(notes, box, pairs, waves, theta, wanted, indices, served)


def _values(notes: Gathered, box: Turning) -> None:
    """Values pass through as they are, where the subject is given them with queries and keys."""
    if "values" not in box.calls:
        return
    notes.ran("values beside queries and keys")
    if box.calls["values"]:
        notes.found(
            "defect",
            ("double-application", "layout"),
            "values are turned like queries and keys",
            evidence=[Evidence(name="equal values of different tokens", expected="equal", seen="different")],
            cause="the rotation is applied to all three, or to another third of the packed array than the keys",
            remedy="Turn queries and keys alone, and pass the values on as they are.",
        )


def _channels(notes: Gathered, box: Turning, found: Blocks, spread: Array, served: int | None) -> None:
    """Gains aside, each channel's own angle along positions, if its frequency is known."""
    channels = found.pairs.T.reshape(-1)
    if not len(spread) or channels.max() >= len(spread):
        return
    waves = waves_of_channels(box, found.pairs, ladder(box, None if served is None else max(served - 1, 300)))
    check_along(notes, waves, spread[channels], box.rounding, box.dtype)


def _indices(pairs: NDArray[np.int64], encoding: Rotary) -> NDArray[np.int64]:
    """For each found pair the index of the wanted pair at the same place; in order where places differ."""
    wanted = {tuple(sorted(p)): i for i, p in enumerate(pairs_of(encoding).tolist())}
    found = [wanted.get(tuple(sorted(p)), -1) for p in pairs.tolist()]
    return np.array(found if -1 not in found else range(len(pairs)))


def _whole(theta: Array, indices: NDArray[np.int64], count: int) -> Array:
    """``(count,)``: pairs that were not found turning stand still."""
    full = np.zeros(count)
    inside = indices < count
    full[indices[inside]] = theta[inside]
    return full


def _short(
    notes: Gathered, box: Turning, found: Blocks, pairs: NDArray[np.int64], indices: NDArray[np.int64], encoding: Rotary
) -> tuple[Array | None, Waves]:
    """Frequencies and gains from short rows, those every dtype holds."""
    original = min((int(s["original"]) for _, s in Wanted(encoding).chain if s.get("original")), default=None)
    short_of = min(FIT_TO, original - 1 if original else FIT_TO, box.largest if box.largest is not None else FIT_TO)
    at = np.array([p for p in LADDER if p <= short_of], dtype=np.float64)
    waves = waves_of(box, pairs, at)
    wanted = Wanted(encoding)
    right = wanted.theta()
    theta = _whole(waves.theta, indices, wanted.pairs)
    error = _whole(waves.error, indices, wanted.pairs)
    signs = np.sign(waves.theta[np.abs(waves.theta) > 1e-4])
    if len(signs) and (signs < 0).all() and right.max() > 0:
        if np.abs(wrap(np.abs(waves.start) - np.pi / 2)).max() > 0.05:
            notes.found(
                "defect",
                ("layout",),
                "the rotation runs backwards: every angle has the opposite sign",
                evidence=[
                    Evidence(
                        name="radians per position of pair 0",
                        expected=float(right[0]),
                        seen=float(theta[0]),
                        unit="radians",
                    )
                ],
                cause="the signs of the two sine terms are exchanged",
                recovered=[Recovered(name="sign", value=-1, expected=1)],
                remedy=(
                    "Use (a cos - b sin, b cos + a sin); only weights whose second channels are negated would be right."
                ),
            )
        theta = -theta
    smallest = 1e-12 if box.rounding <= 2.0**-23 else 0.02 * box.rounding / max(at.max(), 1.0)
    tolerance = np.maximum(SAFE, 6 * error / np.maximum(np.abs(right), 1e-300)) + (
        0
        if box.rounding <= 2.0**-23
        else 2 * box.rounding / np.sqrt(len(at)) / np.maximum(np.abs(right) * at.max(), 1.0)
    )
    notes.ran("turned or not")
    inside = bool((indices < len(right)).all())
    low = inside and rounding_explains(waves, right[indices], box.rounding)
    compared = check_frequencies(notes, theta, wanted, tolerance, floor=smallest, dtype=box.dtype, rounded=low)
    check_gain(notes, waves, wanted, 8 * box.rounding + 1e-6, indices.tolist())
    check_start(notes, waves, box.rounding, relative=True)
    exact = waves.theta
    if inside and (compared.same or low):  # the wanted numbers are better than those fitted through rounding
        exact = right[indices] * (np.sign(waves.theta) if (waves.theta < 0).all() else 1.0)
    return exact, waves


def _far(
    notes: Gathered,
    box: Turning,
    pairs: NDArray[np.int64],
    short: Waves,
    theta: Array,
    wanted: Wanted,
    indices: NDArray[np.int64],
    served: int | None,
) -> None:
    """Long rows: rounding, a table's end, a switch; a value that depends on the length is compared there too."""
    reach = None if served is None else max(served - 1, 300)
    at = ladder(box, reach)
    if wanted.encoding.xpos_scale_base is not None:
        at = at[at <= 20 * wanted.encoding.xpos_scale_base]
    try:
        long = waves_of(box, pairs, at)
    except PosencError as error:
        notes.note(f"positions up to {at.max():g} are refused: {error}")
        at = at[at <= FIT_TO]
        long = waves_of(box, pairs, at)
    if wanted.encoding.needs_length:
        length = int(at.max()) + 1
        there = Wanted(wanted.encoding, length)
        fitted = _whole(long.theta, indices, wanted.pairs)
        tolerance = np.maximum(
            SAFE, 6 * _whole(long.error, indices, wanted.pairs) / np.maximum(np.abs(there.theta()), 1e-300)
        )
        if not any(f.kinds[0] == "exponent" for f in notes.findings):
            notes.assume(f"the declared length of a call is its largest position plus one ({length})")
            check_frequencies(notes, fitted, there, tolerance, floor=1e-12, dtype=box.dtype)
        return
    inside = long.positions <= short.positions.max()
    same = np.isin(long.positions, short.positions) & inside
    gap = np.abs(wrap(np.angle(long.z[same]) - np.angle(short.z[np.isin(short.positions, long.positions)])))
    if gap.max(initial=0.0) > 1e-3 + 8 * box.rounding:
        notes.found(
            "defect",
            ("scaling-parameters", "state-leak"),
            "early tokens of a long row are turned otherwise than those of a short row",
            evidence=[
                Evidence(
                    name="angle between them",
                    expected=0.0,
                    seen=float(gap.max()),
                    unit="radians",
                    where=f"a row of {at.max() + 1:g} tokens",
                )
            ],
            shape="a step at a threshold of the length",
            cause="a scaling depends on the length of the call, and the value has none that does",
        )
        return
    moved = fit_like(long, short)
    check_along(notes, moved, theta, box.rounding, box.dtype)


def fit_like(long: Waves, short: Waves) -> Waves:
    """Long rows measured against the frequencies and start of the short ones."""
    residual = wrap(np.angle(long.z) - short.start - np.outer(long.positions, short.theta))
    return Waves(
        long.positions,
        long.z,
        short.theta,
        short.error,
        short.start,
        residual,
        short.gain,
        short.growth,
        long.not_turning,
    )


def free_look(box: Turning) -> tuple[Blocks, Layout, Waves | None]:
    """What a box is without anything wanted: its blocks, layout and waves (pairs ascending)."""
    found = blocks(box)
    layout = layout_of(found.pairs, found.head_dim)
    if not len(found.pairs):
        return found, layout, None
    short = min(FIT_TO, box.largest if box.largest is not None else FIT_TO)
    at = np.array([p for p in LADDER if p <= short], dtype=np.float64)
    return found, layout, waves_of(box, found.pairs, at)


__all__ = ["Any", "examine_turning", "fit_waves", "free_look"]
