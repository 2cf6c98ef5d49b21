"""Errors that state the rule, what was seen and what to do.

Every error a user can cause derives from :class:`PosencError`; the command line prints its one line and exits 2.
"""

from __future__ import annotations


class PosencError(ValueError):
    """A rule was broken by what the caller handed over.

    Args:
        rule: what must hold, as one sentence without a final stop.
        seen: what was found instead; long or hostile text is shortened and made printable.
        remedy: what to do about it, if something can be said.
    """

    room = 160
    """The most characters shown of what was seen."""

    def __init__(self, rule: str, seen: object = None, remedy: str | None = None) -> None:
        self.rule = shown(rule, 600)
        blank = isinstance(seen, str) and not seen.strip()
        self.seen = None if seen is None else shown(repr(seen) if blank else seen, self.room)
        self.remedy = None if remedy is None else shown(remedy, 600)
        super().__init__(self.rule, self.seen, self.remedy)

    def __str__(self) -> str:
        text = self.rule
        if self.seen is not None:
            text += f"; got {self.seen}"
        if self.remedy:
            text += f"{'' if text.endswith('.') else '.'} {self.remedy}"
        return text


class SpecError(PosencError):
    """A value (an encoding, a scaling, a model's positions, a line of notation) cannot exist as asked."""


class FormatError(PosencError):
    """A file, folder or name cannot be read as what it claims to be."""


class ShapeError(PosencError):
    """An array has the wrong shape, dtype or range for what is asked of it."""


class SubjectError(PosencError):
    """Code or data handed over for examination cannot be run or used."""

    room = 480


def shown(value: object, limit: int = 160) -> str:
    """Return ``value`` as one printable line of at most ``limit`` characters.

    >>> shown("a" * 12, limit=8)
    'aaaaa...'
    >>> shown("two\\nlines")
    'two\\\\nlines'
    """
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception as error:  # a hostile __repr__ must not hide the error being reported
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    text = text[: 4 * limit]
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return text if len(text) <= limit else text[: limit - 3] + "..."
