"""Subjects that turn what they are given: ``f(x, positions)``, ``f(x, offset)``, ``f(q, k, cos, sin)``…"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Rows, Turning
from posenc.checker.calling.bound import BATCH, TOKENS, Bound, farthest, result_dtype
from posenc.checker.calling.caller import Caller, Misshapen, WrongAxis, parts, why
from posenc.checker.calling.given_waves import given_waves, in_words
from posenc.checker.calling.layouts import SIZES, as_layout, axes_wanted, from_layout, layouts, position_forms
from posenc.checker.calling.stated import stated_layout
from posenc.errors import PosencError, SubjectError


def rotation_box(bound: Bound) -> tuple[Turning | Rows, str]:
    """A box for a subject with an input ``x``, or ``q`` and ``k``.

    Raises:
        SubjectError: no layout works.
    """
    failures: list[str] = []
    astray: WrongAxis | None = None
    second: tuple[Turning | Rows, str] | None = None
    for layout in layouts(bound):
        for form in forms(bound):
            try:
                made = _tried(bound, layout, form)
            except PosencError as error:
                failures.append(why(error))
                astray = astray or (error if isinstance(error, WrongAxis) else None)
                continue
            if astray is not None and astray.axis == "b" and layout.startswith("t"):
                made = made[0], f"{made[1]}; called with ({', '.join(astray.layout)}), positions would run along b"
            if not bound.hints.layout and layout == stated_layout(bound.caller.function):
                made = made[0], f"{made[1]}; its documentation states the layout"
            if not (bound.has("cos") or bound.has("angles") or bound.has("complex")) or _keeps_length(made[0]):
                return made
            second = second or made  # cosines laid out for another pairing: kept in case no layout of them fits
        if second is not None:
            return second
        if astray is not None and bound.hints.encoding is not None and layout == stated_layout(bound.caller.function):
            raise WrongAxis(layout, astray.axis, stated=True)
    if astray is not None and bound.hints.layout:
        raise astray
    raise SubjectError("the subject runs", "; ".join(dict.fromkeys(failures[:2])))


def forms(bound: Bound) -> tuple[str, ...]:
    """Forms to try of positions, or of cosines and sines; one empty word where nothing of the kind is taken."""
    if (bound.has("positions") or bound.has("ready")) and not bound.has("cos"):
        several = ("(tokens, axes)", "(batch, tokens, axes)", "(axes, tokens)", "(axes, batch, tokens)")
        return (
            *(several if axes_wanted(bound) > 1 else ()),
            *("(tokens,)", "(1, tokens)", "(batch, tokens)", "(tokens,) real"),
        )
    if bound.has("cos") or bound.has("angles") or bound.has("complex"):
        return tuple(
            f"{columns} {shape}"
            for columns in (("made",) if bound.hints.waves else ("full", "half", "other"))
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
        result = bound.call(**values, **context(bound, form, positions, batch))
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
        if len(vary) > 1:
            raise SubjectError("the result varies along tokens alone", f"it varies along {[layout[i] for i in vary]}")
        raise WrongAxis(layout, layout[vary[0]])
    zero = run(np.zeros(shape), at, BATCH if "b" in layout else 1)[0]
    dtype = str(run.dtype)  # type: ignore[attr-defined]
    if np.abs(zero).max() > 1e-9:
        return _adding(bound, layout, form, run, dtype)
    return turning_box(bound, layout, form, run, dtype, len(inputs))


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
    before, after = float(np.linalg.norm(y[0])), float(np.linalg.norm(y[1]))
    return abs(after / max(before, 1e-300) - 1) < 1e-3


def _inputs(bound: Bound) -> tuple[str, ...]:
    return ("q", "k") if bound.has("q", "k") else ("q",) if bound.has("q") else ("x",)


def context(bound: Bound, form: str, positions: np.ndarray, batch: int) -> dict[str, Any]:
    """Positions, offset, or cosines and sines, in the form tried."""
    given: dict[str, Any] = {}
    if bound.has("cos") or bound.has("angles") or bound.has("complex"):
        given |= given_waves(bound, form, positions, batch)
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
    return given


def _declared(owner: Any, at: Any, positions: np.ndarray) -> Any:
    """Positions with the length of their row, for this package's own modules."""
    if not type(owner).__module__.startswith("posenc.nn"):
        return at
    import torch

    from posenc.nn.interfaces import Positions

    ids = at if at.ndim == 3 else at.reshape(-1, 1, at.shape[-1])
    return Positions(ids, torch.tensor([int(np.max(positions)) + 1]))


def turning_box(
    bound: Bound,
    layout: str,
    form: str,
    run: Callable[..., list[np.ndarray]],
    dtype: str,
    outputs: int,
    copies: int = 1,
) -> tuple[Turning, str]:
    """A box around what turns vectors in a layout, and the convention in words.

    Args:
        bound: how the subject is called.
        layout: of the vectors that ``run`` takes.
        form: of its positions, one of :func:`forms`.
        run: vectors, positions and the size of the batch to turned queries, then keys.
        dtype: of the results.
        outputs: how many come back.
        copies: how often each vector is held in one call.
    """
    free = bool(form)

    def turned(which: int) -> Callable[[Array, Array], Array]:
        def turn(x: Array, positions: Array) -> Array:
            return _spread(layout, free, lambda y, p: run(y, p, y.shape[0])[which], x, positions, copies)

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
        turn_key=turned(1) if outputs > 1 else None,
        free=free,
        dtype=dtype,
        largest=largest,
        calls={"bound": bound, "layout": layout, "form": form}
        | ({"axes": axes_wanted(bound)} if "axes" in form else {}),
    )
    if not free:
        how = "positions are those of the tokens, from 0"
    elif bound.has("cos") or bound.has("angles") or bound.has("complex"):
        how = f"cosines and sines {in_words(form)}"
    else:
        how = f"positions are given as {form}"
    return box, bound.describe(f"turned, layout ({', '.join(layout)}), {how}")


def _spread(
    layout: str,
    free: bool,
    run: Callable[[np.ndarray, np.ndarray], np.ndarray],
    x: Array,
    positions: Array,
    copies: int = 1,
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
        asked = np.arange(float(rows))
    single = layout == "td"
    out = []
    step = 1 if single else max(1, 2**24 // max(whole.shape[1] * d * copies, 1))
    for start in range(0, n, step):
        part = whole[start : start + step]
        found = run(as_layout(layout, part), asked)
        out.append(from_layout(layout, found, part.shape)[:, where])
    return np.concatenate(out)


def _adding(bound: Bound, layout: str, form: str, run: Callable[..., list[np.ndarray]], dtype: str) -> tuple[Rows, str]:
    """Something is there even for an input of zeros: a table that is added (or returned)."""
    free = bool(form)

    def adds(x: Array, positions: Array) -> Array:
        return np.asarray(_spread(layout, free, lambda y, p: run(y, p, y.shape[0])[0], x[None], positions)[0])

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
