"""``posenc check``: whether a subject is the wanted encoding, and if not, which fault it has."""

from __future__ import annotations

import contextlib
import copy
import os
import time
from typing import Any

from posenc.checker.calling.caller import WrongAxis, why
from posenc.checker.calling.constructing import chance, constructed, quiet
from posenc.checker.calling.discovering import discover
from posenc.checker.calling.hints import Hints, hints_of
from posenc.checker.calling.layouts import axes_of
from posenc.checker.examining.directions import astray, batch_second
from posenc.checker.examining.dispatch import examine
from posenc.checker.examining.dumps import examine_dump, read_dump
from posenc.checker.examining.layered import examine_layers, is_layered
from posenc.checker.examining.makers import examine_maker, is_task
from posenc.checker.expecting import Expected, expected
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import box_again, fresh
from posenc.checker.probes.history import differs
from posenc.checker.probes.registry import Probed
from posenc.checker.probes.running import run_probes
from posenc.checker.recognising import identify_box, identify_waves
from posenc.checker.subjects.boxing import box_of_arrays
from posenc.checker.subjects.dumps import is_dump
from posenc.checker.subjects.joining import chosen
from posenc.checker.subjects.loading import Subject, load
from posenc.errors import PosencError, SubjectError, shown
from posenc.records.finding import CheckReport

SLOW = 0.1
"""Seconds that making an object may take before copies of the first one are taken for new ones."""


