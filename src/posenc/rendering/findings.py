"""Findings as terminal output and as JUnit XML; text from outside is inert in both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from rich.text import Text

from posenc.errors import PosencError
from posenc.rendering import facts
from posenc.rendering.plain import count, figures, inert, short
from posenc.rendering.terminal import labelled

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable

    from posenc.records.finding import CheckReport, Finding

UNKNOWN = "none of the known"
STYLES = {"defect": "bold red", "convention": "bold yellow", "naming": "cyan", "harmless": "green"}


def checked(record: CheckReport) -> Iterator[ConsoleRenderable]:
    """A check: the answer first, every finding with its numbers, then what was measured and assumed."""
    yield Text(short(record.subject), style="bold")
    yield answer(record)
    rows: list[facts.Fact] = []
    if record.expected:
        rows.append(("wanted", record.expected))
    rows += [("assumed", text) for text in record.assumed]
    if record.expected is None and not record.identified and not record.recovered:
        rows += [(each.name, _value(each.value)) for each in record.measured]
    if rows:
        yield labelled(rows)
    yield from _identified(record)
    for finding in record.findings:
        yield Text("")
        yield from _finding(finding)
    if record.recovered and not record.findings:
        yield Text("")
        yield Text("recovered", style="dim")
        yield labelled([(each.name, _value(each.value)) for each in record.recovered])
    tail: list[facts.Fact] = []
    tail += [("note", note) for note in record.notes]
    if record.probes:
        tail.append(("examined", ", ".join(record.probes)))
    tail += [("not examined", text) for text in record.not_probed]
    if record.seconds is not None:
        tail.append(("time", f"{record.seconds:.2f} s"))
    if tail:
        yield Text("")
        yield labelled(tail)


def answer(record: CheckReport) -> Text:
    """The outcome in one line."""
    if record.could_not_run:
        return Text(f"could not be examined: {short(record.could_not_run, 600)}", style="bold red")
    counted = ", ".join(
        count(n, verdict) if verdict in ("defect", "convention") else f"{n} {verdict}"
        for verdict in STYLES
        if (n := sum(f.verdict == verdict for f in record.findings))
    )
    if record.expected is None:
        return _without_a_wish(record, counted)
    if any(f.verdict == "defect" for f in record.findings):
        return Text(counted, style="bold red")
    if record.acquitted:
        if record.part:
            return Text(
                short(f"no defect in {record.part}" + (f" ({counted})" if counted else ""), 400), style="bold yellow"
            )
        return Text("acquitted: no defect" + (f" ({counted})" if counted else ""), style="bold green")
    return Text(
        "nothing was compared with the wanted encoding" + (f" ({counted})" if counted else ""), style="bold yellow"
    )


def _without_a_wish(record: CheckReport, counted: str) -> Text:
    """What was found wrong where that was looked for, or what the subject is."""
    if any(f.verdict == "defect" for f in record.findings):
        return Text(counted, style=STYLES["defect"])
    named = record.identified[0].notation if record.identified else ""
    if not record.acquitted:
        unknown = next((n for n in record.notes if n.startswith(UNKNOWN)), f"{UNKNOWN} encodings")
        return Text(short(named or unknown, 400), style="bold")
    outcome = f"no defect found ({counted})" if counted else "nothing wrong found"
    return Text(short(f"{outcome}: {named}" if named else outcome, 400), style="bold green")


def _identified(record: CheckReport) -> Iterator[ConsoleRenderable]:
    for i, candidate in enumerate(record.identified):
        residual = "" if candidate.residual is None else f"residual {figures(candidate.residual, 3)} {candidate.unit}"
        rows: list[facts.Fact] = [("is" if i == 0 else "or", candidate.notation)]
        rows += [("", text) for text in (residual, candidate.confidence, candidate.remark) if text]
        yield labelled(rows)


def _finding(f: Finding) -> Iterator[ConsoleRenderable]:
    where = f"{f.where}: " if f.where else ""
    yield Text.assemble(
        (f"{f.verdict}", STYLES[f.verdict]), f"  {short(where + f.title, 400)}", ("  " + ", ".join(f.kinds), "dim")
    )
    rows: list[facts.Fact] = []
    for e in f.evidence:
        place = f" ({e.where})" if e.where else ""
        unit = f" {e.unit}" if e.unit else ""
        wanted = "" if e.expected is None else f"wanted {_value(e.expected)}, "
        rows.append(("evidence", f"{e.name}{place}: {wanted}seen {_value(e.seen)}{unit}"))
    if f.first_wrong is not None:
        said = [
            f"position {figures(f.first_wrong.position)}" if f.first_wrong.position is not None else "",
            f"{f.first_wrong.of} {f.first_wrong.pair}" if f.first_wrong.pair is not None else "",
            f.first_wrong.dtype or "",
        ]
        rows.append(("first wrong", ", ".join(s for s in said if s)))
    if f.shape_against_length:
        rows.append(("with length", f.shape_against_length))
    if f.cause:
        rows.append(("cause", f.cause))
    for each in f.recovered:
        wanted = "" if each.expected is None else f" (wanted {_value(each.expected)})"
        rows.append(("recovered", f"{each.name} = {_value(each.value)}{wanted}"))
    if f.remedy:
        rows.append(("remedy", f.remedy))
    rows += [("see", link) for link in f.links]
    yield labelled(rows, indent=4)


def _value(value: object) -> str:
    return "-" if value is None else figures(value, 7) if isinstance(value, float) else str(value)


def junit(records: Iterable[CheckReport], fail_on: str = "defect") -> str:
    """JUnit XML: one suite for each subject, one case for each finding and each probe that ran.

    Findings that fail the check are failures; a subject that could not be run is an error.
    """
    suites = []
    for record in records:
        failing = set(record.at_least(fail_on))
        cases = []
        if record.could_not_run:
            cases.append(_case(record.subject, "subject", f"<error message={_attribute(record.could_not_run)}/>"))
        for finding in record.findings:
            text = "\n".join(f"{e.name}: expected {e.expected}, seen {e.seen}" for e in finding.evidence)
            body = (
                f"<failure type={_attribute(finding.kinds[0])} "
                f"message={_attribute(finding.title)}>{_text(text)}</failure>"
                if finding in failing
                else f"<system-out>{_text(f'{finding.verdict}: {finding.title}')}</system-out>"
            )
            cases.append(_case(record.subject, f"{finding.kinds[0]}: {finding.title}", body))
        cases += [_case(record.subject, probe, "") for probe in record.probes]
        errors, failures = int(bool(record.could_not_run)), len(failing)
        suites.append(
            f'<testsuite name={_attribute(record.subject)} tests="{len(cases)}" failures="{failures}" '
            f'errors="{errors}" time="{record.seconds or 0:.3f}">{"".join(cases)}</testsuite>'
        )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>{"".join(suites)}</testsuites>\n'


def _case(subject: str, name: str, body: str) -> str:
    return f"<testcase classname={_attribute(subject)} name={_attribute(short(name, 200))}>{body}</testcase>"


def _attribute(text: str) -> str:
    return quoteattr(inert(text))


def _text(text: str) -> str:
    return escape("\n".join(inert(line) for line in text.split("\n")))


def write_text(text: str, to: Path) -> None:
    """Write a file, replaced in one step.

    Raises:
        PosencError: it cannot be written.
    """
    import os

    beside = to.with_name(f".{to.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, to)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise PosencError("the report is written to a file", f"{to}: {error.strerror}") from None


def notebook(record: CheckReport) -> str:
    """The same as HTML for notebooks."""
    from posenc.rendering.findings_page import body

    return body(record)
