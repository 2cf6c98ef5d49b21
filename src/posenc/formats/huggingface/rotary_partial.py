"""Rotary decoders that turn a part of the head, and older ones with spellings and choices of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial as bind

from posenc.errors import FormatError
from posenc.formats.huggingface.class_defaults import Defaults, defaults_of
from posenc.formats.huggingface.decoder import (
    CLASS,
    HIDDEN,
    Decoder,
    encoded,
    head_count,
    head_width,
    served_length,
    stack,
)
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.layers import FULL, kind, layer_count, part, positive
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.rotary_decoders import windowed
from posenc.records import Part
from posenc.spec import Alibi, Rotary, Unmodelled

MROPE = {"mrope": "split", "sections": (8, 12, 12)}
PARTIAL: Sequence[tuple[Decoder, str]] = (
    (Decoder(), "gpt_neox gpt_neox_japanese persimmon phi stablelm nemotron glm4_moe"),
    (Decoder(interleaved=True), "glm glm4"),
    (Decoder(interleaved=True, **MROPE), "glm4v_text glm_ocr_text"),  # type: ignore[arg-type]
    (Decoder(**MROPE), "glm4v_moe_text glm_image_text"),  # type: ignore[arg-type]
    (Decoder(pattern=windowed().pattern, original=4096), "phi4_multimodal"),
)
"""Facts and the model types they hold for; the default fraction is in the class defaults."""

for _facts, _names in PARTIAL:
    for _name in _names.split():
        family(_name)(bind(stack, family=_facts))


def uniform(keys: Keys, name: str, count: int, served: int | None, *encodings: object) -> tuple[Part, ...]:
    """A stack whose layers are all alike."""
    return (part(name, [kind(FULL, *encodings)] * count, served),)  # type: ignore[arg-type]


@family("gptj", "codegen")
def gptj(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """GPT-J: the first ``rotary_dim`` channels in adjacent pairs, base 10000 fixed in the code."""
    known = defaults_of(keys.text("model_type", default=None))
    count, served, width = layer_count(keys, known.layers), served_length(keys, known), head_width(keys, known)
    if keys.flag("rotary", default=None) is False:
        raise FormatError(f"{keys.at('rotary')} is true for this model type", False)
    rotated = positive(keys, "rotary_dim", default=64)
    keys.assume("rope_theta", 10000.0, "fixed in transformers modeling_gptj.py")
    return uniform(keys, name, count, served, Rotary(width, rotary_dim=rotated, interleaved=True))


@family("falcon", "RefinedWeb", "RefinedWebModel")
def falcon(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """Falcon: rotary, or ALiBi where ``alibi`` is true."""
    known = defaults_of("falcon")
    count, served = layer_count(keys, known.layers), served_length(keys, known)
    if keys.flag("alibi", default=False, why=CLASS):
        return uniform(keys, name, count, served, Alibi(head_count(keys, known)))
    return uniform(keys, name, count, served, encoded(keys, Decoder(), known, FULL, head_width(keys, known), served))


@family("dbrx")
def dbrx(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """DBRX: the base stands in ``attn_config``."""
    known = Defaults(layers=24, hidden=2048, heads=16, positions=2048)
    count, served, width = layer_count(keys, known.layers), served_length(keys, known), head_width(keys, known)
    attention = keys.section("attn_config")
    base = None if attention is None else attention.number("rope_theta", default=None)
    if base is None:
        return uniform(keys, name, count, served, encoded(keys, Decoder(), known, FULL, width, served))
    keys.notes.append("attn_config.rope_theta is the base; transformers 5.24 does not look there and takes 10000")
    return uniform(keys, name, count, served, Rotary(width, base=base))


@family("chatglm")
def chatglm(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """ChatGLM2 and later: half of the head in adjacent pairs, base ``10000 * rope_ratio``.

    Source: the ``modeling_chatglm.py`` that comes with the weights (recalled, not re-read).
    """
    known = Defaults()
    count = layer_count(keys, None, "num_layers", "num_hidden_layers")
    served = positive(keys, "seq_length", "max_position_embeddings", "max_sequence_length")
    width = positive(keys, "kv_channels", "head_dim") or head_width(keys, known)
    ratio = keys.number("rope_ratio", default=1.0, why="modeling_chatglm.py default")
    keys.flag("original_rope", default=None)
    keys.assume("partial_rotary_factor", 0.5, "fixed in modeling_chatglm.py")
    keys.assume("interleaved", True, "fixed in modeling_chatglm.py")
    keys.notes.append("chatglm's code is not part of transformers; base = 10000 * rope_ratio is recalled, not re-read")
    rope = Rotary(width, rotary_dim=width // 2, interleaved=True, base=10000.0 * ratio)
    return uniform(keys, name, count, served, rope)


@family("baichuan", "Baichuan")
def baichuan(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """Baichuan: the 7B models have rotary, the 13B ones ALiBi, and both carry one model type.

    The config says which only through its size: 13B has 40 layers of width 5120 (and ``model_max_length``).
    """
    known = Defaults()
    count, heads = layer_count(keys, None), head_count(keys, known)
    hidden = keys.integer(*HIDDEN)
    served = positive(keys, "max_position_embeddings", "model_max_length")
    large = count == 40 and hidden == 5120
    seen = f"{count} layers of width {hidden}"
    if large:
        keys.assume("position_embedding", "alibi", f"Baichuan 13B by its size: {seen}")
        return uniform(keys, name, count, served, Alibi(heads))
    keys.assume("position_embedding", "rope", f"not the size of Baichuan 13B: {seen}")
    return uniform(keys, name, count, served, encoded(keys, Decoder(), known, FULL, hidden // heads, served))


@family("qwen")
def qwen(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """The first Qwen: ``use_dynamic_ntk`` and ``use_logn_attn`` beyond ``seq_length`` are named, not modelled."""
    known = Defaults()
    count = layer_count(keys, None)
    served = positive(keys, "seq_length", "max_position_embeddings")
    width = positive(keys, "kv_channels") or head_width(keys, known)
    beyond = [
        Unmodelled(
            what, note=f"{switch} is true: beyond {served} positions this model's own code changes the attention"
        )
        for switch, what in (
            ("use_dynamic_ntk", "dynamic NTK of Qwen"),
            ("use_logn_attn", "log-n scaled queries of Qwen"),
        )
        if keys.flag(switch, default=None)
    ]
    return uniform(keys, name, count, served, encoded(keys, Decoder(), known, FULL, width, served), *beyond)
