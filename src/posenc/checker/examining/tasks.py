"""A task for functions that make something: its definition, inputs that are not blind, wrong answers that were seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Wrong:
    """A wrong answer that was seen.

    Args:
        cause: in words.
        answer: the arguments to the wrong result.
        kinds: if other than the task's.
        recovered: a parameter and its value.
        verdict: convention where the answer is right in another mode.
    """

    cause: str
    answer: Callable[..., Any]
    kinds: tuple[str, ...] = ()
    recovered: tuple[str, str] | None = None
    verdict: str = "defect"


@dataclass(frozen=True)
class Task:
    """A task.

    Args:
        takes: the arguments in words.
        kinds: of the taxonomy.
        right: the definition.
        asked: arguments, none of them blind.
        wrongs: answers that are recognised.
        only: compare these entries alone (real tokens); None for all.
    """

    takes: str
    kinds: tuple[str, ...]
    right: Callable[..., Any]
    asked: tuple[tuple[Any, ...], ...]
    wrongs: tuple[Wrong, ...] = ()
    only: Callable[..., Any] | None = None
