"""Rotary decoders in which each layer chooses: rotary or not, its own base, its own head width, a scaled query."""

from __future__ import annotations

from posenc.errors import FormatError
from posenc.formats.huggingface.class_defaults import Defaults, defaults_of
from posenc.formats.huggingface.decoder import (
    CLASS,
    ByType,
    Decoder,
    bounded,
    encoded,
    head_width,
    served_length,
)
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.layers import (
    CHUNKED,
    FULL,
    LINEAR,
    POSITIONLESS,
    SLIDING,
    every,
    flags,
    kind,
    layer_count,
    listed,
    part,
    positive,
    stated,
    window,
)
from posenc.formats.huggingface.registry import family
from posenc.records import Part
from posenc.spec import LayerKind, QueryScale


def no_rope_flags(keys: Keys, layers: int) -> tuple[bool, ...]:
    """``no_rope_layers``: 1 means that the layer HAS rotary, despite its name; every fourth has none by default."""
    stated_flags = bool(keys.data.get("no_rope_layers"))
    interval = keys.integer("no_rope_layer_interval", default=None if stated_flags else 4, why=CLASS) or 4
    if interval < 1:
        raise FormatError(f"{keys.at('no_rope_layer_interval')} is at least 1", interval)
    return flags(keys, layers, "no_rope_layers", lambda i: (i + 1) % interval != 0)


def labelled(base: LayerKind, turns: bool) -> LayerKind:
    """The same kind with its name saying that it has no rotary."""
    return base if turns else base.replace(name=f"{base.name}, no rotary")


