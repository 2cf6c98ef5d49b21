"""Readings made by hand for tests of what follows from them."""

from __future__ import annotations

from typing import Any

from posenc.records import Part, Reading
from posenc.spec import ModelPositions, parse

LLAMA31 = "rotary(128, base=500000) >> llama3(8, original=8192)"


def reading(notation: str, layers: int = 5, **fields: Any) -> Reading:
    """A reading of one stack; fields of the reading and of its positions are told apart by name."""
    lengths = {k: fields.pop(k) for k in ("trained", "trained_source", "served") if k in fields}
    positions = ModelPositions.uniform(*parse(notation), layers=layers, **lengths)
    given = {"name": "by hand", "format": "config", "source": "a test", **fields}
    return Reading(parts=(Part(name="text", positions=positions),), **given)
