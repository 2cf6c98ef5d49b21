"""The record of a run over many subjects: each with its outcome, and the reason where nothing was compared."""

from __future__ import annotations

from collections import Counter
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from posenc.records.base import Record
from posenc.records.finding import CheckReport, Finding

Outcome = Literal["defect", "convention", "acquitted", "recognised", "not compared", "no positions", "could not run"]
"""``defect`` and ``convention``: the gravest finding. ``acquitted``: compared with what its config says, nothing grave.
``recognised``: no config says what is wanted of the parts that were found; they are named, or agree with their modules'
own settings, and whole passes agree with each other. ``not compared``: nothing that was found could have seen a wrong
encoding. ``no positions``: its config says that it has none, or no part of it carries any. ``could not run``: nothing
was measured."""
OUTCOMES: tuple[str, ...] = get_args(Outcome)

Reason = Literal[
    "no part with positions was found",
    "its position part is of a form that is not examined",
    "its positions are not described by its config",
    "cannot be configured tiny",
    "cannot be built tiny",
    "has no model class of its own",
    "too large",
    "needs more memory",
    "timed out",
    "the process ended",
    "needs a package",
    "its answers cannot be examined",
]
REASONS: tuple[str, ...] = get_args(Reason)


class Examined(BaseModel):
    """One subject of a run.

    Args:
        name: what was asked for, such as ``transformers:llama``.
        outcome: in one word.
        reason: why nothing was compared or measured; None where something was.
        versions: of the packages that decide about the result.
        timeout: seconds it was given.
        report: everything else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    name: str
    outcome: Outcome
    reason: Reason | None = None
    versions: dict[str, str]
    timeout: float
    report: CheckReport


class CorpusReport(Record):
    """A run over all subjects of a pattern.

    Args:
        pattern: what was asked for.
        date: the day it ended, year-month-day.
        versions: of the packages that decide about the results.
        subjects: every subject, in the order of their names.
        kept: how many of them a former run had done.
        seconds: time the run took.
    """

    pattern: str
    date: str
    versions: dict[str, str]
    subjects: tuple[Examined, ...]
    kept: int = 0
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """How many subjects had each outcome, in the order of :data:`OUTCOMES`."""
        counted = Counter(each.outcome for each in self.subjects)
        return {outcome: counted[outcome] for outcome in OUTCOMES if counted[outcome]}  # type: ignore[index]

    @property
    def findings(self) -> tuple[tuple[str, Finding], ...]:
        """Every finding with the name of its subject, defects first."""
        pairs = [(each.name, finding) for each in self.subjects for finding in each.report.findings]
        order = ("defect", "convention", "naming", "harmless")
        return tuple(sorted(pairs, key=lambda pair: (order.index(pair[1].verdict), pair[0])))
