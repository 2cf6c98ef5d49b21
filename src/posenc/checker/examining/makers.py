"""Functions that make positions, sampling points, row orders, asked at inputs that are not blind.

Wanted by name: ``--expect positions:packed``. A task has a definition, and the wrong answers seen in public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.checker.calling.caller import Caller
from posenc.checker.calling.library import library, plain, spoken
from posenc.checker.examining.other_tasks import OTHER_TASKS
from posenc.checker.examining.position_tasks import POSITION_TASKS
from posenc.checker.examining.tasks import Task
from posenc.checker.gathering import Gathered
from posenc.errors import PosencError, SubjectError
from posenc.records.finding import Evidence, FirstWrong, Recovered

TASKS: dict[str, Task] = {**POSITION_TASKS, **OTHER_TASKS}


def is_task(expect: Any) -> bool:
    """Whether what is wanted names a task."""
    return isinstance(expect, str) and expect in TASKS


def examine_maker(notes: Gathered, function: Any, name: str) -> None:
    """Ask a function and compare its answers with the task's definition.

    Raises:
        SubjectError: it takes none of the libraries' arrays, or raises.
    """
    task = TASKS[name]
    failures = []
    for speaks in spoken(function):
        try:
            answers = [_asked(function, speaks, arguments) for arguments in task.asked]
        except PosencError as error:
            failures.append(str(error))
            continue
        notes.assume(f"called with {task.takes}, as {speaks} arrays")
        _compare(notes, task, answers, name)
        notes.ran(name)
        return
    raise SubjectError(f"the function takes {task.takes}", failures[0] if failures else None)


def _asked(function: Any, speaks: str, arguments: tuple[Any, ...]) -> np.ndarray:
    make = library(speaks)
    given = [
        (make.whole(a) if a.dtype.kind == "i" else make.array(a)) if isinstance(a, np.ndarray) else a for a in arguments
    ]
    result = Caller(function, make)({f"#{i}": v for i, v in enumerate(given)})
    if isinstance(result, tuple) and not all(isinstance(v, int | float) for v in result):
        result = result[0]
    numbers = result if isinstance(result, list | tuple | int | float) else plain(result)
    return np.atleast_1d(np.asarray(numbers, dtype=np.float64))


def _compare(notes: Gathered, task: Task, answers: list[np.ndarray], name: str) -> None:
    def alike(other: Callable[..., Any]) -> bool:
        for seen, arguments in zip(answers, task.asked, strict=True):
            try:
                wanted = np.atleast_1d(np.asarray(other(*arguments), dtype=np.float64))
            except (ArithmeticError, ValueError):
                return False
            keep = slice(None) if task.only is None else np.asarray(task.only(*arguments))
            if seen.shape != wanted.shape or not np.allclose(seen[keep], wanted[keep], rtol=1e-5, atol=1e-5):
                return False
        return True

    if alike(task.right):
        return
    evidence, first = [], None
    for seen, arguments in zip(answers, task.asked, strict=True):
        wanted = np.atleast_1d(np.asarray(task.right(*arguments), dtype=np.float64))
        if seen.shape != wanted.shape:
            evidence.append(Evidence(name="shape of the answer", expected=str(wanted.shape), seen=str(seen.shape)))
            break
        keep = np.ones(wanted.shape, bool) if task.only is None else np.asarray(task.only(*arguments))
        apart = np.argwhere((np.abs(seen - wanted) > 1e-5) & keep)
        if len(apart):
            at = tuple(apart[0])
            evidence.append(
                Evidence(
                    name="answer",
                    expected=float(wanted[at]),
                    seen=float(seen[at]),
                    where=(
                        f"entry {[int(v) for v in at]} of "
                        f"{tuple(a if isinstance(a, int | float) else '…' for a in arguments)}"
                    ),
                )
            )
            first = FirstWrong(position=float(at[-1])) if at else None
            break
    fitting = next((w for w in task.wrongs if alike(w.answer)), None)
    kinds = (fitting.kinds or task.kinds) if fitting else task.kinds
    recovered = (
        [Recovered(name=fitting.recovered[0], value=fitting.recovered[1])] if fitting and fitting.recovered else []
    )
    notes.found(
        fitting.verdict if fitting else "defect",
        kinds,
        f"the answers are not those of {name}",
        evidence=evidence,
        first=first,
        cause=fitting.cause if fitting else None,
        recovered=recovered,
        like=name.split(":")[-1],
    )
    for each in recovered:
        notes.recover(each.name, each.value)
