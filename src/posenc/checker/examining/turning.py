"""A box that turns queries and keys, beside a rotary encoding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array, Turning
from posenc.checker.examining.along import check_along, check_start, rounding_explains
from posenc.checker.examining.layout import Layout, check_layout, layout_of
from posenc.checker.examining.spectra import SAFE, check_frequencies, check_gain
from posenc.checker.gathering import Gathered
from posenc.checker.matching.spectrum import Wanted
from posenc.checker.recovery.angles import FIT_TO, LADDER, Waves, fit_waves, ladder, waves_of, wrap
from posenc.checker.recovery.rotation import Blocks, block_of, blocks
from posenc.errors import PosencError
from posenc.formulas.rotation import pairs_of
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Rotary


def examine_turning(notes: Gathered, box: Turning, encoding: Rotary, served: int | None = None) -> None:
    """Everything about one rotation, findings in order of what hides what: layout, frequencies, gains, positions."""
    found = blocks(box)
    notes.ran("matrix at single positions")
    if not_finite(notes, found.matrices, np.array(found.positions, dtype=np.float64)):
        return
    layout = layout_of(found.pairs, found.head_dim)
    notes.measure("pairs that turn", len(found.pairs), layout.words)
    _linear(notes, box, found)
    if _tangle(notes, found, encoding):
        return  # angles of what is no rotation say nothing more
    _at_zero(notes, box, found)
    box = in_order(box, found)
    encoding, pairs = check_layout(notes, box, found, layout, encoding)
    if not len(pairs):
        return
    wanted = Wanted(encoding)
    indices = _indices(pairs, encoding)
    theta, waves = _short(notes, box, found, pairs, indices, encoding)
    _keys(notes, box, found, pairs, waves)
    if theta is not None:
        _far(notes, box, pairs, waves, theta, wanted, indices, served)


def not_finite(notes: Gathered, values: Array, positions: Array) -> bool:
    """Add a finding where values ``(positions, …)`` are not all finite; nothing else can be told then."""
    ok = np.isfinite(values).reshape(len(positions), -1).all(axis=1)
    if ok.all():
        return False
    at = float(positions[~ok][0])
    notes.found("defect", ("precision", "meta-init"), f"the result is not a number at position {at:g}", first=FirstWrong(position=at),
                evidence=[Evidence(name="result", expected="finite", seen="nan or infinity", where=f"position {at:g}")],
                cause="an overflow, or memory that was never filled")  # fmt: skip
    return True


def in_order(box: Turning, found: Blocks) -> Turning:
    """The box with its output channels back where they were read."""
    if not found.reordered or found.order is None:
        return box
    order = found.order

    def back(turn: Any) -> Any:
        return None if turn is None else lambda x, at: turn(x, at)[..., order]

    return replace(box, turn=back(box.turn), turn_key=back(box.turn_key))


def _linear(notes: Gathered, box: Turning, found: Blocks) -> None:
    size = float(np.abs(found.matrices).sum(axis=2).max())
    if found.nonlinear > 64 * box.rounding * max(size, 1.0):
        notes.found("defect", ("layout",), "the map is not linear in its input: it is no rotation",
                    evidence=[Evidence(name="image of a sum less the sum of images", expected=0.0, seen=found.nonlinear)],
                    remedy="Hand over the rotation alone, without normalisation or projection around it.")  # fmt: skip


def _tangle(notes: Gathered, found: Blocks, encoding: Rotary) -> bool:
    if found.tangled:
        group = found.tangled[0]
        notes.found("defect", ("layout",), f"{len(group)} channels mix with each other where pairs are wanted",
                    evidence=[Evidence(name="channels that mix", expected=2, seen=len(group), where=str(group[:8]))],
                    first=FirstWrong(pair=group[0], of="channel"),
                    cause="the halves are read in one pairing and written back in another")  # fmt: skip
    if not len(found.pairs):
        return False
    block = block_of(found.matrices, found.pairs)[1:]
    top, bottom = np.arctan2(-block[..., 0, 1], block[..., 0, 0]), np.arctan2(block[..., 1, 0], block[..., 1, 1])
    apart = np.abs(wrap(top - bottom)).max(axis=0)
    wrong = np.flatnonzero(apart > 1e-3)
    lengths = np.abs(np.hypot(block[..., 0, 0], block[..., 0, 1]) - np.hypot(block[..., 1, 0], block[..., 1, 1])).max()
    if not len(wrong) and lengths < 1e-2:
        return False
    at = found.positions[1]
    i = int(wrong[0]) if len(wrong) else 0
    channel = np.zeros(found.head_dim)
    channel[found.pairs[:, 0]], channel[found.pairs[:, 1]] = top[0] / at, bottom[0] / at
    cause, kinds, recovered = _expansion(channel, found, encoding)
    notes.found(
        "defect",
        kinds,
        f"the two channels of {max(len(wrong), 1)} of {len(found.pairs)} pairs are turned by different angles: norms change",
        evidence=[
            Evidence(name="angle of the first channel", seen=float(top[0, i]), where=f"position {at}, pair {tuple(found.pairs[i].tolist())}", unit="radians"),
            Evidence(name="angle of the second channel", expected=float(top[0, i]), seen=float(bottom[0, i]), unit="radians"),
        ],
        first=FirstWrong(position=float(at), pair=i),
        cause=cause,
        like="table-expansion",
        recovered=recovered,
        remedy="Expand the angles the way the rotate step pairs channels; a model trained this way must keep it and be labelled.",
    )  # fmt: skip
    return True


def _expansion(channel: Array, found: Blocks, encoding: Rotary) -> tuple[str | None, tuple[str, ...], list[Recovered]]:
    """Whether the channels' angles are the frequencies tiled for the other pairing."""
    theta = Wanted(encoding).theta()
    d = min(2 * len(theta), found.head_dim)
    for name, spread, words in (
        ("half", np.concatenate([theta, theta]), "the angles are laid out (a, b, a, b) for pairs (i, i + d/2), the rotate step pairs neighbours"),
        ("adjacent", np.repeat(theta, 2), "the angles are laid out (a, a, b, b) for neighbours, the rotate step pairs (i, i + d/2)"),
    ):  # fmt: skip
        if np.abs(np.abs(channel[:d]) - spread[:d]).max() < 1e-3:
            return words, ("layout",), [Recovered(name="angles laid out for", value=name)]
    return None, ("layout", "exponent"), []


