"""Making an instance of a class from what is known: the constructor's parameters by their names."""

from __future__ import annotations

import contextlib
import inspect as signatures
import random
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from posenc.checker.calling.caller import Caller
from posenc.checker.calling.hints import FIXED, Hints
from posenc.checker.calling.library import library
from posenc.checker.calling.roles import ROLE_OF
from posenc.checker.calling.settings import (
    FRACTION,
    HEAD_WIDTH,
    MODEL_WIDTH,
    annotations_of,
    by_type,
    rows_of,
    settings_for,
    value_of,
)
from posenc.errors import SubjectError
from posenc.formulas.scalings import frequencies
from posenc.spec import Rotary


@contextlib.contextmanager
def chance(seed: int = 0) -> Iterator[None]:
    """Random numbers of Python, NumPy and torch from one seed; afterwards they go on as if nothing had been drawn.

    Two objects of a class whose tables start at random are then the same object made twice.
    """
    torch: Any = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state(), None if torch is None else torch.random.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)
    if torch is not None:
        torch.random.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch is not None:
            torch.random.set_rng_state(before[2])


def constructed(cls: type, hints: Hints, notes: list[str] | None = None) -> Any:
    """An instance with the wanted encoding's numbers; modules are put in evaluation mode.

    Raises:
        SubjectError: a required parameter has no value that is known, or the constructor raises.
    """
    given, unknown = arguments_for(cls, hints)
    if unknown:
        raise SubjectError(
            f"{cls.__name__} can be constructed from the wanted encoding",
            f"no value for {', '.join(unknown)}",
            "Hand over an instance, or a function that makes one.",
        )
    made = Caller(cls, library("numpy"))(given)
    shared = _for_each_axis(given, made, hints)
    if shared is not None:
        given, made = shared, Caller(cls, library("numpy"))(shared)
    if notes is not None:
        shown = ", ".join(f"{k}={v!r}" for k, v in given.items())
        notes.append(f"constructed as {cls.__name__}({shown})")
    return quiet(made)


def _for_each_axis(given: dict[str, Any], made: Any, hints: Hints) -> dict[str, Any] | None:
    """Arguments with the width of one axis, where a class made for the whole width holds tables for as many heads."""
    e = hints.encoding
    axes = frequencies(e).axes if isinstance(e, Rotary) else 1
    held = {**getattr(made, "__dict__", {}), **(getattr(made, "_buffers", None) or {})}
    widths = {value.shape[-1] for value in held.values() if len(getattr(value, "shape", ())) > 1}
    if axes == 1 or axes * e.rotary_dim not in widths or e.rotary_dim in widths:
        return None
    return {
        name: value // axes if ROLE_OF.get(name.lower()) == "dim" and value == e.rotary_dim else value
        for name, value in given.items()
    }


def quiet(made: Any) -> Any:
    """A module in evaluation mode."""
    evaluate = getattr(made, "eval", None)
    if callable(evaluate) and hasattr(made, "parameters"):
        evaluate()
    return made


def arguments_for(cls: type, hints: Hints) -> tuple[dict[str, Any], list[str]]:
    """Arguments by name, and the required ones without a value.

    Raises:
        SubjectError: the constructor's parameters cannot be read.
    """
    try:
        parameters = list(signatures.signature(cls).parameters.values())
    except (TypeError, ValueError):
        raise SubjectError("the constructor's parameters can be read", cls.__name__) from None
    e = hints.encoding
    given: dict[str, Any] = {}
    unknown: list[str] = []
    types = annotations_of(cls)
    roles = {ROLE_OF.get(p.name.lower()) for p in parameters}
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        role, required = ROLE_OF.get(p.name.lower()), p.default is p.empty
        if role == "dim":
            given[p.name] = (
                e.rotary_dim if isinstance(e, Rotary) and "rotary" in p.name.lower() else _width(e, hints, p.name)
            )
            if p.name in MODEL_WIDTH and "heads" in roles and isinstance(e, Rotary) and not _head_width(parameters):
                given[p.name] = hints.heads * e.head_dim
        elif role == "length" and required:
            given[p.name] = rows_of(e, hints)
        elif role in FIXED and role not in ("dim", "dropout") and (required or e is not None):
            given[p.name] = hints.fixed(role, _width(e, hints, p.name))
        elif p.name.lower() in FRACTION and isinstance(e, Rotary):
            given[p.name] = e.rotary_dim / e.head_dim
        elif role == "dropout":
            given[p.name] = 0.0
        elif required:
            try:
                given[p.name] = _other(p.name, types.get(p.name), hints)
            except KeyError:
                unknown.append(p.name)
    return given, unknown


def _other(name: str, annotation: Any, hints: Hints) -> Any:
    """Settings as one object, a setting by its name, or a harmless value.

    Raises:
        KeyError: nothing is known of the parameter.
    """
    for known in (settings_for, lambda name, _, hints: value_of(name, hints)):
        with contextlib.suppress(KeyError):
            return known(name, annotation, hints)
    return by_type(name, annotation)


def _head_width(parameters: Iterable[signatures.Parameter]) -> bool:
    return any(p.name.lower() in HEAD_WIDTH for p in parameters)


def _width(e: Any, hints: Hints, name: str) -> int:
    """Rotary modules take the rotated width where they take one; a model's width only where the name says so."""
    if isinstance(e, Rotary):
        return e.head_dim if "head" in name else e.rotary_dim
    return hints.dims[0]
