"""``posenc models``: the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from posenc.cli.output import JSON, as_json, show, write
from posenc.errors import FormatError


def models(
    search: Annotated[
        str, typer.Argument(metavar="[SEARCH]", help="Words in a name, family or notation.", show_default=False)
    ] = "",
    json: Annotated[bool, JSON] = False,
) -> None:
    """List the models of the catalogue."""
    from posenc.analysis import listing

    found = listing.entries(search)
    if not found:
        raise FormatError("a search finds at least one model", search, "`posenc models` lists all of them.")
    if json:
        write(as_json([entry.model_dump() for entry in found]))
        return
    from posenc.rendering import terminal

    show(lambda width: terminal.models(found))
