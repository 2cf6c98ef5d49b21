"""Small helpers that rules share: findings from two readings, and numbers as people write them."""

from __future__ import annotations

from typing import Any

from posenc.checker.apart import Apart
from posenc.checker.lint.register import Block, links
from posenc.formats.engine_rewrites import is_number
from posenc.records.finding import Evidence, Finding, Kind, Verdict


def shown(value: Any) -> str:
    """A JSON value as text of at most 60 characters.

    >>> shown(131072.0), shown("yarn"), shown(None)
    ('131072', "'yarn'", 'null')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if is_number(value):
        return f"{value:.10g}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def finding(
    verdict: Verdict,
    kinds: tuple[Kind, ...],
    title: str,
    *,
    where: str,
    remedy: str,
    both: Apart | None = None,
    names: tuple[str, str] = ("one reading", "the other"),
    evidence: tuple[Evidence, ...] = (),
    cause: str | None = None,
    cases: tuple[str, ...] = (),
) -> Finding:
    """A finding; ``both`` adds the numbers of two readings called ``names``."""
    numbers = evidence if both is None else (*evidence, *both.evidence(*names))
    return Finding(
        verdict=verdict,
        kinds=kinds,
        title=title,
        evidence=numbers,
        cause=cause,
        links=links(*cases),
        remedy=remedy,
        where=where,
    )


def factor_of(block: Block) -> float | None:
    """The stated factor, where it is a positive number."""
    value = block.data.get("factor")
    return float(value) if is_number(value) and value > 0 else None


def path(block: Block, key: str) -> str:
    return f"{block.key}.{key}"
