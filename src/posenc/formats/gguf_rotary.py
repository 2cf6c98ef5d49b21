"""The rotary of a GGUF file: width, base, sections, and which pairs turn."""

from __future__ import annotations

import math
from typing import Any

from posenc.errors import FormatError
from posenc.formats.gguf_architectures import Architecture
from posenc.formats.gguf_header import Header
from posenc.formats.gguf_scaling import scalings
from posenc.formats.huggingface.keys import Keys
from posenc.spec import Geometric, Interleave, Rotary, Split

WIDEST = 2**20
STOPPED = 1e20
"""A factor this large stops a pair: converters write 1e30 for the pairs that a proportional rotary does not turn."""


def rotary(header: Header, keys: Keys, facts: Architecture, *, sliding: bool) -> Rotary:
    """The rotary of the full or of the sliding layers.

    Raises:
        FormatError: widths, sections or factors that do not fit together.
    """
    known = (facts.sliding or {}) if sliding else {}
    head_dim, rotary_dim = _widths(keys, facts, sliding)
    base = keys.number("rope.freq_base", default=10000.0, why="llama.cpp")
    if sliding:
        stored = keys.number("rope.freq_base_swa", default=None)
        base = stored if stored is not None else known.get("base", base)
    pairs = rotary_dim // 2
    keep, factors = None, None
    if not (sliding and known.get("factors_in_full_layers_only")):
        keep, factors = _factors(header.numbers("rope_freqs.weight"), pairs)
    scaling = () if known.get("unscaled") else scalings(header, keys, facts, factors, pairs)
    axes, interleaved = _axes(keys, facts, pairs)
    return Rotary(
        head_dim,
        rotary_dim=rotary_dim,
        where="last" if facts.rotated_last else "first",
        interleaved=interleaved,
        schedule=Geometric(base=base, keep=1.0 if keep is None else keep),
        axes=axes,
        scaling=scaling,
    )


def _widths(keys: Keys, facts: Architecture, sliding: bool) -> tuple[int, int]:
    names = ["attention.key_length_mla", "attention.key_length"] if facts.rotated_last else ["attention.key_length"]
    head_dim = keys.integer(*names, default=None)
    rotated = keys.integer("rope.dimension_count", default=None)
    if sliding and "attention.key_length_swa" in keys:
        head_dim = keys.integer("attention.key_length_swa")
        rotated = keys.integer("rope.dimension_count_swa", default=None)
    if head_dim is None:
        heads = keys.raw("attention.head_count")
        heads = next((h for h in heads if h), 0) if isinstance(heads, tuple) else keys.integer("attention.head_count")
        width = keys.integer("embedding_length")
        if heads <= 0 or width <= 0 or width % heads:
            raise FormatError("attention.head_count divides embedding_length", f"{width} / {heads}")
        head_dim = width // heads
        keys.assume("attention.key_length", head_dim, "embedding_length / head_count (llama.cpp)")
    if rotated is None:
        rotated = head_dim
        keys.assume("rope.dimension_count", rotated, "attention.key_length (llama.cpp)")
    if facts.name == "step35" and not sliding:
        rotated //= 2  # src/models/step35.cpp: full layers rotate half of rope.dimension_count
    if not 0 < rotated <= head_dim <= WIDEST:
        raise FormatError(f"rope.dimension_count and key_length lie in 1..{WIDEST}", f"{rotated}, {head_dim}")
    return head_dim, rotated


def _axes(keys: Keys, facts: Architecture, pairs: int) -> tuple[Any, bool]:
    """Sections of the pairs, and whether a pair is (2i, 2i + 1)."""
    interleaved = facts.pairs == "adjacent"
    if facts.sections is None:
        return None, interleaved
    value = (
        keys.numbers("rope.dimension_sections", default=(), integer=True) if "rope.dimension_sections" in keys else ()
    )
    while value and value[-1] == 0:
        value = value[:-1]
    if not value:
        if not facts.sections_optional:
            raise FormatError(
                f"{keys.at('rope.dimension_sections')} is missing", remedy="Nothing is assumed in its place."
            )
        return None, interleaved
    if min(value) <= 0 or sum(value) != pairs:
        raise FormatError(f"{keys.at('rope.dimension_sections')} are positive and add up to {pairs} pairs", value)
    if facts.sections == "split":
        return Split(pairs=value, own_schedule=False), False
    left = [i for i in range(pairs) if i % 3 >= len(value) or i >= 3 * value[i % 3]] if len(value) == 3 else []
    if left:
        keys.notes.append(
            f"llama.cpp turns pairs {', '.join(map(str, left))} by the fourth position, 0 for text; transformers by "
            "the first"
        )
    return Interleave(pairs=value), False


def _factors(values: tuple[float, ...] | None, pairs: int) -> tuple[float | None, tuple[float, ...] | None]:
    """Split factors into the fraction of pairs that turn and the factors that remain; None where all are 1."""
    if values is None:
        return None, None
    if len(values) < pairs:
        raise FormatError(f"rope_freqs.weight has a number for each of the {pairs} pairs", f"{len(values)} numbers")
    values = values[:pairs]
    if not all(math.isfinite(v) and v > 0 for v in values):
        raise FormatError(
            "the numbers of rope_freqs.weight are positive and finite",
            next(v for v in values if not v > 0 or math.isinf(v)),
        )
    turning = next((i for i, v in enumerate(values) if v >= STOPPED), pairs)
    if any(v < STOPPED for v in values[turning:]):
        turning = pairs
    keep = None if turning == pairs else _fraction(turning, pairs)
    rest = values[:turning] + (1.0,) * (pairs - turning)
    return keep, None if all(v == 1 for v in rest) else rest


def _fraction(turning: int, pairs: int) -> float:
    """A fraction ``keep`` with ``int(keep * pairs) == turning``."""
    keep = turning / pairs
    return keep if int(keep * 2 * pairs // 2) == turning else math.nextafter(keep, 1.0)
