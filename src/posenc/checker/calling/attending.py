"""Whole attention: ``(q, k, v, positions) -> out``, in the usual layouts, with a mask or documents if taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Attention
from posenc.checker.calling.bound import Bound, result_dtype
from posenc.checker.calling.caller import Misshapen, parts, why
from posenc.errors import PosencError, SubjectError

SHAPES = {"bhtd": (0, 1, 2, 3), "bthd": (0, 2, 1, 3)}
HEADS, TOKENS = 2, 5


def attention_box(bound: Bound) -> tuple[Attention, str]:
    """A box for attention.

    Raises:
        SubjectError: no layout works.
    """
    failures: list[str] = []
    heads = getattr(bound.hints.encoding, "num_heads", HEADS)
    for layout in (bound.hints.layout,) if bound.hints.layout else ("bhtd", "bthd", "htd", "thd"):
        for form in ("(tokens,)", "(1, tokens)") if bound.has("positions") else ("",):
            try:
                return _tried(bound, layout, form, int(heads))
            except PosencError as error:
                failures.append(why(error))
    raise SubjectError("the subject runs", "; ".join(dict.fromkeys(failures[:2])))


def _tried(bound: Bound, layout: str, form: str, heads: int) -> tuple[Attention, str]:
    def attend(q: Array, k: Array, v: Array, positions: Array, mask: Any = None, document: Any = None) -> Array:
        given: dict[str, Any] = {}
        for role, value in (("q", q), ("k", k), ("v", v)):
            given[role] = bound.library.array(_to(layout, value))
        if bound.has("positions"):
            at = bound.library.whole(positions)
            given["positions"] = bound.library.whole(np.asarray(positions)[None]) if form == "(1, tokens)" else at
        if bound.has("mask"):
            given["mask"] = None if mask is None else bound.library.whole(np.asarray(mask)[None])
        if bound.has("document"):
            given["document"] = None if document is None else bound.library.whole(np.asarray(document)[None])
        out = parts(bound.call(**given))[0]
        return _from(layout, out, q.shape)

    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(2, heads, TOKENS, bound.dim))
    v = rng.normal(size=(heads, TOKENS, bound.dim))
    out = attend(q, k, v, np.arange(float(TOKENS)))
    if not np.isfinite(out).all():
        raise SubjectError("attention gives finite numbers")
    ones = attend(q, k, np.ones_like(v), np.arange(float(TOKENS)))
    if np.abs(ones - 1).max() > 1e-2:
        raise SubjectError("attention weights add up to 1", float(np.abs(ones - 1).max()))
    second = attend(q, k, np.concatenate([v[:, :-1], v[:, -1:] + 1.0], axis=1), np.arange(float(TOKENS)))
    causal = bool(np.abs(second[:, 0] - out[:, 0]).max() < 1e-6)
    takes = frozenset(role for role in ("mask", "document") if bound.has(role) or role in _optional(bound).values())
    extra = {role: name for name, role in _optional(bound).items()}
    bound.roles = {**bound.roles, **{name: role for role, name in extra.items()}}
    box = Attention(bound.dim, heads, attend, takes, causal, "float32", {"bound": bound})
    return box, bound.describe(f"attention, layout ({', '.join(layout)}), {'causal' if causal else 'not causal'}")


def _optional(bound: Bound) -> dict[str, str]:
    from posenc.checker.calling.roles import signature_of

    parameters = signature_of(bound.caller.function).parameters
    return {p.name: str(p.role) for p in parameters if p.role in ("mask", "document") and p.name not in bound.roles}


def _to(layout: str, x: Array) -> np.ndarray:
    if layout == "bhtd":
        return x[None]
    if layout == "bthd":
        return np.ascontiguousarray(x.transpose(1, 0, 2))[None]
    return x if layout == "htd" else np.ascontiguousarray(x.transpose(1, 0, 2))


def _from(layout: str, out: np.ndarray, shape: tuple[int, ...]) -> Array:
    heads, tokens, d = shape
    if layout in ("bhtd", "bthd") and out.ndim >= 3 and out.shape[0] == 1:
        out = out[0]
    if out.shape == (tokens, heads * d):
        out = out.reshape(tokens, heads, d)
        return np.ascontiguousarray(out.transpose(1, 0, 2))
    if layout in ("bthd", "thd"):
        if out.shape != (tokens, heads, d):
            raise Misshapen(f"the result has the shape {(tokens, heads, d)}", out.shape)
        return np.ascontiguousarray(out.transpose(1, 0, 2))
    if out.shape != shape:
        raise Misshapen(f"the result has the shape {shape}", out.shape)
    return out


__all__ = ["attention_box", "result_dtype"]
