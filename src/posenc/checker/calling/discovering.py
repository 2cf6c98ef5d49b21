"""Finding out how a subject is called: libraries, roles, widths, layouts, tried in order until one makes sense."""

from __future__ import annotations

import contextlib
import inspect as signatures
import re
from collections.abc import Callable, Iterator
from typing import Any

from posenc.checker.boxes import Box
from posenc.checker.calling.adapter import adapted
from posenc.checker.calling.attending import attention_box
from posenc.checker.calling.bound import Bound
from posenc.checker.calling.caller import Caller, WrongAxis, why
from posenc.checker.calling.flat import flat_box, heads_of
from posenc.checker.calling.grids import axes_wanted, grid_box
from posenc.checker.calling.hints import Hints
from posenc.checker.calling.layouts import axes_wanted as rotary_axes
from posenc.checker.calling.library import library, spoken
from posenc.checker.calling.packed import packed_box
from posenc.checker.calling.roles import bindings, signature_of
from posenc.checker.calling.rotations import rotation_box
from posenc.checker.calling.score_boxes import scores_box
from posenc.checker.calling.tables import made_box
from posenc.checker.calling.tokens import tokens_box
from posenc.checker.calling.turned_grids import turned_grid_box
from posenc.errors import PosencError, SubjectError

METHODS = ("rotate_queries_or_keys", "rotate_queries_and_keys", "apply_rotary_emb", "apply_rotary", "rotate")
"""Methods of an instance that turn queries and keys, before its call."""
MOST_TRIES = 240
MADE = {
    "Turning": "turned vectors",
    "Rows": "rows of a table",
    "CosSin": "cosines and sines",
    "Vector": "a vector of numbers",
    "Bias": "a bias on scores",
    "Buckets": "buckets of distances",
    "Attention": "an attention",
}
"""What a subject gives, in words, by the box around it."""
OTHER_TYPES = ("float16", "bfloat16", "float64")
ABOUT_TYPES = re.compile(r"dtype|type|float|fp16|bf16|half|double|precision", re.IGNORECASE)
"""What an error says that is about the type of its inputs."""


def discover(subject: Any, hints: Hints) -> tuple[Box, str, Caller | None]:
    """A box for a callable, and the convention in words.

    A subject that complains about the type of its inputs is asked in other types than float32 too.

    Raises:
        SubjectError: no convention works; the message says what was tried.
    """
    box = adapted(subject, hints)
    if box is not None:
        return box, f"{type(subject).__name__} speaks the adapter protocol", None
    try:
        return _discovered(subject, hints)
    except WrongAxis:
        raise
    except SubjectError as first:
        if hints.dtype != "float32" or not ABOUT_TYPES.search(str(first)):
            raise
        for dtype in OTHER_TYPES:
            with contextlib.suppress(PosencError):
                return _discovered(subject, hints.replace(dtype=dtype))
        raise


def _discovered(subject: Any, hints: Hints) -> tuple[Box, str, Caller | None]:
    """One type of inputs.

    Raises:
        SubjectError: no convention works.
    """
    failures: list[str] = []
    astray: WrongAxis | None = None
    tries = 0
    for bound in _ways(subject, hints):
        tries += 1
        if tries > MOST_TRIES:
            break
        try:
            made, words = _box(bound)
        except PosencError as error:
            astray = astray or (error if isinstance(error, WrongAxis) else None)
            failures.append(f"as ({', '.join(bound.roles.values())}): {why(error, 140)}")
            continue
        if not _wanted(made, hints):
            failures.append(
                f"as ({', '.join(bound.roles.values())}): {MADE.get(type(made).__name__, 'an answer')}, "
                f"which {hints.wants} is not"
            )
            continue
        return made, words, bound.caller
    if astray is not None:
        raise astray
    tried = "; ".join(dict.fromkeys(failures[:3]))
    told = f"no way that works: {tried}" if tried else "nothing that it takes is known"
    raise SubjectError(
        "the subject can be called in a known way",
        told,
        "Say how with --call (e.g. 'x, positions') and --layout (e.g. bthd), or wrap it in a function f(x, positions).",
    )


