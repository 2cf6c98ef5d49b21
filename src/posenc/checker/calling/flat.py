"""Vectors of all heads side by side in one dimension, for subjects that are told how many heads there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Turning
from posenc.checker.calling.bound import BATCH, TOKENS, Bound, result_dtype
from posenc.checker.calling.caller import parts, why
from posenc.checker.calling.names import NAMES
from posenc.checker.calling.packed import VARIES, Packing
from posenc.checker.calling.rotations import context, forms, turning_box
from posenc.errors import PosencError, SubjectError

FLAT = ("b t (h d)", "t b (h d)", "t (h d)")


def heads_of(bound: Bound) -> int | None:
    """The number of heads that a subject is told with each call, or holds; None if it knows of none."""
    if bound.has("heads"):
        return int(bound.hints.fixed("heads", bound.dim))
    owner = getattr(bound.caller.function, "__self__", bound.caller.function)
    held = [getattr(owner, "__dict__", {}).get(name) for name in NAMES["heads"]]
    return next((n for n in held if isinstance(n, int) and 1 < n < 512 and n not in (BATCH, TOKENS)), None)


def flat_box(bound: Bound, heads: int) -> tuple[Turning, str]:
    """A box for a subject that takes ``(batch, tokens, heads * head_dim)`` and turns each head.

    Raises:
        SubjectError: it takes no such array, or turns heads otherwise than one by one and alike.
    """
    failures: list[str] = []
    for dims in FLAT:
        for form in forms(bound):
            try:
                return _tried(bound, Packing(dims, heads), form)
            except PosencError as error:
                failures.append(why(error))
    raise SubjectError("the subject turns heads that lie side by side", "; ".join(dict.fromkeys(failures[:2])))


def _tried(bound: Bound, packing: Packing, form: str) -> tuple[Turning, str]:
    d, n = bound.dim, BATCH if "b" in packing.letters else 1
    inputs = ("q", "k") if bound.has("q", "k") else ("q",) if bound.has("q") else ("x",)
    at = np.arange(TOKENS)

    def ask(given: np.ndarray, positions: np.ndarray, shape: tuple[int, ...]) -> tuple[list[Array], Any]:
        values = {role: bound.library.array(given) for role in inputs}
        result = bound.call(**values, **context(bound, form, positions, shape[0]))
        found = [packing.unpack(each, *shape)[:, :, 0] for each in parts(result)[: len(inputs)]]
        return found, result

    trial = np.broadcast_to(np.random.default_rng(7).normal(size=d), (n, TOKENS, d))
    (whole, *_), result = ask(packing.pack(trial), at, trial.shape)
    vary = [axis for axis in (0, 1, 2) if np.ptp(whole, axis=axis).max() > VARIES]
    one = packing.pack(trial).copy()
    one[..., d:] = 0.0
    alone = ask(one, at, trial.shape)[0][0]
    if vary != [1] or np.abs(alone[:, :, 1:]).max() > VARIES or np.abs(alone[:, :, 0] - whole[:, :, 0]).max() > VARIES:
        raise SubjectError("heads are turned one by one and alike, along the tokens", f"as ({packing.dims}) not")
    layout = "btd" if n > 1 else "td"

    def interface(y: np.ndarray, positions: np.ndarray, batch: int) -> list[np.ndarray]:
        del batch
        x = y if layout == "btd" else y[None]
        found = [each[:, :, 0] for each in ask(packing.pack(x), positions, x.shape)[0]]
        return found if layout == "btd" else [each[0] for each in found]

    box, _ = turning_box(bound, layout, form, interface, result_dtype(result), len(inputs), packing.heads)
    calls = {key: value for key, value in box.calls.items() if key != "layout"}
    words = f"turned, {packing.heads} heads side by side as ({', '.join(packing.dims.split(' '))})"
    return replace(box, calls=calls), bound.describe(words)
