"""Functions that make positions, sampling points, row orders: asked at inputs that are not blind, wrong answers recognised.

Wanted by name: ``--expect positions:packed``. Each task has a definition, and the wrong answers that were seen in public.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from posenc.checker.calling.caller import Caller
from posenc.checker.calling.library import library, plain, spoken
from posenc.checker.gathering import Gathered
from posenc.errors import PosencError, SubjectError
from posenc.records.finding import Evidence, FirstWrong, Recovered


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


def _counted(mask: Any) -> Any:
    mask = np.asarray(mask)
    return np.maximum(np.cumsum(mask > 0, axis=-1) - 1, 0)


def _per_document(mask: Any) -> Any:
    mask = np.asarray(mask)
    out = np.zeros_like(mask)
    for row, values in zip(out, mask, strict=True):
        for document in np.unique(values[values > 0]):
            row[values == document] = np.arange(int((values == document).sum()))
    return out


def _roberta(ids: Any, pad: int, first: int | None = None) -> Any:
    real = np.asarray(ids) != pad
    first = pad + 1 if first is None else first
    return np.where(real, np.cumsum(real, axis=-1) - 1 + first, pad)


def _zigzag(cu: Any, ranks: int, rank: int, packed: bool = True) -> list[int]:
    out: list[int] = []
    for start, end in zip(cu[:-1], cu[1:], strict=True):
        piece = (end - start) // (2 * ranks)
        for chunk in (rank, 2 * ranks - 1 - rank):
            out += [int(chunk * piece + i + (start if packed else 0)) for i in range(piece)]
    return out


def _permuted(rows: int, heads: int, kv_heads: int, *, by: int | None = None) -> list[int]:
    count = kv_heads if by is None else by
    order = np.arange(rows).reshape(count, 2, rows // count // 2).swapaxes(1, 2)
    return [int(v) for v in order.reshape(-1)]


PADDED = np.array([[0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]])
PACKED = np.array([[1, 1, 2, 2, 2, 0, 0], [1, 1, 1, 1, 2, 2, 3]])
IDS = np.array([[7, 9, 8, 2, 3, 3], [4, 3, 3, 3, 3, 3]])

TASKS: dict[str, Task] = {
    "positions:mask": Task(
        "attention_mask (batch, tokens)", ("mask-padding",), _counted, ((PADDED,),),
        (
            Wrong("padding is counted: positions are those of the columns", lambda m: np.broadcast_to(np.arange(m.shape[1]), m.shape), recovered=("position of the first real token", "3")),
            Wrong("positions start at 1", lambda m: np.cumsum(m, axis=-1) * m, recovered=("first position", "1"), verdict="convention"),
        ),
        lambda m: m > 0,
    ),
    "positions:packed": Task(
        "packed mask with document numbers (batch, tokens)", ("packing",), _per_document, ((PACKED,),),
        (
            Wrong("only the number 1 counts as a token: later documents have no positions", lambda m: np.maximum(np.cumsum(m == 1, axis=-1) - 1, 0), recovered=("documents with positions", "the first")),
            Wrong("positions run on over documents", _counted, recovered=("positions", "not reset")),
        ),
        lambda m: m > 0,
    ),
    "positions:padding_idx": Task(
        "input_ids (batch, tokens), padding_idx", ("mask-padding",), _roberta, ((IDS, 3),),
        (
            Wrong("positions start at 0 in place of padding_idx + 1", lambda ids, pad: _roberta(ids, pad, 0), recovered=("first position", "0")),
            Wrong("positions start at padding_idx", lambda ids, pad: _roberta(ids, pad, pad), recovered=("first position", "padding_idx")),
            Wrong("positions ignore the ids: 0, 1, 2…", lambda ids, pad: np.broadcast_to(np.arange(ids.shape[1]), ids.shape), recovered=("first position", "0")),
        ),
        lambda ids, pad: ids != pad,
    ),
    "positions:frames": Task(
        "start, interval, frames", ("multimodal-positions",), lambda start, step, n: [start + i * step for i in range(n)], ((15, 4, 5), (7, 3, 3)),
        (
            Wrong("the start is multiplied by the interval and the frame is lost", lambda start, step, n: [start * step] * n, recovered=("temporal positions", "start * interval")),
            Wrong("the interval is ignored", lambda start, step, n: [start + i for i in range(n)], recovered=("interval", "1")),
            Wrong("the start is ignored", lambda start, step, n: [i * step for i in range(n)], recovered=("start", "0")),
        ),
    ),
    "positions:seconds": Task(
        "grids, seconds per grid, tokens per second", ("position-rounding", "multimodal-positions"),
        lambda n, s, rate: [math.floor(i * s * rate) for i in range(n)], ((4, 0.5, 2), (4, 0.75, 2), (5, 1.5, 3)),
        (
            Wrong("the seconds are truncated to an integer before they are scaled", lambda n, s, rate: [i * int(s) * rate for i in range(n)], recovered=("seconds per grid", "truncated")),
            Wrong("positions are rounded to the nearest", lambda n, s, rate: [round(i * s * rate) for i in range(n)], recovered=("positions", "rounded"), verdict="convention"),
        ),
    ),
    "positions:temporal": Task(
        "frames, temporal compression, temporal patch", ("multimodal-positions",),
        lambda n, c, p: math.ceil(((n - 1) // c + 1) / p), ((81, 4, 2), (49, 4, 3)),
        (Wrong("the temporal patch is left out", lambda n, c, p: (n - 1) // c + 1, recovered=("temporal patch", "1")),
         Wrong("a last partial patch is dropped", lambda n, c, p: ((n - 1) // c + 1) // p, recovered=("rounding", "down"))),
    ),
    "positions:rank": Task(
        "cu_seqlens, ranks, rank (zig-zag, a packed table)", ("sharding", "packing"), lambda cu, n, r: _zigzag(cu, n, r), (([0, 4, 8], 2, 0), ([0, 8, 20], 2, 1)),
        (
            Wrong("later sequences read the first one's rows: their start in the pack is left out", lambda cu, n, r: _zigzag(cu, n, r, packed=False), recovered=("offset of later sequences", "0")),
            Wrong("each rank takes one slice in order, not the front and back one", lambda cu, n, r: [int(v) for a, b in zip(cu[:-1], cu[1:], strict=True) for v in range(a + r * (b - a) // n, a + (r + 1) * (b - a) // n)], recovered=("slices", "in order")),
        ),
    ),
    "positions:evicted": Task(
        "tokens seen, rows kept", ("offset-cache",), lambda seen, kept: seen, ((100, 32), (57, 57 - 6)),
        (Wrong("the next position is the number of rows kept", lambda seen, kept: kept, recovered=("next position", "rows kept")),),
    ),
    "positions:decode": Task(
        "cached keys, new tokens: positions of the new queries", ("offset-cache",), lambda cached, new: [cached + i for i in range(new)], ((7, 1), (5, 3)),
        (Wrong("the offset is taken before the cached keys are joined: it is 0", lambda cached, new: list(range(new)), recovered=("offset", "0")),),
    ),
    "resample:corners": Task(
        "source, target: sampling points with corners aligned", ("grid-resampling",),
        lambda s, t: [i * (s - 1) / (t - 1) for i in range(t)], ((4, 6), (7, 5)),
        (Wrong("half-pixel centres where corners are aligned", lambda s, t: [(i + 0.5) * s / t - 0.5 for i in range(t)], recovered=("sampling", "half-pixel")),),
    ),
    "resample:pixels": Task(
        "source, target: sampling points at half-pixel centres", ("grid-resampling",),
        lambda s, t: [(i + 0.5) * s / t - 0.5 for i in range(t)], ((4, 6), (7, 5)),
        (Wrong("corners are aligned where half-pixel centres are wanted", lambda s, t: [i * (s - 1) / (t - 1) for i in range(t)], recovered=("sampling", "aligned corners")),),
    ),
    "resample:side": Task(
        "stored side, patches: side of the resampled grid", ("grid-resampling",), lambda s, p: p, ((14, 61), (14, 60), (37, 39), (14, 28)),
        (Wrong("the side is the floor of stored * (patches / stored) in floating point: one short for some sizes", lambda s, p: math.floor(s * (p / s)), recovered=("side", "floored")),),
    ),
    "resample:grid": Task(
        "table (rows, columns), target (rows, columns) of the same size: flattened row by row", ("axis-order", "grid-resampling"),
        lambda table, target: np.asarray(table).reshape(-1), ((np.array([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]), (2, 3)),),
        (
            Wrong("rows and columns are exchanged", lambda table, target: np.asarray(table).T.reshape(-1), recovered=("traversal", "columns first")),
            Wrong("coordinates are handed over as (y, x) where (x, y) is wanted", lambda table, target: _sampled_yx(np.asarray(table)), recovered=("coordinates", "(y, x)")),
        ),
    ),
    "add:table": Task(
        "tokens, table: tokens with the table added", ("grid-resampling", "integration"), lambda x, p: np.asarray(x) + np.asarray(p), ((np.array([0.5, -1.0]), np.array([0.1, 0.2])),),
        (Wrong("the tokens are added to themselves: a shortcut returned them in place of the table", lambda x, p: 2 * np.asarray(x), recovered=("added", "the tokens")),
         Wrong("the table is not added", lambda x, p: np.asarray(x), recovered=("added", "nothing"))),
    ),
    "rows:key": Task(
        "rows, query heads, key heads: order of key rows from halves to neighbours", ("layout",), lambda rows, h, kv: _permuted(rows, h, kv), ((8, 4, 2), (24, 6, 2)),
        (Wrong("key rows are permuted with the number of query heads", lambda rows, h, kv: _permuted(rows, h, kv, by=h), recovered=("heads of the permutation", "query heads")),),
    ),
    "base:dynamic": Task(
        "base, dim, original, factor, length: base of dynamic NTK", ("scaling-parameters",), lambda b, d, o, s, n: _dynamic(b, d, s * max(n, o) / o - (s - 1)),
        ((1e4, 64, 2048, 2.0, 8192), (1e4, 64, 2048, 2.0, 1000)),
        (Wrong("the length cancels: the stretch is constant", lambda b, d, o, s, n: _dynamic(b, d, s * s - s + 1), recovered=("stretch", "factor^2 - factor + 1")),
         Wrong("the stretch is applied below the original length too", lambda b, d, o, s, n: _dynamic(b, d, s * n / o - (s - 1)), recovered=("threshold", "none"))),
    ),
    "scale:softmax": Task(
        "head_dim, factor, mscale_all_dim: softmax scale of DeepSeek's YaRN", ("attention-factor",), lambda d, s, m: (0.1 * m * math.log(s) + 1) ** 2 / math.sqrt(d),
        ((192, 40.0, 1.0), (192, 40.0, 0.707)),
        (Wrong("the correction of the softmax scale is missing", lambda d, s, m: 1 / math.sqrt(d), recovered=("correction", "1")),
         Wrong("the correction is not squared", lambda d, s, m: (0.1 * m * math.log(s) + 1) / math.sqrt(d), recovered=("correction", "not squared"))),
    ),
}  # fmt: skip


def _dynamic(base: float, dim: int, stretch: float) -> float:
    return base * math.exp(dim / (dim - 2) * math.log(stretch)) if stretch > 0 else math.nan


def _sampled_yx(table: np.ndarray) -> np.ndarray:
    rows, columns = table.shape
    out = np.zeros(table.size)
    for i in range(rows):
        for j in range(columns):
            y, x = j / max(columns - 1, 1) * (rows - 1), i / max(rows - 1, 1) * (columns - 1)
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, rows - 1), min(x0 + 1, columns - 1)
            top = table[y0, x0] * (1 - x + x0) + table[y0, x1] * (x - x0)
            low = table[y1, x0] * (1 - x + x0) + table[y1, x1] * (x - x0)
            out[i * columns + j] = top * (1 - y + y0) + low * (y - y0)
    return out


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
                    where=f"entry {[int(v) for v in at]} of {tuple(a if isinstance(a, int | float) else '…' for a in arguments)}",
                )
            )
            first = FirstWrong(position=float(at[-1])) if at else None
            break
    fitting = next((w for w in task.wrongs if alike(w.answer)), None)
    kinds = (fitting.kinds or task.kinds) if fitting else task.kinds
    recovered = (
        [Recovered(name=fitting.recovered[0], value=fitting.recovered[1])] if fitting and fitting.recovered else []
    )
    notes.found(fitting.verdict if fitting else "defect", kinds, f"the answers are not those of {name}", evidence=evidence, first=first,
                cause=fitting.cause if fitting else None, recovered=recovered, like=name.split(":")[-1])  # fmt: skip
    for each in recovered:
        notes.recover(each.name, each.value)
