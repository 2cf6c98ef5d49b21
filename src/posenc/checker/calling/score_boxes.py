"""Subjects that make a bias or buckets, or add to scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array, Bias, Box, Buckets
from posenc.checker.calling.bound import Bound
from posenc.checker.calling.caller import Misshapen, parts
from posenc.checker.calling.roles import signature_of
from posenc.checker.calling.rows_read import of_shape, rows_read
from posenc.errors import SubjectError


def bias_box(bound: Bound, sizes: Callable[[int, int], dict[str, int] | None]) -> tuple[Bias, str]:
    kept: list[NDArray[np.int64]] = []

    def bias(n_q: int, n_k: int) -> Array:
        given = sizes(n_q, n_k)
        with rows_read(bound.library.name) as read:
            if given is None:  # only square ones can be asked for: the last queries of it
                whole = _heads_first(parts(bound.call(**sizes(n_k, n_k)))[0], n_k, n_k)  # type: ignore[arg-type]
                found = whole[:, n_k - n_q :]
            else:
                found = _heads_first(parts(bound.call(**given))[0], n_q, n_k)
        kept[:] = read
        return found

    def rows(n_q: int, n_k: int) -> NDArray[np.int64]:
        bias(n_q, n_k)
        found = of_shape(kept, n_q, n_k)
        if found is None:
            raise SubjectError("one table is read for each query and key", [ids.shape for ids in kept])
        return found

    result = bias(5, 7)
    try:
        rows(7, 7)
    except SubjectError:
        read_rows = None
    else:
        read_rows = rows
    return Bias(bias=bias, rows_read=read_rows, calls={"bound": bound}), bound.describe(
        f"a bias for {len(result)} heads"
    )


def scores_box(bound: Bound) -> tuple[Bias, str]:
    """A subject that takes scores and returns them with its bias added.

    Raises:
        SubjectError: what comes back is not what went in plus something.
    """
    heads = bound.hints.heads
    offset = next((p.name for p in signature_of(bound.caller.function).parameters if p.role == "offset"), None)
    if offset is not None:
        bound.roles = {**bound.roles, offset: "offset"}

    def bias(n_q: int, n_k: int) -> Array:
        shapes = {"scores": (1, heads, n_q, n_k), "q": (1, heads, n_q, 4), "k": (1, heads, n_k, 4)}
        given: dict[str, Any] = {role: bound.library.array(np.zeros(shape)) for role, shape in shapes.items()}
        given |= {"q_at": bound.library.whole(np.arange(n_k - n_q, n_k)), "k_at": bound.library.whole(np.arange(n_k))}
        return _heads_first(parts(bound.call(**given, offset=n_k - n_q))[0], n_q, n_k)

    if not bias(5, 7).any() and hasattr(bound.caller.function, "parameters"):
        _drawn(bound)  # a trained bias starts at zero: random numbers show where it puts them
    return Bias(bias=bias, calls={"bound": bound}), bound.describe(f"scores of {heads} heads with a bias added")


def _drawn(bound: Bound) -> None:
    """Random numbers in a copy of a module's parameters."""
    import copy

    import torch

    module: Any = copy.deepcopy(bound.caller.function)
    with torch.no_grad():
        for value in module.parameters():
            value.copy_(torch.from_numpy(np.random.default_rng(29).normal(size=tuple(value.shape))))
    bound.caller.function = module


def _heads_first(value: np.ndarray, n_q: int, n_k: int) -> Array:
    """``(heads, n_q, n_k)`` of a bias in a usual shape.

    Raises:
        Misshapen: it is of none.
    """
    if value.ndim == 4 and value.shape[0] == 1:
        value = value[0]
    if value.ndim == 4 and value.shape[1] == 1:
        value = value[:, 0]
    if value.ndim == 2:
        value = value[None]
    if value.ndim == 3 and value.shape[1:] == (n_q, n_k):
        return value.astype(np.float64)
    if value.ndim == 3 and value.shape[:2] == (n_q, n_k):
        return np.moveaxis(value, -1, 0).astype(np.float64)
    if value.ndim == 3 and value.shape[1] == 1 and value.shape[2] == n_k:  # the last row alone: BLOOM's form
        return np.repeat(value, n_q, axis=1).astype(np.float64)
    raise Misshapen(f"a bias has the shape (heads, {n_q}, {n_k})", value.shape)


def buckets_box(bound: Bound) -> tuple[Box, str]:
    def buckets(relative: Any) -> Any:
        found = parts(bound.call(relative=bound.library.whole(relative)))[0]
        if found.shape != np.shape(relative):
            raise Misshapen(f"one bucket for each of {np.shape(relative)}", found.shape)
        return np.rint(found).astype(np.int64)

    if parts(bound.call(relative=bound.library.whole(np.arange(-5, 6))))[0].dtype.kind != "i":
        raise SubjectError("buckets are integers")
    buckets(np.arange(-5, 6))
    return Buckets(buckets, calls={"bound": bound}), bound.describe("buckets of relative positions (key - query)")
