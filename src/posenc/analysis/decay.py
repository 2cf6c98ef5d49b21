"""Similarity against distance: the finite sum, its continuous limit, envelope, aliases and near-returns."""

from __future__ import annotations

import numpy as np

from posenc.formulas.ranges import first_below
from posenc.formulas.similarities import continuous_limit, similarity, similarity_at
from posenc.formulas.spectrum import Frequencies
from posenc.records import Curve, spread
from posenc.records.analysis import DecayFacts, Extreme, Quantity
from posenc.shapes import Float

ERROR = 1e-11
"""Bound on the error of ``kappa`` by block products (see formulas.similarities)."""
LOBE = 0.5
FARTHEST = 2**20


def decay_facts(frequencies: Frequencies, reach: int, *, base: float | None = None, points: int = 2048) -> DecayFacts:
    """Evaluate ``kappa(D)`` for every D in 0..reach and say what it does.

    Args:
        frequencies: one frequency for each pair.
        reach: last distance, at least 2.
        base: for the continuous limit, ``(Ci(D) - Ci(D/b)) / ln b``; None leaves it out.
        points: points of the drawn curves.
    """
    kappa = similarity(frequencies, 0, reach + 1)
    at = np.arange(reach + 1)
    turning = np.abs(frequencies.fused) > 0
    maxima = local_maxima(kappa)
    lobe = main_lobe(kappa)
    best = maxima[(maxima >= lobe)]
    best = best[np.argsort(-kappa[best], kind="stable")][:5]
    limit, gap = _limit(frequencies, reach, base, points)
    d = 2 * frequencies.pairs
    still = float((~turning).mean())
    return DecayFacts(
        reach=reach,
        curve=spread(at, kappa, points),
        limit=limit,
        limit_gap=gap,
        envelope=spread(*_corners(at, envelope(kappa)), points),
        first_negative=_first_negative(frequencies, kappa, reach),
        first_rise=_first_rise(kappa),
        minimum=_extreme(int(kappa.argmin()), kappa),
        sign_changes=int((np.diff(np.sign(kappa[kappa != 0])) != 0).sum()),
        maxima=len(maxima),
        mean=Quantity(value=float(kappa[1:].mean()), error=ERROR, note=f"over D = 1..{reach}"),
        rms=Quantity(value=float(np.sqrt((kappa[1:] ** 2).mean())), error=ERROR, note=f"over D = 1..{reach}"),
        long_run_rms=Quantity(
            value=float(np.sqrt(still**2 + turning.sum() * 0.5 / frequencies.pairs**2)),
            error=1e-15,
            note=f"distinct frequencies; 1/sqrt(d) = {1 / np.sqrt(d):.4f} when every pair turns",
        ),
        aliases=tuple(_extreme(int(i), kappa) for i in best),
        records=tuple(_extreme(int(i), kappa) for i in record_maxima(kappa, lobe)),
    )


def _first_negative(frequencies: Frequencies, kappa: np.ndarray, reach: int) -> Quantity:
    found = np.flatnonzero(kappa < 0)
    first: int | None = int(found[0]) if len(found) else None
    if first is None and reach < FARTHEST:
        first = first_below(frequencies, 0.0, start=reach + 1, stop=FARTHEST + 1)
    if first is None:
        return Quantity(value=None, note=f"none up to {max(reach, FARTHEST)}")
    near = abs(float(similarity_at(frequencies, first)))
    note = "first D with kappa < 0" + (f"; kappa is {near:.1e} there, close to the error" if near < 10 * ERROR else "")
    return Quantity(value=first, error=0.0, note=note)


def _first_rise(kappa: Float[np.ndarray, " n"]) -> Quantity:
    rises = np.flatnonzero(np.diff(kappa) > ERROR)
    if not len(rises):
        return Quantity(value=None, note=f"none up to {len(kappa) - 1}")
    return Quantity(value=int(rises[0]), error=0.0, note="first D with kappa(D + 1) > kappa(D)")


def local_maxima(kappa: Float[np.ndarray, " n"]) -> np.ndarray:
    """Distances strictly above both neighbours, ends left out."""
    return np.flatnonzero((kappa[1:-1] > kappa[:-2]) & (kappa[1:-1] > kappa[2:])) + 1


def main_lobe(kappa: Float[np.ndarray, " n"]) -> int:
    """First distance with ``kappa`` below 1/2; the end where there is none."""
    below = np.flatnonzero(kappa < LOBE)
    return int(below[0]) if len(below) else len(kappa)


def record_maxima(kappa: Float[np.ndarray, " n"], start: int, most: int = 12) -> list[int]:
    """Near-returns: peaks from ``start`` on that exceed everything since ``start``; the last ones."""
    found: list[int] = []
    for peak in local_maxima(kappa):
        if peak >= start and (not found or kappa[peak] > kappa[found[-1]]):
            found.append(int(peak))
    return found[-most:]


def envelope(kappa: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """``sup over D' >= D of |kappa(D')|`` within the range."""
    return np.maximum.accumulate(np.abs(kappa)[::-1])[::-1]


def _corners(at: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A staircase by its corners only."""
    change = np.flatnonzero(np.diff(steps)) if len(steps) > 1 else np.zeros(0, dtype=int)
    keep = np.unique(np.r_[0, change, change + 1, len(steps) - 1])
    return at[keep], steps[keep]


def _limit(frequencies: Frequencies, reach: int, base: float | None, points: int) -> tuple[Curve | None, Quantity]:
    if base is None:
        return None, Quantity(value=None, note="the schedule has no base")
    at = np.unique(np.r_[np.arange(min(reach, 64) + 1), np.geomspace(1, reach, points // 2).astype(np.int64)])
    limit = continuous_limit(at, base)
    gap = np.abs(limit - similarity_at(frequencies, at))
    worst = int(gap.argmax())
    return spread(at, limit, points), Quantity(
        value=float(gap[worst]), error=ERROR, note=f"largest of {len(at)} distances, at D = {at[worst]}"
    )


def _extreme(distance: int, kappa: np.ndarray) -> Extreme:
    return Extreme(distance=distance, similarity=float(kappa[distance]))
