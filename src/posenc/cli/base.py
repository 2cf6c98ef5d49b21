"""``posenc min-base``: the smallest base of a rotary encoding that serves a context."""

from __future__ import annotations

from typing import Annotated

import typer

from posenc.cli.output import JSON, as_json, show, write
from posenc.cli.progress import shares


def min_base(
    context: Annotated[int, typer.Option(metavar="L", help="The longest distance, 1 to 16777216.", show_default=False)],
    head_dim: Annotated[int, typer.Option(metavar="D", help="The width that is rotated, even, 6 to 4096.")] = 128,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="Certify from which base on all serve, beyond contexts of 65536 too (minutes)."
        ),
    ] = False,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Find the smallest rotary base for a context, certified.

    A base b serves a context L if the sum of cos(D b^(-2i/d)) over the pairs is not negative at any distance D in 0..L
    (Men et al. 2024). Bases that serve come in runs: the first ones are listed, with the base from which on all serve,
    and with what papers propose and models use.
    """
    from posenc.analysis.base_search import smallest_base

    with shares() as told:
        record = smallest_base(context, head_dim, thorough=thorough, progress=told)
    if json:
        write(as_json(record))
    else:
        from posenc.rendering.base_search import base_search

        show(lambda width: base_search(record))
