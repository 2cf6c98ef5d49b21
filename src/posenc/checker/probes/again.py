"""Making a subject anew, or calling it in another way, for probes that need a second box."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Box, CosSin, Rows, Turning
from posenc.checker.calling.bound import Bound
from posenc.checker.calling.caller import Caller
from posenc.checker.calling.constructing import chance
from posenc.checker.calling.discovering import _box
from posenc.checker.calling.library import library
from posenc.checker.probes.registry import Probed
from posenc.errors import SubjectError


def bound_of(probed: Probed) -> Bound | None:
    """How the box is called; None for arrays and adapters."""
    found = probed.box.calls.get("bound")
    return found if isinstance(found, Bound) else None


def is_module(value: Any) -> bool:
    """Whether a subject is a torch module."""
    return any(base.__module__.startswith("torch.nn") for base in type(value).__mro__)


def fresh(probed: Probed, seed: int = 0) -> Any:
    """A new subject without history; what it draws at random comes from the seed.

    Raises:
        SubjectError: it cannot be made anew.
    """
    if probed.loaded.fresh is None:
        raise SubjectError("the subject can be made anew", type(probed.value).__name__)
    if seed == 0 and probed.loaded.kept is not None:
        return copy.deepcopy(probed.loaded.kept)
    with chance(seed):
        return probed.loaded.fresh()


def function_of(bound: Bound, value: Any) -> Callable[..., Any]:
    """What is called of another object of the subject's kind: itself, or the method that was found."""
    old: Any = bound.caller.function
    owner = getattr(old, "__self__", None)
    method = owner is not None and type(owner) is type(value) and old.__name__ != "__call__"
    function: Callable[..., Any] = getattr(value, old.__name__) if method else value
    return function


def box_again(probed: Probed, value: Any, dtype: str | None = None, wrap: Callable[[Any], Any] | None = None) -> Box:
    """A box around another object of the same kind, called in the same way.

    Args:
        probed: the subject examined.
        value: the other object.
        dtype: of its inputs.
        wrap: around its function.

    Raises:
        SubjectError: it cannot be called like the first.
    """
    first = bound_of(probed)
    if first is None:
        raise SubjectError("the subject is called by a convention that was discovered")
    function = function_of(first, value)
    speaks = library(first.library.name, dtype or first.library.dtype)
    hints = first.hints.replace(measured=(getattr(probed.box, "largest", None),))
    if "layout" in probed.box.calls:
        hints = hints.replace(layout=probed.box.calls["layout"])
    return _box(Bound(Caller(wrap(function) if wrap else function, speaks), dict(first.roles), hints, first.dim))[0]


def asked(box: Any, positions: Array) -> np.ndarray:
    """One answer of a box for some positions: turned vectors, cosines and sines side by side, rows."""
    if isinstance(box, Turning):
        x = np.random.default_rng(19).normal(size=(1, 1, box.head_dim))
        return np.asarray(box.turn(np.repeat(x, len(positions), axis=1), positions)[0])
    if isinstance(box, CosSin):
        return np.concatenate(box.cos_sin(positions), axis=1)
    if isinstance(box, Rows):
        return box.rows(positions)
    raise SubjectError("a box with positions", type(box).__name__)


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference; infinity for different shapes or what is not finite on one side only."""
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    return float(np.nanmax(np.abs(a - b))) if a.size else 0.0
