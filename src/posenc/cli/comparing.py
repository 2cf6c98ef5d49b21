"""``posenc diff``: whether two models have the same position encodings."""

from __future__ import annotations

from typing import Annotated

import typer

from posenc.cli.output import JSON, A, B, as_json, show, write


def diff(a: Annotated[str, A], b: Annotated[str, B], json: Annotated[bool, JSON] = False) -> None:
    """Compare the position encodings of two models.

    Layer kinds, every pair's frequency, gain and logit scale, number against number, whatever the spelling. Exit code 1
    if they differ.
    """
    from posenc.analysis import comparison

    record = comparison.diff(a, b)
    if json:
        write(as_json(record))
    else:
        from posenc.rendering import terminal

        show(lambda width: terminal.difference(record))
    raise typer.Exit(0 if record.same else 1)
