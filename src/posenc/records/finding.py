"""The records of a check: what a subject was found to be, every finding, what was measured and assumed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, field_validator

from posenc.records.base import Curve, Record

Verdict = Literal["defect", "convention", "naming", "harmless"]
"""``defect``: wrong numbers. ``convention``: right with weights stored for it, wrong with others. ``naming``: the
numbers are the wanted ones under other names. ``harmless``: another number that no score can see."""

Kind = Literal[
    "layout",
    "exponent",
    "partial-rotary",
    "precision",
    "buffer-state-dict",
    "meta-init",
    "offset-cache",
    "table-length",
    "state-leak",
    "scaling-parameters",
    "attention-factor",
    "double-application",
    "per-layer-base",
    "config-parsing",
    "mask-padding",
    "packing",
    "odd-dimension",
    "export-compile",
    "axis-order",
    "position-rounding",
    "multimodal-positions",
    "time-unit",
    "grid-resampling",
    "sharding",
    "bias-function",
    "relative-index",
    "width",
    "integration",
]
KINDS: tuple[str, ...] = get_args(Kind)
VERDICTS: tuple[str, ...] = get_args(Verdict)

Number = float | int | str | None


class _Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def number(value: Any) -> Number:
    """A number for a record: what is not finite becomes a word.

    >>> number(float("nan")), number(2.5), number("two")
    ('nan', 2.5, 'two')
    """
    if value is None or isinstance(value, str | bool):
        return None if value is None else str(value)
    if isinstance(value, int):
        return value
    plain = float(value)
    return plain if math.isfinite(plain) else str(plain)


class Evidence(_Item):
    """One number (or word) that speaks for a finding.

    Args:
        name: what was measured.
        expected: what the wanted encoding gives.
        seen: what the subject gave.
        where: position, pair, head, dtype, call.
        unit: radians, positions, turns.
    """

    name: str
    expected: Number = None
    seen: Number = None
    where: str | None = None
    unit: str | None = None

    @field_validator("expected", "seen", mode="before")
    @classmethod
    def _finite(cls, value: Any) -> Number:
        return number(value)


class Recovered(_Item):
    """A parameter in the words of the value, as measured.

    Args:
        name: ``base``, ``yarn.factor``, ``rotary_dim``…
        value: a number or a word.
        expected: what was wanted, if something was.
        error: relative uncertainty, if it is known.
    """

    name: str
    value: Number
    expected: Number = None
    error: float | None = None

    @field_validator("value", "expected", mode="before")
    @classmethod
    def _finite(cls, value: Any) -> Number:
        return number(value)


class FirstWrong(_Item):
    """Where the subject first deviates.

    Args:
        position: the first wrong position among those examined.
        pair: the first wrong pair (or head, or channel: ``of`` says which).
        of: what ``pair`` counts.
        dtype: the type in which it is wrong.
    """

    position: float | None = None
    pair: int | None = None
    of: str = "pair"
    dtype: str | None = None


class Drawn(_Item):
    """Evidence as curves over one axis: what was expected and what was seen.

    Args:
        title: what is drawn.
        x, y: what the axes are.
        expected, seen: the curves; ``expected`` may be missing.
        log: the vertical axis is logarithmic.
    """

    title: str
    x: str
    y: str
    seen: Curve
    expected: Curve | None = None
    log: bool = False


class Finding(_Item):
    """One thing that was found, with its evidence.

    Args:
        verdict: what it means.
        kinds: from the taxonomy, the likeliest first.
        title: what is wrong (or different) in one sentence without a final stop.
        evidence: the numbers.
        first_wrong: where the subject first deviates.
        shape_against_length: how the error depends on position or length, in words.
        cause: the likely cause; None where no hypothesis fits.
        links: public cases of the same kind.
        remedy: what to do.
        recovered: parameters in the words of the value.
        drawn: curves for the page.
        where: the part of the subject it was found in (a layer, a file, a key); None for the whole.
    """

    verdict: Verdict
    kinds: tuple[Kind, ...]
    title: str
    evidence: tuple[Evidence, ...] = ()
    first_wrong: FirstWrong | None = None
    shape_against_length: str | None = None
    cause: str | None = None
    links: tuple[str, ...] = ()
    remedy: str = ""
    recovered: tuple[Recovered, ...] = ()
    drawn: tuple[Drawn, ...] = ()
    where: str | None = None


class Candidate(_Item):
    """An encoding that a subject may follow.

    Args:
        notation: the encoding in one line, or words.
        residual: largest deviation of the subject from it; ``unit`` says of what.
        unit: what the residual is in.
        confidence: how sure, as a word with its reason.
        remark: what else tells it apart.
    """

    notation: str
    residual: float | None = None
    unit: str = ""
    confidence: str = ""
    remark: str | None = None


class Measured(_Item):
    """One thing that was measured although nothing is wrong with it."""

    name: str
    value: Number
    note: str | None = None

    @field_validator("value", mode="before")
    @classmethod
    def _finite(cls, value: Any) -> Number:
        return number(value)


class CheckReport(Record):
    """Everything a check (or an identification) found.

    Args:
        subject: what was handed over.
        expected: notation of the wanted encoding; None for an identification.
        identified: what it is, the best first; empty is "none of the known".
        assumed: the calling convention and everything else that was taken for granted.
        findings: defects first.
        acquitted: nothing was found that is a defect, and at least one probe that could see one ran.
        could_not_run: why nothing could be measured.
        measured: what was measured.
        recovered: parameters of the subject in the words of the value.
        part: which part of the subject was examined, in words; None for the whole.
        probes: probes that ran, and those that did not with the reason.
        seconds: time spent on the subject.
    """

    subject: str
    expected: str | None = None
    identified: tuple[Candidate, ...] = ()
    assumed: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    acquitted: bool = False
    could_not_run: str | None = None
    measured: tuple[Measured, ...] = ()
    recovered: tuple[Recovered, ...] = ()
    probes: tuple[str, ...] = ()
    not_probed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    part: str | None = None
    seconds: float | None = None

    def at_least(self, verdict: str) -> tuple[Finding, ...]:
        """Findings that fail a check: of this verdict or a graver one; ``any`` is every finding."""
        grave = VERDICTS if verdict == "any" else VERDICTS[: VERDICTS.index(verdict) + 1]
        return tuple(f for f in self.findings if f.verdict in grave)

    def _repr_html_(self) -> str:
        from importlib import import_module

        return str(import_module("posenc.rendering.findings").notebook(self))


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings, the gravest first; equal ones once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda f: VERDICTS.index(f.verdict)))
