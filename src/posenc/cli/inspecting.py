"""``posenc inspect``: what a model's position encodings are, or what a table of somebody's own can do."""

from __future__ import annotations

from typing import Annotated

import typer

from posenc.cli.output import JSON, SUBJECT, as_json, show, write


def inspect(
    model: Annotated[str, SUBJECT],
    json: Annotated[bool, JSON] = False,
    attention: Annotated[
        str | None,
        typer.Option(
            metavar="SENTENCE", help="Decompose the first layer's attention scores on it (folders, safetensors, GGUF)."
        ),
    ] = None,
) -> None:
    """Show what a model's position encoding is.

    Layers, encodings, pairs, frequencies, wavelengths, scaling, the three lengths, and everything that was assumed or
    left unread; for a table or a function of your own, what it can do. Exit code 1 if the mathematics is wrong as
    executed.
    """
    if attention is not None:
        _attention(model, attention, json)
        return
    from posenc.analysis import examining

    record = examining.inspect(model, similarity=json)
    if json:
        write(as_json(record))
        raise typer.Exit(1 if getattr(record, "faults", ()) else 0)
    from posenc.records import Inspection

    if isinstance(record, Inspection):
        from posenc.rendering import terminal

        found = record
        show(lambda width: terminal.inspection(found, width))
        raise typer.Exit(1 if found.faults else 0)
    from posenc.rendering import arrays

    own = record
    show(lambda width: arrays.table_of(own))


def _attention(model: str, sentence: str, json: bool) -> None:
    from posenc.analysis.decomposition import decompose

    record = decompose(model, sentence)
    if json:
        write(as_json(record))
        return
    from posenc.rendering import attention

    show(lambda width: attention.decomposition(record))
