"""The record of a comparison: whether two models have the same position encodings, or where they differ."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from posenc.records.base import Record

Weight = Literal["difference", "convention", "information"]
"""A ``difference`` changes what is computed. A ``convention`` is stored differently and computes the same.
``Information`` changes nothing; a reader should know it all the same."""


class Finding(BaseModel):
    """One thing in which two models differ.

    Args:
        weight: whether it changes what is computed.
        where: the part and the layers.
        what: the quantity.
        a, b: its value on either side, as text.
        index: first pair (or head, or channel) that differs, where the quantity has one number for each.
        count: how many of them differ.
        of: out of how many.
        relative: largest ``|a - b| / max(|a|, |b|)``, for numbers.
        remark: what else there is to say.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)
    weight: Weight
    where: str
    what: str
    a: str
    b: str
    index: int | None = None
    count: int | None = None
    of: int | None = None
    relative: float | None = None
    remark: str | None = None


class Side(BaseModel):
    """One of the two models compared."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    name: str
    format: str
    source: str


class Difference(Record):
    """Whether two models have the same position encodings, and every finding.

    Args:
        a, b: the two models.
        same: no finding is a difference.
        findings: differences first, then conventions, then information.
        compared: what was compared, as sentences.
    """

    a: Side
    b: Side
    same: bool
    findings: tuple[Finding, ...] = ()
    compared: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.weight == "difference")
