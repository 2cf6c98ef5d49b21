"""What an examination gathers: findings with their links and remedies, measurements, assumptions, probes that ran."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from posenc.checker import causes
from posenc.records.base import Curve, thinned
from posenc.records.finding import (
    Candidate,
    CheckReport,
    Drawn,
    Finding,
    FirstWrong,
    Measured,
    Recovered,
    ordered,
)


@dataclass
class Gathered:
    """The notebook of one examination; turned into a record at its end."""

    findings: list[Finding] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    recovered: list[Recovered] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    probes: list[str] = field(default_factory=list)
    not_probed: list[str] = field(default_factory=list)
    where: str | None = None
    part: str | None = None
    """Which part of the subject was examined, where it is not the whole."""
    blind: bool = False
    """Nothing that ran could have seen a wrong encoding: no acquittal."""

    def found(
        self,
        verdict: Any,
        kinds: tuple[Any, ...],
        title: str,
        *,
        evidence: Any = (),
        first: FirstWrong | None = None,
        shape: str | None = None,
        cause: str | None = None,
        like: str = "",
        remedy: str | None = None,
        recovered: Any = (),
        drawn: Any = (),
    ) -> None:
        """Add a finding, once."""
        finding = Finding(
            verdict=verdict,
            kinds=tuple(dict.fromkeys(kinds)),
            title=title,
            evidence=tuple(evidence),
            first_wrong=first,
            shape_against_length=shape,
            cause=cause,
            links=causes.links(kinds, like),
            remedy=causes.remedy(kinds) if remedy is None else remedy,
            recovered=tuple(recovered),
            drawn=tuple(drawn),
            where=self.where,
        )
        if not any(f.title == finding.title and f.where == finding.where for f in self.findings):
            self.findings.append(finding)

    def measure(self, name: str, value: Any, note: str | None = None) -> None:
        """Add something measured, once for each name."""
        name = f"{self.where}: {name}" if self.where else name
        if all(m.name != name for m in self.measured):
            self.measured.append(Measured(name=name, value=value, note=note))

    def recover(self, name: str, value: Any, expected: Any = None, error: float | None = None) -> None:
        name = f"{self.where}: {name}" if self.where else name
        if all(r.name != name for r in self.recovered):
            self.recovered.append(Recovered(name=name, value=value, expected=expected, error=error))

    def assume(self, text: str) -> None:
        if text not in self.assumed:
            self.assumed.append(text)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def ran(self, probe: str) -> None:
        if probe not in self.probes:
            self.probes.append(probe)

    def skipped(self, probe: str, why: str) -> None:
        text = f"{probe}: {why}"
        if text not in self.not_probed:
            self.not_probed.append(text)

    def has(self, *kinds: str) -> bool:
        """Whether a defect of one of these kinds was found."""
        return any(set(kinds) & set(f.kinds) and f.verdict == "defect" for f in self.findings)

    def report(
        self, subject: str, expected: str | None, seconds: float | None, problem: str | None = None
    ) -> CheckReport:
        """The record."""
        findings = ordered(self.findings)
        defect = any(f.verdict == "defect" for f in findings)
        return CheckReport(
            subject=subject,
            expected=expected,
            identified=tuple(self.candidates),
            assumed=tuple(self.assumed),
            findings=findings,
            acquitted=not defect and problem is None and bool(self.probes) and expected is not None and not self.blind,
            could_not_run=problem,
            measured=tuple(self.measured),
            recovered=tuple(self.recovered),
            probes=tuple(self.probes),
            not_probed=tuple(self.not_probed),
            notes=tuple(self.notes),
            part=self.part,
            seconds=None if seconds is None else round(seconds, 3),
        )


def drawn(title: str, x: str, y: str, at: Any, seen: Any, expected: Any = None, log: bool = False) -> Drawn:
    """Evidence as curves of at most 512 points; what is not finite is left out."""
    return Drawn(
        title=title,
        x=x,
        y=y,
        seen=_curve(at, seen),
        expected=None if expected is None else _curve(at, expected),
        log=log,
    )


def _curve(x: Any, y: Any) -> Curve:
    points = [(float(a), float(b)) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    return thinned([a for a, _ in points], [b for _, b in points], points=512) if points else Curve(x=(), y=())
