"""Composite models: a config whose stacks are configs of their own, each read by its own model type.

Defaults of the inner types are those of transformers 5.24 (``sub_configs_defaults`` of each class). The main stack
(text or decoder) comes first and must be readable; another stack that is not modelled becomes a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from posenc.errors import FormatError, PosencError, shown
from posenc.formats.huggingface import registry
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.records import Part

DEPTH = 4
"""Configs inside configs; published ones have three levels (thinker, text)."""


@dataclass(frozen=True)
class Inner:
    """One inner config.

    Args:
        role: the name of its part.
        key: where it stands.
        model_type: what it is taken for when it does not say.
        optional: the class does not fill in a missing one.
    """

    role: str
    key: str
    model_type: str
    optional: bool = False


@dataclass(frozen=True)
class Composite:
    """A model type's inner configs, the main one first.

    Args:
        inner: the stacks.
        flat: old files keep the main stack's keys at the top level.
    """

    inner: tuple[Inner, ...]
    flat: bool = False


def text_vision(text: str, vision: str, *, flat: bool = False, optional: bool = False) -> Composite:
    return Composite((Inner("text", "text_config", text), Inner("vision", "vision_config", vision, optional)), flat)


def text_audio(text: str, audio: str) -> Composite:
    return Composite((Inner("text", "text_config", text), Inner("audio", "audio_config", audio)))


def two(encoder: str, decoder: str) -> Composite:
    return Composite((Inner("decoder", "decoder", decoder), Inner("encoder", "encoder", encoder)))


def three(text: str, vision: str, audio: str, *, optional: bool = False) -> Composite:
    inner = text_vision(text, vision, optional=optional).inner
    return Composite((*inner, Inner("audio", "audio_config", audio, optional)))


CLIP, SIGLIP = "clip_vision_model", "siglip_vision_model"
LLAVA = text_vision("llama", CLIP)
SAM = "sam_vision_model"

COMPOSITES: dict[str, Composite] = {
    "clip": text_vision("clip_text_model", CLIP),
    "metaclip_2": text_vision("metaclip_2_text_model", "metaclip_2_vision_model"),
    "clipseg": text_vision("clipseg_text_model", "clipseg_vision_model"),
    "chinese_clip": text_vision("chinese_clip_text_model", "chinese_clip_vision_model"),
    "altclip": text_vision("altclip_text_model", "altclip_vision_model"),
    "owlvit": text_vision("owlvit_text_model", "owlvit_vision_model"),
    "owlv2": text_vision("owlv2_text_model", "owlv2_vision_model"),
    "siglip": text_vision("siglip_text_model", SIGLIP),
    "siglip2": text_vision("siglip2_text_model", "siglip2_vision_model"),
    "aimv2": text_vision("aimv2_text_model", "aimv2_vision_model"),
    "blip": text_vision("blip_text_model", "blip_vision_model"),
    "vision-text-dual-encoder": text_vision("bert", "vit"),
    "llava": LLAVA,
    "llava_next": LLAVA,
    "llava_next_video": LLAVA,
    "vipllava": LLAVA,
    "video_llava": LLAVA,
    "llava_onevision": text_vision("qwen2", SIGLIP),
    "paligemma": text_vision("gemma", SIGLIP),
    "gemma3": text_vision("gemma3_text", SIGLIP),
    "shieldgemma2": text_vision("gemma3_text", SIGLIP),
    "gemma3n": three("gemma3n_text", "gemma3n_vision", "gemma3n_audio"),
    "gemma4": three("gemma4_text", "gemma4_vision", "gemma4_audio", optional=True),
    "gemma4_unified": three("gemma4_unified_text", "gemma4_unified_vision", "gemma4_unified_audio", optional=True),
    "llama4": text_vision("llama4_text", "llama4_vision_model"),
    "mllama": text_vision("mllama_text_model", "mllama_vision_model"),
    "mistral3": text_vision("mistral", "pixtral"),
    "lighton_ocr": text_vision("qwen3", "pixtral"),
    "internvl": text_vision("qwen2", "internvl_vision"),
    "aya_vision": text_vision("cohere2", SIGLIP),
    "cohere2_vision": text_vision("cohere2", SIGLIP),
    "lfm2_vl": text_vision("lfm2", "siglip2_vision_model"),
    "idefics2": text_vision("mistral", "idefics2_vision"),
    "idefics3": text_vision("llama", "idefics3_vision"),
    "smolvlm": text_vision("llama", "smolvlm_vision"),
    "janus": text_vision("llama", "janus_vision_model"),
    "blip-2": text_vision("opt", "blip_2_vision_model"),
    "instructblip": text_vision("opt", "instructblip_vision_model"),
    "aria": text_vision("aria_text", "idefics3_vision"),
    "emu3": Composite((Inner("text", "text_config", "emu3_text_model"),)),
    "fuyu": Composite((Inner("text", "text_config", "persimmon"),)),
    "glm4v": text_vision("glm4v_text", "glm4v_vision"),
    "glm4v_moe": text_vision("glm4v_moe_text", "glm4v_moe_vision"),
    "qwen2_vl": text_vision("qwen2_vl_text", "qwen2_vl_vision", flat=True),
    "qwen2_5_vl": text_vision("qwen2_5_vl_text", "qwen2_5_vl_vision", flat=True),
    "qwen3_vl": text_vision("qwen3_vl_text", "qwen3_vl_vision"),
    "qwen3_vl_moe": text_vision("qwen3_vl_moe_text", "qwen3_vl_moe_vision"),
    "qwen3_5": text_vision("qwen3_5_text", "qwen3_5_vision"),
    "qwen3_5_moe": text_vision("qwen3_5_moe_text", "qwen3_5_moe_vision"),
    "qwen2_audio": text_audio("qwen2", "qwen2_audio_encoder"),
    "audioflamingo3": text_audio("qwen2", "audioflamingo3_encoder"),
    "voxtral": text_audio("llama", "voxtral_encoder"),
    "qwen2_5_omni_thinker": three("qwen2_5_omni_text", "qwen2_5_omni_vision_encoder", "qwen2_5_omni_audio_encoder"),
    "qwen3_omni_moe_thinker": three(
        "qwen3_omni_moe_text", "qwen3_omni_moe_vision_encoder", "qwen3_omni_moe_audio_encoder"
    ),
    "qwen2_5_omni": Composite((Inner("thinker", "thinker_config", "qwen2_5_omni_thinker"),)),
    "qwen3_omni_moe": Composite((Inner("thinker", "thinker_config", "qwen3_omni_moe_thinker"),)),
    "encoder-decoder": two("bert", "bert"),
    "vision-encoder-decoder": two("vit", "bert"),
    "speech-encoder-decoder": two("wav2vec2", "bert"),
    "t5gemma": two("t5_gemma_module", "t5_gemma_module"),
    "musicgen": Composite(
        (Inner("decoder", "decoder", "musicgen_decoder"), Inner("text", "text_encoder", "t5", optional=True))
    ),
    "musicgen_melody": Composite(
        (Inner("decoder", "decoder", "musicgen_melody_decoder"), Inner("text", "text_encoder", "t5", optional=True))
    ),
    "sam": Composite((Inner("vision", "vision_config", SAM),)),
}

NOTES = {
    "sam": "the prompt encoder's random Fourier features of point coordinates are not modelled",
    "qwen2_5_omni": "talker and speech decoder are not read",
    "qwen3_omni_moe": "talker and speech decoder are not read",
}


def read_composite(outer: str, row: Composite, keys: Keys) -> tuple[Part, ...]:
    """Read every stack of a composite config.

    Raises:
        FormatError: the main stack is missing or cannot be read, or configs are nested without end.
        SpecError: the main stack's numbers make no encoding.
    """
    if keys.path.count(".") >= DEPTH:
        raise FormatError(f"configs are nested at most {DEPTH} deep", keys.path)
    main, *others = row.inner
    parts = _renamed(main.role, registry.parts(_main(outer, main, row.flat, keys)))
    for inner in others:
        parts += _other(outer, inner, keys)
    if note := NOTES.get(outer):
        keys.notes.append(note)
    return parts


def _main(outer: str, main: Inner, flat: bool, keys: Keys) -> Keys:
    """The keys of the main stack; an old flat file keeps them at the top."""
    section = keys.section(main.key)
    if section is not None:
        return _typed(outer, main, section)
    if flat or "hidden_size" in keys or "d_model" in keys:
        keys.notes.append(f"no {main.key}: its keys are taken from the top level")
        own = {k: v for k, v in keys.data.items() if k not in ("vision_config", "audio_config", "model_type")}
        return Keys({**own, "model_type": main.model_type}, keys.path, keys)
    raise FormatError(
        f"{keys.at(main.key)} is missing",
        sorted(map(str, keys.data))[:8],
        f"A {outer} config keeps its {main.role} there.",
    )


def _typed(outer: str, inner: Inner, section: Keys) -> Keys:
    """The section with its model type; a missing one is assumed.

    Old Qwen files call their inner stacks like the whole: then the type named after it is meant (``qwen2_vl_vision``).
    """
    stated = section.raw("model_type")
    if stated is None:
        section.assume("model_type", inner.model_type, f"transformers default of {outer}'s {inner.key}")
    elif stated != outer or not inner.model_type.startswith(outer):
        return section
    return Keys({**section.data, "model_type": inner.model_type}, section.path, section)


def _other(outer: str, inner: Inner, keys: Keys) -> tuple[Part, ...]:
    """A further stack; one that cannot be read becomes a note, and its keys stay unread."""
    if not isinstance(keys.data.get(inner.key), Mapping):
        if not inner.optional:
            keys.notes.append(f"{inner.role} part not read: the config has no {inner.key}")
        return ()
    section = keys.section(inner.key)
    if section is None:
        return ()
    typed = _typed(outer, inner, section)
    name: Any = typed.data["model_type"]
    if name not in registry.model_types():
        keys.notes.append(f"{inner.role} part of type '{shown(name, 60)}' is not modelled")
        return ()
    try:
        return _renamed(inner.role, registry.parts(typed))
    except PosencError as error:
        keys.notes.append(f"{inner.role} part of type '{shown(name, 60)}' could not be read: {error}")
        return ()


def _renamed(role: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """One stack takes the role as its name; several keep their own behind it, except those of a whole inner model."""
    if len(parts) == 1:
        return (parts[0].model_copy(update={"name": role}),)
    if role == "thinker":
        return parts
    return tuple(part.model_copy(update={"name": f"{role} {part.name}"}) for part in parts)


for _type, _row in COMPOSITES.items():
    family(_type)(partial(read_composite, _type, _row))
