"""A rope block and a head's width to a spec ``Rotary``: the one place where both spellings of the rope keys end.

The old spelling is ``rope_theta`` with ``rope_scaling`` beside it, the new one ``rope_parameters``, flat or nested by
layer type (``{"full_attention": {...}, "sliding_attention": {...}}``). Precedence is that of transformers 5.24
(``modeling_rope_utils.py``, ``convert_rope_params_to_dict`` and ``standardize_rope_params``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.rope_types import Context, rope_type, scalings
from posenc.spec import Geometric, Interleave, Rotary, Split

CLASS = "transformers class default"
BASE_KEYS = ("rope_theta", "rotary_emb_base", "rotary_base", "rope_base")
PARTIAL_KEYS = ("partial_rotary_factor", "rotary_pct", "rotary_percentage", "rope_pct", "rotary_emb_fraction")
BLOCK_KEYS = ("rope_scaling", "rope_parameters")
"""By precedence: transformers takes ``rope_scaling or rope_parameters``."""


@dataclass(frozen=True)
class Head:
    """What an architecture fixes about the rotary of one kind of layer; the config decides the rest.

    Args:
        dim: channels of a head.
        base: the class default of the base; None if a config must state it.
        partial: the class default of the rotated fraction.
        rotary_dim: rotated channels where the config states a count and no fraction.
        where, interleaved: layout, as in ``Rotary``.
        mrope: sections of several coordinates are laid out as consecutive blocks or interleaved; None ignores them.
        sections: the class default of ``mrope_section``.
        block: the class default of the whole rope block.
        original, softmax, alpha, mscales: see ``rope_types.Context``.
        base_keys: spellings of the base beside the block.
        flat: a block that is not nested applies to this kind of layer.
    """

    dim: int
    base: float | None = 10000.0
    partial: float = 1.0
    rotary_dim: int | None = None
    where: Literal["first", "last"] = "first"
    interleaved: bool = False
    mrope: Literal["split", "interleave"] | None = None
    sections: tuple[int, ...] | None = None
    block: Mapping[str, Any] | None = None
    original: int | None = None
    softmax: bool = False
    alpha: bool = False
    mscales: bool = False
    base_keys: tuple[str, ...] = BASE_KEYS
    flat: bool = True


def rotary(keys: Keys, head: Head, *, positions: int | None, layer_type: str | None = None) -> Rotary | None:
    """The rotary encoding of one kind of layer; None where its nested block is null (no position).

    Args:
        keys: the object that holds the rope keys.
        head: what the architecture fixes.
        positions: ``max_position_embeddings``.
        layer_type: which nested block to read.

    Raises:
        FormatError: unknown rope type, a missing or impossible number.
        SpecError: the numbers do not make a rotary encoding.
    """
    block, nested = _block(keys, head, layer_type)
    if block is None:
        return None
    kind = rope_type(block)
    base = _base(keys, block, head)
    partial = _partial(keys, block, head)
    context = Context(keys, positions, nested, head.original, head.softmax, head.alpha, head.mscales)
    rotated, keep = _rotated(head, partial), 1.0
    if kind == "proportional":
        rotated, keep = head.dim, partial
    if rotated == 0:
        return None
    return Rotary(
        head_dim=head.dim,
        rotary_dim=rotated,
        where=head.where,
        interleaved=head.interleaved,
        schedule=Geometric(base=base, keep=keep),
        axes=_axes(block, head),
        scaling=scalings(block, kind, context),
    )


def _block(keys: Keys, head: Head, layer_type: str | None) -> tuple[Keys | None, bool]:
    """The block that speaks for this layer type and whether it is nested; None where it is null."""
    empty = Keys({}, keys.at("rope_parameters"), keys)
    present = [name for name in BLOCK_KEYS if keys.data.get(name)]
    if len(present) == 2 and keys.data[present[0]] != keys.data[present[1]]:
        keys.notes.append(f"{keys.at(present[0])} and {keys.at(present[1])} differ; transformers uses {present[0]}")
        keys.raw(present[1])
    found = keys.section(*present[:1]) if present else None
    for name in BLOCK_KEYS:
        keys.raw(name)  # null and empty blocks are read too
    if found is None:
        if not head.block:
            return empty, False
        keys.assume("rope_parameters", dict(head.block), CLASS)
        found = Keys(head.block, empty.path, keys)
    if not _is_nested(found):
        return (found, False) if head.flat else (empty, False)
    if layer_type is None:
        raise FormatError(
            f"{found.path} holds numbers", sorted(map(str, found.data)), "This model type has no layer types."
        )
    if layer_type in found.data and found.data[layer_type] is None:
        found.raw(layer_type)
        return None, True
    inner = found.section(layer_type)
    if inner is None:
        found.assume(layer_type, "default", CLASS)
        inner = Keys({}, found.at(layer_type), keys)
    return inner, True


def _is_nested(block: Keys) -> bool:
    return any(isinstance(value, Mapping) for value in block.data.values())


def _base(keys: Keys, block: Keys, head: Head) -> float:
    inside = block.number("rope_theta", default=None)
    beside = keys.number(*head.base_keys, default=None) if head.base_keys else None
    if None not in (inside, beside) and inside != beside:
        keys.notes.append(
            f"{block.at('rope_theta')} is {inside:g} and {keys.at(head.base_keys[0])} is {beside:g}; "
            f"transformers uses {inside:g}"
        )
    found = beside if inside is None else inside
    if found is None:
        if head.base is None:
            raise FormatError(f"{keys.at('rope_theta')} is missing", remedy="Nothing is assumed in its place.")
        name = head.base_keys[0] if head.base_keys else "rope_theta"
        (keys if head.base_keys else block).assume(name, head.base, CLASS)
        found = head.base
    if not found > 1:
        at = keys.spelt(*head.base_keys) if inside is None and head.base_keys else block.at("rope_theta")
        raise FormatError(f"{at} exceeds 1", found)
    return float(found)


def _partial(keys: Keys, block: Keys, head: Head) -> float:
    inside = block.number("partial_rotary_factor", default=None)
    beside = keys.number(*PARTIAL_KEYS, default=None)
    found = beside if inside is None else inside
    if found is None and head.partial != 1.0:
        keys.assume("partial_rotary_factor", head.partial, CLASS)
    found = head.partial if found is None else found
    if not 0 <= found <= 1:
        raise FormatError(f"{keys.at('partial_rotary_factor')} lies in 0..1", found)
    return float(found)


def _rotated(head: Head, partial: float) -> int:
    """``int(head_dim * factor)``, floored in floating point as transformers does."""
    return head.rotary_dim if head.rotary_dim is not None else int(head.dim * partial)


def _axes(block: Keys, head: Head) -> Split | Interleave | None:
    """Sections of M-RoPE; the architecture lays them out, whatever the flag ``mrope_interleaved`` says."""
    if head.mrope is None:
        return None
    pairs = block.numbers("mrope_section", default=head.sections, why=CLASS, integer=True)
    if pairs is None:
        return None
    interleaved = head.mrope == "interleave"
    flag = block.flag("mrope_interleaved", default=None)
    if flag is not None and flag != interleaved:
        block.notes.append(
            f"{block.at('mrope_interleaved')} is {str(flag).lower()}; this model type's code "
            f"{'interleaves' if interleaved else 'splits'} the sections all the same"
        )
    return Interleave(pairs=pairs) if interleaved else Split(pairs=pairs, own_schedule=False)
