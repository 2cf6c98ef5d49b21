"""Published files of models with additive and relative encodings: encodings, lengths, layers, what is left unread."""

from __future__ import annotations

import pytest

from formats.huggingface import published_additive as published
from formats.huggingface.additive import part, read
from posenc.spec import Alibi, Geometric, Learned, Rotary, Sinusoidal, Split, T5Bias

MODELS = {
    "BERT-base": (published.BERT, "model", (Learned(768, shape=(512,)),), 512, 12),
    "RoBERTa-base": (published.ROBERTA, "model", (Learned(768, shape=(512,), offset=2),), 512, 12),
    "GPT-2": (published.GPT2, "model", (Learned(768, shape=(1024,)),), 1024, 12),
    "OPT-350M": (published.OPT_350M, "model", (Learned(1024, shape=(2048,), offset=2),), 2048, 24),
    "T5-small encoder": (published.T5_SMALL, "encoder", (T5Bias(8),), None, 6),
    "T5-small decoder": (published.T5_SMALL, "decoder", (T5Bias(8, bidirectional=False),), None, 6),
    "mT0-small decoder": (published.MT0_SMALL, "decoder", (T5Bias(6, bidirectional=False),), None, 8),
    "BLOOM-7b1": (published.BLOOM_7B1, "model", (Alibi(32),), None, 30),
    "BLOOM-560m": (published.BLOOM_560M, "model", (Alibi(16),), None, 24),
    "Whisper-tiny decoder": (published.WHISPER_TINY, "decoder", (Learned(384, shape=(448,)),), 448, 4),
    "Whisper-tiny encoder": (
        published.WHISPER_TINY,
        "encoder",
        (Sinusoidal(384, shift=1.0, order="sin|cos"),),
        1500,
        4,
    ),
    "ViT-B/16": (published.VIT_B16, "vision", (Learned(768, shape=(14, 14), prefix=1),), 197, 12),
    "MAE ViT-B/16": (
        published.VIT_MAE_BASE,
        "encoder",
        (Sinusoidal(768, order="sin|cos", axes=Split((192, 192)), prefix=1),),
        197,
        12,
    ),
    "MAE ViT-B/16 decoder": (
        published.VIT_MAE_BASE,
        "decoder",
        (Sinusoidal(512, order="sin|cos", axes=Split((128, 128)), prefix=1),),
        197,
        8,
    ),
    "DINOv2-B/14": (published.DINOV2_BASE, "vision", (Learned(768, shape=(37, 37), prefix=1),), 1370, 12),
    "DINOv3-B/16": (
        published.DINOV3_B16,
        "vision",
        (
            Rotary(
                64,
                axes=Split((16, 16), coordinates="unit"),
                schedule=Geometric(base=100.0, first=6.283185307179586),
            ),
        ),
        None,
        12,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_published_file(name):
    config, stack, encodings, served, layers = MODELS[name]
    positions = part(read(config), stack)
    assert positions.encodings == encodings
    assert positions.served == served
    assert len(positions.layers) == layers
    assert positions.trained is None  # no key of these files states it


def test_what_nobody_consumes_is_reported():
    unread = {name: [u.key for u in read(config).unread] for name, (config, *_) in MODELS.items()}
    expected = {
        "GPT-2": ["task_specific_params.text-generation.max_length"],
        "T5-small encoder": ["n_positions"],  # no code reads it: the bias has no end
        "T5-small decoder": ["n_positions"],
        "BLOOM-7b1": ["offset_alibi"],  # the port has no such offset
        "BLOOM-560m": ["offset_alibi"],
    }
    assert {k: v for k, v in unread.items() if v} == expected


def test_only_missing_numbers_are_assumed():
    def assumed(config):
        return [(a.key, a.value) for a in read(config).assumed]

    assert assumed(published.BERT) == []
    assert assumed(published.T5_SMALL) == [("relative_attention_max_distance", "128")]
    assert assumed(published.WHISPER_TINY) == []
    assert assumed(published.VIT_MAE_BASE) == []


def test_one_number_changes_one_thing():
    before = read(published.ROBERTA)
    after = read({**published.ROBERTA, "max_position_embeddings": 515})
    assert after.positions.input[0] == before.positions.input[0].replace(shape=(513,))
    assert after.positions.kinds == before.positions.kinds
    assert after.positions.served == 513