@family("smollm3")
def smollm3(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """SmolLM3: every fourth layer without rotary; a window, if switched on, on exactly those."""
    known = defaults_of("smollm3")
    count, served, width = layer_count(keys, known.layers), served_length(keys, known), head_width(keys, known)
    turning = no_rope_flags(keys, count)
    used = keys.flag("use_sliding_window", default=False, why=CLASS)
    narrow = window(keys) if used else None
    for written in ("sliding_window", "max_window_layers"):
        keys.raw(written)
    default = tuple(FULL if turns or not narrow else SLIDING for turns in turning)
    types = stated(keys, count) or default
    rope = encoded(keys, Decoder(), known, FULL, width, served)
    kinds = [
        labelled(kind(t, rope if turns else None, window=narrow if t == SLIDING else None), turns)
        for t, turns in zip(types, turning, strict=True)
    ]
    return (part(name, kinds, served),)


@family("llama4_text")
def llama4(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """Llama 4: rotary in chunks, every fourth layer without rotary, its queries scaled by ``log(position)``.

    transformers ``modeling_llama4.py``: scale ``1 + attn_scale * ln(1 + floor((p + 1) / floor_scale))``.
    """
    known = defaults_of("llama4_text")
    count, served, width = layer_count(keys, known.layers), served_length(keys, known), head_width(keys, known)
    turning = no_rope_flags(keys, count)
    chunk = (
        None
        if keys.data.get("attention_chunk_size", 0) is None
        else positive(keys, "attention_chunk_size", default=8192)
    )
    keys.raw("attention_chunk_size")
    types = stated(keys, count) or tuple(CHUNKED if turns and chunk else FULL for turns in turning)
    rope = encoded(keys, Decoder(interleaved=True), known, FULL, width, served)
    scale = None
    tuned = _tuned(keys)
    beta = keys.number("attn_scale", default=0.1 if tuned else None, why=CLASS)
    floor = positive(keys, "floor_scale", default=8192 if tuned else None)
    if tuned and beta:
        scale = QueryScale(beta=beta, original=floor, offset=1)
    kinds = [
        labelled(kind(t, rope if turns else scale, chunk=chunk if t == CHUNKED else None), turns)
        for t, turns in zip(types, turning, strict=True)
    ]
    return (part(name, kinds, served),)


def _tuned(keys: Keys) -> bool:
    """``attn_temperature_tuning``: true or false, or the 4 of Llama 4's first files; the code asks if it is truthy."""
    stated = keys.raw("attn_temperature_tuning")
    if isinstance(stated, int) and not isinstance(stated, bool):
        return stated != 0
    return bool(keys.flag("attn_temperature_tuning", default=True, why=CLASS))


MINISTRAL3 = {
    "rope_type": "yarn",
    "rope_theta": 1e6,
    "factor": 16.0,
    "original_max_position_embeddings": 16384,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
"""Class default of the rope block."""


def llama4_scale(keys: Keys, default: dict[str, object]) -> QueryScale | None:
    """``1 + beta * ln(1 + floor(p / original))`` from the rope block (Ministral 3, Mistral 4).

    transformers ``get_llama_4_attn_scale``; without ``llama_4_scaling_beta`` nothing is scaled here.
    """
    block = keys.section("rope_scaling", "rope_parameters") or Keys(default, keys.at("rope_parameters"), keys)
    beta = block.number("llama_4_scaling_beta", default=None)
    if not beta:
        return None
    original = positive(keys, "original_max_position_embeddings")
    original = original or positive(block, "original_max_position_embeddings")
    if original is None:
        raise FormatError(f"{block.at('original_max_position_embeddings')} is missing", "llama_4_scaling_beta needs it")
    return QueryScale(beta=beta, original=original)


@family("ministral3")
def ministral3(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """Ministral 3: YaRN whose ``mscale_all_dim`` leaves the softmax scale alone, and a query scale in every layer."""
    known = defaults_of("ministral3")
    count, served, width = layer_count(keys, known.layers), served_length(keys, known), head_width(keys, known)
    rope = encoded(keys, Decoder(block=MINISTRAL3), known, FULL, width, served)
    scale = llama4_scale(keys, MINISTRAL3)
    layer_type = SLIDING if window(keys) else FULL
    return (part(name, [bounded(keys, known, layer_type, rope, scale)] * count, served),)


@family("granite_swa", "granitemoe_swa")
def granite_swa(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """Granite with windows: ``layer_rope_theta`` gives every layer its own base, 0 for no rotary."""
    known = defaults_of(keys.text("model_type", default=None))
    count, served, width = layer_count(keys, known.layers), served_length(keys, known), head_width(keys, known)
    types = listed(every(4, first=True))(keys, count)
    rope = encoded(keys, Decoder(), known, FULL, width, served)
    bases = keys.numbers("layer_rope_theta", default=None)
    if rope is None or bases is None:
        return (part(name, [bounded(keys, known, t, rope) for t in types], served),)
    if len(bases) != count:
        raise FormatError(f"layer_rope_theta has one base for each of the {count} layers", f"{len(bases)} bases")
    several = len({base for base in bases if base}) > 1
    kinds = []
    for layer_type, base in zip(types, bases, strict=True):
        made = bounded(keys, known, layer_type, rope.replace(base=base) if base else None)
        named = made.replace(name=f"{layer_type}, base {base:g}") if several else made
        kinds.append(named if base else labelled(made, False))
    return (part(name, kinds, served),)


@family("granitemoehybrid")
def granitemoehybrid(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """Granite 4 hybrids: rotary in attention layers only if ``position_embedding_type`` is ``rope``."""
    known = defaults_of("granitemoehybrid")
    count, served, width = layer_count(keys, known.layers), served_length(keys, known), head_width(keys, known)
    types = stated(keys, count) or (LINEAR,) * count
    turns = keys.text("position_embedding_type", default=None) == "rope"
    rope = encoded(keys, Decoder(), known, FULL, width, served) if turns else None
    for unused in ("rope_theta", "rope_scaling", "rope_parameters"):
        if not turns and keys.raw(unused):
            keys.notes.append(f"{keys.at(unused)} has no effect: position_embedding_type is not 'rope'")
    kinds = [kind(t) if t in POSITIONLESS else labelled(kind(t, rope), turns) for t in types]
    return (part(name, kinds, served),)


@family("jamba")
def jamba(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """Jamba: attention without any position between Mamba layers."""
    known = Defaults(layers=32, positions=262144)
    count = layer_count(keys, known.layers)
    period = positive(keys, "attn_layer_period", default=8) or 8
    offset = keys.integer("attn_layer_offset", default=4, why=CLASS)
    types = tuple(FULL if i % period == offset else LINEAR for i in range(count))
    kinds = [kind(t) if t == LINEAR else labelled(kind(t), False) for t in types]
    return (part(name, kinds, served_length(keys, known)),)


GEMMA4 = {
    SLIDING: {"rope_type": "default", "rope_theta": 1e4},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
}
"""Class default of the rope blocks."""


@family("gemma4_text", "gemma4_unified_text")
def gemma4(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """Gemma 4: full layers have a wider head (``global_head_dim``) of which a fraction of the pairs turns (p-RoPE)."""
    known = defaults_of(keys.text("model_type", default=None))
    count, served = layer_count(keys, known.layers), served_length(keys, known)
    types = listed(every(6))(keys, count)
    if types[-1] != FULL:
        keys.notes.append(f"the last layer is {types[-1]!r} in the config; transformers makes it {FULL!r}")
        types = (*types[:-1], FULL)
    widths = {SLIDING: head_width(keys, known), FULL: _global_width(keys, types)}
    kinds = {}
    for t in dict.fromkeys(types):
        at = ByType(base=known.base, base_keys=())
        facts = Decoder(block=GEMMA4, types={t: at})
        kinds[t] = bounded(keys, known, t, encoded(keys, facts, known, t, widths.get(t, widths[SLIDING]), served))
    return (part(name, [kinds[t] for t in types], served),)


def _global_width(keys: Keys, types: tuple[str, ...]) -> int:
    """``global_head_dim`` of the hub's files, or the per-layer form that transformers 5 writes back."""
    layered = keys.section("per_layer_config")
    first = str(types.index(FULL))
    if layered is not None and "global_head_dim" not in keys:
        chosen = layered.section(first) or layered.section(FULL)
        if chosen is not None and "head_dim" in chosen:
            return int(positive(chosen, "head_dim") or 0)
    return int(positive(keys, "global_head_dim", default=512) or 0)
