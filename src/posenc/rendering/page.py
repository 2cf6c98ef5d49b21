"""The report: one self-contained HTML page, made from records alone; nothing on it asks another host."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from posenc.analysis.wording import abridged
from posenc.errors import PosencError, SubjectError
from posenc.records import Inspection
from posenc.records.account import Account
from posenc.records.decomposition import AttentionDecomposition
from posenc.rendering import comparing, document, facts, figures
from posenc.rendering.figures import export
from posenc.rendering.figures.palette import DARK, FIGURE_CSS, LIGHT, scoped, variables
from posenc.rendering.files import replaced
from posenc.rendering.plain import count, short
from posenc.rendering.sentences import models, tables

ALL_PAIRS = 2048
"""Tables of more pairs than this show a selection; the JSON has all."""
OVERLAID = 6
TEMPLATES = Path(__file__).with_name("templates")


def report(
    *subjects: Any, to: str | os.PathLike[str] = "report.html", figures: str | os.PathLike[str] | None = None
) -> Path:
    """Write a page about one or several models, encodings, tables or functions, and return where it is.

    Args:
        subjects: anything :func:`posenc.read` takes, what it returned, an array ``(rows, width)``, a ``.npy`` file, or
            a function of positions.
        to: the file to write; it is replaced in one step.
        figures: a folder for every figure as SVG and PNG.

    Raises:
        PosencError: a subject cannot be read, or a file cannot be written.
    """
    from posenc.analysis.account import account

    if not subjects:
        raise SubjectError("a report is about at least one model")
    return write([account(subject) for subject in subjects], to, figures)


def write(
    accounts: Sequence[Account],
    to: str | os.PathLike[str],
    figures: str | os.PathLike[str] | None = None,
    attention: Mapping[int, AttentionDecomposition] | None = None,
) -> Path:
    """Write the page of some accounts; readers see the old file or the whole new one.

    Args:
        accounts: what is known of each subject.
        to: the file.
        figures: a folder for every figure as SVG and PNG.
        attention: decompositions by the index of their account.

    Raises:
        PosencError: a file cannot be written.
    """
    views = _views(accounts, attention or {})
    path = replaced(to, _page(views).encode())
    if figures is not None:
        export.save_all(document.named(views), figures)
    return path


def page(accounts: Sequence[Account], attention: Mapping[int, AttentionDecomposition] | None = None) -> str:
    """The whole page as HTML.

    Raises:
        PosencError: jinja2 is not installed.
    """
    return _page(_views(accounts, attention or {}))


def _views(accounts: Sequence[Account], attention: Mapping[int, AttentionDecomposition]) -> list[document.SubjectView]:
    return [document.subject(a, f"s{n + 1}", attention.get(n)) for n, a in enumerate(accounts)]


def _page(views: Sequence[document.SubjectView]) -> str:
    accounts = [view.account for view in views]
    several = len(views) > 1
    drawn = comparing.named(accounts) if several else []
    overlaid = None
    if len(drawn) > 1:
        variants = document.both(lambda w: figures.overlaid(drawn[:OVERLAID], w))
        overlaid = document.Drawing("compared", models.compared(drawn), variants)
    script = script_text()
    return str(
        environment()
        .get_template("page.html")
        .render(
            views=views,
            several=several,
            compared=comparing.table(accounts) if several else None,
            overlaid=overlaid,
            mechanisms=next((a.mechanisms for a in accounts if a.mechanisms), ()),
            script=script,
            digest=digest(script),
        )
    )


def notebook(record: Inspection | Account) -> str:
    """One subject for a notebook; plain text where jinja2 is missing."""
    account = record if isinstance(record, Account) else Account(name=record.name, inspection=record)
    try:
        view = document.subject(account, f"n{os.urandom(6).hex()}")
        return str(environment().get_template("notebook.html").render(view=view, script=script_text()))
    except PosencError:
        from html import escape

        from posenc.rendering import arrays, terminal

        to = terminal.console(width=100)
        shown = terminal.inspection(record, 100) if isinstance(record, Inspection) else arrays.table_of(account)
        return f"<pre>{escape(terminal.text_of(shown, to))}</pre>"


def script_text() -> str:
    """The page's script: it moves the clocks, and nothing on the page needs it."""
    return TEMPLATES.joinpath("page.js").read_text("utf-8")


def digest(script: str) -> str:
    """The script's hash for the page's policy, which lets no other script run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def styles() -> str:
    """The style of page, notebook and sheet: palettes for light and dark, and the figures' classes."""
    return (
        f".posenc {{ {variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ .posenc {{ {variables(DARK)} }} }}\n"
        f"@media print {{ .posenc {{ {variables(LIGHT)} }} }}\n"
        f"{scoped(FIGURE_CSS, '.posenc svg.figure')}\n"
    )


def environment() -> Any:
    """The templates, with everything they may call; all text is escaped unless it is markup.

    Raises:
        PosencError: jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ModuleNotFoundError:
        raise PosencError("a report needs jinja2", remedy="Install it with: pip install 'posenc[report]'") from None
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters.update(short=short, abridged=abridged, markup=Markup)
    made.globals.update(
        facts=facts, count=count, models=models, tables=tables, pair_rows=_pairs, styles=Markup(styles())
    )
    return made


def _pairs(e: Any) -> Any:
    """The table of pairs: all of them up to :data:`ALL_PAIRS`."""
    spectrum = e.spectrum
    n = len(spectrum.unscaled)
    indices = list(range(n)) if n <= ALL_PAIRS else facts.selection(spectrum.states, n, limit=64)
    return facts.pair_rows(spectrum, indices, scaled=bool(e.scaling))
