"""The command line: one small file for each verb.

Exit codes: 0 fine; 1 a difference, or wrong mathematics as executed; 2 bad use or input, with one line on stderr; 130
interrupted.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Any

import typer

from posenc.cli import (
    base,
    checking,
    citing,
    claiming,
    comparing,
    converting,
    environment,
    exporting,
    identifying,
    inspecting,
    listing,
    reporting,
)
from posenc.cli.output import complain

app = typer.Typer(
    name="posenc",
    help="Position encodings of Transformers: see what a model's is, compare two, find the papers.",
    epilog="A MODEL is a catalogue name, a hub id, a model folder, a config.json, a GGUF file, or a line of notation "
    "such as 'rotary(128, base=5e5) >> yarn(4, original=32768)'. inspect and report also take an encoding of your own: "
    "a .npy file, module:function or file.py:function.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("models")(listing.models)
app.command("inspect")(inspecting.inspect)
app.command("diff")(comparing.diff)
app.command("check")(checking.check)
app.command("identify")(identifying.identify)
app.command("cite")(citing.cite)
app.command("report")(reporting.report)
app.command("claims")(claiming.claims)
app.command("min-base")(base.min_base)
app.command("convert-weights")(converting.convert_weights)
app.command("golden")(exporting.golden)
app.command("env")(environment.env)

_USAGE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""The base of every usage error, whether typer uses click or its own copy of it."""


def _version(wanted: bool) -> None:
    if wanted:
        from posenc import __version__

        print(f"posenc {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _all_verbs(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, of the process itself unless ``arguments`` are given, and return the exit code."""
    if arguments is not None:
        return _run(list(arguments))
    gc.disable()  # a process that lives for a moment: collecting cycles, at the end above all, is a fifth of its time
    try:
        return _run(sys.argv[1:])
    finally:
        gc.freeze()


def _run(arguments: list[str]) -> int:
    from posenc.errors import PosencError

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without θ shows ? and does not stop
            stream.reconfigure(errors="replace")
    try:
        result = app(args=arguments, prog_name="posenc", standalone_mode=False)
    except PosencError as error:
        return complain(error)
    except _USAGE as error:
        return complain(f"{error.format_message().rstrip('.')}. Try posenc --help.")
    except (KeyboardInterrupt, typer.Abort):
        return complain("interrupted", code=130)
    return int(result or 0)
