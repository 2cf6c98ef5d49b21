"""Which reader understands which ``model_type``: family modules register here and are imported on first use."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.records import Part

Reader = Callable[[Keys], tuple[Part, ...]]

FAMILY_MODULES = (
    "rotary_decoders",
    "rotary_layers",
    "rotary_choices",
    "rotary_partial",
    "rotary_latent",
    "rotary_encoders",
    "rotary_named",
    "tables",
    "attention_windows",
    "sinusoids",
    "biases",
    "vision",
    "vision_rotary",
    "vision_relative",
    "audio",
    "composite",
    "timeseries",
)
"""Modules of this package that register readers. Each is imported once, on the first reading."""

_READERS: dict[str, Reader] = {}


def family(*model_types: str) -> Callable[[Reader], Reader]:
    """Register a reader for these transformers model types.

    Args:
        model_types: names as they stand in ``config["model_type"]``.

    Raises:
        RuntimeError: a type already has a reader (two modules disagree).
    """

    def register(reader: Reader) -> Reader:
        for name in model_types:
            if _READERS.setdefault(name, reader) is not reader:
                raise RuntimeError(f"model type {name!r} has two readers")
        return reader

    return register


def model_types() -> tuple[str, ...]:
    """Every model type that has a reader, sorted."""
    _load()
    return tuple(sorted(_READERS))


def home(model_type: str) -> str:
    """The module of this package whose code reads a model type."""
    _load()
    reader = _READERS[model_type]
    return getattr(reader, "func", reader).__module__.rpartition(".")[2]


def parts(keys: Keys) -> tuple[Part, ...]:
    """Read the stacks of a model by its ``model_type``.

    A type without a reader is read as a generic rotary decoder only if it carries the standard rotary keys, and then a
    note and an assumption say so.

    Raises:
        FormatError: the type is missing or unknown, with near misses; or a key breaks a rule.
    """
    _load()
    name = keys.text("model_type", default=None)
    if name in _READERS:
        return _READERS[name](keys)
    from posenc.formats.huggingface.rotary_decoders import generic, is_rotary

    if is_rotary(keys):
        return generic(keys)
    if name is None:
        raise FormatError(
            "a config names its model_type", sorted(map(str, keys.data))[:8], "Is this a transformers config.json?"
        )
    near = difflib.get_close_matches(name, _READERS, n=3)
    raise FormatError(
        "the model type must be a known one",
        name,
        f"Near: {', '.join(near)}." if near else f"{len(_READERS)} types are known.",
    )


@cache
def _load() -> None:
    for module in FAMILY_MODULES:
        path = f"posenc.formats.huggingface.{module}"
        if find_spec(path) is not None:
            import_module(path)
