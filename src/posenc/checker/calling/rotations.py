"""Subjects that turn what they are given: ``f(x, positions)``, ``f(x, offset)``, ``f(q, k, cos, sin, position_ids)``…"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Rows, Turning
from posenc.checker.calling.bound import BATCH, HEADS, TOKENS, Bound, farthest, result_dtype
from posenc.checker.calling.caller import Caller, Misshapen, parts, why
from posenc.errors import PosencError, SubjectError
from posenc.formulas.scalings import frequencies
from posenc.spec import Rotary

FOUR = ("bhtd", "bthd", "thd", "htd", "btd", "td")
THREE = ("btd", "tbd", "td", "bhtd", "bthd")
SIZES = {"b": BATCH, "h": HEADS, "t": TOKENS}


def layouts(bound: Bound) -> tuple[str, ...]:
    """Layouts to try, the likeliest first."""
    if bound.hints.layout:
        return (bound.hints.layout,)
    return THREE if bound.hints.wants in ("sinusoidal", "learned", "seasonal", "adjusted") else FOUR


def as_layout(layout: str, x: Array) -> np.ndarray:
    """``(n, tokens, d)`` in a layout; ``n`` takes the batch's place, one head."""
    n, tokens, d = x.shape
    order = {"bhtd": (n, 1, tokens, d), "bthd": (n, tokens, 1, d), "btd": (n, tokens, d)}
    if layout in order:
        return x[:, None].reshape(order[layout])
    if layout == "tbd":
        return np.ascontiguousarray(x.transpose(1, 0, 2))
    if layout == "thd":
        return np.ascontiguousarray(x.transpose(1, 0, 2))
    if layout == "htd":
        return x
    if layout == "td" and n == 1:
        return x[0]
    raise SubjectError(f"one sequence at a time in layout {layout}", n)


def from_layout(layout: str, y: np.ndarray, shape: tuple[int, ...]) -> Array:
    """Back to ``(n, tokens, d)``.

    Raises:
        Misshapen: the result is of another shape.
    """
    n, tokens, d = shape
    want = as_layout(layout, np.zeros(shape)).shape
    if y.shape != want:
        raise Misshapen(f"the result has the shape of the input {want}", y.shape)
    if layout in ("tbd", "thd"):
        return np.ascontiguousarray(y.transpose(1, 0, 2))
    return y.reshape(n, tokens, d)


def position_forms(bound: Bound, at: np.ndarray, batch: int) -> Iterator[tuple[str, Any]]:
    """Positions as a subject may want them."""
    whole = np.array_equal(at, np.rint(at))
    make = bound.library.whole if whole else bound.library.array
    yield "(tokens,)", make(at)
    yield "(1, tokens)", make(at[None])
    yield "(batch, tokens)", make(np.repeat(at[None], batch, axis=0))
    if whole:
        yield "(tokens,) real", bound.library.array(at)


def rotation_box(bound: Bound) -> tuple[Turning | Rows, str]:
    """A box for a subject with an input ``x``, or ``q`` and ``k``.

    Raises:
        SubjectError: no layout works.
    """
    failures: list[str] = []
    second: tuple[Turning | Rows, str] | None = None
    for layout in layouts(bound):
        for form in _forms(bound):
            try:
                made = _tried(bound, layout, form)
            except PosencError as error:
                failures.append(why(error))
                continue
            if not (bound.has("cos") or bound.has("angles") or bound.has("complex")) or _keeps_length(made[0]):
                return made
            second = second or made  # cosines laid out for another pairing: kept in case no layout of them fits
        if second is not None:
            return second
    raise SubjectError("the subject runs", "; ".join(dict.fromkeys(failures[:2])))


def _forms(bound: Bound) -> tuple[str, ...]:
    if (bound.has("positions") or bound.has("ready")) and not bound.has("cos"):
        return ("(tokens,)", "(1, tokens)", "(batch, tokens)", "(tokens,) real")
    if bound.has("cos") or bound.has("angles") or bound.has("complex"):
        return tuple(
            f"{columns} {shape}"
            for columns in ("full", "half", "other")
            for shape in ("tc", "1tc", "btc", "11tc", "t1c", "1t1c")
        )
    return ("",)


