"""A file of several functions and classes: the one to examine, or the two that belong together.

Most code bases keep the rotary in two pieces, one that makes cosines and sines (or complex numbers, or angles) and one
that applies them. Neither is wrong alone when they disagree on the pairing, so the two are examined as one subject.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.calling.constructing import constructed, quiet
from posenc.checker.calling.discovering import discover
from posenc.checker.calling.hints import Hints
from posenc.checker.calling.roles import bindings, signature_of
from posenc.checker.subjects.loading import Subject, from_object
from posenc.errors import PosencError, SubjectError

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
    for name, forms in applying.items():
        for other, waves in _makers({k: v for k, v in pieces.items() if k not in applying}, free):
            if waves.form in forms:
                subject, maker = _named(loaded, name), _named(loaded, other)
                subject.assumed.append(f"examined {name} with what {other} makes")
                return subject, hints.replace(waves=waves), maker
    for name, value in sorted(pieces.items(), key=lambda item: not isinstance(item[1], type)):
        if name in applying or not _alone(value, hints):
            continue
        subject = _named(loaded, name)
        subject.assumed.append(f"examined {name}, the first of {', '.join(pieces)} that can be called")
        return subject, hints, None
    raise SubjectError(
        "a file with several functions and classes has one that can be called, or two that belong together",
        list(pieces)[:8],
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
            if role in found and found & {"x", "q"}:
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


def _alone(value: Any, hints: Hints) -> bool:
    """Whether a piece can be called and answers by position."""
    try:
        box, _, _ = discover(_object(value, hints), hints)
        at = np.array([0.0, 3.0])
        if isinstance(box, Turning):
            first, second = box.turn(np.ones((1, 2, box.head_dim)), at)[0]
        elif isinstance(box, Rows):
            first, second = box.rows(at)
        else:
            return True
    except PosencError:
        return False
    return not np.array_equal(first, second)


def _object(value: Any, hints: Hints) -> Any:
    return constructed(value, hints) if isinstance(value, type) else quiet(value)
