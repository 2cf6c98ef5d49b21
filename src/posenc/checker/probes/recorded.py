"""Calls of a subject, kept with their arguments, so that another form of it can be given the very same ones."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posenc.checker.calling.caller import parts
from posenc.checker.probes.again import asked, bound_of, box_again, fresh, function_of
from posenc.checker.probes.registry import Probed
from posenc.errors import PosencError

FIRST = 3
"""The first position asked for where positions can be chosen: a graph that counts from 0 shows."""
OPERATIONS = 400
"""The most operations of a call that is captured as a graph."""


@dataclass
class Call:
    """The arguments of one call.

    Args:
        args: by position.
        named: by name.
    """

    args: tuple[Any, ...]
    named: dict[str, Any]

    def on(self, function: Callable[..., Any]) -> list[np.ndarray]:
        """The arrays that a function answers, with copies of the arguments and without gradients."""
        import torch

        args, named = copy.deepcopy((self.args, self.named))
        with torch.no_grad():
            return parts(function(*args, **named))


@dataclass
class _Recording:
    function: Callable[..., Any]
    calls: list[Call] = field(default_factory=list)

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.calls.append(Call(*copy.deepcopy((args, named))))
        return self.function(*args, **named)


def made(p: Probed) -> Any:
    """A fresh subject, or the subject itself where none can be made."""
    try:
        return fresh(p)
    except PosencError:
        return p.value


def called(p: Probed, value: Any) -> Callable[..., Any]:
    """What is called of another object of the subject's kind."""
    bound = bound_of(p)
    return value if bound is None else function_of(bound, value)


def recorded(p: Probed, lengths: Sequence[int]) -> list[Call]:
    """One call for each length, as the box makes it.

    Raises:
        PosencError: the subject cannot be asked.
    """
    value = made(p)
    function = called(p, value)
    kept = _Recording(function)

    def run(*args: Any, **named: Any) -> Any:
        return kept(*args, **named)

    run.__self__ = getattr(function, "__self__", function)  # type: ignore[attr-defined]
    box = box_again(p, value, wrap=lambda _: run)
    first = FIRST if getattr(p.box, "free", False) else 0
    found = []
    for tokens in lengths:
        asked(box, np.arange(float(first), float(first + tokens)))
        found.append(kept.calls[-1])
    return found


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Nothing printed, warned or logged: torch logs whole tracebacks of what it cannot capture."""
    before = logging.root.manager.disable
    out = io.StringIO()
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def too_much_to_capture(call: Call, function: Callable[..., Any]) -> str | None:
    """Why a graph of a call would be empty or slow to capture; None where it would not.

    A compiler writes out loops of Python, and takes some 10 ms for each operation in them.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
        """Counts the operations of torch."""

        seen = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen += 1
            return func(*args, **(kwargs or {}))

    args, named = copy.deepcopy((call.args, call.named))
    with torch.no_grad(), Counting() as counting:  # type: ignore[no-untyped-call]
        answer = function(*args, **named)
    if all(isinstance(leaf, np.ndarray) for leaf in torch.utils._pytree.tree_leaves(answer)):
        return "it answers with arrays of NumPy"
    if counting.seen > OPERATIONS:
        return f"one call makes {counting.seen} operations, more than the {OPERATIONS} that are captured in a moment"
    return None


def tokens_fit(p: Probed, lengths: Sequence[int]) -> bool:
    """Whether a table has rows for the longest of these lengths."""
    return p.box.largest is None or p.box.largest >= FIRST + max(lengths)


def farthest_apart(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """The largest difference between two answers; infinity where they differ in number or shape."""
    from posenc.checker.probes.again import apart

    return max((apart(x, y) for x, y in zip(a, b, strict=True)), default=0.0) if len(a) == len(b) else float("inf")
