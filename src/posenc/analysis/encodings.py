"""Two encodings against each other, as findings: what they compute, number against number, not how they are spelt.

What differs is decided by :mod:`posenc.formulas.sameness`; here its list of numbers becomes a few findings that a
reader can act on, and a different pairing is weighed by how the weights are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posenc.analysis.wording import abridged, number
from posenc.formulas.sameness import Difference, differences
from posenc.records import Finding
from posenc.spec import notation

ROUNDING = 1e-6
"""Relative: numbers that went through float32 (GGUF, safetensors) are off by up to 6e-8 each."""

ORDERS = {False: "half", True: "adjacent"}
"""Row order that belongs to ``interleaved``."""


def compare_encodings(
    where: str, a: Sequence[Any], b: Sequence[Any], orders: tuple[str | None, str | None] = (None, None)
) -> list[Finding]:
    """Compare the encodings of one kind of layer.

    Args:
        where: the layers, as text.
        a, b: the encodings of either side, in any order.
        orders: the order of stored rows on either side, where known.
    """
    found: list[Finding] = []
    left = list(b)
    for x in a:
        y = next((e for e in left if e == x), None) or next((e for e in left if e.kind == x.kind), None)
        if y is None:
            found.append(Finding(weight="difference", where=where, what=x.kind, a=_brief(x), b="none"))
            continue
        left.remove(y)
        found += _findings(where, x, y, orders)
    return found + [Finding(weight="difference", where=where, what=y.kind, a="none", b=_brief(y)) for y in left]


def _findings(where: str, a: Any, b: Any, orders: tuple[str | None, str | None]) -> list[Finding]:
    found = differences(a, b, tolerance=ROUNDING)
    if not found:
        return [_rounded(where, group) for group in _groups(differences(a, b))]
    cause = _cause(a, b)
    findings = []
    for group in _groups(found):
        if group[0].is_convention:
            findings.append(_pairing(where, group[0], a, b, orders))
        else:
            findings.append(_grouped(where, group, a, "difference", cause))
            cause = None  # once is enough
    return findings


def _groups(found: list[Difference]) -> list[list[Difference]]:
    """Differences of the same quantity together, in order of first appearance."""
    groups: dict[str, list[Difference]] = {}
    for each in found:
        groups.setdefault(each.what, []).append(each)
    return list(groups.values())


def _grouped(where: str, group: list[Difference], a: Any, weight: Any, remark: str | None) -> Finding:
    """The first pair (head, channel) that differs, how many do, and the largest relative difference."""
    first = group[0]
    apart = [relative for d in group if (relative := _relative(d.left, d.right)) is not None]
    indexed = first.where is not None
    return Finding(
        weight=weight,
        where=where,
        what=first.what + _at(first.length),
        a=_value(first.left),
        b=_value(first.right),
        index=first.where,
        count=len(group) if indexed else None,
        of=_of(first, a) if indexed else None,
        relative=max(apart, default=None),
        remark=remark,
    )


def _rounded(where: str, group: list[Difference]) -> Finding:
    return _grouped(where, group, None, "information", "equal within float32 rounding")


def _at(length: int | None) -> str:
    return "" if length is None else " in short rows" if length == 1 else f" in rows of {length} positions"


def _of(first: Difference, encoding: Any) -> int | None:
    """Out of how many, where that is a field of the encoding."""
    unit = first.what.rsplit(" ", 1)[-1]
    return {"pair": getattr(encoding, "pairs", None), "head": getattr(encoding, "num_heads", None)}.get(unit)


def _relative(a: Any, b: Any) -> float | None:
    """``|a - b| / max(|a|, |b|)`` of two numbers."""
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in (a, b)):
        return None
    return abs(a - b) / max(abs(a), abs(b)) if a or b else 0.0


def _pairing(where: str, d: Difference, a: Any, b: Any, orders: tuple[str | None, str | None]) -> Finding:
    """Different pairs compute the same where an input stores its rows in the order that its own pairs need."""
    stored = orders[0] == ORDERS[a.interleaved] or orders[1] == ORDERS[b.interleaved]
    return Finding(
        weight="convention" if stored else "difference",
        where=where,
        what="pairs",
        a=_value(d.left),
        b=_value(d.right),
        remark="the rows of the stored weights are ordered for these pairs"
        if stored
        else "the same weights need their q and k rows permuted",
    )


def _cause(a: Any, b: Any) -> str | None:
    """The settings that differ, so that a reader sees which line of the config to look at."""
    causes = []
    for name in ("schedule", "scaling"):
        x, y = (getattr(e, name, ()) for e in (a, b))
        x, y = (v if isinstance(v, tuple) else (v,) for v in (x, y))
        if [v.kind for v in x] == [v.kind for v in y]:
            causes += [line for u, v in zip(x, y, strict=True) for line in _changed(u, v)]
        else:
            causes.append(f"{name} {_chain(x)} against {_chain(y)}")
    return "; ".join(causes) or None


def _changed(a: Any, b: Any) -> list[str]:
    """The fields in which two values of one kind differ."""
    pairs = [(name, getattr(a, name), getattr(b, name)) for name in type(a).model_fields]
    return [f"{a.kind} {name} {_field(x)} against {_field(y)}" for name, x, y in pairs if x != y]


def _field(value: Any) -> str:
    return abridged(str(value)) if isinstance(value, tuple) else _value(value)


def _chain(scalings: tuple[Any, ...]) -> str:
    return " >> ".join(map(_brief, scalings)) or "none"


def _brief(value: Any, limit: int = 160) -> str:
    text = abridged(notation(value))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return "none" if value is None else str(value)
