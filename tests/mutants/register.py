"""The register of mutants: what is wanted, what must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """A broken encoding.

    Args:
        name: the public case it stands for, or a name of our own.
        subject: what is handed to the checker.
        expect: what is wanted.
        kind: the kind that must be among a finding's.
        recovered: parameter to value: numbers within 1 %, words exactly.
        verdict: of the finding.
        options: for the check.
    """

    name: str
    subject: Any
    expect: str
    kind: str
    recovered: dict[str, Any] = field(default_factory=dict)
    verdict: str = "defect"
    options: dict[str, Any] = field(default_factory=dict)


MUTANTS: list[Mutant] = []


def mutant(
    name: str, expect: str, kind: str, verdict: str = "defect", recovered: dict[str, Any] | None = None, **options: Any
) -> Callable[[Any], Any]:
    """Register a function or class as it is."""

    def add(subject: Any) -> Any:
        MUTANTS.append(Mutant(name, subject, expect, kind, recovered or {}, verdict, options))
        return subject

    return add


def data(
    name: str,
    subject: Any,
    expect: str,
    kind: str,
    verdict: str = "defect",
    recovered: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Register an array, a dump or an instance."""
    MUTANTS.append(Mutant(name, subject, expect, kind, recovered or {}, verdict, options))
