"""A file of several functions and classes: the one to examine, or the two that belong together.

Most code bases keep the rotary in two pieces, one that makes cosines and sines (or complex numbers, or angles) and one
that applies them. Neither is wrong alone when they disagree on the pairing, so the two are examined as one subject.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posenc.checker.boxes import Attention, Box, Buckets, CosSin, Rows, Turning, Vector
from posenc.checker.calling.caller import WrongAxis, why
from posenc.checker.calling.constructing import constructed, quiet
from posenc.checker.calling.discovering import discover
from posenc.checker.calling.grids import axes_of
from posenc.checker.calling.hints import Hints
from posenc.checker.calling.roles import bindings, signature_of
from posenc.checker.subjects.loading import Subject, from_object
from posenc.errors import PosencError, SubjectError
from posenc.spec import Sinusoidal

FORMS = {"cos": ("cos, sin", "sin, cos"), "complex": ("complex",), "angles": ("angles",)}
"""Role of an argument of the applying function, and the forms of a result that can be handed to it."""


def chosen(loaded: Subject, hints: Hints) -> tuple[Subject, Hints, Subject | None]:
    """The subject of a file with several, hints with the waves it is given, and their maker if there is one.

    Raises:
        SubjectError: no pair and no single piece could be examined; the message names what there is.
    """
    pieces: dict[str, Any] = loaded.value
    free = hints.replace(call=None, layout=None)  # what the user told is the applying one's
    applying = {name: roles for name, value in pieces.items() if (roles := _applies(value, free))}
    makers = list(_makers({k: v for k, v in pieces.items() if k not in applying}, free)) if applying else []
    for name, forms in applying.items():
        for other, waves in makers:
            given = hints.replace(waves=waves)
            if waves.form in forms and _turns(pieces[name], given):
                subject, maker = _named(loaded, name), _named(loaded, other)
                subject.assumed.append(f"examined {name} with what {other} makes")
                return subject, given, maker
    classes_first = sorted(pieces.items(), key=lambda item: not isinstance(item[1], type))
    failures: dict[str, str] = {}
    alone = {
        name: box
        for name, value in classes_first
        if name not in applying and (box := _alone(name, value, hints, failures))
    }
    for name in sorted(alone, key=lambda n: _inward(pieces[n], alone[n])):
        subject = _named(loaded, name)
        rest = [other for other in pieces if other != name]
        turns = isinstance(alone[name], Turning | Attention) or hints.wants != "rotary"
        seen = "" if turns else ", which turns nothing: pairing and offsets were not seen"
        if not turns:
            subject.part = f"what {name} makes; what turns queries and keys with it was not examined"
        subject.assumed.append(f"examined {name} alone{seen}; name another of {', '.join(rest)} as {loaded.name}:NAME")
        return subject, hints, None
    for name in applying if hints.encoding is not None else ():
        if _turns(pieces[name], hints):
            subject = _named(loaded, name)
            subject.assumed.append(f"examined {name} with the wanted cosines and sines: no other piece makes them")
            return subject, hints, None
    raise SubjectError(
        "a file with several functions and classes has one that can be called, or two that belong together",
        "; ".join(f"{name}: {failures.get(name, 'it applies what none of the others makes')}" for name in pieces),
        f"Name the one to examine as {loaded.name}:NAME.",
    )


def _named(loaded: Subject, name: str) -> Subject:
    found = from_object(loaded.value[name])
    found.name, found.source = loaded.name, loaded.source
    return found


def _applies(value: Any, hints: Hints) -> tuple[str, ...]:
    """Forms of waves that a function applies to vectors; none for other functions and for classes."""
    if isinstance(value, type):
        return ()
    for roles in bindings(signature_of(value), hints.call):
        found = set(roles.values())
        for role, forms in FORMS.items():
            if role in found and found & {"x", "q", "qkv"}:
                return forms
    return ()


def _makers(pieces: dict[str, Any], hints: Hints) -> Iterator[tuple[str, CosSin]]:
    """The pieces that make cosines and sines, classes first."""
    for name, value in sorted(pieces.items(), key=lambda item: not isinstance(item[1], type)):
        try:
            box, _, _ = discover(_object(value, hints), hints)
        except PosencError:
            continue
        if isinstance(box, CosSin):
            yield name, box


def _inward(value: Any, box: Box) -> int:
    """How likely a piece is only a part of another: what turns or is added to scores first, numbers for it last."""
    given = [] if isinstance(value, type) else [p.role for p in signature_of(value).required]
    single = isinstance(box, Rows) and box.width == 1
    parts = 2 * (isinstance(box, CosSin | Vector | Buckets) or single) + isinstance(box, Rows)
    return 4 * any(role in FORMS for role in given) + parts


def _turns(value: Any, hints: Hints) -> bool:
    """Whether a function turns vectors when it is given these waves."""
    try:
        return isinstance(discover(value, hints)[0], Turning)
    except WrongAxis:
        return True  # along another dimension, which is a finding
    except PosencError:
        return False


def _alone(name: str, value: Any, hints: Hints, failures: dict[str, str]) -> Box | None:
    """The box of a piece that can be called and answers by position; why not is noted."""
    try:
        made = _object(value, hints)
        try:
            box, _, _ = discover(made, hints)
        except WrongAxis as wrong:  # along another dimension than was told or documented, which is a finding
            box, _, _ = discover(made, hints.replace(layout=wrong.exchanged))
        at = np.array([0.0, 3.0])
        if isinstance(box, Turning):
            first, second = box.turn(np.ones((1, 2, box.head_dim)), at)[0]
        elif isinstance(box, Rows):
            first, second = box.rows(at)
        else:
            return box
    except PosencError as error:
        failures[name] = why(error, 160)
        return None
    if isinstance(hints.encoding, Sinusoidal) and axes_of(hints.encoding) > 1 and "grid" not in box.calls:
        failures[name] = "it makes no table for a grid"
        return None
    if np.array_equal(first, second):
        failures[name] = "positions 0 and 3 give the same"
        return None
    return box


def _object(value: Any, hints: Hints) -> Any:
    return constructed(value, hints) if isinstance(value, type) else quiet(value)
