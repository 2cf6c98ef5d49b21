"""What the arguments of a subject stand for, by their names; unknown names are tried in the usual orders."""

from __future__ import annotations

import inspect as signatures
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from posenc.checker.calling.names import NAMES
from posenc.errors import SubjectError

ROLE_OF = {name: role for role, names in NAMES.items() for name in names}

NOTATION = ROLE_OF | {role: role for role in NAMES}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a subject.

    Args:
        name: its name.
        role: what the name stands for; None if it is not known.
        required: it has no default.
        keyword: it can only be given by name.
    """

    name: str
    role: str | None
    required: bool
    keyword: bool = False


@dataclass(frozen=True)
class Signature:
    """The parameters of a subject, and whether they could be read at all."""

    parameters: tuple[Parameter, ...] = ()
    readable: bool = True
    open_ended: bool = field(default=False)

    def role(self, role: str) -> Parameter | None:
        """The parameter with a role; required ones first."""
        with_it = [p for p in self.parameters if p.role == role]
        return next((p for p in with_it if p.required), with_it[0] if with_it else None)

    @property
    def required(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.required)


def signature_of(function: Callable[..., Any]) -> Signature:
    """Read the parameters of a callable: those of a torch module's ``forward``, of a Keras layer's ``call``."""
    found = None
    for target in _bodies(function):
        try:
            found = signatures.signature(target)
        except (TypeError, ValueError):
            continue
        if any(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found.parameters.values()):
            break
    if found is None:
        return Signature(readable=False)
    parameters = []
    spread = False
    for name, p in found.parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            spread = True
            continue
        parameters.append(Parameter(name, ROLE_OF.get(name.lower()), p.default is p.empty, p.kind is p.KEYWORD_ONLY))
    return Signature(tuple(parameters), True, spread)


def _bodies(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Where a call's parameters may be written: what ``__call__`` hands everything on to, then the callable itself."""
    if not isinstance(function, type):
        for name in ("forward", "call"):
            body = getattr(function, name, None)
            if callable(body):
                yield body
    yield function


OPTIONAL = (
    *("positions", "offset", "k", "length", "dim", "base", "heads", "n_k"),
    *("buckets", "max_distance", "bidirectional"),
)
"""Roles that a parameter with a default is given too."""
GUESSES: dict[int, tuple[tuple[str, ...], ...]] = {
    1: (("x",), ("tokens",), ("positions",), ("length",), ("relative",), ("shape",)),
    2: (
        ("x", "positions"),
        ("q", "k"),
        ("length", "dim"),
        ("dim", "length"),
        ("positions", "dim"),
        ("n_q", "n_k"),
        ("x", "offset"),
    ),
    3: (
        ("q", "k", "positions"),
        ("x", "cos", "sin"),
        ("dim", "length", "base"),
        ("q", "k", "v"),
        ("heads", "n_q", "n_k"),
    ),
    4: (("q", "k", "cos", "sin"), ("q", "k", "v", "positions"), ("x", "cos", "sin", "positions")),
    5: (("q", "k", "cos", "sin", "positions"),),
}


def bindings(signature: Signature, told: tuple[str, ...] | None = None) -> Iterator[dict[str, str]]:
    """Ways to give parameters roles: ``{parameter: role}`` for those that are given, the likeliest first.

    Args:
        signature: of the subject.
        told: roles in order of the parameters, if the user said them.

    Raises:
        SubjectError: the user named more roles than there are parameters.
    """
    parameters = signature.parameters
    if told is not None:
        if len(told) > len(parameters) and parameters:
            raise SubjectError(f"the subject takes {len(parameters)} arguments", f"{len(told)} roles")
        names = [p.name for p in parameters] or [f"#{i}" for i in range(len(told))]
        yield dict(zip(names, told, strict=False))
        return
    required = signature.required
    known = {p.name: p.role for p in required if p.role}
    if len(known) == len(required):
        optional = [p for p in parameters if not p.required and p.role in OPTIONAL]
        roles = set(known.values())
        inputs = {"x", "q", "qkv", "positions", "scores", "relative", "n_q", "n_k", "tokens", "mask", "shape"}
        makes = any(p.role == "dim" for p in parameters) and not roles & inputs  # a table of some width
        useful = {
            p.name: p.role
            for p in optional
            if p.role and p.role not in roles and p.role not in ("k", "offset") + (() if makes else ("length",))
        }
        tokens = next((p.name for p in parameters if p.role == "tokens"), None)
        if not required and tokens is not None:  # ids and vectors are both taken, one of them is given
            yield {tokens: "tokens"}
            yield {tokens: "tokens", **useful}
        if roles & {"tokens", "mask"}:  # positions that nobody gives are what a model relies on
            yield dict(known)
        if required or useful:
            yield {**known, **useful}
            if useful:
                yield dict(known)
            for p in optional:
                if p.role == "length" and "x" in roles and "positions" not in roles:
                    yield {**known, p.name: "length"}
            if "positions" in roles and not roles & {"x", "q", "k", "scores"}:  # "position" may be how many there are
                yield {name: "length" if role == "positions" else role for name, role in known.items()}
        else:
            first = [p for p in parameters if p.role][:2]
            for p in first:
                yield {p.name: str(p.role)}
    segments = [p.name for p in required if p.role in ("segments", "document")]
    if len(required) == 2 and len(segments) == 1:  # beside segments stand token ids, whatever their name
        (ids_beside,) = (p.name for p in required if p.name not in segments)
        yield {ids_beside: "tokens", segments[0]: "segments"}
    count = len(required) or (2 if signature.open_ended or not parameters else 0)
    names = [p.name for p in required] or [f"#{i}" for i in range(count)]
    for roles_in_order in GUESSES.get(len(names), ()):
        guess = dict(zip(names, roles_in_order, strict=True))
        ids = len(names) == 1 and known.get(names[0]) == "tokens" and roles_in_order != ("x",)
        if not ids and (len(names) == 1 or all(known.get(name, role) == role for name, role in guess.items())):
            yield guess
    if not parameters and not signature.readable:
        for one in (("x", "positions"), ("x",)):
            yield {f"#{i}": role for i, role in enumerate(one)}
