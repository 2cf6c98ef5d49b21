"""Progress of long computations: a bar on stderr where that is a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shares() -> Iterator[Callable[[str, float], None]]:
    """A function of a description and the share that is done, from 0 to 1."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    to = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=to, transient=True, disable=not to.is_terminal) as bar:
        task = bar.add_task("", total=1.0)

        def told(what: str, share: float) -> None:
            bar.update(task, description=what, completed=share)

        yield told


@contextmanager
def counted() -> Iterator[Callable[[str, int, int], None]]:
    """A function of what was finished last, how many are done and of how many; lines where there is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    to = Console(stderr=True, markup=False, highlight=False, emoji=False)
    last = TextColumn("{task.fields[last]}", markup=False)
    columns = (MofNCompleteColumn(), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(), last)
    with Progress(*columns, console=to, transient=True, disable=not to.is_terminal) as bar:
        task = bar.add_task("", total=None, last="starting")

        def told(what: str, done: int, of: int) -> None:
            bar.update(task, completed=done, total=of, last=what)
            if not to.is_terminal:
                to.print(f"{done}/{of} {what}", soft_wrap=True)

        yield told
