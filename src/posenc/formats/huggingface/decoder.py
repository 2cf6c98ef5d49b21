"""The standard rotary stack: what nearly all decoders share, with the differences as data.

A family is a :class:`Decoder` in a table; only what no table expresses has a reader of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from posenc.errors import shown
from posenc.formats.huggingface.class_defaults import Defaults, defaults_of
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.layers import (
    CHUNKED,
    POSITIONLESS,
    Pattern,
    full,
    kind,
    layer_count,
    part,
    positive,
    window,
)
from posenc.formats.huggingface.rope import BASE_KEYS, Head, rotary
from posenc.records import Part
from posenc.spec import LayerKind, Rotary, Unmodelled

CLASS = "transformers class default"
HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length", "max_sequence_length")


@dataclass(frozen=True)
class ByType:
    """What differs for one type of layer.

    Args:
        base: class default of its base.
        base_keys: spellings of its base beside the block.
        flat: a rope block that is not nested speaks of this type too.
        partial: class default of its rotated fraction.
    """

    base: float | None = None
    base_keys: tuple[str, ...] = BASE_KEYS
    flat: bool = True
    partial: float | None = None


@dataclass(frozen=True)
class Decoder:
    """A family of rotary stacks.

    Args:
        pattern: which layer is of which type.
        interleaved, mrope, sections, block, original, alpha, mscales: see ``rope.Head``.
        nope: layer types that attend without rotary.
        types: what differs between types of layers.
        head_dim_keys, rotary_dim_keys, window_keys: other spellings of these numbers.
        notes: what no field can say.
    """

    pattern: Pattern = full
    interleaved: bool = False
    mrope: Literal["split", "interleave"] | None = None
    sections: tuple[int, ...] | None = None
    block: Mapping[str, Any] | None = None
    original: int | None = None
    alpha: bool = False
    mscales: bool = False
    nope: frozenset[str] = frozenset()
    types: Mapping[str, ByType] = field(default_factory=dict)
    head_dim_keys: tuple[str, ...] = ("head_dim",)
    rotary_dim_keys: tuple[str, ...] = ()
    window_keys: tuple[str, ...] = ("sliding_window",)
    notes: tuple[str, ...] = ()


def served_length(keys: Keys, defaults: Defaults) -> int | None:
    """What the config admits: ``max_position_embeddings`` or the class's default for it."""
    return positive(keys, *POSITIONS, default=defaults.positions, why=CLASS)


def head_width(keys: Keys, defaults: Defaults, *names: str) -> int:
    """``head_dim``, the class's own width, or ``hidden_size // num_attention_heads``."""
    width = positive(keys, *(names or ("head_dim",)), default=defaults.head_dim, why=CLASS)
    if width is not None:
        return width
    hidden, heads = required(keys, HIDDEN, defaults.hidden), head_count(keys, defaults)
    if hidden % heads:
        keys.notes.append(
            f"{hidden} channels are no multiple of {heads} heads; a head is taken as {hidden // heads} wide"
        )
    return hidden // heads


def head_count(keys: Keys, defaults: Defaults) -> int:
    """Number of query heads."""
    return required(keys, HEADS, defaults.heads)


def required(keys: Keys, names: tuple[str, ...], default: int | None) -> int:
    """A whole number of at least 1; missing is an error where no class default is known."""
    if default is None:
        keys.integer(*names)
    return int(positive(keys, *names, default=default) or 1)


def stack(
    keys: Keys,
    family: Decoder,
    *,
    model_type: str | None = None,
    name: str = "model",
    defaults: Defaults | None = None,
) -> tuple[Part, ...]:
    """Read one stack of a family.

    Args:
        keys: the object that holds the stack's keys.
        family: its facts.
        model_type: whose class defaults apply; the config's own type unless given.
        name: what the part is called.
        defaults: class defaults, if not those of the type.
    """
    known = defaults or defaults_of(model_type or keys.text("model_type", default=None))
    count = layer_count(keys, known.layers)
    served = served_length(keys, known)
    width = head_width(keys, known, *family.head_dim_keys)
    types = family.pattern(keys, count)
    kinds = {t: _kind(keys, family, known, t, width, served) for t in dict.fromkeys(types)}
    keys.notes.extend(family.notes)
    return (part(name, [kinds[t] for t in types], served),)


def head_of(keys: Keys, family: Decoder, known: Defaults, layer_type: str, width: int) -> Head:
    """The facts of one type of layer as the rope reader takes them."""
    differs = family.types.get(layer_type, ByType(base=known.base, partial=known.partial))
    count = positive(keys, *family.rotary_dim_keys) if family.rotary_dim_keys else None
    return Head(
        dim=width,
        base=known.base if differs.base is None else differs.base,
        partial=known.partial if differs.partial is None else differs.partial,
        rotary_dim=count,
        interleaved=family.interleaved,
        mrope=family.mrope,
        sections=family.sections,
        block=family.block,
        original=family.original,
        alpha=family.alpha,
        mscales=family.mscales,
        base_keys=differs.base_keys,
        flat=differs.flat,
    )


def encoded(
    keys: Keys, family: Decoder, known: Defaults, layer_type: str, width: int, served: int | None
) -> Rotary | None:
    """The rotary of one type of layer; families whose layers are all of one type refuse nested blocks."""
    layered = bool(family.types) or family.pattern is not full
    head = head_of(keys, family, known, layer_type, width)
    return rotary(keys, head, positions=served, layer_type=layer_type if layered else None)


def _kind(keys: Keys, family: Decoder, known: Defaults, layer_type: str, width: int, served: int | None) -> LayerKind:
    if layer_type in POSITIONLESS:
        return kind(layer_type)
    encoding = None if layer_type in family.nope else encoded(keys, family, known, layer_type, width, served)
    return bounded(keys, known, layer_type, encoding, unmodelled(keys), names=family.window_keys)


def unmodelled(keys: Keys) -> Unmodelled | None:
    """Mechanisms beside the rotary that are named and not computed: dual chunk attention (Qwen2.5-1M)."""
    found = keys.section("dual_chunk_attention_config")
    if found is None:
        return None
    settings = {name: found.raw(name) for name in sorted(found.data)}
    note = ", ".join(f"{name}={shown(value, 40)}" for name, value in settings.items())
    return Unmodelled("dual chunk attention", note=note)


def bounded(
    keys: Keys, known: Defaults, layer_type: str, *encodings: Any, names: tuple[str, ...] = ("sliding_window",)
) -> LayerKind:
    """A kind with the window or chunk that its type implies."""
    if layer_type == CHUNKED:
        return kind(layer_type, *encodings, chunk=positive(keys, "attention_chunk_size", default=8192))
    if "sliding" not in layer_type:
        return kind(layer_type, *encodings)
    width = window(keys, known.window, *names)
    if width and keys.raw("use_bidirectional_attention") in (True, "all"):
        width = width // 2 + 1  # Gemma 3 and 4 as encoders: the number is the whole window, halves are exclusive
    return kind(layer_type, *encodings, window=width)
