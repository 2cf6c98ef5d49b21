"""``posenc claims``: what is said about position encodings, with verdicts that are computed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from posenc.cli.output import JSON, KINDS, as_json, show, write


class SheetLanguage(StrEnum):
    """Languages of the quick reference."""

    en = "en"
    zh = "zh"
    both = "both"


PAGES: dict[SheetLanguage, tuple[Literal["en", "zh"], ...]] = {
    SheetLanguage.en: ("en",),
    SheetLanguage.zh: ("zh",),
    SheetLanguage.both: ("en", "zh"),
}


def claims(
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help=f"{KINDS} The paper's sinusoid of width 512 without one.")
    ] = None,
    json: Annotated[bool, JSON] = False,
    sheet: Annotated[
        bool, typer.Option("--sheet", help="Write the quick reference, a page of A4 for a language.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write the quick reference; claims.html."),
    ] = None,
    language: Annotated[
        SheetLanguage | None, typer.Option(help="Of the quick reference; both.", show_default=False)
    ] = None,
) -> None:
    """Examine what is said about position encodings, on a model or on the paper's sinusoid.

    Each claim gets a verdict that is computed (exact, holds within stated bounds, counterexample, refuted, needs
    training), its evidence and its source.
    """
    if not sheet and (output or language):
        raise typer.BadParameter("--output and --language are of the quick reference: add --sheet")
    from posenc.analysis import account

    record = account.claims_about(model)
    if sheet:
        from posenc.rendering import sheet as reference

        every = account.account(record.subject if model is None else model, claims=False).encodings
        drawn = next((e for e in every if e.notation == record.subject), every[0])
        written = reference.write(record, drawn, output or Path("claims.html"), PAGES[language or SheetLanguage.both])
        write(as_json({"file": str(written), **record.model_dump(mode="json")}) if json else str(written))
    elif json:
        write(as_json(record))
    else:
        from posenc.rendering import arrays

        show(lambda width: arrays.ledger(record))
