"""Encoders with rotary: ESM, RoFormer, ModernBERT and their relatives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial as bind

from posenc.formats.huggingface.class_defaults import Defaults, defaults_of
from posenc.formats.huggingface.decoder import CLASS, ByType, Decoder, encoded, head_width, served_length, stack
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.layers import FULL, SLIDING, every, kind, layer_count, listed, part, positive
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.rotary_decoders import windowed
from posenc.formats.huggingface.rotary_layers import YARN_OSS
from posenc.records import Part
from posenc.spec import Learned, Rotary

ENCODERS: Sequence[tuple[Decoder, str]] = (
    (Decoder(), "eurobert gte jina_embeddings_v3 nomic_bert"),
    (Decoder(pattern=windowed(128).pattern, interleaved=True, block=YARN_OSS), "openai_privacy_filter"),
)

for _facts, _names in ENCODERS:
    for _name in _names.split():
        family(_name)(bind(stack, family=_facts))


@family("esm")
def esm(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """ESM: ``position_embedding_type`` is ``rotary`` (ESM-2) or ``absolute`` (the class default): a learned table.

    The table reads rows from ``padding_idx + 1`` on, as in RoBERTa.
    """
    known = defaults_of("esm")
    count, served = layer_count(keys, known.layers), served_length(keys, known)
    which = keys.text("position_embedding_type", default="absolute", why=CLASS)
    if which == "rotary":
        facts = Decoder()
        rope = encoded(keys, facts, known, FULL, head_width(keys, known), served)
        return (part(name, [kind(FULL, rope)] * count, served),)
    rows = served or 1026
    hidden = positive(keys, "hidden_size", default=768) or 768
    offset = keys.integer("pad_token_id", default=1, why=CLASS) + 1
    table = Learned(hidden, shape=(rows - offset,), offset=offset)
    return (part(name, [kind(FULL)] * count, rows - offset, input=(table,)),)


@family("roformer")
def roformer(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """RoFormer: adjacent pairs, base 10000 fixed in the code; ``rotary_value`` turns the values too."""
    known = Defaults(layers=12, hidden=768, heads=12, positions=1536)
    count, served, width = layer_count(keys, known.layers), served_length(keys, known), head_width(keys, known)
    keys.assume("rope_theta", 10000.0, "fixed in transformers modeling_roformer.py")
    if keys.flag("rotary_value", default=None):
        keys.notes.append("rotary_value is true: values are turned like queries and keys, which is not modelled")
    return (part(name, [kind(FULL, Rotary(width, interleaved=True))] * count, served),)


@family("modernbert", "modernbert-decoder")
def modernbert(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """ModernBERT: every third layer global with its own base, the others see ``local_attention // 2`` to each side."""
    known = defaults_of("modernbert")
    count, served, width = layer_count(keys, known.layers), served_length(keys, known), head_width(keys, known)
    types = listed(every(3, "global_attn_every_n_layers", first=True))(keys, count)
    local = positive(keys, "local_attention", default=128) or 128
    keys.raw("sliding_window")  # transformers 5 writes half of local_attention back
    facts = Decoder(
        types={FULL: ByType(160000.0, ("global_rope_theta",)), SLIDING: ByType(10000.0, ("local_rope_theta",))}
    )
    kinds = {}
    for t in dict.fromkeys(types):
        rope = encoded(keys, facts, known, t, width, served)
        kinds[t] = kind(t, rope, window=local // 2 if t == SLIDING else None)
    return (part(name, [kinds[t] for t in types], served),)
