"""One line for one encoding, generated from the fields: ``rotary(128, base=500000) >> yarn(4, original=32768)``.

``name(first field, key=value, …)``: the first field is positional, defaults are left out, fields of a nested union's
default member are written flat. ``>>`` chains scalings, ``+`` joins encodings of one kind, ``none`` is no position.
The round trip is exact.
"""

from __future__ import annotations

import ast
import io
import tokenize
from typing import Any

from posenc.errors import SpecError, shown
from posenc.spec import axes, schedules
from posenc.spec.encodings import ENCODINGS, Rotary
from posenc.spec.scalings import SCALINGS, AsExecuted
from posenc.spec.value import Value

LIMIT = 2**20
VALUES: dict[str, type[Value]] = {
    **ENCODINGS,
    **SCALINGS,
    "as_executed": AsExecuted,
    **{
        cls.model_fields["kind"].default: cls
        for cls in (
            schedules.Geometric,
            schedules.Arithmetic,
            schedules.Random,
            schedules.Explicit,
            schedules.Periods,
        )
    },
    **{cls.model_fields["kind"].default: cls for cls in (axes.Split, axes.Interleave, axes.Mixed)},
}


def notation(value: Value | tuple[Value, ...]) -> str:
    """Write a value, or a tuple of encodings of one kind of layer.

    >>> from posenc.spec import Rotary, Yarn, Alibi
    >>> notation(Rotary(128, base=5e5) >> Yarn(4, original=32768))
    'rotary(128, base=500000) >> yarn(4, original=32768)'
    >>> notation((Rotary(64), Alibi(12))), notation(())
    ('rotary(64) + alibi(12)', 'none')
    """
    if isinstance(value, tuple):
        return " + ".join(notation(each) for each in value) or "none"
    chain = value.scaling if isinstance(value, Rotary) else ()
    return " >> ".join([_call(value), *(_call(scaling) for scaling in chain)])


def parse(text: str) -> tuple[Any, ...]:
    """Read a line of notation into its encodings; ``none`` is the empty tuple.

    Raises:
        SpecError: the line is not notation, a name is unknown, or a value is impossible.

    >>> parse("rotary(8, base=5e5)")[0].schedule.base
    500000.0
    """
    if len(text) > LIMIT:
        raise SpecError(f"a line of notation has at most {LIMIT} characters", f"{len(text)}")
    if text.strip() in ("none", "none()"):
        return ()
    return tuple(_chain(part) for part in _split(text, "+"))


def _call(value: Value) -> str:
    """``kind(first, key=value)`` without the fields that stand at their default."""
    fields = {n: getattr(value, n) for n in type(value).model_fields if n not in ("kind", "scaling")}
    kind = getattr(value, "kind", type(value).__name__)
    first = type(value).first_field()
    written = []
    for name, field in fields.items():
        if name == value.flat:
            default = type(value).model_fields[name].get_default(call_default_factory=True)
            if type(field) is type(default):
                written += [f"{n}={_literal(v)}" for n, v in _changed(field, default)]
                continue
        if name == first and type(value).model_fields[name].is_required():
            written.append(_literal(field))
        elif not _is_default(value, name, fields):
            written.append(f"{name}={_literal(field)}")
    return f"{kind}({', '.join(written)})"


def _changed(value: Value, default: Value) -> list[tuple[str, Any]]:
    return [(n, v) for n, v in dict(value).items() if n != "kind" and v != getattr(default, n)]


def _is_default(value: Value, name: str, fields: dict[str, Any]) -> bool:
    """Whether leaving the field out gives the same value; also true of derived defaults such as ``rotary_dim``."""
    info = type(value).model_fields[name]
    if info.is_required():
        return False
    return bool(info.get_default(call_default_factory=True, validated_data=fields) == fields[name])


def _literal(value: Any) -> str:
    if isinstance(value, Value):
        return _call(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(_literal(v) for v in value) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)


def _split(text: str, separator: str) -> list[str]:
    """Cut at a separator outside brackets and strings."""
    parts, depth, start = [], 0, 0
    lines = text.replace("\n", " ").replace("\r", " ")
    try:
        for token in tokenize.generate_tokens(io.StringIO(lines).readline):
            if token.type != tokenize.OP:
                continue
            depth += (token.string in "([{") - (token.string in ")]}")
            if depth == 0 and token.string == separator:
                parts.append(lines[start : token.start[1]])
                start = token.end[1]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        raise SpecError("a line of notation is name(value, key=value, …)", text, _hint()) from None
    return [*parts, lines[start:]]


def _chain(text: str) -> Any:
    first, *rest = [_value(part.strip()) for part in _split(text, ">>")]
    if getattr(first, "kind", None) not in ENCODINGS:
        raise SpecError("a line of notation starts with an encoding", text, f"Known: {', '.join(ENCODINGS)}.")
    for scaling in rest:
        if not isinstance(first, Rotary):
            raise SpecError("only a rotary can be scaled with >>", text)
        first = first >> scaling
    return first


def _value(text: str) -> Any:
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SpecError("a line of notation is name(value, key=value, …)", text, _hint()) from None
    try:
        return _build(node)
    except RecursionError:
        raise SpecError("a line of notation is not nested this deeply", text) from None


def _build(node: ast.AST) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            if name not in VALUES:
                raise SpecError("unknown name in notation", name, f"Known: {', '.join(sorted(VALUES))}, none.")
            if any(k.arg is None for k in keywords):
                raise SpecError("notation has no ** arguments", ast.unparse(node))
            return VALUES[name](*map(_build, args), **{k.arg: _build(k.value) for k in keywords if k.arg})
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(_build(e) for e in elements)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Constant(value=None | bool() | int() | float() | str() as constant):
            return constant
        case ast.Name(id=name) if name in VALUES:
            return VALUES[name]()
    raise SpecError("a line of notation is name(value, key=value, …)", shown(ast.unparse(node)), _hint())


def _hint() -> str:
    return "For example rotary(128, base=5e5) >> yarn(4, original=32768)."
