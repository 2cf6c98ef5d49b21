"""What a claim's function returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["exact", "holds within stated bounds", "counterexample", "refuted", "needs training"]


@dataclass(frozen=True)
class Found:
    """A verdict with its evidence in English and Chinese, and the numbers in it."""

    verdict: Verdict
    evidence: str
    evidence_zh: str
    numbers: dict[str, float] = field(default_factory=dict)


def tiny(value: float) -> str:
    """A rounding error with one digit; 0 is 0.

    >>> tiny(2.4e-13), tiny(0.0)
    ('2e-13', '0')
    """
    return f"{value:.0e}" if value else "0"
