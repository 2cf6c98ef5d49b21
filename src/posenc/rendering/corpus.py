"""A run over many subjects: for the terminal, as Markdown, and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from rich.text import Text

from posenc.rendering import facts, findings_page
from posenc.rendering.findings import STYLES
from posenc.rendering.plain import count, figures, inert, short
from posenc.rendering.terminal import labelled, table

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable

    from posenc.records.corpus import CorpusReport, Examined
    from posenc.records.finding import Finding

OUTCOMES = ("outcome", "subjects", "what it means")
SUBJECTS = ("subject", "outcome", "compared with", "examined", "s")
FINDINGS = ("subject", "verdict", "where", "finding", "evidence", "kinds")
LEFT = ("subject", "outcome", "reason", "in its own words")
MEANINGS = {
    "defect": "at least one finding is a defect",
    "convention": "right with the model's own weights; another order or custom than the config's encoding alone says",
    "acquitted": "compared with what its config says: no defect",
    "recognised": "no config says what is wanted of the parts found; they are recognised, and whole passes agree",
    "not compared": "nothing that ran could have seen a wrong encoding",
    "no positions": "its config names none, and no part that carries any was found",
    "could not run": "nothing was measured",
}


def run(record: CorpusReport, width: int) -> Iterator[ConsoleRenderable]:
    """The run on the terminal: every subject, every finding, what was left out, and the sums at the end."""
    rows = [_subject(each) for each in record.subjects]
    yield table(SUBJECTS, [tuple(short(cell, max(width // 3, 24)) for cell in row) for row in rows], left=4)
    if record.findings:
        yield Text("")
        yield Text("findings", style="bold")
    for name, finding in record.findings:
        place = f" {finding.where}:" if finding.where else ""
        yield Text.assemble(
            (finding.verdict, STYLES[finding.verdict]), f"  {short(name)}:{short(place)} {short(finding.title)}"
        )
        yield labelled([("evidence", evidence(finding))], indent=4)
    left = _left(record)
    if left:
        yield Text("")
        yield Text("not run, or not compared", style="bold")
        yield table(LEFT, [tuple(short(cell, max(width // 2, 24)) for cell in row) for row in left], left=4)
    yield Text("")
    yield labelled(_sums(record))


def markdown(record: CorpusReport) -> str:
    """The run as a Markdown page."""
    parts = [f"# {_m(record.pattern)}\n\n", _m("; ".join(f"{k}: {v}" for k, v in _sums(record))), "\n\n"]
    parts += _rows(OUTCOMES, _outcomes(record))
    parts.append("\n## Findings\n\n")
    parts += _rows(FINDINGS, [_finding(*each) for each in record.findings]) if record.findings else ["None.\n"]
    left = _left(record)
    if left:
        parts.append("\n## Not run, or not compared\n\n")
        parts += _rows(LEFT, left)
    parts.append("\n## Every subject\n\n")
    parts += _rows(SUBJECTS, [_subject(each) for each in record.subjects])
    return "".join(parts)


def page(record: CorpusReport) -> str:
    """The run as one self-contained page: the tables, then every report with a finding in full."""
    title = escape(inert(record.pattern))
    sections: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
        ("Outcomes", OUTCOMES, _outcomes(record)),
        ("Findings", FINDINGS, [_finding(*each) for each in record.findings]),
        ("Not run, or not compared", LEFT, _left(record)),
        ("Every subject", SUBJECTS, [_subject(each) for each in record.subjects]),
    ]
    tables = "".join(f"<h2>{name}</h2>{findings_page.listed(header, rows)}" for name, header, rows in sections if rows)
    sums = escape("; ".join(f"{k}: {inert(v)}" for k, v in _sums(record)))
    found = "".join(findings_page.body(each.report) for each in record.subjects if each.report.findings)
    head = f"<style>{findings_page.STYLE}</style><main class='pc'><h1>{title}</h1><p>{sums}</p>"
    return findings_page.document(record.pattern, f"{head}{tables}</main>{found}")


def evidence(finding: Finding, limit: int = 2) -> str:
    """The first numbers that speak for a finding, in one line."""
    said = []
    for each in finding.evidence[:limit]:
        wanted = "" if each.expected is None else f"wanted {_value(each.expected)}, "
        said.append(f"{each.name}{f' ({each.where})' if each.where else ''}: {wanted}seen {_value(each.seen)}")
    return "; ".join(said)


def _value(value: object) -> str:
    return "-" if value is None else figures(value, 3) if isinstance(value, float) else str(value)


def _sums(record: CorpusReport) -> list[facts.Fact]:
    verdicts = [finding.verdict for _, finding in record.findings]
    counted = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)) or "none"
    before = f", {count(record.kept, 'subject')} kept from before" if record.kept else ""
    return [
        ("subjects", f"{len(record.subjects)} (" + ", ".join(f"{n} {k}" for k, n in record.counts.items()) + ")"),
        ("findings", counted),
        ("versions", ", ".join(f"{k} {v}" for k, v in record.versions.items())),
        ("date", record.date),
        ("time", f"{record.seconds:.0f} s{before}"),
    ]


def _outcomes(record: CorpusReport) -> list[tuple[str, ...]]:
    return [(name, str(n), MEANINGS[name]) for name, n in record.counts.items()]


def _subject(each: Examined) -> tuple[str, ...]:
    report = each.report
    return (
        each.name,
        each.outcome,
        report.expected or "",
        ", ".join(report.probes),
        "" if report.seconds is None else f"{report.seconds:.1f}",
    )


def _finding(name: str, finding: Finding) -> tuple[str, ...]:
    kinds = ", ".join(finding.kinds)
    return (name, finding.verdict, finding.where or "", finding.title, evidence(finding), kinds)


def _left(record: CorpusReport) -> list[tuple[str, ...]]:
    return [
        (each.name, each.outcome, each.reason, each.report.could_not_run or "; ".join(each.report.notes))
        for each in record.subjects
        if each.reason is not None
    ]


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(_m(short(cell, 240)) for cell in line) + " |\n" for line in lines]


def _m(text: str) -> str:
    """Text that means nothing in Markdown."""
    return "".join(f"\\{c}" if c in "\\|*_<>[]`#" else c for c in inert(text))
