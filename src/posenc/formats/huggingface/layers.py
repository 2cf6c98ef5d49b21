"""Which layer is of which kind: explicit lists, the classes' default patterns, and windows.

``window`` is the config's own number: in a causal model a query sees that many keys, itself included (transformers'
``sliding_window``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.records import Part
from posenc.spec import Encoding, LayerKind, ModelPositions

FULL, SLIDING, CHUNKED, LINEAR = "full_attention", "sliding_attention", "chunked_attention", "linear_attention"
MAX_LAYERS = 4096
POSITIONLESS = frozenset(
    (LINEAR, "conv", "mamba", "mamba2", "recurrent", "short_conv", "moe", "mlp", "gated_deltanet", "ssm")
)
"""Layer types without attention scores: their order enters through recurrence or convolution."""

Pattern = Callable[[Keys, int], tuple[str, ...]]


def layer_count(keys: Keys, default: int | None, *names: str) -> int:
    """``num_hidden_layers`` within reason.

    Raises:
        FormatError: missing without default, below 0 or beyond what a model can have.
    """
    names = names or ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    if default is None:
        count = keys.integer(*names)
    else:
        count = keys.integer(*names, default=default, why="transformers class default")
    if not 0 < count <= MAX_LAYERS:
        raise FormatError(f"{keys.at(names[0])} lies in 1..{MAX_LAYERS}", count)
    return int(count)


def positive(
    keys: Keys, *names: str, default: int | None = None, why: str = "transformers class default"
) -> int | None:
    """A whole number of at least 1, or None where it is missing and there is no default."""
    value = keys.integer(*names, default=default, why=why)
    if value is not None and value < 1:
        raise FormatError(f"{keys.at(names[0])} is at least 1", value)
    return None if value is None else int(value)


def window(keys: Keys, default: int | None = None, *names: str) -> int | None:
    """``sliding_window``; null, 0 and -1 mean that there is none."""
    names = names or ("sliding_window",)
    explicit_null = any(name in keys.data and keys.data[name] is None for name in names)
    value = keys.integer(*names, default=None if explicit_null else default, why="transformers class default")
    return None if value is None or value <= 0 else int(value)


def stated(keys: Keys, layers: int, *names: str) -> tuple[str, ...] | None:
    """An explicit list of layer types, one for each layer.

    Raises:
        FormatError: the list has another length than there are layers.
    """
    names = names or ("layer_types",)
    types = keys.texts(*names, default=None)
    if types is not None and len(types) != layers:
        raise FormatError(f"{keys.at(names[0])} names one type for each of the {layers} layers", f"{len(types)} names")
    return types  # type: ignore[no-any-return]


def listed(default: Pattern) -> Pattern:
    """``layer_types`` where stated, else the class's default pattern."""
    return lambda keys, layers: stated(keys, layers) or default(keys, layers)


def every(n: int, *keys_names: str, last: str = FULL, rest: str = SLIDING, first: bool = False) -> Pattern:
    """The last (or with ``first`` the first) of every ``n`` layers is ``last``, the others ``rest``.

    ``keys_names`` are the keys that overrule ``n``.
    """

    def pattern(keys: Keys, layers: int) -> tuple[str, ...]:
        period = n
        if keys_names:
            period = keys.integer(*keys_names, default=n, why="transformers class default")
        if period < 1:
            raise FormatError(f"{keys.at(keys_names[0])} is at least 1", period)
        return tuple(last if (i if first else i + 1) % period == 0 else rest for i in range(layers))

    return pattern


def uniform(keys: Keys, layers: int) -> tuple[str, ...]:
    """All layers alike; with a window where ``sliding_window`` is set."""
    return (SLIDING if window(keys) else FULL,) * layers


def full(keys: Keys, layers: int) -> tuple[str, ...]:
    """All layers attend to everything."""
    return (FULL,) * layers


def flags(keys: Keys, layers: int, name: str, default: Callable[[int], bool]) -> tuple[bool, ...]:
    """A list of 0 and 1, one for each layer; an empty one counts as missing."""
    values = keys.raw(name)
    if not values:
        return tuple(default(i) for i in range(layers))
    if not isinstance(values, list | tuple) or any(v not in (0, 1) for v in values):
        raise FormatError(f"{keys.at(name)} is a list of 0 and 1", values)
    if len(values) != layers:
        raise FormatError(f"{keys.at(name)} has one entry for each of the {layers} layers", f"{len(values)} entries")
    return tuple(bool(v) for v in values)


def kind(name: str, *encodings: Encoding | None, window: int | None = None, chunk: int | None = None) -> LayerKind:
    """A kind of layer; encodings that are None are left out."""
    return LayerKind(name=name, encodings=tuple(e for e in encodings if e is not None), window=window, chunk=chunk)


def part(name: str, kinds: Sequence[LayerKind], served: int | None = None, input: Sequence[Any] = ()) -> Part:
    """A stack from the kind of each of its layers; equal kinds become one."""
    distinct = tuple(dict.fromkeys(kinds))
    index = {k: i for i, k in enumerate(distinct)}
    layers = tuple(index[k] for k in kinds)
    return Part(name=name, positions=ModelPositions(input=tuple(input), kinds=distinct, layers=layers, served=served))