def _tried(bound: Bound, layout: str, form: str) -> tuple[Turning | Rows, str]:
    """One layout and form, on a trial input whose tokens are all alike."""
    d, inputs = bound.dim, _inputs(bound)
    vector = np.random.default_rng(7).normal(size=d)
    shape = tuple(SIZES.get(c, d) for c in layout)
    trial = np.broadcast_to(vector, shape)
    at = np.arange(TOKENS)

    def run(x: np.ndarray, positions: np.ndarray, batch: int) -> list[np.ndarray]:
        values = {role: bound.library.array(x) for role in inputs}
        result = bound.call(**values, **_context(bound, form, positions, batch, layout))
        run.dtype = result_dtype(result)  # type: ignore[attr-defined]
        return parts(result)

    found = run(trial, at, BATCH if "b" in layout else 1)
    if len(found) > 1 and len(inputs) == 1 and found[1].shape == found[0].shape:
        raise SubjectError("one input gives one result", f"{len(found)} arrays")
    if found[0].shape != shape:
        raise Misshapen(f"the result has the shape of the input {shape}", found[0].shape)
    axis = layout.index("t")
    vary = [i for i in range(len(shape) - 1) if np.ptp(found[0], axis=i).max() > 1e-6]
    if vary and vary != [axis]:
        raise SubjectError("the result varies along tokens alone", f"it varies along {[layout[i] for i in vary]}")
    zero = run(np.zeros(shape), at, BATCH if "b" in layout else 1)[0]
    dtype = str(run.dtype)  # type: ignore[attr-defined]
    if np.abs(zero).max() > 1e-9:
        return _adding(bound, layout, form, run, dtype)
    return _turning(bound, layout, form, run, dtype, len(inputs))


def _keeps_length(box: Turning | Rows) -> bool:
    """Whether a vector is as long at position 3 as at position 0."""
    if not isinstance(box, Turning):
        return True
    x = np.random.default_rng(23).normal(size=(1, 2, box.head_dim))
    x[:, 1] = x[:, 0]
    try:
        y = box.turn(x, np.array([0.0, 3.0]))[0]
    except PosencError:
        return False
    return bool(abs(np.linalg.norm(y[1]) / max(np.linalg.norm(y[0]), 1e-300) - 1) < 1e-3)


def _inputs(bound: Bound) -> tuple[str, ...]:
    return ("q", "k") if bound.has("q", "k") else ("q",) if bound.has("q") else ("x",)


def _context(bound: Bound, form: str, positions: np.ndarray, batch: int, layout: str) -> dict[str, Any]:
    """Positions, offset, or cosines and sines, in the form tried."""
    given: dict[str, Any] = {}
    if bound.has("cos") or bound.has("angles") or bound.has("complex"):
        given |= _waves(bound, form, positions, batch)
        if bound.has("positions"):
            given["positions"] = None if "length" in form else bound.library.whole(np.arange(len(positions))[None])
    elif bound.has("ready"):
        at = dict(position_forms(bound, positions, batch))[form]
        owner: Any = getattr(bound.caller.function, "__self__", bound.caller.function)
        given["ready"] = Caller(owner.prepare, bound.library)({"#0": _declared(owner, at, positions)})
    elif bound.has("positions"):
        given["positions"] = dict(position_forms(bound, positions, batch))[form]
    if bound.has("length"):
        given["length"] = len(positions)
    del layout
    return given


def _declared(owner: Any, at: Any, positions: np.ndarray) -> Any:
    """Positions with the length of their row, for this package's own modules."""
    if not type(owner).__module__.startswith("posenc.nn"):
        return at
    import torch

    from posenc.nn.interfaces import Positions

    ids = at if at.ndim == 3 else at.reshape(-1, 1, at.shape[-1])
    return Positions(ids, torch.tensor([int(np.max(positions)) + 1]))


