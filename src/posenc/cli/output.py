"""Writing: results to stdout as text or JSON, complaints to stderr as one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from posenc.errors import FormatError

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable

KINDS = "Catalogue name, hub id, model folder, config.json, GGUF file, or a line of notation."
OWN = f"{KINDS[:-1]}; or your own: a .npy file, module:function, file.py:function."
MODEL = typer.Argument(metavar="MODEL", help=KINDS)
SUBJECT = typer.Argument(metavar="MODEL", help=OWN)
SUBJECTS = typer.Argument(metavar="MODEL...", help=OWN)
A = typer.Argument(metavar="A", help=KINDS)
B = typer.Argument(metavar="B", help="The other one.")
JSON = typer.Option("--json", help="Print the whole record as JSON.")


def show(view: Callable[[int], Iterable[ConsoleRenderable]]) -> None:
    """Print what ``view(width)`` yields, for the terminal's width; 80 columns where there is none."""
    from posenc.rendering.terminal import console, text_of

    with _open_output():
        to = console()
        text = text_of(view(to.width), to)  # the console touches its file even while it captures
    write(text)


def write(text: str) -> None:
    """Write to stdout; a reader that has gone away is no error.

    Raises:
        FormatError: stdout is closed, or the disk behind it is full.
    """
    with _open_output():
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


@contextmanager
def _open_output() -> Iterator[None]:
    rule = "the output can be written"
    if sys.stdout is None:  # the process was started without one (``>&-``)
        raise FormatError(rule, "a closed standard output")
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit must not fail again
        if not isinstance(error, BrokenPipeError):
            raise FormatError(rule, error.strerror or str(error)) from None


def as_json(value: Any) -> str:
    """A record, or plain lists and dicts, as indented JSON."""
    if hasattr(value, "model_dump_json"):
        return str(value.model_dump_json(indent=2))
    import json

    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def complain(problem: object, code: int = 2) -> int:
    """Print one line on stderr and return the exit code."""
    from posenc.rendering.plain import short

    if sys.stderr is None:
        return code
    try:
        sys.stderr.write(f"posenc: {short(str(problem).strip(), 1000)}\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code
