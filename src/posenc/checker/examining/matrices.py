"""What the matrices at single positions say: linear, pairs that turn, the order of channels, finite numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Turning
from posenc.checker.gathering import Gathered
from posenc.checker.matching.spectrum import Wanted
from posenc.checker.recovery.angles import wrap
from posenc.checker.recovery.rotation import Blocks, block_of, blocks
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Rotary


def not_finite(notes: Gathered, values: Array, positions: Array) -> bool:
    """Add a finding where values ``(positions, …)`` are not all finite; nothing else can be told then."""
    ok = np.isfinite(values).reshape(len(positions), -1).all(axis=1)
    if ok.all():
        return False
    at = float(positions[~ok][0])
    notes.found(
        "defect",
        ("precision", "meta-init"),
        f"the result is not a number at position {at:g}",
        first=FirstWrong(position=at),
        evidence=[Evidence(name="result", expected="finite", seen="nan or infinity", where=f"position {at:g}")],
        cause="an overflow, or memory that was never filled",
    )
    return True


def in_order(box: Turning, found: Blocks) -> Turning:
    """The box with its output channels back where they were read."""
    if not found.reordered or found.order is None:
        return box
    order = found.order

    def back(turn: Any) -> Any:
        return None if turn is None else lambda x, at: turn(x, at)[..., order]

    return replace(box, turn=back(box.turn), turn_key=back(box.turn_key))


def check_linear(notes: Gathered, box: Turning, found: Blocks) -> None:
    size = float(np.abs(found.matrices).sum(axis=2).max())
    if found.nonlinear > 64 * box.rounding * max(size, 1.0):
        notes.found(
            "defect",
            ("layout",),
            "the map is not linear in its input: it is no rotation",
            evidence=[Evidence(name="image of a sum less the sum of images", expected=0.0, seen=found.nonlinear)],
            remedy="Hand over the rotation alone, without normalisation or projection around it.",
        )


def tangled(notes: Gathered, found: Blocks, encoding: Rotary) -> Array | None:
    """Say what is no rotation of pairs: channels that mix, or the two of a pair turned by different angles.

    Returns:
        None if every pair turns as one; else ``(head_dim,)`` the wanted frequency of each channel as the subject lays
        them out, empty if that is not known.
    """
    if found.tangled:
        group = found.tangled[0]
        notes.found(
            "defect",
            ("layout",),
            f"{len(group)} channels mix with each other where pairs are wanted",
            evidence=[Evidence(name="channels that mix", expected=2, seen=len(group), where=str(group[:8]))],
            first=FirstWrong(pair=group[0], of="channel"),
            cause="the halves are read in one pairing and written back in another",
        )
    if not len(found.pairs):
        return None
    block = block_of(found.matrices, found.pairs)[1:]
    top, bottom = np.arctan2(-block[..., 0, 1], block[..., 0, 0]), np.arctan2(block[..., 1, 0], block[..., 1, 1])
    apart = np.abs(wrap(top - bottom)).max(axis=0)
    wrong = np.flatnonzero(apart > 1e-3)
    lengths = np.abs(np.hypot(block[..., 0, 0], block[..., 0, 1]) - np.hypot(block[..., 1, 0], block[..., 1, 1])).max()
    if not len(wrong) and lengths < 1e-2:
        return None
    at = found.positions[1]
    i = int(wrong[0]) if len(wrong) else 0
    channel = np.zeros(found.head_dim)
    channel[found.pairs[:, 0]], channel[found.pairs[:, 1]] = top[0] / at, bottom[0] / at
    cause, kinds, recovered, spread = _expansion(channel, found, encoding)
    notes.found(
        "defect",
        kinds,
        f"the two channels of {max(len(wrong), 1)} of {len(found.pairs)} "
        "pairs are turned by different angles: norms change",
        evidence=[
            Evidence(
                name="angle of the first channel",
                seen=float(top[0, i]),
                where=f"position {at}, pair {tuple(found.pairs[i].tolist())}",
                unit="radians",
            ),
            Evidence(
                name="angle of the second channel", expected=float(top[0, i]), seen=float(bottom[0, i]), unit="radians"
            ),
        ],
        first=FirstWrong(position=float(at), pair=i),
        cause=cause,
        like="table-expansion",
        recovered=recovered,
        remedy=(
            "Expand the angles the way the rotate step pairs channels; a "
            "model trained this way must keep it and be labelled."
        ),
    )
    return spread


def _expansion(
    channel: Array, found: Blocks, encoding: Rotary
) -> tuple[str | None, tuple[str, ...], list[Recovered], Array]:
    """Whether the channels' angles are the frequencies tiled for the other pairing."""
    theta = Wanted(encoding).theta()
    d = min(2 * len(theta), found.head_dim)
    for name, spread, words in (
        (
            "half",
            np.concatenate([theta, theta]),
            "the angles are laid out (a, b, a, b) for pairs (i, i + d/2), the rotate step pairs neighbours",
        ),
        (
            "adjacent",
            np.repeat(theta, 2),
            "the angles are laid out (a, a, b, b) for neighbours, the rotate step pairs (i, i + d/2)",
        ),
    ):
        if (np.abs(np.abs(channel[:d]) - spread[:d]) < 1e-3 + 2.0**-8 * spread[:d]).all():
            return words, ("layout",), [Recovered(name="angles laid out for", value=name)], spread
    return None, ("layout", "exponent"), [], np.empty(0)


def check_order(notes: Gathered, box: Turning, found: Blocks) -> None:
    if found.reordered and found.order is not None:
        half = np.concatenate([np.arange(0, found.head_dim, 2), np.arange(1, found.head_dim, 2)])
        back = np.argsort(half)
        words = None
        if np.array_equal(found.order, back):
            words = "pairs are read with stride 2 and written back as two halves"
        elif np.array_equal(found.order, half):
            words = "pairs are read as two halves and written back with stride 2"
        moved = int(np.flatnonzero(found.order != np.arange(found.head_dim))[0])
        keys = None if box.turn_key is None else blocks(box, box.turn_key).order
        alike = keys is not None and np.array_equal(keys, found.order)
        notes.found(
            "harmless" if alike else "defect",
            ("layout",),
            "the output has another channel order than the input: position 0 is not the identity",
            evidence=[
                Evidence(
                    name=f"channel that receives channel {moved}",
                    expected=moved,
                    seen=int(found.order[moved]),
                    where="position 0",
                )
            ],
            first=FirstWrong(position=0.0, pair=moved, of="channel"),
            like="metal-concat",
            cause=f"{words or 'channels are moved'}; queries and keys alike, which no score sees" if alike else words,
            remedy="Nothing, as long as queries and cached keys share the order."
            if alike
            else "Write each rotated pair back where it was read.",
        )