def _at_zero(notes: Gathered, box: Turning, found: Blocks) -> None:
    if found.reordered and found.order is not None:
        half = np.concatenate([np.arange(0, found.head_dim, 2), np.arange(1, found.head_dim, 2)])
        back = np.argsort(half)
        words = None
        if np.array_equal(found.order, back):
            words = "pairs are read with stride 2 and written back as two halves"
        elif np.array_equal(found.order, half):
            words = "pairs are read as two halves and written back with stride 2"
        moved = int(np.flatnonzero(found.order != np.arange(found.head_dim))[0])
        alike = box.turn_key is not None and np.array_equal(blocks(box, box.turn_key).order, found.order)
        notes.found("harmless" if alike else "defect", ("layout",), "the output has another channel order than the input: position 0 is not the identity",
                    evidence=[Evidence(name=f"channel that receives channel {moved}", expected=moved, seen=int(found.order[moved]), where="position 0")],
                    first=FirstWrong(position=0.0, pair=moved, of="channel"), like="metal-concat",
                    cause=f"{words or 'channels are moved'}; queries and keys alike, which no score sees" if alike else words,
                    remedy="Nothing, as long as queries and cached keys share the order." if alike else "Write each rotated pair back where it was read.")  # fmt: skip


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
            notes.found("defect", ("layout",), "the rotation runs backwards: every angle has the opposite sign",
                        evidence=[Evidence(name="radians per position of pair 0", expected=float(right[0]), seen=float(theta[0]), unit="radians")],
                        cause="the signs of the two sine terms are exchanged",
                        recovered=[Recovered(name="sign", value=-1, expected=1)],
                        remedy="Use (a cos - b sin, b cos + a sin); only weights whose second channels are negated would be right.")  # fmt: skip
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
    check_gain(notes, waves.gain, waves.growth, wanted, 8 * box.rounding + 1e-6, indices.tolist())
    check_start(notes, waves, box.rounding, relative=True)
    exact = waves.theta
    if inside and (compared.same or low):  # the wanted numbers are better than those fitted through rounding
        exact = right[indices] * (np.sign(waves.theta) if (waves.theta < 0).all() else 1.0)
    return exact, waves


def _keys(notes: Gathered, box: Turning, found: Blocks, pairs: NDArray[np.int64], waves: Waves) -> None:
    """Keys turned like queries (xPos apart)."""
    if box.turn_key is None:
        return
    notes.ran("keys against queries")
    other = waves_of(box, pairs, waves.positions, box.turn_key)
    gap = np.abs(wrap(other.theta - waves.theta)).max(initial=0.0)
    if gap > 1e-4 * np.abs(waves.theta).max(initial=1.0) + 8 * box.rounding:
        i = int(np.abs(other.theta - waves.theta).argmax())
        notes.found("defect", ("double-application", "layout"), "keys are turned otherwise than queries",
                    evidence=[Evidence(name=f"radians per position of pair {i}, keys", expected=float(waves.theta[i]), seen=float(other.theta[i]))],
                    cause="keys are turned twice" if waves.theta[i] and abs(other.theta[i] / waves.theta[i] - 2) < 1e-3 else "queries and keys take different frequencies",
                    first=FirstWrong(pair=i), recovered=[Recovered(name="key angle over query angle", value=float(other.theta[0] / waves.theta[0] if waves.theta[0] else 0.0), expected=1.0)])  # fmt: skip
    if (
        np.abs(other.growth + waves.growth).max(initial=0.0) > 1e-6 + 8 * box.rounding / 256
        and np.abs(waves.growth).max(initial=0.0) > 1e-6
    ):
        notes.found("defect", ("attention-factor",), "keys do not shrink as queries grow: xPos does not cancel",
                    cause="keys are multiplied by the gain of queries, not divided by it",
                    evidence=[Evidence(name="log gain per position of keys", expected=float(-waves.growth[0]), seen=float(other.growth[0]))])  # fmt: skip


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
    """Long rows: rounding, a table's end, a switch; and where the value itself depends on the length, its numbers there."""
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
        notes.found("defect", ("scaling-parameters", "state-leak"), "early tokens of a long row are turned otherwise than those of a short row",
                    evidence=[Evidence(name="angle between them", expected=0.0, seen=float(gap.max()), unit="radians", where=f"a row of {at.max() + 1:g} tokens")],
                    shape="a step at a threshold of the length", cause="a scaling depends on the length of the call, and the value has none that does")  # fmt: skip
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
