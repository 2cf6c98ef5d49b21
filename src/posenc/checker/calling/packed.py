"""Queries, keys and values in one array: ``f(qkv)``, ``f(qkv, positions)``, ``f(qkv, cos, sin)``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Turning
from posenc.checker.calling.bound import BATCH, TOKENS, Bound, result_dtype
from posenc.checker.calling.caller import Misshapen, parts, why
from posenc.checker.calling.rotations import context, forms, turning_box
from posenc.errors import PosencError, SubjectError

PACKINGS = (
    *("b t s h d", "b t h s d", "s b h t d", "s b t h d", "t b s h d", "t b h s d", "t s h d"),
    *("b t (s h d)", "b t (h s d)", "b t h (s d)", "t b h (s d)", "t b (h s d)", "t b (s h d)", "t (s h d)"),
)
"""Dimensions in order: batch, tokens, which of the three (s), heads, channels; in brackets, those that share one."""
APART = ("b t h d", "b h t d", "t b h d", "t h d", "b t (h d)", "t b (h d)", "t (h d)")
"""The same for queries, keys and values that come back as arrays of their own."""
SLOTS = 3
VARIES = 1e-6


@dataclass(frozen=True)
class Packing:
    """How vectors are packed.

    Args:
        dims: letters in order, as in :data:`PACKINGS`.
        heads: how many heads; all of them hold the same vectors.
    """

    dims: str
    heads: int

    @property
    def letters(self) -> str:
        return "".join(c for c in self.dims if c.isalpha())

    def shape(self, n: int, tokens: int, d: int) -> tuple[int, ...]:
        """Of the packed array."""
        sizes = {"b": n, "t": tokens, "s": SLOTS, "h": self.heads, "d": d}
        front, _, shared = self.dims.partition("(")
        found = [sizes[c] for c in front if c.isalpha()]
        return (*found, int(np.prod([sizes[c] for c in shared if c.isalpha()]))) if shared else tuple(found)

    def pack(self, x: Array) -> np.ndarray:
        """``(n, tokens, d)``, the same for queries, keys, values and every head.

        Raises:
            SubjectError: there is no place for more than one sequence.
        """
        n, tokens, d = x.shape
        if "b" not in self.letters and n != 1:
            raise SubjectError("one sequence at a time where there is no batch", n)
        whole = np.broadcast_to(x[:, :, None, None], (n, tokens, SLOTS, self.heads, d))
        order = ["btshd".index(letter) for letter in self.letters]
        rest = [axis for axis in range(5) if axis not in order]
        moved = whole.transpose(rest + order)[(0,) * len(rest)]
        return np.ascontiguousarray(moved).reshape(self.shape(n, tokens, d))

    def unpack(self, y: np.ndarray, n: int, tokens: int, d: int) -> Array:
        """``(n, tokens, 3, heads, d)``; one in place of 3 where the three come apart.

        Raises:
            Misshapen: it has another shape.
        """
        if y.shape != self.shape(n, tokens, d):
            raise Misshapen(f"the result is packed as ({self.dims})", y.shape)
        sizes = {"b": n, "t": tokens, "s": SLOTS, "h": self.heads, "d": d}
        apart = y.reshape([sizes[c] for c in self.letters])
        present = [c for c in "btshd" if c in self.letters]
        moved = apart.transpose([self.letters.index(c) for c in present])
        return moved.reshape([sizes[c] if c in present else 1 for c in "btshd"])


def packed_box(bound: Bound) -> tuple[Turning, str]:
    """A box for a subject that takes queries, keys and values in one array.

    Raises:
        SubjectError: no packing works.
    """
    heads = bound.hints.heads if bound.hints.heads not in (BATCH, SLOTS, TOKENS) else 5
    failures: list[str] = []
    still: tuple[Turning, str] | None = None
    for dims in PACKINGS:
        for form in forms(bound):
            try:
                made, moves = _tried(bound, Packing(dims, heads), form)
            except PosencError as error:
                failures.append(why(error))
                continue
            if moves:
                return made
            still = still or made
    if still is not None:
        return still
    raise SubjectError("the subject runs", "; ".join(dict.fromkeys(failures[:2])))


def _tried(bound: Bound, packing: Packing, form: str) -> tuple[tuple[Turning, str], bool]:
    """One packing, on a trial of equal vectors, and whether queries differ from token to token."""
    d, n = bound.dim, BATCH if "b" in packing.letters else 1
    vector = np.random.default_rng(7).normal(size=d)
    trial, at = np.broadcast_to(vector, (n, TOKENS, d)), np.arange(TOKENS)

    def ask(x: Array, positions: np.ndarray, by: Bound, **more: Any) -> Any:
        given = by.library.array(packing.pack(x))
        result = by.call(qkv=given, **context(by, form, positions, len(x)), **more)
        return given if result is None else result  # what works in place may return nothing

    first = ask(trial, at, bound)
    dtype, apart = result_dtype(first), _results(parts(first), packing, trial.shape)
    slots = _slots(parts(first), apart, trial.shape)
    vary = [[axis for axis in (0, 1, 2) if np.ptp(slot, axis=axis).max() > VARIES] for slot in slots]
    if any(set(axes) - {1} for axes in vary):
        raise SubjectError("the result varies along tokens alone", f"packed as ({packing.dims}) it does not")

    def run(x: Array, positions: np.ndarray, by: Bound = bound, **more: Any) -> list[np.ndarray]:
        return [slot[:, :, 0] for slot in _slots(parts(ask(x, positions, by, **more)), apart, x.shape)]

    if max(np.abs(each).max() for each in run(np.zeros(trial.shape), at)) > VARIES:
        raise SubjectError("vectors of zeros stay zeros", f"packed as ({packing.dims}) they do not")
    layout = "btd" if n > 1 else "td"

    def interface(y: np.ndarray, positions: np.ndarray, batch: int) -> list[np.ndarray]:
        found = run(y if layout == "btd" else y[None], positions)
        del batch
        return found if layout == "btd" else [each[0] for each in found]

    box, _ = turning_box(bound, layout, form, interface, dtype, len(slots), SLOTS * packing.heads)
    calls: dict[str, Any] = {"bound": bound, "form": form, "packed": run}
    if len(slots) == SLOTS:
        calls["values"] = [1] in vary[2:]
    words = f"turned, queries, keys and values packed as ({', '.join(packing.dims.split(' '))})"
    return (replace(box, calls=calls), bound.describe(words)), bool(vary[0])


def _results(found: list[np.ndarray], packing: Packing, shape: tuple[int, ...]) -> Packing:
    """How a result is packed: like what was given, or each of the three as an array of its own.

    Raises:
        Misshapen: neither fits.
    """
    n = shape[0]
    one = len(found) == 1
    for dims in (packing.dims, *PACKINGS) if one else APART:
        tried = Packing(dims, packing.heads)
        if ("b" in tried.letters) == (n > 1) and all(each.shape == tried.shape(*shape) for each in found[:SLOTS]):
            return tried
    raise Misshapen(
        f"queries and keys come back in the shape {packing.shape(*shape)}, or apart", [each.shape for each in found]
    )


def _slots(found: list[np.ndarray], packing: Packing, shape: tuple[int, ...]) -> list[Array]:
    """``(n, tokens, heads, d)`` queries, keys, values, as many as came back."""
    n, tokens, d = shape
    if "s" in packing.letters:
        whole = packing.unpack(found[0], n, tokens, d)
        return [whole[:, :, slot] for slot in range(SLOTS)]
    return [packing.unpack(each, n, tokens, d)[:, :, 0] for each in found[:SLOTS]]
