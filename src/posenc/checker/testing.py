"""For test suites: one assertion that a subject follows an encoding, with a message that says what is wrong.

from posenc.checker.testing import assert_conforms

def test_rotary():
    assert_conforms(apply_rotary, "rotary(128, base=500000)")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posenc.records.finding import CheckReport, Finding

LINES = 8
"""Numbers shown for one finding."""


def assert_conforms(subject: Any, value: Any, *, fail_on: str = "defect", **options: Any) -> CheckReport:
    """Check a subject against an encoding and raise if it does not follow it.

    Args:
        subject: what ``posenc check`` takes: a function, class, module, array, file, config, model folder.
        value: the wanted encoding: a value, a line of notation, a name of the catalogue, a config.
        fail_on: the mildest verdict that fails: ``defect``, ``convention`` or ``any``.
        options: handed on to the check.

    Returns:
        the report, for further questions.

    Raises:
        AssertionError: a finding fails the check, or nothing could be measured; the message lists every finding.
        SubjectError: ``fail_on`` is no verdict.
    """
    __tracebackhide__ = True
    if fail_on not in ("defect", "convention", "any"):
        from posenc.errors import SubjectError

        raise SubjectError("fail_on is defect, convention or any", fail_on)
    report = _checked(subject, value, options)
    failing = report.at_least(fail_on)
    if report.could_not_run is not None or failing:
        raise AssertionError(message(report, failing))
    return report


def _checked(subject: Any, value: Any, options: dict[str, Any]) -> CheckReport:
    from posenc.checker.lint import is_settings, lint

    if is_settings(subject):
        return lint(subject, expect=value, **{"engines": False, **options})
    from posenc.checker.checking import check

    return check(subject, value, **options)


def message(report: CheckReport, failing: tuple[Finding, ...]) -> str:
    """A failure in words: what was wanted, each failing finding with its numbers, what was taken for granted."""
    lines = [f"{report.subject} does not conform to {report.expected}"]
    if report.could_not_run is not None:
        lines = [f"{report.subject} could not be checked: {report.could_not_run}"]
    for finding in failing:
        where = f" at {finding.where}" if finding.where else ""
        lines.append(f"  {finding.verdict} ({', '.join(finding.kinds)}){where}: {finding.title}")
        for e in finding.evidence[:LINES]:
            place = f" [{e.where}]" if e.where else ""
            unit = f" {e.unit}" if e.unit else ""
            lines.append(f"    {e.name}{place}: expected {_said(e.expected)}, seen {_said(e.seen)}{unit}")
        first = finding.first_wrong
        if first is not None:
            told = {"position": first.position, first.of: first.pair, "dtype": first.dtype}
            lines.append("    first wrong: " + ", ".join(f"{k} {_said(v)}" for k, v in told.items() if v is not None))
        if finding.shape_against_length:
            lines.append(f"    against length: {finding.shape_against_length}")
        if finding.cause:
            lines.append(f"    likely cause: {finding.cause}")
        if finding.remedy:
            lines.append(f"    remedy: {finding.remedy}")
        lines += [f"    see {link}" for link in finding.links[:2]]
    milder = [f for f in report.findings if f not in failing]
    lines += [f"  also {f.verdict}: {f.title}" for f in milder]
    lines += [f"  assumed: {text}" for text in report.assumed]
    return "\n".join(lines)


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return "nothing" if value is None else str(value)
