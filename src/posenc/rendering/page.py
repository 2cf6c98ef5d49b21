"""The report: one self-contained HTML page, made from inspections alone; nothing on it asks another host."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from posenc.analysis.wording import abridged
from posenc.errors import PosencError, SubjectError
from posenc.records import Inspection
from posenc.records.inspection import EncodingInspection, Lengths
from posenc.rendering import facts, figures
from posenc.rendering.plain import count, short
from posenc.rendering.plain import figures as number

ALL_PAIRS = 2048
"""Tables of more pairs than this show a selection; the JSON has all."""


def report(*subjects: Any, to: str | os.PathLike[str] = "report.html") -> Path:
    """Write a page about one or several models, and return where it is.

    Args:
        subjects: anything :func:`posenc.read` takes, or what it returned.
        to: the file to write; it is replaced in one step.

    Raises:
        PosencError: a subject cannot be read, or the file cannot be written.
    """
    from posenc.analysis.inspection import inspect

    if not subjects:
        raise SubjectError("a report is about at least one model")
    return write([inspect(subject) for subject in subjects], to)


def write(records: Sequence[Inspection], to: str | os.PathLike[str]) -> Path:
    """Write the page of some inspections; readers see the old file or the whole new one.

    Raises:
        PosencError: the file cannot be written.
    """
    path = Path(to)
    if not path.name or path.is_dir():
        raise PosencError("the report is written to a file", f"{path}: Is a directory")
    text = page(records)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise PosencError("the report is written to a file", f"{path}: {error.strerror}") from None
    return path


def page(records: Sequence[Inspection]) -> str:
    """The whole page as HTML.

    Raises:
        PosencError: jinja2 is not installed.
    """
    return str(_environment().get_template("page.html").render(records=records))


def notebook(record: Inspection) -> str:
    """One model's section for a notebook; plain text where jinja2 is missing."""
    try:
        return str(_environment().get_template("notebook.html").render(record=record))
    except PosencError:
        from html import escape

        from posenc.rendering import terminal

        to = terminal.console(width=100)
        return f"<pre>{escape(terminal.text_of(terminal.inspection(record, 100), to))}</pre>"


def _environment() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader
    except ModuleNotFoundError:
        raise PosencError("a report needs jinja2", remedy="Install it with: pip install 'posenc[report]'") from None
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(short=short, abridged=abridged)
    environment.globals.update(facts=facts, count=count, ladder=_ladder, similarity=_similarity, table=_pairs)
    return environment


def _ladder(e: EncodingInspection, lengths: Lengths) -> Any:
    from markupsafe import Markup

    return Markup(figures.ladder(e.spectrum, lengths)) if e.spectrum is not None else ""


def _similarity(e: EncodingInspection, lengths: Lengths) -> Any:
    """The figure and, in words, the smallest value of each curve; nothing where no curve was computed."""
    from markupsafe import Markup

    states = [state for state in (e.spectrum.states if e.spectrum else ()) if state.similarity is not None]
    if not states:
        return None
    lowest = []
    for state in states:
        curve: Any = state.similarity
        value, at = min(zip(curve.y, curve.x, strict=True))
        lowest.append(f"{number(value, 4)} at D = {number(at)}" + (f" ({state.applies})" if len(states) > 1 else ""))
    return {"svg": Markup(figures.similarity(states, lengths)), "lowest": "; ".join(lowest)}


def _pairs(e: EncodingInspection) -> Any:
    """The table of pairs: all of them up to :data:`ALL_PAIRS`."""
    spectrum: Any = e.spectrum
    n = len(spectrum.unscaled)
    indices = list(range(n)) if n <= ALL_PAIRS else facts.selection(spectrum.states, n, limit=64)
    return facts.pair_rows(spectrum, indices, scaled=bool(e.scaling))
