"""Fixed tables of tiny models of transformers, against the vectorised formula and a table written out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from formats.huggingface.additive import config_class, model, part, read, weights
from posenc.formulas.tables import sinusoidal_table
from posenc.spec import Learned

DIM, ROWS = 38, 47
FLOAT32 = 4e-6  # angles up to 47 times float32's half ulp, and the sine's own rounding


def by_hand(row: int, channel: int, kind: str) -> float:
    """One entry as the model's paper or code has it: ``paper``, ``halves`` (its frequencies), ``t2t``, ``cosine``."""
    half = DIM // 2
    if kind == "paper":
        angle = row / 10000 ** (2 * (channel // 2) / DIM)
        return math.sin(angle) if channel % 2 == 0 else math.cos(angle)
    pair = channel % half
    angle = (
        row / 10000 ** (2 * pair / DIM) if kind == "halves" else row * math.exp(-math.log(10000) * pair / (half - 1))
    )
    sine_part = (channel < half) != (kind == "cosine")
    return math.sin(angle) if sine_part else math.cos(angle)


def table_by_hand(rows: int, kind: str) -> np.ndarray:
    return np.array([[by_hand(r, c, kind) for c in range(DIM)] for r in range(rows)])


TWO = {
    "d_model": DIM,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 11,
    "decoder_ffn_dim": 13,
    "vocab_size": 53,
}
CASES = {
    "marian": ({**TWO, "max_position_embeddings": ROWS, "pad_token_id": 52}, "halves", ("decoder", "encoder")),
    "pegasus": ({**TWO, "max_position_embeddings": ROWS}, "halves", ("decoder", "encoder")),
    "m2m_100": ({**TWO, "max_position_embeddings": ROWS, "pad_token_id": 4}, "t2t", ("decoder", "encoder")),
    "nllb-moe": ({**TWO, "max_position_embeddings": ROWS}, "t2t", ("decoder", "encoder")),
    "fsmt": (
        {**TWO, "max_position_embeddings": ROWS, "src_vocab_size": 53, "tgt_vocab_size": 53, "langs": ["de", "en"]},
        "t2t",
        ("decoder", "encoder"),
    ),
    "speech_to_text": (
        {**TWO, "max_source_positions": ROWS, "max_target_positions": ROWS},
        "t2t",
        ("decoder", "encoder"),
    ),
    "whisper": (
        {**TWO, "max_source_positions": ROWS, "max_target_positions": 29, "pad_token_id": 5},
        "t2t",
        ("encoder",),
    ),
    "xglm": (
        {"d_model": DIM, "num_layers": 2, "attention_heads": 2, "ffn_dim": 11, "vocab_size": 53}
        | {"max_position_embeddings": ROWS},
        "t2t",
        ("model",),
    ),
    "ctrl": (
        {"n_embd": DIM, "n_layer": 2, "n_head": 2, "dff": 11, "vocab_size": 300, "n_positions": ROWS},
        "halves",
        ("model",),
    ),
    "distilbert": (
        {"dim": DIM, "n_layers": 2, "n_heads": 2, "hidden_dim": 11, "vocab_size": 53, "sinusoidal_pos_embds": True}
        | {"max_position_embeddings": ROWS},
        "paper",
        ("model",),
    ),
    "xlm": (
        {"emb_dim": DIM, "n_layers": 2, "n_heads": 2, "vocab_size": 53, "sinusoidal_embeddings": True}
        | {"max_position_embeddings": ROWS, "n_words": 53},
        "paper",
        ("model",),
    ),
    "musicgen_decoder": (
        {"hidden_size": DIM, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 11, "vocab_size": 53}
        | {"max_position_embeddings": ROWS, "num_codebooks": 2},
        "cosine",
        ("decoder",),
    ),
    "musicgen_melody_decoder": (
        {"hidden_size": DIM, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 11, "vocab_size": 53}
        | {"max_position_embeddings": ROWS, "num_codebooks": 2},
        "cosine",
        ("decoder",),
    ),
    "informer": ({**TWO, "prediction_length": 7, "context_length": 40}, "halves", ("decoder", "encoder")),
    "autoformer": (
        {**TWO, "prediction_length": 7, "context_length": 40, "label_length": 3},
        "halves",
        ("decoder", "encoder"),
    ),
    "time_series_transformer": (
        {**TWO, "prediction_length": 7, "context_length": 40},
        "halves",
        ("decoder", "encoder"),
    ),
}
STORED = (
    "embed_positions.weight",
    "embed_positions.weights",
    "position_embeddings.weight",
    "embed_positions.positional_embedding",
    "pos_encoding",
)


@pytest.mark.parametrize("model_type", sorted(CASES))
def test_the_table_of_a_tiny_model(model_type):
    changes, kind, names = CASES[model_type]
    if model_type == "nllb-moe":
        changes = {**changes, "num_experts": 2}
    config = config_class(model_type)(**changes)
    reading = read(config)
    stored = weights(model(config, "cpu"), *STORED)
    for name in names:
        positions = part(reading, name)
        (encoding,) = positions.input
        (table,) = [w for key, w in stored.items() if len(stored) == 1 or f"{name}." in key]
        theirs = table.detach().double().numpy()
        rows = np.arange(len(theirs))
        by_formula = sinusoidal_table(encoding, rows - encoding.offset)
        assert theirs.shape == by_formula.shape
        assert np.abs(theirs - by_formula).max() < FLOAT32
        expected = table_by_hand(len(theirs), kind)
        if encoding.padding_row is not None:
            expected[encoding.padding_row] = 0
            assert not by_formula[encoding.padding_row].any()
        assert np.abs(by_formula - expected).max() < 1e-12


def test_the_paper_tables_differ_from_each_other():
    """If one of them were taken for another, the test above would see it."""
    kinds = ("paper", "halves", "t2t", "cosine")
    tables = [table_by_hand(11, kind) for kind in kinds]
    for i, a in enumerate(tables):
        for b in tables[:i]:
            assert np.abs(a - b).max() > 0.1


@pytest.mark.parametrize("model_type", ["m2m_100", "xglm", "marian"])
def test_the_first_token_reads_the_row_of_the_offset(model_type):
    changes, _, names = CASES[model_type]
    config = config_class(model_type)(**changes)
    (encoding,) = part(read(config), names[-1]).input
    net = model(config, "cpu").eval()
    places = net.embed_positions if model_type == "xglm" else net.encoder.embed_positions
    if model_type == "marian":
        given = places(torch.Size((1, 3)))
    elif model_type == "xglm":
        given = places(torch.arange(3)[None])[0]
    else:
        given = places(torch.tensor([[11, 12, 13]]))[0]
    expected = sinusoidal_table(encoding, np.arange(3))
    assert np.abs(given.double().numpy() - expected).max() < FLOAT32


def test_pegasus_x_computes_its_rows():
    from transformers.models.pegasus_x.modeling_pegasus_x import PegasusXSinusoidalPositionalEmbedding

    (encoding,) = part(read({"model_type": "pegasus_x", "d_model": DIM}), "encoder").input
    theirs = PegasusXSinusoidalPositionalEmbedding(DIM)(torch.zeros(1, ROWS, DIM))[0].double().numpy()
    assert np.abs(theirs - sinusoidal_table(encoding, np.arange(ROWS))).max() < FLOAT32


def test_the_audio_encoders_of_qwen_omni_compute_whispers_table():
    from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import SinusoidsPositionEmbedding

    (encoding,) = read({"model_type": "qwen2_5_omni_audio_encoder", "d_model": DIM}).positions.input
    theirs = SinusoidsPositionEmbedding(ROWS, DIM)(ROWS).double().numpy()
    assert np.abs(theirs - sinusoidal_table(encoding, np.arange(ROWS))).max() < FLOAT32


def test_an_odd_width_ends_with_a_zero_column():
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

    odd = {"model_type": "m2m_100", "d_model": 37, "pad_token_id": 1}
    (encoding,) = part(read(odd), "encoder").input
    theirs = M2M100SinusoidalPositionalEmbedding.get_embedding(ROWS, 37, 1).double().numpy()
    ours = sinusoidal_table(encoding, np.arange(ROWS) - encoding.offset)
    assert not theirs[:, -1].any()
    assert np.abs(theirs - ours).max() < FLOAT32


def test_trocr_has_either_table():
    config = {"model_type": "trocr", "d_model": DIM, "max_position_embeddings": ROWS, "pad_token_id": 1}
    learned = read(config).positions
    assert learned.input == (Learned(DIM, shape=(ROWS,), offset=2),)
    (fixed,) = read({**config, "use_learned_position_embeddings": False}).positions.input
    from transformers.models.trocr.modeling_trocr import TrOCRSinusoidalPositionalEmbedding

    theirs = TrOCRSinusoidalPositionalEmbedding.get_embedding(ROWS, DIM, 1).double().numpy()
    assert np.abs(theirs - sinusoidal_table(fixed, np.arange(ROWS) - fixed.offset)).max() < FLOAT32


def test_the_decoder_of_a_forecaster_goes_on_where_the_context_ends():
    config = {"model_type": "informer", "d_model": DIM, "prediction_length": 7, "context_length": 40}
    reading = read(config)
    assert part(reading, "decoder").input[0].offset == 40
    assert (part(reading, "decoder").served, part(reading, "encoder").served) == (7, 47)
    auto = read({**config, "model_type": "autoformer", "label_length": 3})
    assert part(auto, "decoder").input[0].offset == 37
    assert part(auto, "decoder").served == 10
    assert "auto-correlation" in " ".join(auto.notes)


def test_a_forecaster_without_lengths_has_a_known_encoder_only():
    reading = read({"model_type": "informer"})
    assert [p.name for p in reading.parts] == ["encoder"]
    assert "context_length" in " ".join(reading.notes)
    follows = read({"model_type": "informer", "prediction_length": 7})
    assert part(follows, "decoder").input[0].offset == 7
    assert ("context_length", "7") in [(a.key, a.value) for a in follows.assumed]
