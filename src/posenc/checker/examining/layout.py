"""Which channels form a pair, in the words of the value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Turning
from posenc.checker.gathering import Gathered
from posenc.checker.matching.spectrum import Wanted
from posenc.checker.recovery.angles import waves_of
from posenc.checker.recovery.rotation import Blocks
from posenc.errors import SpecError
from posenc.formulas.rotation import pairs_of
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Explicit, Rotary

NAMES = {"half": "pairs (i, i + n)", "adjacent": "pairs (2i, 2i + 1)", "unknown": "another pairing", "none": "no pairs"}


@dataclass(frozen=True)
class Layout:
    """A pairing in words.

    Args:
        name: ``half``, ``adjacent``, ``unknown`` or ``none``.
        first: the first channel that is turned.
        width: how many channels from there on belong to the rotation.
    """

    name: Literal["half", "adjacent", "unknown", "none"]
    first: int
    width: int

    @property
    def words(self) -> str:
        if self.name == "half":
            return f"pairs (i, i + {self.width // 2}) from channel {self.first}"
        if self.name == "adjacent":
            return f"pairs (2i, 2i + 1) from channel {self.first}"
        return NAMES[self.name]


def layout_of(pairs: NDArray[np.int64], head_dim: int) -> Layout:
    """Name the pairing of ``(n, 2)`` channels.

    >>> layout_of(np.array([[0, 3], [1, 4], [2, 5]]), 6)
    Layout(name='half', first=0, width=6)
    """
    if not len(pairs):
        return Layout("none", 0, 0)
    step = np.unique(pairs[:, 1] - pairs[:, 0])
    first = int(pairs.min())
    if len(step) == 1 and step[0] == 1 and (np.diff(np.sort(pairs[:, 0])) == 2).all():
        if len(pairs) == 1 and head_dim == 2:
            return Layout("half", first, 2)
        return Layout("adjacent", first, 2 * len(pairs))
    if len(step) == 1 and (np.diff(np.sort(pairs[:, 0])) == 1).all() and step[0] >= len(pairs):
        return Layout("half", first, int(2 * step[0]))
    del head_dim
    return Layout("unknown", first, int(2 * len(pairs)))


def check_layout(
    notes: Gathered, box: Turning, found: Blocks, layout: Layout, encoding: Rotary
) -> tuple[Rotary, NDArray[np.int64]]:
    """Compare the pairing with the wanted one.

    Returns:
        The encoding in the subject's own layout, so that what follows is not hidden by it, and the pairs in its order.
    """
    notes.ran("layout")
    theta = Wanted(encoding).theta()
    wanted = pairs_of(encoding)
    live = {tuple(p) for p in wanted[np.abs(theta) > 1e-9].tolist()}
    seen = {tuple(p) for p in found.pairs.tolist()}
    if not seen:
        channels = found.head_dim if not found.tangled else 0
        if channels:
            notes.found(
                "defect",
                ("integration", "scaling-parameters"),
                "nothing is turned: every channel passes through",
                evidence=[Evidence(name="pairs that turn", expected=len(live), seen=0)],
                cause="the rotation is not applied, or positions are ignored",
            )
        return encoding, found.pairs
    if seen == live or (live <= seen and seen <= {tuple(p) for p in wanted.tolist()}):
        return encoding, _ordered(found.pairs, encoding)
    if seen < live:  # pairs too slow to move at the positions looked at, or too fine for the dtype
        missing = np.array([tuple(p) not in seen for p in wanted.tolist()])
        if np.abs(theta[missing]).max() * max(found.positions) < 4 * box.rounding:
            return encoding, _ordered(found.pairs, encoding)
    moved = _in_words(encoding, layout)
    if moved is None:
        return encoding, _permuted(notes, box, found, encoding)
    _say(notes, encoding, moved, layout, found)
    return moved, _ordered(found.pairs, moved)


def _in_words(encoding: Rotary, layout: Layout) -> Rotary | None:
    """The wanted encoding in the layout that was seen; None where no value says it."""
    if layout.name not in ("half", "adjacent"):
        return None
    width = layout.width
    if layout.name == "adjacent":
        interleaved, where = True, "first" if layout.first == 0 else "last"
        if encoding.interleaved and width < encoding.rotary_dim and getattr(encoding.schedule, "keep", 1) < 1:
            width = encoding.rotary_dim
    else:
        interleaved, where = False, "first" if layout.first == 0 else "last"
    if where == "last" and layout.first + width != encoding.head_dim:
        return None
    changes: dict[str, object] = {"interleaved": interleaved, "where": where}
    if width != encoding.rotary_dim:
        if isinstance(encoding.schedule, Explicit) or encoding.axes is not None:
            return None
        changes["rotary_dim"] = width
    try:
        return encoding.replace(**changes)
    except SpecError:
        return None


def _say(notes: Gathered, encoding: Rotary, moved: Rotary, layout: Layout, found: Blocks) -> None:
    words = {True: "pairs (2i, 2i + 1)", False: "pairs (i, i + n/2)"}
    if moved.rotary_dim != encoding.rotary_dim:
        extra = sorted({int(c) for p in found.pairs for c in p} - {int(c) for p in pairs_of(encoding) for c in p})
        factor = moved.rotary_dim / encoding.head_dim
        notes.found(
            "defect",
            ("partial-rotary", "config-parsing"),
            f"{moved.rotary_dim} channels are rotated in place of {encoding.rotary_dim}",
            evidence=[
                Evidence(name="rotary_dim", expected=encoding.rotary_dim, seen=moved.rotary_dim),
                Evidence(name="channels that should pass and do not", expected=0, seen=len(extra)),
            ],
            first=FirstWrong(pair=extra[0] if extra else int(moved.rotary_dim), of="channel"),
            cause=f"the partial rotary factor is {factor:g} in place of {encoding.rotary_dim / encoding.head_dim:g}",
            recovered=[Recovered(name="rotary_dim", value=moved.rotary_dim, expected=encoding.rotary_dim)],
            like="partial",
        )
        notes.recover("rotary_dim", moved.rotary_dim, encoding.rotary_dim)
    if moved.where != encoding.where:
        notes.found(
            "defect",
            ("partial-rotary", "layout"),
            f"the {moved.where} channels of a head are rotated in place of the {encoding.where} ones",
            evidence=[
                Evidence(name="first channel that turns", expected=int(pairs_of(encoding).min()), seen=layout.first)
            ],
            recovered=[Recovered(name="where", value=moved.where, expected=encoding.where)],
        )
    if moved.interleaved != encoding.interleaved:
        notes.found(
            "convention",
            ("layout",),
            f"{words[moved.interleaved]} are turned in place of {words[encoding.interleaved]}",
            evidence=[
                Evidence(
                    name="partner of channel 0", expected=int(pairs_of(encoding)[0, 1]), seen=int(found.pairs[0, 1])
                )
            ],
            cause="right with query and key rows that are stored for this pairing, wrong with others",
            like="titan gguf",
            recovered=[Recovered(name="interleaved", value=str(moved.interleaved), expected=str(encoding.interleaved))],
        )
        notes.recover("interleaved", str(moved.interleaved), str(encoding.interleaved))


def _ordered(pairs: NDArray[np.int64], encoding: Rotary) -> NDArray[np.int64]:
    order = {tuple(p): i for i, p in enumerate(pairs_of(encoding).tolist())}
    known = sorted((order.get(tuple(p), len(order)), p) for p in pairs.tolist())
    return np.array([p for _, p in known], dtype=np.int64)


def _permuted(notes: Gathered, box: Turning, found: Blocks, encoding: Rotary) -> NDArray[np.int64]:
    """Pairs at unknown places, put in the order of their frequencies."""
    at = np.array([0, 1, 2, 3, 5, 8, 13, 21, 34, 55], dtype=np.float64)
    if box.largest is not None:
        at = at[at <= box.largest]
    signed = waves_of(box, found.pairs, at).theta
    theta = np.abs(signed)
    oriented = np.where(
        signed[:, None] < 0, found.pairs[:, ::-1], found.pairs
    )  # which channel comes first is not known
    target = np.abs(Wanted(encoding).theta())
    order = np.argsort(-theta, kind="stable")
    ranks = np.argsort(-target, kind="stable")
    pairs = np.zeros_like(found.pairs)
    if len(target) == len(theta):
        pairs[ranks] = oriented[order]
    else:
        pairs = oriented[order]
    matches = len(target) == len(theta) and np.allclose(np.sort(theta), np.sort(target), rtol=1e-3, atol=1e-9)
    notes.found(
        "convention" if matches else "defect",
        ("layout",),
        "channels are paired in an order that is neither (2i, 2i + 1) nor (i, i + n/2)",
        evidence=[
            Evidence(
                name="partner of channel " + str(int(pairs[0, 0])),
                expected=int(pairs_of(encoding)[0, 1]),
                seen=int(pairs[0, 1]),
            ),
            Evidence(name="pairs that turn", expected=len(target), seen=len(theta)),
        ],
        cause="the frequencies are the wanted ones on permuted channels: right with weights permuted alike"
        if matches
        else None,
        recovered=[Recovered(name="first pairs", value=str(pairs[:6].tolist()))],
    )
    return pairs
