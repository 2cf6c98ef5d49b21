"""Every default that a reader of this area fills in is the one of the transformers class."""

from __future__ import annotations

import ast

import pytest

from formats.huggingface.additive import config_class, read
from posenc.formats.huggingface import (
    audio,
    biases,
    sinusoids,
    tables,
    timeseries,
    vision,
    vision_rotary,
)

TYPES = sorted(
    {
        *tables.TABLES,
        *tables.ENCODER_DECODERS,
        *biases.T5_TYPES,
        *sinusoids.FIXED,
        *audio.STORED,
        *audio.CONVOLUTIONAL,
        *timeseries.OWNERS,
        *vision.PATCHES,
        *vision_rotary.QWEN,
        *("distilbert", "xlm", "flaubert", "bloom", "mpt", "mpnet", "deberta", "deberta-v2", "xlnet"),
        *("ctrl", "trocr", "musicgen_decoder", "musicgen_melody_decoder", "whisper", "speech_to_text", "gpt_neo"),
        *("longformer", "led", "qwen2_5_omni_audio_encoder", "qwen3_omni_moe_audio_encoder", "gemma4_audio"),
        *("vit_mae", "siglip2_vision_model", "mllama_vision_model", "beit", "data2vec-vision", "swin", "swinv2"),
        *("sam_vision_model", "dinov3_vit", "llama4_vision_model", "pixtral", "gemma4_vision"),
    }
)


def plain(value):
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("model_type", TYPES)
def test_an_empty_config_is_filled_in_as_transformers_does(model_type):
    reading = read({"model_type": model_type})
    assert reading.assumed, "every one of these types has something to fill in"
    theirs = config_class(model_type)()
    for assumption in reading.assumed:
        found = theirs
        for name in assumption.key.split("."):
            if name == "rope_theta" and not hasattr(found, name):
                found = found.rope_parameters
            found = found[name] if isinstance(found, dict) else getattr(found, name)
        try:
            ours = ast.literal_eval(assumption.value)
        except (ValueError, SyntaxError):
            ours = assumption.value
        assert plain(ours) == plain(found), assumption.key
        owner = type(theirs).__name__
        assert assumption.why.startswith((f"transformers {owner} default", "transformers MptAttentionConfig default"))


@pytest.mark.parametrize("model_type", TYPES)
def test_a_config_as_transformers_writes_it_reads_like_the_empty_one(model_type):
    written = config_class(model_type)().to_dict()
    full = read(written)
    assert full.parts == read({"model_type": model_type}).parts
    assert [a for a in full.assumed if written.get(a.key) is not None] == []
