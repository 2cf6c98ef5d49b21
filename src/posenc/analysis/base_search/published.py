"""Bases that papers propose and published models have, held against a context."""

from __future__ import annotations

import math
from collections.abc import Iterator

from posenc.analysis.base_search.sums import value_error
from posenc.formats import catalogue
from posenc.formulas.ranges import first_below
from posenc.formulas.scalings import frequencies
from posenc.formulas.spectrum import Array
from posenc.records.base_search import UsedBase
from posenc.spec import Geometric, Interleave, LayerKind, Rotary, Split

PAPER_DIM = 128
"""Width of a head in both tables (the first does not state it; 128 fits)."""
MEN = "Men et al. 2024 (2405.14591)"
MEN_FIT = "Men et al. 2024, fit 0.0424 L^1.628"
SU = "Su 2024 (kexue.fm/archives/10122)"
PAPERS = {
    2**10: (4.3e3, 4.3e3),
    2**11: (1.6e4, 1.2e4),
    2**12: (2.7e4, 2.7e4),
    2**13: (8.4e4, 8.4e4),
    2**14: (3.1e5, 2.3e5),
    2**15: (6.4e5, 6.3e5),
    2**16: (2.1e6, 2.1e6),
    2**17: (7.8e6, 4.9e6),
    2**18: (3.6e7, 2.4e7),
    2**19: (6.4e7, 5.8e7),
    2**20: (5.1e8, 6.5e7),
}
"""Published with two digits: bases of :data:`MEN` and :data:`SU` for a context."""


def used_bases(context: int, head_dim: int, u: Array) -> tuple[UsedBase, ...]:
    """Papers first, then the models of the catalogue by base.

    Args:
        context: the last distance.
        head_dim: models whose rotated width is another are left out, as are layers with a shorter window or chunk.
        u: ``(pairs,)`` exponents.
    """
    return (*_papers(context, head_dim, u), *sorted(_models(context, head_dim, u), key=lambda m: (m.base, m.who)))


def _papers(context: int, head_dim: int, u: Array) -> Iterator[UsedBase]:
    if head_dim != PAPER_DIM:
        return
    proposed = dict(zip((MEN, SU), PAPERS[context], strict=True)) if context in PAPERS else {}
    proposed[MEN_FIT] = 0.0424 * context**1.628
    for who, base in proposed.items():
        if base > 1:
            first, decided = _first_negative(Rotary(head_dim, base=base), base, context, u)
            yield UsedBase(who=who, kind="paper", base=base, first_negative=first, decided=decided)


def _models(context: int, head_dim: int, u: Array) -> Iterator[UsedBase]:
    known: dict[Rotary, tuple[int | None, bool]] = {}
    for row in catalogue.rows():
        reading = catalogue.read_row(row)
        at = reading.positions
        for kind in at.kinds:
            if min(kind.window or context, kind.chunk or context) < context:
                continue
            for encoding, base in _concerned(kind, head_dim):
                if encoding not in known:
                    known[encoding] = _first_negative(encoding, base, context, u)
                first, decided = known[encoding]
                yield UsedBase(
                    who=row.name,
                    kind="model",
                    base=base,
                    scaled=bool(encoding.scaling),
                    length=at.trained or at.served,
                    first_negative=first,
                    decided=decided,
                )


def _concerned(kind: LayerKind, head_dim: int) -> Iterator[tuple[Rotary, float]]:
    """Rotary encodings of text with the paper's schedule and this width, and their bases."""
    for encoding in kind.encodings:
        if isinstance(encoding, Rotary) and encoding.rotary_dim == head_dim:
            schedule, axes = encoding.schedule, encoding.axes
            text = axes is None or isinstance(axes, Interleave) or (isinstance(axes, Split) and not axes.own_schedule)
            if text and isinstance(schedule, Geometric) and schedule == Geometric(base=schedule.base):
                yield encoding, schedule.base


def _first_negative(encoding: Rotary, base: float, context: int, u: Array) -> tuple[int | None, bool]:
    """The first distance whose sum is certainly negative, and whether no sum before it is too close to 0 to tell."""
    f = frequencies(encoding, context)
    rounding = value_error(context, math.log(base), u)
    sure = first_below(f, -rounding, stop=context + 1)
    end = context + 1 if sure is None else sure
    return sure, end == 1 or first_below(f, rounding, stop=end) is None
