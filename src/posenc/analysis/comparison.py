"""Comparison: whether two models have the same position encodings, or exactly where they differ."""

from __future__ import annotations

from typing import Any

from posenc.analysis.encodings import compare_encodings
from posenc.analysis.inspection import all_faults
from posenc.analysis.pairs import runs
from posenc.analysis.subject import reading_of
from posenc.analysis.wording import number, spans
from posenc.records import Difference, Finding, Reading, Side
from posenc.spec import ModelPositions, notation

CONVENTION = {"weight": "convention"}
ORDER = ("difference", "convention", "information")


def diff(a: Any, b: Any) -> Difference:
    """Return whether two models have the same position encodings, or where they differ, number against number.

    Layer kinds, windows and every frequency, gain and logit scale are compared as they are computed, not as they are
    spelt. A different order of stored rows is a convention where an input states that its weights are stored that way.

    Args:
        a, b: anything :func:`posenc.read` takes, or what it returned.

    Raises:
        PosencError: a subject cannot be read.
    """
    first, second = reading_of(a), reading_of(b)
    findings = [*_parts(first, second), *_remarks(first, second)]
    return Difference(
        a=_side(first),
        b=_side(second),
        same=not any(f.weight == "difference" for f in findings),
        findings=tuple(sorted(findings, key=lambda f: ORDER.index(f.weight))),
        compared=_compared(first, second),
    )


def _compared(a: Reading, b: Reading) -> tuple[str, ...]:
    """What the answer covers: the parts of both sides with their layers and encodings."""
    common = {part.name for part in a.parts[1:]} & {part.name for part in b.parts[1:]}
    parts = [a.parts[0], *(part for part in a.parts[1:] if part.name in common)]
    lines = []
    for part in parts:
        layers = len(part.positions.layers)
        names = ", ".join(_counted(e) for e in part.positions.encodings) or "no encoding"
        lines.append(f"{part.name}: {f'{layers} layers, ' if layers else ''}{names}")
    return tuple(lines)


def _counted(encoding: Any) -> str:
    pairs = getattr(encoding, "pairs", None)
    return f"{encoding.kind} of {pairs} pairs" if isinstance(pairs, int) else str(encoding.kind)


def _side(reading: Reading) -> Side:
    return Side(name=reading.name, format=reading.format, source=reading.source)


def _parts(a: Reading, b: Reading) -> list[Finding]:
    """Compare the main parts with each other whatever they are called, the others by name."""
    found = _positions(_title(a, 0), a, a.parts[0].positions, b, b.parts[0].positions)
    others_a = {p.name: (i, p.positions) for i, p in enumerate(a.parts) if i}
    others_b = {p.name: p.positions for p in b.parts[1:]}
    for name, (i, positions) in others_a.items():
        if name in others_b:
            found += _positions(_title(a, i), a, positions, b, others_b[name])
    for name in {**others_a, **others_b}:
        if (name in others_a) != (name in others_b):
            found.append(_lone_part(name, name in others_a, b if name in others_a else a))
    return found


def _title(reading: Reading, part: int) -> str:
    return reading.parts[part].name if len(reading.parts) > 1 else ""


def _lone_part(name: str, in_a: bool, without: Reading) -> Finding:
    """A GGUF holds one stack and says nothing about others; any other input that lacks a stack has none."""
    silent = without.format == "gguf"
    return Finding(
        weight="information" if silent else "difference",
        where=name,
        what="part",
        a="present" if in_a else "absent",
        b="absent" if in_a else "present",
        remark="a GGUF file holds one stack; not compared" if silent else None,
    )


def _positions(part: str, ra: Reading, a: ModelPositions, rb: Reading, b: ModelPositions) -> list[Finding]:
    if "notation" in (ra.format, rb.format):  # a line of notation describes one kind of layer, not how many there are
        a, b = (p.replace(layers=()) if len(p.kinds) == 1 else p for p in (a, b))
    found = compare_encodings(_where(part, "input"), a.input, b.input)
    if a.layers and b.layers and len(a.layers) != len(b.layers):
        found.append(_finding(_where(part, ""), "number of layers", len(a.layers), len(b.layers)))
    for (i, j), layers in _matched(a, b).items():
        ka, kb = a.kinds[i], b.kinds[j]
        where = _where(part, _layers_text(ka.name, kb.name, layers, max(len(a.layers), len(b.layers))))
        found += [
            _finding(where, name, x, y)
            for name, x, y in (("window", ka.window, kb.window), ("chunk", ka.chunk, kb.chunk))
            if x != y
        ]
        found += compare_encodings(where, ka.encodings, kb.encodings, (ra.row_order, rb.row_order))
    found += _unmatched(part, a, b)
    return found + _three_lengths(part, a, b)


