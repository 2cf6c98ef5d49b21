"""Audio models: Whisper and its descendants, convolutional positions, Gemma 4's chunks."""

from __future__ import annotations

import pytest

from formats.huggingface.additive import config_class, model, part, read, weights
from posenc.errors import PosencError
from posenc.formats.huggingface import audio
from posenc.spec import Learned, Sinusoidal

DIM, FRAMES = 38, 47


def test_whisper_has_two_different_tables():
    config = config_class("whisper")(d_model=DIM, max_source_positions=FRAMES, max_target_positions=29, vocab_size=53)
    config.pad_token_id = 5
    config.encoder_attention_heads = config.decoder_attention_heads = 2
    reading = read(config)
    assert [p.name for p in reading.parts] == ["decoder", "encoder"]
    decoder, encoder = part(reading, "decoder"), part(reading, "encoder")
    assert decoder.input == (Learned(DIM, shape=(29,)),)
    assert encoder.input == (Sinusoidal(DIM, shift=1.0, order="sin|cos"),)
    assert (decoder.served, encoder.served) == (29, FRAMES)
    stored = {name.split(".")[0]: w.shape[0] for name, w in weights(model(config), "embed_positions.weight").items()}
    assert stored == {"decoder": 29, "encoder": FRAMES}


@pytest.mark.parametrize("model_type", sorted(audio.STORED))
def test_a_stored_table_is_not_called_a_sinusoid(model_type):
    width, layers = audio.STORED[model_type][1:]
    config = config_class(model_type)(**{width: DIM, layers: 3}, max_source_positions=FRAMES)
    heads = "encoder_attention_heads" if width == "d_model" else "num_attention_heads"
    setattr(config, heads, 2)
    reading = read(config)
    (table,) = reading.positions.input
    (weight,) = weights(model(config), "embed_positions.weight").values()
    assert tuple(weight.shape) == (table.rows, table.dim)
    assert len(reading.positions.layers) == 3
    assert "stored" in reading.notes[0]


@pytest.mark.parametrize("model_type", sorted(set(audio.CONVOLUTIONAL)))
def test_convolutional_positions_are_named_with_the_kernel_of_a_tiny_model(model_type):
    kernel = "conv_pos_kernel_size" if model_type == "data2vec-audio" else "num_conv_pos_embeddings"
    config = config_class(model_type)(
        hidden_size=30,
        num_attention_heads=2,
        num_hidden_layers=3,
        intermediate_size=11,
        num_conv_pos_embedding_groups=3,
        conv_dim=(7, 11),
        conv_kernel=(3, 3),
        conv_stride=(2, 2),
        num_feat_extract_layers=2,
        **{kernel: 9},
    )
    positions = read(config).positions
    (encoding,) = positions.input
    assert encoding.name == "convolutional positions"
    convs = [m for m in model(config).modules() if type(m).__name__.endswith(("Conv1d",)) and m.groups == 3]
    assert {m.kernel_size[0] for m in convs} == {9}
    assert "kernel 9, 3 groups" in encoding.note
    if model_type == "data2vec-audio":
        assert f"{len(convs)} convolutions" in encoding.note
    assert len(positions.layers) == 3
    inside = positions.kinds[0].encodings
    assert [e.name for e in inside] == (["WavLM gated relative position bias"] if model_type == "wavlm" else [])


def test_wavlms_buckets_stand_in_its_note():
    (bias,) = read({"model_type": "wavlm", "num_buckets": 44, "max_bucket_distance": 99}).positions.kinds[0].encodings
    assert "(44, distance 99)" in bias.note


def test_hubert_may_normalise_first():
    (encoding,) = read({"model_type": "hubert", "conv_pos_batch_norm": True}).positions.input
    assert encoding.note.endswith("batch norm before it")


def test_gemma4s_chunks_stand_in_its_note():
    config = {"model_type": "gemma4_audio", "attention_chunk_size": 17, "attention_context_left": 6}
    (encoding,) = read(config).positions.kinds[0].encodings
    assert "chunks of 17, 5 before, 0 after" in encoding.note


def test_positions_of_qwen_omni_start_again_in_every_chunk():
    assert "every chunk of 26 frames" in read({"model_type": "qwen2_5_omni_audio_encoder", "n_window": 13}).notes[0]
    assert "every chunk of 100 frames" in read({"model_type": "qwen3_omni_moe_audio_encoder"}).notes[0]


BAD = [
    {"model_type": "whisper", "d_model": 0},
    {"model_type": "whisper", "max_source_positions": -1},
    {"model_type": "whisper", "decoder_layers": 10**12},
    {"model_type": "whisper", "max_target_positions": "448"},
    {"model_type": "wav2vec2", "num_conv_pos_embeddings": 0},
    {"model_type": "speech_to_text", "pad_token_id": -1},
    {"model_type": "speech_to_text", "d_model": 2.5},
    {"model_type": "gemma4_audio", "attention_context_right": -1},
]


@pytest.mark.parametrize("config", BAD, ids=str)
def test_bad_numbers_are_one_clear_error(config):
    with pytest.raises(PosencError) as caught:
        read(config)
    assert "\n" not in str(caught.value)
