"""What leaves a room: plain, frozen, versioned records that become JSON without loss.

No NaN and no infinity: a number that does not exist is None, and the field beside it or its description says why.
Curves have at most :data:`CURVE_POINTS` points, thinned so that every minimum and maximum survives (:func:`thinned`,
:func:`spread`).
"""

from posenc.records.base import CURVE_POINTS, SCHEMA, Curve, Record, spread, thinned
from posenc.records.difference import Difference, Finding, Side
from posenc.records.inspection import Inspection
from posenc.records.reading import Assumption, Part, Reading, UnreadKey

__all__ = [
    "CURVE_POINTS",
    "SCHEMA",
    "Assumption",
    "Curve",
    "Difference",
    "Finding",
    "Inspection",
    "Part",
    "Reading",
    "Record",
    "Side",
    "UnreadKey",
    "spread",
    "thinned",
]
