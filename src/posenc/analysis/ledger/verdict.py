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
