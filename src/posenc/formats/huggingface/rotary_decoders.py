"""Rotary decoders whose layers are all alike or windowed by one switch, and the fallback for types nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial as bind

from posenc.errors import FormatError
from posenc.formats.huggingface.class_defaults import Defaults
from posenc.formats.huggingface.decoder import HEADS, HIDDEN, Decoder, stack
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.layers import FULL, SLIDING, stated, window
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.rope import BASE_KEYS, BLOCK_KEYS
from posenc.records import Part

CLASS = "transformers class default"


def windowed(default: int | None = None) -> Decoder:
    """All layers alike, with a window where ``sliding_window`` is set (``default`` where the key is missing)."""

    def pattern(keys: Keys, layers: int) -> tuple[str, ...]:
        return (SLIDING if window(keys, default) else FULL,) * layers

    return Decoder(pattern=pattern)


def switched(keys: Keys, layers: int) -> tuple[str, ...]:
    """``use_sliding_window`` switches a window for all layers (Qwen3-MoE)."""
    used = keys.flag("use_sliding_window", default=False, why=CLASS)
    keys.raw("max_window_layers")  # written by these configs, read by no code of theirs
    return (SLIDING if window(keys) and used else FULL,) * layers


def qwen2(keys: Keys, layers: int) -> tuple[str, ...]:
    """``layer_types``, else a window from layer ``max_window_layers`` on if ``use_sliding_window``."""
    used = keys.flag("use_sliding_window", default=False, why=CLASS)
    first = keys.integer("max_window_layers", default=28 if used else None, why=CLASS)
    width, types = window(keys), stated(keys, layers)
    if types is not None:
        return types
    return tuple(SLIDING if used and width and i >= first else FULL for i in range(layers))


def cross(keys: Keys, layers: int) -> tuple[str, ...]:
    """Layers of ``cross_attention_layers`` attend to the image and turn nothing (Llama 3.2 Vision)."""
    image = set(keys.numbers("cross_attention_layers", default=(3, 8, 13, 18, 23, 28, 33, 38), why=CLASS, integer=True))
    return tuple("cross_attention" if i in image else FULL for i in range(layers))


def llama31(factor: float, original: int, low: float, high: float) -> dict[str, object]:
    """A rope block of Llama 3.1's kind, where it is a class default."""
    return {
        "rope_type": "llama3",
        "factor": factor,
        "original_max_position_embeddings": original,
        "low_freq_factor": low,
        "high_freq_factor": high,
    }


WINDOWED = windowed().pattern
ALIKE: Sequence[tuple[Decoder, str]] = (
    (
        Decoder(),
        "arcee aria_text bitnet chameleon csm csm_depth_decoder_model diffllama emu3_text_model evolla EvollaModel "
        "flex_olmo gemma granite granite4_vision_text granite_docling_text granitemoe granitemoeshared hy_v3 "
        "hyperclovax idefics jais2 llama olmo olmo2 olmoe seed_oss solar_open "
        "Yi deepseek internlm internlm2 minicpm orion",
    ),
    (Decoder(interleaved=True), "cohere ernie4_5 ernie4_5_moe helium"),
    (Decoder(alpha=True), "hunyuan_v1_dense hunyuan_v1_moe"),
    (windowed(4096), "mistral voxtral_realtime_text"),
    (windowed(3000), "moshi"),
    (windowed(), "mixtral starcoder2"),
    (Decoder(pattern=WINDOWED, mscales=True), "phimoe"),
    (Decoder(pattern=WINDOWED, original=4096), "phi3"),
    (Decoder(pattern=switched), "qwen3_moe"),
    (Decoder(pattern=qwen2), "qwen2 qwen2_moe qwen3"),
    (Decoder(pattern=qwen2, mrope="split", sections=(16, 24, 24)), "qwen2_vl_text qwen2_5_vl_text qwen2_5_omni_text"),
    (Decoder(mrope="split", sections=(16, 24, 24)), "paddleocr_vl_text"),
    (
        Decoder(mrope="interleave", sections=(24, 20, 20)),
        "qwen3_vl_text qwen3_vl_moe_text qwen3_omni_moe_text cosmos3_edge_text",
    ),
    (Decoder(pattern=cross, nope=frozenset(("cross_attention",))), "mllama_text_model"),
    (Decoder(block=llama31(8.0, 8192, 1.0, 4.0)), "apertus apertus1p5_text"),
    (Decoder(block=llama31(32.0, 1024, 0.125, 0.5)), "higgs_audio_v2"),
    (
        Decoder(notes=("NanoChat turns each pair the other way round: (x1 cos + x2 sin, x2 cos - x1 sin)",)),
        "nanochat",
    ),
    (Decoder(head_dim_keys=("head_dim", "kv_channels")), "jetmoe"),
)
"""Facts and the model types they hold for."""

TEXT = {name: facts for facts, names in ALIKE for name in names.split()}
for _name, _facts in TEXT.items():
    family(_name)(bind(stack, family=_facts))


def text_stack(keys: Keys, model_type: str, name: str = "text") -> tuple[Part, ...]:
    """Read a text stack of one of these families whatever type the object itself names, for composite configs.

    The M-RoPE text stacks are here: ``qwen2_vl_text``, ``qwen2_5_vl_text``, ``qwen3_vl_text`` and their relatives.
    """
    return stack(keys, TEXT[model_type], model_type=model_type, name=name)


def is_rotary(keys: Keys) -> bool:
    """Whether a config carries the standard rotary keys and nothing that is known to contradict a plain head."""
    wide = "head_dim" in keys or (any(k in keys for k in HIDDEN) and any(k in keys for k in HEADS))
    turning = any(keys.data.get(k) is not None for k in (BASE_KEYS[0], *BLOCK_KEYS))
    return wide and turning and "qk_rope_head_dim" not in keys


def generic(keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """A rotary decoder of a type that is not known: all the standard keys, and every assumption stated."""
    model_type = keys.text("model_type", default=None)
    who = f"model type {model_type!r} is not known" if model_type else "the config names no model type"

    def pattern(keys: Keys, layers: int) -> tuple[str, ...]:
        return stated(keys, layers) or (SLIDING if window(keys) else FULL,) * layers

    if keys.raw("alibi"):
        raise FormatError(
            f"{keys.at('alibi')} is false where positions are rotary", keys.raw("alibi"), f"{who[0].upper()}{who[1:]}."
        )
    keys.assume("pairs", "(i, i + d/2)", f"pairs (i, i + d/2) assumed: {who}")
    keys.notes.append(f"{who}; read as a generic rotary decoder from the standard rotary keys")
    facts = Decoder(pattern=pattern, rotary_dim_keys=("rotary_dim",))
    return stack(keys, facts, name=name, defaults=Defaults(base=None))