def _waves(bound: Bound, form: str, positions: np.ndarray, batch: int) -> dict[str, Any]:
    """Cosines and sines of the wanted encoding, for a function that only applies them."""
    e = bound.hints.encoding
    if not isinstance(e, Rotary):
        e = Rotary(bound.dim)
    columns, shape = form.split(" ")
    f = frequencies(e)
    angle = np.asarray(positions, dtype=np.float64)[:, None] * f.fused
    if columns != "half" and not bound.has("complex"):
        repeat = e.interleaved == (columns == "full")
        angle = np.repeat(angle, 2, axis=1) if repeat else np.concatenate([angle, angle], axis=1)
    n, c = angle.shape
    to = {
        "tc": (n, c),
        "1tc": (1, n, c),
        "btc": (batch, n, c),
        "11tc": (1, 1, n, c),
        "t1c": (n, 1, c),
        "1t1c": (1, n, 1, c),
    }[shape]

    def made(values: np.ndarray) -> Any:
        return bound.library.array(
            np.broadcast_to(
                values.reshape((1,) * (len(to) - 2) + (n, c)) if shape not in ("t1c", "1t1c") else values.reshape(to),
                to,
            )
        )

    given: dict[str, Any] = {}
    if bound.has("cos"):
        given |= {"cos": made(f.gain * np.cos(angle)), "sin": made(f.gain * np.sin(angle))}
    if bound.has("angles"):
        given["angles"] = made(angle)
    if bound.has("complex"):
        given["complex"] = _complex(bound, f.gain * np.exp(1j * angle).reshape(to))
    return given


def _complex(bound: Bound, z: np.ndarray) -> Any:
    if bound.library.name == "torch":
        import torch

        return torch.from_numpy(z.astype(np.complex64))
    return z.astype(np.complex64)


def _turning(
    bound: Bound, layout: str, form: str, run: Callable[..., list[np.ndarray]], dtype: str, outputs: int
) -> tuple[Turning, str]:
    free = bool(form)

    def turned(which: int) -> Callable[[Array, Array], Array]:
        def turn(x: Array, positions: Array) -> Array:
            return _spread(layout, free, lambda y, p: run(y, p, y.shape[0])[which], x, positions)

        return turn

    def works(last: int) -> bool:
        try:
            turned(0)(np.ones((1, 1, bound.dim)), np.array([float(last)]))
        except PosencError:
            return False
        return True

    most = 32768 if free else 4098
    largest = farthest(bound, works, most)
    box = Turning(
        head_dim=bound.dim,
        turn=turned(0),
        turn_key=turned(1) if outputs == 2 else None,
        free=free,
        dtype=dtype,
        largest=largest,
        calls={"bound": bound, "layout": layout, "form": form},
    )
    how = "positions are given" if free else "positions are those of the tokens, from 0"
    return box, bound.describe(
        f"turned, layout {'(' + ', '.join(layout) + ')'}, {how}" + (f" as {form}" if form else "")
    )


def _spread(
    layout: str, free: bool, run: Callable[[np.ndarray, np.ndarray], np.ndarray], x: Array, positions: Array
) -> Array:
    """Turn ``(n, tokens, d)`` at positions, as many tokens as the way of calling needs, in blocks that fit memory."""
    n, tokens, d = x.shape
    at = np.asarray(positions, dtype=np.float64)
    if free:
        whole, where = x, np.arange(tokens)
        asked = at
    else:
        if (at != np.rint(at)).any() or (at < 0).any():
            raise SubjectError("positions of tokens are whole", at[:4].tolist())
        rows = int(at.max()) + 1
        whole, where = np.zeros((n, rows, d)), at.astype(int)
        whole[:, where] = x
        asked = np.arange(rows)
    single = layout == "td"
    out = []
    step = 1 if single else max(1, 2**24 // max(whole.shape[1] * d, 1))
    for start in range(0, n, step):
        part = whole[start : start + step]
        found = run(as_layout(layout, part), asked)
        out.append(from_layout(layout, found, part.shape)[:, where])
    return np.concatenate(out)


def _adding(bound: Bound, layout: str, form: str, run: Callable[..., list[np.ndarray]], dtype: str) -> tuple[Rows, str]:
    """Something is there even for an input of zeros: a table that is added (or returned)."""
    free = bool(form)

    def adds(x: Array, positions: Array) -> Array:
        return _spread(layout, free, lambda y, p: run(y, p, y.shape[0])[0], x[None], positions)[0]

    def rows(positions: Array) -> Array:
        return adds(np.zeros((len(positions), bound.dim)), positions)

    def works(last: int) -> bool:
        try:
            rows(np.array([float(last)]))
        except PosencError:
            return False
        return True

    most = 32768 if free else 4098
    largest = farthest(bound, works, most)
    box = Rows(
        width=bound.dim,
        rows=rows,
        free=free,
        dtype=dtype,
        largest=largest,
        adds=adds,
        calls={"bound": bound, "layout": layout, "form": form},
    )
    return box, bound.describe(f"a row for each position is added, layout {'(' + ', '.join(layout) + ')'}")