def _box(bound: Bound) -> tuple[Box, str]:
    if axes_wanted(bound) > 1 and bound.has("x") and not bound.has("positions"):
        with contextlib.suppress(PosencError):  # it may take rows of tokens all the same
            return grid_box(bound)
    if _turns_grid(bound):
        with contextlib.suppress(PosencError):  # it may count along its tokens all the same
            return turned_grid_box(bound)
    heads = heads_of(bound) if bound.has("x") or bound.has("q") else None
    if bound.hints.wants == "rotary" and heads is not None and not bound.has("v"):
        with contextlib.suppress(PosencError):  # heads may have a dimension of their own all the same
            return flat_box(bound, heads)
    if bound.has("qkv"):
        return packed_box(bound)
    if bound.has("q", "k", "v"):
        return attention_box(bound)
    if bound.has("scores"):
        return scores_box(bound)
    if bound.has("tokens") or set(bound.roles.values()) == {"mask"}:
        return tokens_box(bound)
    alone = set(bound.roles.values()) == {"x"}  # whose shape may say how many positions there are
    if (alone or bound.has("x", "positions") or bound.has("x", "length")) and not bound.has("cos"):
        try:
            return rotation_box(bound)
        except WrongAxis:
            raise
        except PosencError as first:
            try:
                return made_box(bound)  # x only says which dtype and device are wanted
            except PosencError:
                raise first from None
    if bound.has("x") or bound.has("q"):
        return rotation_box(bound)
    return made_box(bound)


def _turns_grid(bound: Bound) -> bool:
    """Whether the wanted rotation has two axes, and nobody gives the subject positions or cosines."""
    roles = set(bound.roles.values())
    return (
        bound.hints.wants == "rotary"
        and rotary_axes(bound) == 2
        and bool(roles & {"x", "q"})
        and not roles & {"positions", "ready", "cos", "angles", "complex", "v"}
    )


def _wanted(box: Box, hints: Hints) -> bool:
    """Whether a box is of a kind that the wanted encoding can be compared with."""
    kind = type(box).__name__
    right = {
        "rotary": ("Turning", "CosSin", "Vector", "Attention"),
        "sinusoidal": ("Rows", "Vector", "CosSin"),
        "learned": ("Rows",),
        "seasonal": ("Rows",),
        "adjusted": ("Rows",),
        "alibi": ("Bias", "Vector", "Attention"),
        "t5_bias": ("Bias", "Buckets", "Attention"),
    }.get(hints.wants or "", ())
    return not right or kind in right


def _ways(subject: Any, hints: Hints) -> Iterator[Bound]:
    """Every callable of a subject, with every library, binding and width."""
    for function in _callables(subject):
        signature = signature_of(function)
        names = (hints.library,) if hints.library else spoken(function)
        for name in names:
            try:
                speaks = library(name, hints.dtype)
            except SubjectError:
                continue
            for roles in bindings(signature, hints.call):
                if roles:
                    for dim in widths(subject, hints):
                        yield Bound(Caller(function, speaks), roles, hints, dim)


def _callables(subject: Any) -> Iterator[Callable[..., Any]]:
    if not signatures.isroutine(subject) and not isinstance(subject, type):
        for name in METHODS:
            method = getattr(subject, name, None)
            if callable(method):
                yield method
    if callable(subject):
        yield subject


def widths(subject: Any, hints: Hints) -> tuple[int, ...]:
    """Widths to try: the wanted ones, then those the subject mentions, then usual ones."""
    if hints.encoding is not None:
        return hints.dims
    mentioned = []
    for name in ("head_dim", "dim", "d_model", "embedding_dim", "hidden_size", "rotary_dim", "channels"):
        value = getattr(subject, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and 1 < value < 2**16:
            mentioned.append(value)
    for name in ("inv_freq", "freqs", "theta"):
        shape = getattr(getattr(subject, name, None), "shape", None)
        if shape is not None and len(shape) == 1:
            mentioned.append(2 * int(shape[0]))
    for name in ("pe", "pos_encoding", "position_encoding", "weight", "pos_table", "encoding"):
        shape = getattr(getattr(subject, name, None), "shape", None)
        if shape is not None and len(shape) >= 2:
            mentioned.append(int(shape[-1]))
    return tuple(dict.fromkeys([*mentioned, *hints.dims]))
