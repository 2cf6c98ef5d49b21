"""How published models do it: rows of the catalogue by where their positions enter."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from posenc.formats import catalogue
from posenc.spec import Rotary


class Counts(NamedTuple):
    """Rows of the catalogue; a row with several mechanisms counts under each.

    Args:
        rows: all of them.
        add: something is added to the input.
        rotate: queries and keys are rotated.
        bias: something is added to the score.
    """

    rows: int
    add: int
    rotate: int
    bias: int


@cache
def counted() -> Counts:
    """Count the catalogue, every stack of every model.

    >>> counted().rotate > counted().add > counted().bias > 0
    True
    """
    readings = [catalogue.read_row(row) for row in catalogue.rows()]
    every = [reading.encodings() for reading in readings]
    return Counts(
        rows=len(every),
        add=sum(any(e.enters == "input" for e in found) for found in every),
        rotate=sum(any(isinstance(e, Rotary) for e in found) for found in every),
        bias=sum(any(e.enters == "score" for e in found) for found in every),
    )
