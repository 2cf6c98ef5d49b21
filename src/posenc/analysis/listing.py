"""The catalogue in lines."""

from __future__ import annotations

from posenc.formats import catalogue
from posenc.records.entry import Entry
from posenc.records.inspection import Lengths
from posenc.spec import notation


def entries(search: str = "") -> list[Entry]:
    """Rows of the catalogue whose name, family or notation contain every word of ``search``; all without one."""
    return [_entry(row) for row in catalogue.search(search)]


def _entry(row: catalogue.Row) -> Entry:
    reading = catalogue.read_row(row)
    at = reading.positions
    lengths = Lengths(original=at.original, trained=at.trained, trained_source=at.trained_source, served=at.served)
    return Entry(
        name=row.name,
        aliases=row.aliases,
        group=row.group,
        model_type=reading.model_type,
        encodings=tuple(map(notation, at.encodings)),
        layers=len(at.layers) or None,
        lengths=lengths,
        source=row.source,
        verification=row.verification,
    )
