"""Whatever a caller hands over becomes a Reading."""

from __future__ import annotations

from typing import Any

from posenc.records import Reading


def reading_of(subject: Any) -> Reading:
    """Return the reading itself, or read a name, path, line of notation or value.

    Raises:
        PosencError: the subject cannot be read.
    """
    if isinstance(subject, Reading):
        return subject
    from posenc.formats.sources import read

    return read(subject)
