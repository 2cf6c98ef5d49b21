"""Keys beside queries: scores depend on both, so what is right for one and not for the other is wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array, Turning
from posenc.checker.examining.layout import layout_of
from posenc.checker.gathering import Gathered
from posenc.checker.recovery.angles import Waves, standing, waves_of, wrap
from posenc.checker.recovery.rotation import blocks
from posenc.records.finding import Evidence, FirstWrong, Recovered


def check_keys(notes: Gathered, box: Turning, pairs: NDArray[np.int64], waves: Waves) -> None:
    """Keys turned like queries (xPos apart): frequencies, where they start, gains.

    Args:
        notes: where findings go.
        box: turns queries, and keys if it tells them apart.
        pairs: ``(pairs, 2)`` channels.
        waves: those of the queries, on short rows.
    """
    if box.turn_key is None:
        return
    notes.ran("keys against queries")
    own = _pairing_of_keys(notes, box, pairs)
    if own is not None:
        return
    other = waves_of(box, pairs, waves.positions, box.turn_key)
    gap = np.abs(wrap(other.theta - waves.theta)).max(initial=0.0)
    if gap > 1e-4 * np.abs(waves.theta).max(initial=1.0) + 8 * box.rounding:
        i = int(np.abs(other.theta - waves.theta).argmax())
        notes.found(
            "defect",
            ("double-application", "layout"),
            "keys are turned otherwise than queries",
            evidence=[
                Evidence(
                    name=f"radians per position of pair {i}, keys",
                    expected=float(waves.theta[i]),
                    seen=float(other.theta[i]),
                )
            ],
            cause=_of_keys(other.theta, waves.theta),
            first=FirstWrong(pair=i),
            recovered=[
                Recovered(
                    name="key angle over query angle",
                    value=float(other.theta[0] / waves.theta[0] if waves.theta[0] else 0.0),
                    expected=1.0,
                )
            ],
        )
    else:
        _keys_elsewhere(notes, box, waves, other)
    if (
        np.abs(other.growth + waves.growth).max(initial=0.0) > 1e-6 + 8 * box.rounding / 256
        and np.abs(waves.growth).max(initial=0.0) > 1e-6
    ):
        notes.found(
            "defect",
            ("attention-factor",),
            "keys do not shrink as queries grow: xPos does not cancel",
            cause="keys are multiplied by the gain of queries, not divided by it",
            evidence=[
                Evidence(
                    name="log gain per position of keys", expected=float(-waves.growth[0]), seen=float(other.growth[0])
                )
            ],
        )


def _pairing_of_keys(notes: Gathered, box: Turning, pairs: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The pairs of keys where they are other channels than those of queries; None where they are the same."""
    found = blocks(box, box.turn_key).pairs
    if not len(found) or not len(pairs) or set(map(frozenset, found.tolist())) == set(map(frozenset, pairs.tolist())):
        return None
    seen, wanted = (layout_of(each, box.head_dim).words for each in (found, pairs))
    mixed = sorted(set(map(frozenset, found.tolist())) - set(map(frozenset, pairs.tolist())), key=sorted)
    notes.found(
        "defect",
        ("layout",),
        "keys pair other channels than queries",
        evidence=[Evidence(name="pairing of keys beside that of queries", expected=wanted, seen=seen)],
        cause="one of the two is turned for the other layout of channels",
        first=FirstWrong(pair=int(min(mixed[0])), of="channel"),
        recovered=[Recovered(name="pairs of keys", value=seen, expected=wanted)],
    )
    return found


def _of_keys(keys: Array, queries: Array) -> str:
    """Why frequencies of keys may differ from those of queries."""
    turning = np.abs(queries) > 1e-6
    if np.abs(keys).max(initial=0.0) < 1e-6 * np.abs(queries).max(initial=1.0):
        return "keys are not turned"
    if turning.any() and (np.abs(keys[turning] / queries[turning] - 2) < 1e-3).all():
        return "keys are turned twice"
    return "queries and keys take different frequencies"


def _keys_elsewhere(notes: Gathered, box: Turning, queries: Waves, keys: Waves) -> None:
    """The same frequencies, but keys at other positions than queries, or multiplied by another number."""
    apart = wrap(keys.start - queries.start)
    if np.abs(apart).max(initial=0.0) > 1e-3 + 8 * box.rounding:
        ahead, behind = (standing(np.exp(side * apart), queries.theta, reach=512.0) for side in (1j, -1j))
        shift, left = ahead if ahead[1] <= behind[1] else (-behind[0], behind[1])
        known = left < 1e-2 + 8 * box.rounding
        notes.found(
            "defect",
            ("offset-cache",),
            f"keys stand {shift:g} positions away from queries of the same token"
            if known
            else "keys start at other angles than queries",
            evidence=[
                Evidence(
                    name="angle of a key at position 0 beside a query there",
                    expected=0.0,
                    seen=float(apart[np.abs(apart).argmax()]),
                    where=f"pair {int(np.abs(apart).argmax())}",
                    unit="radians",
                )
            ],
            cause="queries and keys are given different positions: every distance is off by the same number",
            recovered=[Recovered(name="key position minus query position", value=float(shift), expected=0.0)]
            if known
            else [],
        )
    factor = keys.gain / np.maximum(queries.gain, 1e-300)
    still = max(np.abs(keys.growth).max(initial=0.0), np.abs(queries.growth).max(initial=0.0)) < 1e-5
    uneven = float(max(keys.unevenness.max(initial=0.0), queries.unevenness.max(initial=0.0)))
    if still and np.abs(np.log(factor)).max(initial=0.0) > 1e-3 + 8 * box.rounding + 2 * uneven:
        middle = float(np.median(factor))
        notes.found(
            "defect",
            ("attention-factor",),
            f"keys are multiplied by {middle:.6g} where queries are not: scores are off by that factor",
            evidence=[Evidence(name="gain of keys over gain of queries", expected=1.0, seen=middle)],
            cause="a factor is applied to one of the two",
            recovered=[Recovered(name="gain of keys over gain of queries", value=middle, expected=1.0)],
        )
