"""``posenc check`` of a pattern: many subjects in one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from posenc.cli.output import as_json, complain, show, write
from posenc.cli.progress import counted
from posenc.errors import SubjectError

if TYPE_CHECKING:
    from posenc.records.corpus import CorpusReport, Examined


def is_pattern(subject: str) -> bool:
    """Whether a text names many subjects, such as ``transformers:qwen*``."""
    return subject.startswith("transformers:") and any(c in subject for c in "*?[")


def check_all(
    pattern: str, *, timeout: float | None, workers: int, records: Path | None, probes: bool, **told: Any
) -> CorpusReport:
    """The record of every subject; progress goes to stderr.

    Raises:
        SubjectError: an option was given that has no meaning for many models, or nothing matches.
        FormatError: the file of finished subjects is another file.
    """
    from posenc.checker.corpus.running import PATIENCE, run

    given = [f"--{name}" for name, value in told.items() if value is not None]
    if given:
        raise SubjectError("a pattern is checked against what each model's config says", ", ".join(given))
    with counted() as progress:
        told_last = ["no subject is finished"]

        def finished(each: Examined, done: int, of: int) -> None:
            told_last[0] = f"{done} of {of} subjects are finished"
            progress(f"{each.name} {each.outcome} {each.report.seconds or 0:.1f} s", done, of)

        options: dict[str, Any] = {"workers": workers, "records": records, "probes": probes, "told": finished}
        try:
            return run(pattern, timeout=PATIENCE if timeout is None else timeout, **options)
        except KeyboardInterrupt:
            kept = (
                "lost: --records FILE keeps them" if records is None else f"in {records}: the same line does the rest"
            )
            raise typer.Exit(complain(f"interrupted; {told_last[0]}, {kept}", 130)) from None


def put_all(
    record: CorpusReport, *, json: bool, junit: Path | None, html: Path | None, output: Path | None, fail_on: str
) -> int:
    """Print the run and write the files that were asked for.

    Returns:
        The exit code: 1 for a finding of ``fail_on`` or graver, 2 if no subject could be run.
    """
    from posenc.rendering import corpus, findings

    if junit is not None:
        findings.write_text(findings.junit([each.report for each in record.subjects], fail_on), junit)
    if html is not None:
        findings.write_text(corpus.page(record), html)
    if output is not None:
        findings.write_text(corpus.markdown(record), output)
    if json:
        write(as_json(record))
    else:
        show(lambda width: corpus.run(record, width))
    if all(each.outcome == "could not run" for each in record.subjects):
        return 2
    return 1 if any(each.report.at_least(fail_on) for each in record.subjects) else 0
