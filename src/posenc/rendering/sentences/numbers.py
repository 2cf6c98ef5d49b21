"""Numbers as they stand in a sentence."""

from __future__ import annotations

from posenc.records.analysis import Quantity


def whole(value: float) -> str:
    """A count with its thousands apart.

    >>> whole(131072.0)
    '131,072'
    """
    return f"{round(value):,}"


def real(value: float | None, digits: int = 4) -> str:
    """A number with ``digits`` significant digits, thousands apart; ``∞`` for None.

    >>> real(20473564.4), real(0.123456), real(6.283185), real(3e-13), real(0), real(-1599.9612)
    ('20,473,564', '0.1235', '6.283', '3e-13', '0', '−1,600')
    """
    if value is None:
        return "∞"
    if value == 0:
        return "0"
    if value < 0:
        return f"−{real(-value, digits)}"
    if abs(value) < 1e-4:
        return f"{value:.1g}"
    if abs(value) >= 1e12:
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def level(value: float) -> str:
    """A similarity or a cosine: three decimals, a true minus.

    >>> level(-0.0716), level(-0.0001)
    ('−0.072', '0.000')
    """
    text = f"{value:.3f}"
    return "0.000" if text == "-0.000" else text.replace("-", "−")


def many(number: int, word: str) -> str:
    """A number with its noun.

    >>> many(1, "pair"), many(1024, "pair")
    ('1 pair', '1,024 pairs')
    """
    return f"{whole(number)} {word}" + ("" if number == 1 else "s")


def known(quantity: Quantity, digits: int = 4) -> str:
    """A quantity's value, or its reason for having none."""
    return real(quantity.value, digits) if quantity.value is not None else f"none ({quantity.note})"


def listed(words: list[str]) -> str:
    """Words joined as in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
