"""``posenc inspect``: what a model's position encodings are."""

from __future__ import annotations

from typing import Annotated

import typer

from posenc.cli.output import JSON, MODEL, as_json, show, write


def inspect(model: Annotated[str, MODEL], json: Annotated[bool, JSON] = False) -> None:
    """Show what a model's position encoding is.

    Layers, encodings, pairs, frequencies, wavelengths, scaling, the three lengths, and everything that was assumed or
    left unread. Exit code 1 if the mathematics is wrong as executed.
    """
    from posenc.analysis import inspection

    record = inspection.inspect(model, similarity=json)
    if json:
        write(as_json(record))
    else:
        from posenc.rendering import terminal

        show(lambda width: terminal.inspection(record, width))
    raise typer.Exit(1 if record.faults else 0)
