"""What a report comes to in one word, and the class of the reason why nothing was compared."""

from __future__ import annotations

import re

from posenc.checker.models.saying import NO_ENCODING, NO_PART, UNASKED
from posenc.records.corpus import Outcome, Reason
from posenc.records.finding import CheckReport

PROBLEMS: tuple[tuple[str, Reason], ...] = (
    (r"no answer within", "timed out"),
    (r"the process ended", "the process ended"),
    (r"ImportError|ModuleNotFoundError|requires the .* library", "needs a package"),
    (r"a model of at most", "too large"),
    (r"can't allocate memory|MemoryError", "needs more memory"),
    (r"can be configured", "cannot be configured tiny"),
    (r"has a model class", "has no model class of its own"),
    (r"can be built", "cannot be built tiny"),
)
"""Words of a problem, the first that are found, and what they mean."""


def outcome_of(report: CheckReport) -> tuple[Outcome, Reason | None]:
    """The outcome of a report, and the reason where nothing was compared."""
    if report.could_not_run is not None:
        found = (reason for words, reason in PROBLEMS if re.search(words, report.could_not_run))
        return "could not run", next(found, "its answers cannot be examined")
    verdicts = {finding.verdict for finding in report.findings}
    if "defect" in verdicts:
        return "defect", None
    if "convention" in verdicts:
        return "convention", None
    if report.acquitted:
        return "acquitted", None
    if any(text.startswith(UNASKED) for text in report.not_probed) and not report.measured:
        return "not compared", "its position part is of a form that is not examined"
    if NO_PART in report.notes:
        return "no positions" if report.expected == NO_ENCODING else "not compared", "no part with positions was found"
    if report.measured or report.recovered:
        return "recognised", None
    return "not compared", "its positions are not described by its config"
