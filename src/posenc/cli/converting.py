"""``posenc convert-weights``: query and key rows from one layout of pairs to the other."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from posenc.cli.output import write


class LayoutName(StrEnum):
    """Which channels form a pair."""

    adjacent = "adjacent"
    half = "half"


def convert_weights(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A safetensors file, or a model folder.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A file or folder that does not exist yet.")],
    layout: Annotated[LayoutName, typer.Option(help="Pairs (2i, 2i+1), or (i, i + d/2).")],
    config: Annotated[Path | None, typer.Option(help="The model's config.json, if not beside the weights.")] = None,
) -> None:
    """Reorder query and key projections of safetensors weights for the other layout of pairs."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from posenc.formats.converting import convert_weights as convert

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    to = Console(stderr=True)
    with Progress(*columns, console=to, transient=True, disable=not to.is_terminal) as bar:
        task = bar.add_task("converting", total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        done = convert(source, target, layout.value, config=config, progress=told)
    files = f"{len(done.files)} file{'s' if len(done.files) > 1 else ''}"
    write(
        f"{target}: {done.converted} of {done.tensors} tensors in {files} reordered from {done.before} to {done.after} "
        f"pairs. Run them in code that rotates {done.after} pairs."
    )
