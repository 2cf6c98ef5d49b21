"""``posenc report``: one HTML page about one or several models, tables or functions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posenc.cli.output import JSON, SUBJECTS, as_json, write


def report(
    models: Annotated[list[str], SUBJECTS],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the page.")] = Path(
        "report.html"
    ),
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write every figure there, as SVG and PNG.")
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(metavar="SENTENCE", help="Also decompose every model's first attention layer on it."),
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Write an HTML page about one or more models.

    One self-contained file: what each encoding is, what follows from it, where it breaks, what was assumed, figures
    that move, the claims ledger, the papers; several models are compared at the top. Exit code 1 if the mathematics of
    one is wrong as executed.
    """
    from posenc.analysis.account import account
    from posenc.rendering import page

    accounts = [account(model) for model in models]
    decomposed = {}
    if attention is not None:
        from posenc.analysis.decomposition import decompose

        decomposed = {n: decompose(model, attention) for n, model in enumerate(models)}
    written = page.write(accounts, output, figures, decomposed)
    if json:
        write(as_json({"file": str(written), "models": [found.model_dump(mode="json") for found in accounts]}))
    else:
        write(str(written))
    raise typer.Exit(1 if any(found.inspection and found.inspection.faults for found in accounts) else 0)
