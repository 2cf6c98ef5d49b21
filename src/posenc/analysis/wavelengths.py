"""Wavelengths against the original, trained and served context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from posenc.formulas.spectrum import Frequencies
from posenc.records.analysis import Quantity, UnseenAngles, WavelengthFacts, Within


def wavelength_facts(
    frequencies: Frequencies,
    lengths: Mapping[str, int | None],
    *,
    before: Frequencies | None = None,
    seen: int | None = None,
    asked: int | None = None,
) -> WavelengthFacts:
    """Compare wavelengths with lengths.

    Args:
        frequencies: as they run.
        lengths: by name (original, trained, served); unknown ones are None.
        before: frequencies of the training that ``seen`` speaks of; the same unless given (a scaling came later).
        seen: longest distance of that training.
        asked: length whose angles are compared with what was seen; the served length unless given.

    >>> from posenc.formulas.scalings import frequencies
    >>> from posenc.spec import Rotary
    >>> facts = wavelength_facts(frequencies(Rotary(128)), {"trained": 4096})
    >>> facts.within[0].critical_dimension, facts.within[0].incomplete
    (92, 18)
    """
    waves = frequencies.wavelengths
    known: list[tuple[Any, int]] = [(name, n) for name, n in lengths.items() if n is not None]
    longest = asked or lengths.get("served")
    unseen = None
    if seen is not None and longest is not None:
        unseen = unseen_angles(before or frequencies, frequencies, seen, longest)
    return WavelengthFacts(
        wavelengths=tuple(None if np.isinf(w) else float(w) for w in waves),
        within=tuple(within(waves, name, n) for name, n in known),
        unseen=unseen,
        per_decade=per_decade(waves),
        widest_gap=_widest_gap(waves),
    )


def within(wavelengths: np.ndarray, name: Any, length: int) -> Within:
    """Count the pairs that complete no turn in ``length`` positions.

    The critical dimension is twice the number of pairs that do; for a geometric schedule it equals
    ``2 ceil(d/2 log_b(length / 2 pi))`` (Liu et al. 2023, theorem 1).
    """
    incomplete = np.flatnonzero(wavelengths > length)
    return Within(
        name=name,
        length=length,
        incomplete=len(incomplete),
        first_incomplete=int(incomplete[0]) if len(incomplete) else None,
        critical_dimension=2 * (len(wavelengths) - len(incomplete)),
    )


def unseen_angles(before: Frequencies, after: Frequencies, seen: int, length: int) -> UnseenAngles:
    """Find pairs that within ``length`` reach angles that ``seen`` positions of training did not.

    A pair that completed a turn in training has met every angle; a slower one has met ``0..theta * seen``.
    """
    met = np.abs(before.fused) * seen
    reached = np.abs(after.fused) * length
    # rounding of the product is no new angle
    new = (met < 2 * np.pi) & (reached > met * (1 + 1e-12))
    beyond = (np.minimum(reached, 2 * np.pi) - met)[new] / (2 * np.pi)
    first = np.flatnonzero(new)
    return UnseenAngles(
        seen_length=seen,
        length=length,
        pairs=int(new.sum()),
        first_pair=int(first[0]) if len(first) else None,
        largest=Quantity(
            value=float(beyond.max()) if len(beyond) else 0.0,
            error=1e-12,
            note="fraction of a turn beyond what was met",
        ),
    )


def per_decade(wavelengths: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Coverage of the log scale: pairs in each decade of wavelength, pairs that do not turn left out."""
    decades = Counter(int(np.floor(np.log10(w))) for w in wavelengths if np.isfinite(w))
    if not decades:
        return ()
    return tuple((d, decades.get(d, 0)) for d in range(min(decades), max(decades) + 1))


def _widest_gap(wavelengths: np.ndarray) -> Quantity:
    ordered = np.sort(wavelengths[np.isfinite(wavelengths)])
    if len(ordered) < 2:
        return Quantity(value=None, note="fewer than two pairs turn")
    return Quantity(
        value=float((ordered[1:] / ordered[:-1]).max()), error=1e-12, note="ratio of neighbouring wavelengths"
    )
