"""A subject with roles for its parameters and a library for its arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from posenc.checker.calling.caller import Caller, Misshapen, parts
from posenc.checker.calling.hints import FIXED, Hints
from posenc.checker.calling.library import dtype_of
from posenc.errors import SubjectError

BATCH, HEADS, TOKENS = 2, 3, 7
"""Sizes of a trial: prime and different, so that no two dimensions can be exchanged unnoticed."""


@dataclass
class Bound:
    """One way to call a subject.

    Args:
        caller: guards the call.
        roles: ``{parameter: role}``.
        hints: numbers to fill in.
        dim: the width that is tried.
    """

    caller: Caller
    roles: dict[str, str]
    hints: Hints
    dim: int

    def has(self, *roles: str) -> bool:
        return all(role in self.roles.values() for role in roles)

    def call(self, **values: Any) -> Any:
        """Call with a value for each role; roles that say what to build are filled in.

        Raises:
            SubjectError: it raised, or a role has no value.
        """
        arguments = {}
        for name, role in self.roles.items():
            if role in values:
                if values[role] is not None:
                    arguments[name] = values[role]
            elif role in FIXED or role == "length":
                arguments[name] = self.hints.fixed(role, self.dim)
            elif role == "offset":
                arguments[name] = 0
            else:
                raise SubjectError(f"no value is known for {name} ({role})")
        return self.caller(arguments)

    @property
    def library(self) -> Any:
        return self.caller.library

    def describe(self, result: str) -> str:
        """The convention in words."""
        arguments = ", ".join(f"{n}: {r}" if n != r and not n.startswith("#") else r for n, r in self.roles.items())
        name = getattr(self.caller.function, "__name__", type(self.caller.function).__name__)
        return f"{name}({arguments}) -> {result}, {self.library.name} arrays in {self.library.dtype}"


def shaped(result: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """The first array of a result, in the shape asked for.

    Raises:
        Misshapen: it has another one.
    """
    found = parts(result)[0]
    if found.shape != shape:
        raise Misshapen(f"{what} has the shape {shape}", found.shape)
    return found


def result_dtype(result: Any) -> str:
    """The floating type of a result, ``float32`` where it is not known."""
    first = result[0] if isinstance(result, tuple | list) and len(result) else result
    return dtype_of(first) or "float32"


def farthest(bound: Bound, works: Callable[[int], bool], most: int) -> int | None:
    """The largest position a subject takes; None if it takes every one that was tried."""
    if bound.hints.measured is not None:
        return bound.hints.measured[0]
    largest = longest(works, most, 6)
    return None if largest == most else largest


def longest(works: Callable[[int], bool], most: int, least: int = 3) -> int:
    """The largest number up to ``most`` for which something works, by bisection between powers of two.

    >>> longest(lambda n: n <= 777, 4096)
    777
    """
    if works(most):
        return most
    low = least
    while low * 2 < most and works(low * 2):
        low *= 2
    high = min(low * 2, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low
