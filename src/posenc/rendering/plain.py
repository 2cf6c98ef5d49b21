"""Text from outside made harmless, and numbers made readable."""

from __future__ import annotations


def inert(text: object) -> str:
    """Text without control characters: escape sequences, line breaks and direction overrides become visible.

    >>> inert("a\\x1b[31mb\\u202e")
    'a\\\\x1b[31mb\\\\u202e'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def short(text: object, limit: int = 300) -> str:
    """Inert text of at most ``limit`` characters."""
    line = inert(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def figures(value: float | None, digits: int = 6) -> str:
    """A number with ``digits`` significant digits; ``∞`` for None, the wavelength of a pair that does not turn.

    >>> figures(0.0021665707635), figures(20472848.6), figures(3.0689259889e-07), figures(None)
    ('0.00216657', '20472849', '3.06893e-07', '∞')
    """
    if value is None:
        return "∞"
    if value and not 1e-4 <= abs(value) < 1e8:
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}"
    text = f"{value:.{digits}g}"
    return text


def count(number: int, word: str) -> str:
    """A number with its noun.

    >>> count(1, "layer"), count(3, "layer")
    ('1 layer', '3 layers')
    """
    return f"{number} {word}" + ("" if number == 1 else "s")


def spans(runs: tuple[tuple[int, int], ...]) -> str:
    """Runs of indices as text.

    >>> spans(((0, 4), (6, 6)))
    '0-4, 6'
    """
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def slug(text: str, limit: int = 60) -> str:
    """Text as a part of a file name: ASCII letters, digits, dots and hyphens only.

    >>> slug("../Phi 3.5<mini>"), slug("位置")
    ('phi-3.5-mini', 'subject')
    """
    kept = "".join(c if c.isascii() and (c.isalnum() or c == ".") else "-" for c in text.lower())
    return "-".join(filter(None, kept.strip("-.").split("-")))[:limit].strip("-.") or "subject"
