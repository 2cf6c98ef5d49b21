"""``posenc cite``: the papers behind a model's position encodings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from posenc.cli.output import JSON, MODEL, as_json, show, write


def cite(
    model: Annotated[str, MODEL],
    json: Annotated[bool, JSON] = False,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Print BibTeX entries.")] = False,
) -> None:
    """List the papers behind a model's encodings."""
    from posenc.analysis import citations

    found = citations.cite(model)
    if bibtex:
        write("\n\n".join(reference.bibtex for reference in found))
    elif json:
        write(as_json([asdict(reference) for reference in found]))
    else:
        from posenc.rendering import terminal

        show(lambda width: terminal.references(found))
