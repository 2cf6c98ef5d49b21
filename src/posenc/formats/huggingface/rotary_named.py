"""Types that transformers 5.24 turns in a way of its own: they carry the standard rotary keys, and are named only.

Without an entry here the fallback for unknown types would read them as a plain rotary decoder, which they are not:
other pairs, layers without rotary that no key mentions, compressed or indexed keys, a loop over the same layers.
"""

from __future__ import annotations

from functools import partial as bind

from posenc.formats.huggingface.class_defaults import Defaults
from posenc.formats.huggingface.decoder import served_length
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.layers import kind, positive
from posenc.formats.huggingface.registry import family
from posenc.records import Part
from posenc.spec import ModelPositions, Unmodelled

NAMED = {
    "latent attention with an indexer or its own layer kinds": "axk2 bailing_hybrid dots3_note_text hy_v4 "
    "hy_v4_vl_text mistral_large4_text glm5_next_text",
    "rotary with layers or bases of the model's own choice": "beam cohere2_moe cohere_compass_text doge dory flint "
    "lara_mini lfm3 minimax_m3_vl_text molmo2_text muse_glimmer_assistant muse_glimmer_text muse_spark_text neomme "
    "qwen4_exp_text step3p5 ultrabert unlimited_ocr_text zamba2 zaya diffusion_gemma_text embedding_gemma2_text",
    "rotary of a byte-level hierarchy": "blt blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher",
    "rotary on compressed keys": "deepseek_v4",
    "rotary in a loop over the same layers": "hrm_text",
    "rotary with sections of its own order": "ernie4_5_vl_moe_text hunyuan_vl_text",
    "rotary in an encoder and decoder of speech": "dia_decoder dia_encoder moonshine moonshine_streaming pocket_tts "
    "gradium_phonon_tts",
}
"""What is known, and the model types it holds for."""


def named(keys: Keys, what: str, name: str = "model") -> tuple[Part, ...]:
    """A stack whose mechanism is named; nothing stands in for it."""
    model_type = keys.text("model_type", default=None)
    encoding = Unmodelled(what, note=f"model type {model_type}: read the transformers code for it")
    keys.notes.append(f"model type {model_type!r} is known, its rotary is not modelled here")
    count = positive(keys, "num_hidden_layers", "num_layers")
    layers = (0,) * min(count or 0, 4096)
    at = ModelPositions(kinds=(kind("all", encoding),), layers=layers, served=served_length(keys, Defaults()))
    return (Part(name=name, positions=at),)


for _what, _types in NAMED.items():
    for _type in _types.split():
        family(_type)(bind(named, what=_what))