def _matched(a: ModelPositions, b: ModelPositions) -> dict[tuple[int, int], tuple[int, ...]]:
    """Pairs of kinds that meet, with the layers where they do; by name or order where layers are unknown."""
    if a.layers and b.layers:
        met: dict[tuple[int, int], tuple[int, ...]] = {}
        for layer, both in enumerate(zip(a.layers, b.layers, strict=False)):
            met[both] = (*met.get(both, ()), layer)
        return met
    names = {kind.name: j for j, kind in enumerate(b.kinds)}
    if {kind.name for kind in a.kinds} == set(names):
        return {(i, names[kind.name]): () for i, kind in enumerate(a.kinds)}
    return {(i, i): () for i in range(min(len(a.kinds), len(b.kinds)))}


def _unmatched(part: str, a: ModelPositions, b: ModelPositions) -> list[Finding]:
    """Where one side does not say which layers it has, the number of kinds must agree and the pattern is unknown."""
    if a.layers and b.layers:
        return []
    found = []
    if len(a.kinds) != len(b.kinds):
        found.append(_finding(_where(part, ""), "kinds of layers", _kinds(a), _kinds(b)))
    if bool(a.layers) != bool(b.layers):
        remark = "the layer pattern could not be compared" if len(a.kinds) > 1 else None
        finding = _finding(_where(part, ""), "number of layers", len(a.layers) or None, len(b.layers) or None)
        found.append(finding.model_copy(update={"weight": "information", "remark": remark}))
    return found


def _kinds(positions: ModelPositions) -> str:
    return ", ".join(f"{kind.name}: {notation(kind.encodings)}" for kind in positions.kinds)


def _three_lengths(part: str, a: ModelPositions, b: ModelPositions) -> list[Finding]:
    """The served length is a setting, and the trained length is no part of the encoding; both are worth knowing."""
    found = []
    for name, x, y in (("trained length", a.trained, b.trained), ("served length", a.served, b.served)):
        if x != y and x is not None and y is not None:
            found.append(_finding(_where(part, ""), name, x, y).model_copy(update={"weight": "information"}))
    return found


def _remarks(a: Reading, b: Reading) -> list[Finding]:
    """Faults, assumptions and unread keys on either side: a reader must know them to trust the answer."""
    found = []
    if a.row_order and b.row_order and a.row_order != b.row_order:
        found.append(_finding("", "order of stored rows", a.row_order, b.row_order).model_copy(update=CONVENTION))
    fa, fb = all_faults(a), all_faults(b)
    for fault in dict.fromkeys((*fa, *fb)):
        sides = ("wrong" if fault in fa else "-", "wrong" if fault in fb else "-")
        found.append(Finding(weight="information", where="", what="fault", a=sides[0], b=sides[1], remark=fault))
    for side, reading in (("a", a), ("b", b)):
        found += [_of_one(side, f"not read: {u.key}", u.value, None) for u in reading.unread]
        found += [_of_one(side, f"assumed: {x.key}", x.value, x.why) for x in reading.assumed]
    return found


def _of_one(side: str, what: str, value: str, remark: str | None) -> Finding:
    a, b = (value, "-") if side == "a" else ("-", value)
    return Finding(weight="information", where="", what=what, a=a, b=b, remark=remark)


def _finding(where: str, what: str, a: Any, b: Any) -> Finding:
    return Finding(weight="difference", where=where, what=what, a=_text(a), b=_text(b))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "none" if value is None else number(value)


def _where(part: str, rest: str) -> str:
    return ", ".join(text for text in (part, rest) if text)


def _layers_text(a: str, b: str, layers: tuple[int, ...], of: int) -> str:
    if of and len(layers) == of:
        return "all layers"
    name = a if a == b else f"{a} / {b}"
    return f"{name} layers" + (f" {spans(runs(layers))}" if layers else "")
