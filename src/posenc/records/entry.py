"""The record of a catalogue row, for lists."""

from __future__ import annotations

from posenc.records.base import Record
from posenc.records.inspection import Lengths


class Entry(Record):
    """One model of the catalogue in a line.

    Args:
        name: what it is called.
        aliases: hub ids and short names that find it too.
        group: the family it stands with.
        model_type: the architecture's name.
        encodings: notation of every encoding of the main stack, each once.
        layers: number of layers of the main stack; None where unknown.
        lengths: original, trained, served.
        source: where the values were read.
        verification: how far they were verified.
    """

    name: str
    aliases: tuple[str, ...] = ()
    group: str
    model_type: str | None = None
    encodings: tuple[str, ...] = ()
    layers: int | None = None
    lengths: Lengths
    source: str
    verification: str
