"""``posenc golden``: a model's position encodings as numbers for tests in any language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posenc.cli.output import MODEL, write


def golden(
    model: Annotated[str, MODEL],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder; it is made if need be.")],
) -> None:
    """Write golden vectors: frequencies, cos and sin, rotated queries, slopes, buckets.

    DIR gets golden.json, golden.safetensors with the same numbers, and FORMAT.md, which describes both.
    """
    from posenc.checker import vectors

    made = vectors.write_golden(model, output)
    entries = made.document["entries"]
    left = [f"{e['notation']}: {e['not_computed']}" for e in entries if "not_computed" in e]
    numbers = sum(a.size for a in made.arrays.values())
    write(f"{output}: {made.computed} of {len(entries)} encodings, {numbers} numbers in {len(made.arrays)} arrays")
    for line in left:
        write(f"not computed: {line}")
