"""From a value to its module: ``build(value)``. NumPy becomes torch in the modules this calls."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torch import nn

from posenc.errors import SpecError

BUILDERS: dict[str, Callable[..., nn.Module]] = {}
MODULES = (
    "inputs",
    "hierarchical",
    "time",
    "fourier",
    "images",
    "rotary",
    "scaled_queries",
    "biases",
    "fire",
    "sinusoidal_biases",
    "relative",
    "transformer_xl",
    "disentangled",
    "contextual",
    "selective",
    "baselines",
)
"""Modules of this room that register builders; those that exist are imported on first use."""


def builds(kind: str) -> Callable[[Callable[..., nn.Module]], Callable[..., nn.Module]]:
    """Register ``from_value(value, **options) -> nn.Module`` for a kind of encoding."""

    def register(builder: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
        BUILDERS[kind] = builder
        return builder

    return register


def build(value: Any, **options: Any) -> nn.Module:
    """The module of an encoding.

    Args:
        value: an encoding, or a line of notation for one.
        options: what a module takes beyond its value (``dropout=``, ``device=``).

    Raises:
        SpecError: no module computes this kind, by its name; or the notation holds several encodings.

    >>> build("rotary(8) >> linear(2)")
    RotaryEmbedding(rotary(8) >> linear(2), pairs (i, i + 4))
    """
    if isinstance(value, str):
        from posenc.spec import parse

        found = parse(value)
        if len(found) != 1:
            raise SpecError("one encoding makes one module", value, "Build each of several on its own.")
        (value,) = found
    if getattr(value, "kind", None) not in BUILDERS:  # some may have been imported, and registered, before others
        for name in MODULES:
            if find_spec(f"posenc.nn.{name}") is not None:
                import_module(f"posenc.nn.{name}")
    if getattr(value, "kind", None) not in BUILDERS:
        raise SpecError("no module computes this", getattr(value, "kind", value), f"Known: {', '.join(BUILDERS)}.")
    return BUILDERS[value.kind](value, **options)
