"""Relative biases: T5's buckets, the slopes of BLOOM and MPT, and what is only named."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from formats.huggingface.additive import config_class, model, part, read, weights
from oracles.biases import bucket, press_slopes
from posenc.errors import FormatError, PosencError
from posenc.formats.huggingface import biases
from posenc.formulas.biases import alibi_at, alibi_slopes, t5_buckets
from posenc.spec import Alibi, Learned, T5Bias

T5 = {
    "d_model": 26,
    "d_kv": 5,
    "d_ff": 11,
    "num_heads": 7,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "vocab_size": 53,
    "relative_attention_num_buckets": 20,
    "relative_attention_max_distance": 61,
}


@pytest.mark.parametrize("model_type", sorted(biases.T5_TYPES))
def test_the_buckets_of_a_tiny_t5(model_type):
    config = config_class(model_type)(**T5)
    reading = read(config)
    assert [p.name for p in reading.parts] == ["decoder", "encoder"]
    net = model(config)
    for name, layers in (("decoder", 3), ("encoder", 2)):
        positions = part(reading, name)
        encoding = positions.kinds[0].encodings[0]
        tables = weights(getattr(net, name), "relative_attention_bias.weight")
        assert {tuple(t.shape) for t in tables.values()} == {(encoding.num_buckets, encoding.num_heads)}
        assert len(tables) == (layers if model_type == "umt5" else 1)  # the note about UMT5
        assert len(positions.layers) == layers
        assert encoding.bidirectional == (name == "encoder")
        relative = np.arange(-97, 98) if encoding.bidirectional else np.arange(-97, 1)
        attention = _attention(getattr(net, name))
        given = torch.tensor(relative)
        if model_type == "umt5":
            theirs = attention._relative_position_bucket(given)
        else:
            theirs = attention._relative_position_bucket(given, name == "encoder", 20, 61)
        ours = t5_buckets(relative, encoding.num_buckets, encoding.max_distance, bidirectional=encoding.bidirectional)
        assert ours.tolist() == theirs.tolist()
        assert ours.tolist() == [bucket(int(r), 20, 61, name == "encoder") for r in relative]


def _attention(stack):
    return next(m for m in stack.modules() if hasattr(m, "_relative_position_bucket"))


def test_the_decoder_of_t5_follows_the_encoder_unless_stated():
    t5 = {"model_type": "t5", "num_layers": 5}
    assert len(part(read(t5), "decoder").layers) == 5
    switch = {**t5, "model_type": "switch_transformers"}
    assert (
        len(part(read(switch), "decoder").layers)
        == config_class("switch_transformers")(num_layers=5).num_decoder_layers
    )


def test_longt5_adds_side_biases_only_in_its_global_form():
    config = {"model_type": "longt5", "encoder_attention_type": "transient-global", "global_block_size": 17}
    encodings = part(read(config), "encoder").kinds[0].encodings
    assert [e.kind for e in encodings] == ["t5_bias", "unmodelled"]
    assert "17" in encodings[1].note
    assert [e.kind for e in part(read({"model_type": "longt5"}), "encoder").kinds[0].encodings] == ["t5_bias"]


def test_mpnet_has_a_table_and_one_bias():
    config = config_class("mpnet")(hidden_size=26, num_attention_heads=2, num_hidden_layers=3, vocab_size=53)
    config.max_position_embeddings = 31
    positions = read(config).positions
    net = model(config, "cpu").eval()
    (bias,) = positions.kinds[0].encodings
    assert tuple(net.encoder.relative_attention_bias.weight.shape) == (bias.num_buckets, bias.num_heads)
    relative = np.arange(-150, 151)
    theirs = net.encoder.relative_position_bucket(torch.tensor(relative))
    assert t5_buckets(relative, bias.num_buckets, bias.max_distance).tolist() == theirs.tolist()
    (table,) = positions.input
    assert table.rows == net.embeddings.position_embeddings.weight.shape[0]
    net(torch.arange(3, 3 + positions.served)[None]).last_hidden_state.pow(2).sum().backward()
    reached = net.embeddings.position_embeddings.weight.grad.abs().sum(dim=1).nonzero().flatten()
    assert reached.tolist() == list(range(table.offset, table.rows))


@pytest.mark.parametrize("heads", [1, 3, 8, 12, 71])
def test_the_slopes_of_bloom(heads):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    config = config_class("bloom")(n_head=heads, hidden_size=2 * heads, n_layer=3)
    (encoding,) = read(config).positions.kinds[0].encodings
    assert encoding == Alibi(heads)
    theirs = build_alibi_tensor(torch.ones(1, 5), heads, torch.float32)[:, 0].double().numpy()  # slope * j
    row = alibi_at(encoding, np.arange(5) - 4)  # the last query
    shifted = theirs - theirs[:, -1:]
    assert np.allclose(shifted, row, rtol=1e-6, atol=0)
    assert np.allclose(alibi_slopes(heads), press_slopes(heads), rtol=1e-14, atol=0)


@pytest.mark.parametrize(("heads", "most"), [(3, 8), (8, 8), (12, 6), (20, 16), (71, 8)])
def test_the_slopes_of_mpt(heads, most):
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    config = {"model_type": "mpt", "n_heads": heads, "attn_config": {"alibi": True, "alibi_bias_max": most}}
    (encoding,) = read(config).positions.kinds[0].encodings
    theirs = build_mpt_alibi_tensor(heads, 5, alibi_bias_max=most)[:, 0].double().numpy()
    assert np.allclose(theirs, alibi_at(encoding, np.arange(5) - 4), rtol=1e-6, atol=0)


def test_mpt_without_alibi_has_a_table_unless_that_is_off_too():
    config = {"model_type": "mpt", "d_model": 26, "max_seq_len": 31, "attn_config": {"alibi": False}}
    reading = read(config)
    assert reading.positions.input == (Learned(26, shape=(31,)),)
    assert "transformers adds ALiBi all the same" in reading.notes[0]
    assert read({**config, "learned_pos_emb": False}).positions.encodings == ()
    with pytest.raises(FormatError, match="rope"):
        read({**config, "attn_config": {"rope": True}})
    assert read({**config, "attn_config": {"rope": False, "alibi": True}}).positions.encodings == (Alibi(16),)


V3 = {
    "model_type": "deberta-v2",
    "relative_attention": True,
    "position_buckets": 256,
    "max_relative_positions": -1,
    "pos_att_type": "p2c|c2p",
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "max_position_embeddings": 512,
    "num_hidden_layers": 12,
    "hidden_size": 768,
}


def test_deberta_is_named_with_its_numbers():
    positions = read(V3).positions
    assert positions.input == ()
    (encoding,) = positions.kinds[0].encodings
    assert encoding.name == "DeBERTa disentangled attention"
    for fact in ("p2c, c2p", "up to 512", "256 log buckets", "shared", "layer_norm"):
        assert fact in encoding.note
    assert read(V3).unread == ()
    biased = read({**V3, "position_biased_input": True, "pos_att_type": ["c2p"]}).positions
    assert biased.input == (Learned(768, shape=(512,)),)
    assert read({"model_type": "deberta"}).positions.kinds[0].encodings == ()


def test_a_tiny_deberta_stores_the_table_that_was_read():
    config = config_class("deberta-v2")(
        hidden_size=26, num_attention_heads=2, num_hidden_layers=2, vocab_size=53, max_position_embeddings=31
    )
    (table,) = read(config).positions.input
    (weight,) = weights(model(config), "embeddings.position_embeddings.weight").values()
    assert tuple(weight.shape) == (table.rows, table.dim)


def test_transformer_xl_is_named_with_its_numbers():
    xlnet = read({"model_type": "xlnet", "n_layer": 12, "clamp_len": 400, "untie_r": True}).positions
    note = xlnet.kinds[0].encodings[0].note
    assert "clamped at 400" in note
    assert "in each layer" in note
    assert "not clamped" in read({"model_type": "xlnet", "clamp_len": -1}).positions.kinds[0].encodings[0].note
    with pytest.raises(FormatError, match="n_layer is missing"):
        read({"model_type": "transfo-xl"})  # transformers 5 has no class whose defaults could stand in
    assert len(read({"model_type": "transfo-xl", "n_layer": 16}).positions.layers) == 16


BAD = [
    {"model_type": "t5", "relative_attention_num_buckets": 0},
    {"model_type": "t5", "relative_attention_num_buckets": 30},  # does not halve twice
    {"model_type": "t5", "relative_attention_num_buckets": 10**12},
    {"model_type": "t5", "relative_attention_max_distance": 8},
    {"model_type": "t5", "num_heads": 0},
    {"model_type": "t5", "num_decoder_layers": 10**10},
    {"model_type": "longt5", "encoder_attention_type": "global"},
    {"model_type": "bloom", "n_head": 10**12},
    {"model_type": "mpt", "attn_config": {"alibi_bias_max": -8}},
    {"model_type": "mpt", "attn_config": []},
    {"model_type": "mpnet", "max_position_embeddings": 2},
    {"model_type": "deberta-v2", "relative_attention": "yes"},
    {"model_type": "deberta-v2", "relative_attention": True, "pos_att_type": 7},
]


@pytest.mark.parametrize("config", BAD, ids=str)
def test_bad_numbers_are_one_clear_error(config):
    with pytest.raises(PosencError) as caught:
        read(config)
    assert "\n" not in str(caught.value)


def test_a_bias_has_the_class_defaults():
    assert part(read({"model_type": "t5"}), "encoder").encodings == (T5Bias(8),)