def check(
    subject: Any,
    expect: Any = None,
    *,
    call: str | None = None,
    layout: str | None = None,
    library: str | None = None,
    dtype: str = "float32",
    timeout: float | None = None,
    probes: bool = True,
) -> CheckReport:
    """Check a subject against an encoding, or identify it.

    Args:
        subject: a function, class, module, array, pair or dict of arrays (a dump), or a text: ``module:attr``, a
            ``.py`` file, an array file (``file#tensor``), ``transformers:TYPE``, a model folder; a ``.gguf`` or
            ``.json`` file without ``#tensor`` is examined by :func:`posenc.checker.lint.lint`.
        expect: an encoding, a line of notation, a model by any name that :func:`posenc.read` takes; None identifies.
        call: the roles of the arguments in order (``"x, positions"``); discovered otherwise.
        layout: letters of the dimensions of queries (``"bhtd"``); discovered otherwise.
        library: ``numpy``, ``torch``, ``jax``, ``mlx``; discovered otherwise.
        dtype: floating type of the inputs.
        timeout: seconds; a subject named by text then runs in a process of its own.
        probes: run the probes that go beyond one examination (history, dtype moves, cache splits, …).

    Returns:
        The report; a subject that cannot be run is reported in ``could_not_run``.

    Raises:
        PosencError: ``expect`` is no encoding or model, ``call`` names no roles, ``layout`` is none.

    >>> import numpy as np
    >>> check(1e4 ** (-np.arange(0, 8, 2) / 8), "rotary(8)").acquitted
    True
    """
    if isinstance(subject, str | os.PathLike) and os.fspath(subject).endswith((".json", ".gguf")):
        from posenc.checker.lint import lint

        return lint(subject, expect)
    roles = roles_of(call) if call else None
    if layout:
        axes_of(layout)
    if timeout is not None and isinstance(subject, str):
        from posenc.checker.running import check_apart

        return check_apart(
            subject, expect, timeout, call=call, layout=layout, library=library, dtype=dtype, probes=probes
        )
    task = str(expect) if is_task(expect) else None
    wanted = None if expect is None or task else expected(expect)
    options: dict[str, Any] = {"layout": layout, "library": library, "dtype": dtype}
    if roles:
        options["call"] = roles
    start = time.perf_counter()
    notes = Gathered()
    name = subject if isinstance(subject, str) else shown(getattr(subject, "__name__", type(subject).__name__), 120)
    problem: str | None = None
    try:
        loaded = load(subject)
        name = loaded.name
        for text in loaded.assumed:
            notes.assume(text)
        if loaded.kind == "model":
            from posenc.checker.models.checking import check_model

            wanted = check_model(notes, loaded.value, wanted, probes=probes)
        elif task is not None:
            examine_maker(notes, loaded.value, task)
        elif wanted is None:
            _identified(notes, loaded, Hints(**{k: v for k, v in options.items() if v is not None}))
        else:
            _checked(notes, loaded, wanted, options, probes)
    except PosencError as error:
        problem = str(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:  # a subject may answer in ways nobody thought of; never a traceback
        problem = f"the subject's answers can be examined; got {type(error).__name__}: {shown(error)}"
    return notes.report(name, task if wanted is None else wanted.line, time.perf_counter() - start, problem)


def roles_of(call: str) -> tuple[str, ...]:
    """The roles of a told convention.

    Raises:
        SubjectError: a word is no role.

    >>> roles_of("x, offset")
    ('x', 'offset')
    """
    from posenc.checker.calling.roles import NOTATION

    words = [word.strip().lower() for word in call.split(",") if word.strip()]
    unknown = [word for word in words if word not in NOTATION]
    if unknown or not words:
        known = ", ".join(sorted(set(NOTATION.values())))
        raise SubjectError("a call is told as roles in order, such as 'x, positions'", call, f"Roles: {known}.")
    return tuple(str(NOTATION[word]) for word in words)


def _identified(notes: Gathered, loaded: Subject, hints: Hints) -> None:
    if loaded.kind == "arrays":
        if is_dump(loaded.value):
            width, layout, _, waves, residual = read_dump(notes, loaded.value)
            if residual > 1e-3:
                notes.note("none of the known: no rotation of pairs explains the dump")
                return
            identify_waves(notes, waves, width, layout.name == "adjacent", layout.words, layout.width)
            return
        box, words = box_of_arrays(loaded.value, None)
        notes.assume(words)
    else:
        if loaded.kind == "several":
            loaded, hints, _ = chosen(loaded, hints)
            for text in loaded.assumed:
                notes.assume(text)
        value = made(notes, loaded, hints)
        box, words, _ = discover(value, hints)
        notes.assume(words)
    identify_box(notes, box)


def _checked(notes: Gathered, loaded: Subject, wanted: Expected, options: dict[str, Any], probes: bool) -> None:
    """Compare with the encoding that fits best, where the model has several."""
    if loaded.kind == "arrays" and is_layered(loaded.value):
        examine_layers(notes, loaded.value, wanted)
        return
    failures: list[str] = []
    best: Gathered | None = None
    for encoding in wanted.encodings:
        tried = Gathered(assumed=list(notes.assumed))
        try:
            _one(tried, loaded, encoding, wanted, options, probes)
        except PosencError as error:
            if len(wanted.encodings) == 1:
                raise
            failures.append(why(error))
            continue
        if len(wanted.encodings) > 1:
            tried.assume(f"compared with {encoding}")
        if best is None or _weight(tried) < _weight(best):
            best = tried
        if not _weight(best):
            break
    if best is not None and wanted.reading is not None and wanted.reading.model_type is not None:
        trained(best, wanted)
    if best is None:
        raise SubjectError("the subject is compared with the wanted encoding", "; ".join(dict.fromkeys(failures))[:600])
    for name in ("findings", "measured", "recovered", "assumed", "notes", "probes", "not_probed", "part"):
        setattr(notes, name, getattr(best, name))


def trained(notes: Gathered, wanted: Expected) -> None:
    """Another schedule, other slopes or another order of a table are conventions of their own, but a model's weights
    were trained with one of them."""
    for i, finding in enumerate(notes.findings):
        order = finding.kinds[0] == "layout" and all(e.kind == "sinusoidal" for e in wanted.encodings)
        if finding.verdict == "convention" and (finding.kinds[0] in ("exponent", "bias-function") or order):
            cause = f"{finding.cause or 'another convention'}; {wanted.reading.name} was trained with the wanted one"
            notes.findings[i] = finding.model_copy(update={"verdict": "defect", "cause": cause})


def _weight(notes: Gathered) -> int:
    return sum({"defect": 100, "convention": 10, "naming": 2, "harmless": 1}[f.verdict] for f in notes.findings)


def _one(
    notes: Gathered, loaded: Subject, encoding: Any, wanted: Expected, options: dict[str, Any], probes: bool
) -> None:
    if loaded.kind == "arrays":
        if is_dump(loaded.value):
            if encoding.kind != "rotary":
                raise SubjectError("a dump is that of a rotary encoding", encoding.kind)
            examine_dump(notes, loaded.value, encoding)
            return
        if is_layered(loaded.value):
            raise SubjectError("vectors by layer are compared with a model's layers, not with one encoding")
        box, words = box_of_arrays(loaded.value, encoding.kind)
        notes.assume(words)
        examine(notes, box, encoding, wanted.served)
        return
    hints = hints_of(encoding, wanted.served, **{k: v for k, v in options.items() if v is not None})
    if loaded.kind == "several":
        loaded, hints, maker = chosen(loaded, hints)
        notes.part = loaded.part
        for text in loaded.assumed:
            notes.assume(text)
        if maker is not None:
            _one(notes, maker, encoding, wanted, {"library": options["library"], "dtype": options["dtype"]}, probes)
            probes = False  # those of the two together would find the maker's faults again
    value = made(notes, loaded, hints)
    try:
        box, words, caller = discover(value, hints)
    except WrongAxis as wrong:
        astray(notes, wrong)
        hints = hints.replace(layout=wrong.exchanged)
        box, words, caller = discover(value, hints)
    notes.assume(words)
    notes.part = notes.part or handed(box, hints)
    batch_second(notes, box, hints)
    box = untouched(loaded, value, box, encoding, hints)
    if not differs(notes, box):
        examine(notes, box, encoding, wanted.served)
        if probes:
            run_probes(notes, loaded, value, box, encoding, hints, wanted.served)
    if caller is not None:
        hostile(notes, caller)


def handed(box: Any, hints: Hints) -> str | None:
    """The part examined of a subject that is handed cosines and sines, where they are the wanted ones."""
    bound = box.calls.get("bound")
    if hints.waves is not None or not (bound and any(bound.has(role) for role in ("cos", "angles", "complex"))):
        return None
    name = getattr(bound.caller.function, "__name__", type(bound.caller.function).__name__)
    return f"what {name} does with the wanted cosines and sines; what makes them was not examined"


def untouched(loaded: Subject, value: Any, box: Any, encoding: Any, hints: Hints) -> Any:
    """The same box around a fresh subject, if one can be made: finding out how to call leaves traces in the first."""
    try:
        probed = Probed(loaded, value, box, encoding, hints, None)
        return box_again(probed, fresh(probed))
    except PosencError:
        return box


def made(notes: Gathered, loaded: Subject, hints: Hints) -> Any:
    """The object itself; a class is constructed, and can then be made anew."""
    if isinstance(loaded.value, type):
        cls = loaded.value
        said: list[str] = []
        start = time.perf_counter()
        with chance():
            value = constructed(cls, hints, said)
        if time.perf_counter() - start > SLOW:
            with contextlib.suppress(Exception):  # what cannot be copied is made again
                loaded.kept = copy.deepcopy(value)
        for text in said:
            notes.assume(text)
        loaded.fresh = lambda: constructed(cls, hints)
        return value
    return quiet(loaded.value)


def hostile(notes: Gathered, caller: Any) -> None:
    """What a subject did beside answering."""
    if caller.printed:
        notes.note(f"the subject wrote {caller.printed} characters to its output, which were discarded")
    if caller.changed:
        names = ", ".join(sorted(caller.changed))
        notes.found(
            "harmless",
            ("integration",),
            f"the subject changes its input in place ({names})",
            cause="the rotation is written over its argument",
            remedy="Say so in its documentation, and never pass a tensor that is used again.",
        )
