"""``posenc report``: one HTML page about one or several models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posenc.cli.output import JSON, MODELS, as_json, write


def report(
    models: Annotated[list[str], MODELS],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the page.")] = Path(
        "report.html"
    ),
    json: Annotated[bool, JSON] = False,
) -> None:
    """Write an HTML page about one or more models.

    One self-contained file with formulas, tables and figures; several models stand side by side. Exit code 1 if the
    mathematics of one is wrong as executed.
    """
    from posenc.analysis import inspection
    from posenc.rendering import page

    records = [inspection.inspect(model) for model in models]
    written = page.write(records, output)
    write(as_json({"file": str(written), "models": [r.model_dump() for r in records]}) if json else str(written))
    raise typer.Exit(1 if any(record.faults for record in records) else 0)
