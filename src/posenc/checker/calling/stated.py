"""The layout of vectors that a subject's own documentation states: ``x: (batch, seq, heads, head_dim)``."""

from __future__ import annotations

import inspect as signatures
import re
from collections.abc import Callable, Iterator
from typing import Any

LETTERS: dict[str, str] = {
    name: letter
    for letter, names in {
        "b": "b bs bsz batch batch_size batchsize n_batch",
        "t": "t s l seq seq_len seqlen seq_length sequence_length sequence sq q_len tokens n_tokens num_tokens time "
        "length slen",
        "h": "h nh n_h np heads head n_heads n_head num_heads nheads num_attention_heads n_local_heads",
        "d": "d c e hn hs dim d_model head_dim headdim head_size d_head hidden hidden_size embedding_dim embed_dim "
        "emb_dim embed channels features d_k",
    }.items()
    for name in names.split()
}
"""Names of dimensions in use."""
LISTED = re.compile(r"[(\[]([A-Za-z_][\w\s]*(?:,[\w\s]+){2,3})[)\]]")


def stated_layout(function: Callable[..., Any]) -> str | None:
    """The one layout that a callable's documentation and annotations give to its vectors; None if none, or several.

    >>> def rope(x):
    ...     '''Turn ``x (batch, seq_len, heads, head_dim)``.'''
    >>> stated_layout(rope)
    'bthd'
    """
    found = {layout for text in _texts(function) for each in LISTED.findall(text) if (layout := _layout(each))}
    return found.pop() if len(found) == 1 else None


def _layout(listed: str) -> str | None:
    """The letters of dimensions by name; None unless all are known, once each, tokens among them, channels last."""
    letters = [LETTERS.get(name.strip().lower(), "?") for name in listed.split(",")]
    right = "?" not in letters and len(set(letters)) == len(letters)
    return "".join(letters) if right and {"b", "t"} <= set(letters) and letters[-1] == "d" else None


def _texts(function: Callable[..., Any]) -> Iterator[str]:
    """Documentation of a callable, of the class it belongs to, and of that class's own call."""
    routine = signatures.isroutine(function)
    owner = getattr(function, "__self__", None) if routine else function
    holders: list[Any] = [function] if routine else []
    if owner is not None and not signatures.ismodule(owner):
        cls = type(owner)
        holders += [cls, *(vars(cls).get(name) for name in ("forward", "call", "__call__"))]
    for holder in holders:
        text = getattr(holder, "__doc__", None)
        if isinstance(text, str):
            yield text
        for annotation in getattr(holder, "__annotations__", {}).values() if signatures.isroutine(holder) else ():
            shape = getattr(annotation, "dim_str", None)  # as jaxtyping writes it: "batch seq heads dim"
            if isinstance(shape, str):
                yield f"({', '.join(shape.split())})"
