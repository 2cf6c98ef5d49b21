"""Which axis turns which pair, where positions have several coordinates: equal ones on all axes see nothing."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array, Turning
from posenc.checker.gathering import Gathered
from posenc.formulas.rotation import pairs_of
from posenc.formulas.scalings import frequencies
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Rotary

START = (3.0, 1.0, 5.0, 2.0)
STEPS = (0.0, 1.0, 2.0)
"""Each axis moves alone from a start that is not 0 and differs from axis to axis."""
STILL = 1e-6


def check_coordinates(notes: Gathered, box: Turning, encoding: Rotary, pairs: NDArray[np.int64]) -> None:
    """Move one coordinate after the other, and see which pairs turn further.

    Args:
        notes: where findings go.
        box: a box whose ``turn`` takes positions ``(tokens, axes)`` too.
        encoding: the wanted one, in the subject's own layout.
        pairs: ``(n, 2)`` channels, in the order of the wanted pairs.
    """
    theta = np.abs(frequencies(encoding).theta)
    axes = len(theta)
    if box.calls.get("axes") != axes:
        notes.skipped("axes one by one", "the subject is given one number for each position")
        return
    if box.largest is not None and max(START[:axes]) + max(STEPS) > box.largest:
        notes.skipped("axes one by one", f"coordinates end at {box.largest}")
        return
    notes.ran("axes one by one")
    seen = np.stack([_moved(box, pairs, axis, axes) for axis in range(axes)])
    live = theta.max(axis=0) * STEPS[1] > 10 * STILL + 8 * box.rounding
    wanted = theta > 0
    if seen.shape != wanted.shape:
        return
    ordered = {tuple(sorted(p)) for p in pairs.tolist()} == {tuple(p) for p in pairs_of(encoding).tolist()}
    for order in permutations(range(axes)):
        same = _same(seen[list(order)][:, live], wanted[:, live], theta[:, live], ordered)
        if same and list(order) == sorted(order):
            return
        if same:
            named = " ".join(map(str, order))
            notes.found(
                "convention",
                ("axis-order",),
                f"the parts of the channels are those of the axes {named}",
                evidence=[
                    Evidence(
                        name="axis of the first pair", expected=int(wanted[:, 0].argmax()), seen=_owner(seen[:, 0])
                    )
                ],
                cause="coordinates come in another order: names differ, numbers are consistent",
                recovered=[Recovered(name="axes", value=named, expected=" ".join(map(str, range(axes))))],
                like="axis-naming",
            )
            return
    _wrong(notes, seen, wanted, live)


def _moved(box: Turning, pairs: NDArray[np.int64], axis: int, axes: int) -> NDArray[np.bool_]:
    """``(pairs,)``: whether a pair turns further as one coordinate grows."""
    at = np.repeat(np.array([START[:axes]]), len(STEPS), axis=0)
    at[:, axis] += STEPS
    x = np.zeros((1, len(STEPS), box.head_dim))
    x[:, :, pairs[:, 0]] = 1.0
    y = box.turn(x, at)[0]
    z: Array = y[:, pairs[:, 0]] + 1j * y[:, pairs[:, 1]]
    return np.asarray(np.abs(np.angle(z[1:] * z[:1].conj())).max(axis=0) > STILL + 4 * box.rounding)


def _same(seen: NDArray[np.bool_], wanted: NDArray[np.bool_], theta: Array, ordered: bool) -> bool:
    """Whether the pairs that each axis moves are the wanted ones; their frequencies alone where places differ."""
    if ordered:
        return bool((seen == wanted).all())
    rates = theta.max(axis=0)
    return all(
        s.sum() == w.sum() and np.allclose(np.sort(rates[s]), np.sort(rates[w]), rtol=1e-3)
        for s, w in zip(seen, wanted, strict=True)
    )


def _owner(moves: NDArray[np.bool_]) -> int | str:
    """The axis that moves a pair, in words where it is none or several."""
    which = np.flatnonzero(moves)
    return int(which[0]) if len(which) == 1 else " and ".join(map(str, which.tolist())) or "none"


def _wrong(notes: Gathered, seen: NDArray[np.bool_], wanted: NDArray[np.bool_], live: NDArray[np.bool_]) -> None:
    unmoved = [axis for axis in range(len(seen)) if wanted[axis].any() and not seen[axis].any()]
    wrong = np.flatnonzero((seen != wanted).any(axis=0) & live)
    if not len(wrong):
        wrong = np.flatnonzero(live)
    i = int(wrong[0])
    notes.found(
        "defect",
        ("axis-order",) if len(seen) == 2 else ("multimodal-positions", "axis-order"),
        f"nothing turns along axis {unmoved[0]}: an axis is dropped"
        if unmoved
        else f"{len(wrong)} of {seen.shape[1]} pairs are turned by another axis than wanted",
        evidence=[Evidence(name=f"axis of pair {i}", expected=_owner(wanted[:, i]), seen=_owner(seen[:, i]))],
        first=FirstWrong(pair=i),
        cause="all channels follow the other coordinates" if unmoved else "sections are laid out in another order",
        recovered=[Recovered(name="axis of each pair", value=str([_owner(m) for m in seen.T]))],
    )
