"""Citations: the papers behind a configuration."""

from __future__ import annotations

from typing import Any

from posenc.analysis.subject import reading_of
from posenc.spec.references import Reference, cited


def cite(subject: Any) -> tuple[Reference, ...]:
    """Return the papers behind a model's position encodings, oldest first.

    Args:
        subject: anything :func:`posenc.read` takes, or what it returned.

    Raises:
        PosencError: the subject cannot be read.
    """
    return cited(reading_of(subject).encodings())
