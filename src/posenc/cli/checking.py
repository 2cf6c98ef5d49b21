"""``posenc check``: whether a subject is the wanted encoding, and if not, which fault it has."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from posenc.cli.corpus import check_all, is_pattern, put_all
from posenc.cli.output import JSON, as_json, show, write
from posenc.errors import SubjectError

SUBJECT = typer.Argument(
    metavar="SUBJECT",
    help="module:attr, a .py file, an array (.npy, .npz, .safetensors, .gguf, FILE#TENSOR), a dump, a config.json, "
    "a model "
    "folder, transformers:TYPE (TYPE#module).",
)
CALL = typer.Option("--call", help="Roles of the arguments in order, such as 'x, positions'; discovered otherwise.")
LAYOUT = typer.Option("--layout", help="Letters of the dimensions of queries, such as bhtd; discovered otherwise.")
LIBRARY = typer.Option("--library", help="numpy, torch, jax or mlx; discovered otherwise.")
TIMEOUT = typer.Option(
    "--timeout", help="Seconds before a subject is ended: 120, of a pattern 60 each.", min=0.1, max=86000.0
)
WORKERS = typer.Option("--workers", help="Processes at a time, for a pattern.", min=1, max=64)
RECORDS = typer.Option(
    "--records", metavar="FILE", help="Keep finished subjects of a pattern here; another run does the rest."
)
OUTPUT = typer.Option("--output", "-o", metavar="FILE", help="Write the tables of a pattern as Markdown.")
JUNIT = typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")
HTML = typer.Option("--html", metavar="FILE", help="Write a page with the evidence drawn.")
PATIENCE = 120.0


class FailOn(StrEnum):
    """The mildest verdict that fails a check."""

    defect = "defect"
    convention = "convention"
    any = "any"


def check(
    subject: Annotated[str, SUBJECT],
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="MODEL", help="What is wanted: a model or a line of notation.")
    ] = None,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="The mildest verdict that fails.")] = FailOn.defect,
    call: Annotated[str | None, CALL] = None,
    layout: Annotated[str | None, LAYOUT] = None,
    library: Annotated[str | None, LIBRARY] = None,
    timeout: Annotated[float | None, TIMEOUT] = None,
    probes: Annotated[bool, typer.Option("--probes/--no-probes", help="History, dtypes, caches, devices too.")] = True,
    json: Annotated[bool, JSON] = False,
    junit: Annotated[Path | None, JUNIT] = None,
    html: Annotated[Path | None, HTML] = None,
    workers: Annotated[int, WORKERS] = 2,
    records: Annotated[Path | None, RECORDS] = None,
    output: Annotated[Path | None, OUTPUT] = None,
) -> None:
    """Check an implementation, array, dump, model or config against an encoding.

    Without --expect it is identified. Exit code 0: nothing that fails; 1: a finding of --fail-on or graver; 2: it
    could not be run (of a pattern: none could).
    """
    if is_pattern(subject):
        told = {"expect": expect, "call": call, "layout": layout, "library": library}
        found = check_all(subject, timeout=timeout, workers=workers, records=records, probes=probes, **told)
        raise typer.Exit(put_all(found, json=json, junit=junit, html=html, output=output, fail_on=fail_on.value))
    if records is not None or output is not None:
        raise SubjectError("--records and -o belong to a pattern such as 'transformers:*'", subject)
    options: dict[str, Any] = {"call": call, "layout": layout, "library": library, "probes": probes}
    record = examined(subject, expect, PATIENCE if timeout is None else timeout, options)
    put(record, json=json, junit=junit, html=html, fail_on=fail_on.value)
    if record.could_not_run is not None:
        raise typer.Exit(2)
    raise typer.Exit(1 if record.at_least(fail_on.value) else 0)


def examined(subject: str, expect: str | None, timeout: float, options: dict[str, Any]) -> Any:
    """The report; settings without code are linted, code runs in a process of its own."""
    from posenc.checker.lint import is_settings, lint

    if is_settings(subject) and "#" not in subject:
        return lint(subject, expect=expect)
    from posenc.checker.checking import check as check_it
    from posenc.checker.subjects.loading import is_reference

    code = subject.startswith("transformers:") or is_reference(subject) or "#" in subject
    return check_it(subject, expect, timeout=timeout if code else None, **options)


def put(record: Any, *, json: bool, junit: Path | None, html: Path | None, fail_on: str = "defect") -> None:
    """Print the report and write the files that were asked for."""
    if junit is not None or html is not None:
        from posenc.rendering import findings, findings_page

        if junit is not None:
            findings.write_text(findings.junit([record], fail_on), junit)
        if html is not None:
            findings.write_text(findings_page.page([record]), html)
    if json:
        write(as_json(record))
    else:
        from posenc.rendering import findings

        show(lambda width: findings.checked(record))
