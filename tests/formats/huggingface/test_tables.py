"""Learned tables: the rows and widths of tiny models of transformers, the rows that positions reach, bad numbers."""

from __future__ import annotations

import pytest
import torch

from formats.huggingface.additive import config_class, model, part, read, weights
from posenc.errors import FormatError, PosencError
from posenc.formats.huggingface import tables
from posenc.spec import Learned, Sinusoidal, Unmodelled

NAMES = (
    "position_embeddings.weight",
    "position_embedding.weight",
    "embed_positions.weight",
    "wpe.weight",
    "positions_embed.weight",
)
ROWS, WIDTH, LAYERS = 37, 38, 3
MORE = {
    "big_bird": {"attention_type": "original_full"},
    "convbert": {"head_ratio": 1},
    "fnet": {"num_attention_heads": None},
    "mra": {"max_position_embeddings": 64},
    "squeezebert": {"q_groups": 1, "k_groups": 1, "v_groups": 1, "post_attention_groups": 1, "intermediate_groups": 1}
    | {"output_groups": 1, "hidden_size": WIDTH},
}


def tiny(model_type: str, row: tables.Table):
    cls = config_class(model_type)
    sizes = {row.width[0]: WIDTH, row.rows[0]: ROWS, row.layers[0]: LAYERS, "vocab_size": 53, "num_attention_heads": 2}
    changes = {**sizes, **MORE.get(model_type, {})}
    return cls(**{key: value for key, value in changes.items() if value is not None})


@pytest.mark.parametrize("model_type", sorted(tables.TABLES))
def test_a_tiny_model_stores_the_rows_that_were_read(model_type):
    row = tables.TABLES[model_type]
    config = tiny(model_type, row)
    if model_type in ("rembert", "albert", "electra"):  # the table is narrower than the model
        config.hidden_size = 2 * WIDTH
    positions = read(config).positions
    (encoding,) = positions.input
    stored = {tuple(w.shape) for w in weights(model(config), *NAMES).values()}
    assert stored == {(encoding.rows, encoding.dim)}
    assert len(positions.layers) == LAYERS
    assert positions.served == encoding.shape[0] == encoding.rows - encoding.offset


@pytest.mark.parametrize("model_type", sorted(tables.ENCODER_DECODERS))
def test_both_stacks_of_a_tiny_encoder_decoder_store_the_rows_that_were_read(model_type):
    config = config_class(model_type)(
        d_model=WIDTH,
        max_position_embeddings=ROWS,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        vocab_size=53,
    )
    reading = read(config)
    assert [p.name for p in reading.parts] == ["decoder", "encoder"]
    for name, layers in (("decoder", 3), ("encoder", 2)):
        found = part(reading, name)
        (encoding,) = found.input
        stored = {tuple(w.shape) for w in weights(model(config), f"{name}.embed_positions.weight").values()}
        assert stored == {(encoding.rows, encoding.dim)}
        assert (found.served, len(found.layers)) == (ROWS, layers)


REACHED = ["roberta", "camembert", "opt", "bart", "bert", "nystromformer", "gpt2", "biogpt"]


@pytest.mark.parametrize("model_type", REACHED)
def test_tokens_reach_from_the_offset_to_the_last_row(model_type):
    """Feed a row of the longest length that the reading admits, and see which rows of the table get a gradient."""
    row = tables.TABLES.get(model_type)
    if row is None:
        config = config_class(model_type)(
            d_model=WIDTH, max_position_embeddings=ROWS, encoder_layers=1, decoder_layers=1, vocab_size=53
        )
        config.encoder_attention_heads = config.decoder_attention_heads = 2
    else:
        config = tiny(model_type, row)
        if model_type == "nystromformer":
            config.num_landmarks = config.segment_means_seq_len = ROWS
    positions = read(config).positions
    net = model(config, "cpu").eval()
    tokens = torch.arange(3, 3 + positions.served)[None]  # no padding among them
    net(tokens).last_hidden_state.pow(2).sum().backward()
    table = next(iter(weights(net, *NAMES).values()))
    reached = table.grad.abs().sum(dim=1).nonzero().flatten().tolist()
    offset = positions.input[0].offset
    assert reached == list(range(offset, offset + positions.served))
    assert reached[-1] == positions.input[0].rows - 1


def test_roberta_counts_the_rows_that_no_position_reaches():
    roberta = {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}
    (encoding,) = read(roberta).positions.input
    assert encoding == Learned(768, shape=(512,), offset=2)
    assert read({"model_type": "roberta"}).positions.served == 510  # the library's default counts 512 rows
    assert read({**roberta, "pad_token_id": 4}).positions.input[0] == Learned(768, shape=(509,), offset=5)


def test_old_switches_of_bert_are_named_not_taken_for_the_table():
    old = {"model_type": "bert", "position_embedding_type": "relative_key_query", "max_position_embeddings": 41}
    reading = read(old)
    assert reading.positions.input == ()
    (encoding,) = reading.positions.kinds[0].encodings
    assert isinstance(encoding, Unmodelled)
    assert "40" in encoding.note
    assert "transformers 5 ignores it" in reading.notes[0]
    assert read({**old, "position_embedding_type": "absolute"}).notes == ()
    with pytest.raises(FormatError, match="position_embedding_type"):
        read({**old, "position_embedding_type": "rotary"})


def test_one_key_turns_the_table_of_distilbert_into_sinusoids():
    config = {"model_type": "distilbert", "dim": 38, "n_layers": 3}
    assert read(config).positions.input == (Learned(38, shape=(512,)),)
    assert read({**config, "sinusoidal_pos_embds": True}).positions.input == (Sinusoidal(38),)


def test_the_second_name_of_a_length_is_read_where_it_agrees():
    gpt2 = {"model_type": "gpt2", "n_positions": 1024, "n_ctx": 1024}
    assert read(gpt2).unread == ()
    assert [u.key for u in read({**gpt2, "n_ctx": 512}).unread] == ["n_ctx"]


BAD = [
    {"model_type": "bert", "max_position_embeddings": 0},
    {"model_type": "bert", "max_position_embeddings": -512},
    {"model_type": "bert", "max_position_embeddings": 512.5},
    {"model_type": "bert", "max_position_embeddings": "512"},
    {"model_type": "bert", "hidden_size": 10**12},
    {"model_type": "bert", "hidden_size": True},
    {"model_type": "bert", "num_hidden_layers": 10**12},
    {"model_type": "bert", "num_hidden_layers": float("nan")},
    {"model_type": "roberta", "max_position_embeddings": 2},
    {"model_type": "roberta", "pad_token_id": -5},
    {"model_type": "gpt2", "n_positions": float("inf")},
    {"model_type": "bart", "decoder_layers": 10**9},
    {"model_type": "gpt_neo", "attention_types": [[["global"], 10**9]]},
    {"model_type": "gpt_neo", "attention_types": [[["global", "sideways"], 12]]},
    {"model_type": "gpt_neo", "attention_types": 7},
    {"model_type": "gpt_neo", "num_layers": 23},
    {"model_type": "longformer", "attention_window": 511},
    {"model_type": "longformer", "attention_window": [512, 256]},
]


@pytest.mark.parametrize("config", BAD, ids=str)
def test_bad_numbers_are_one_clear_error(config):
    with pytest.raises(PosencError) as caught:
        read(config)
    assert "\n" not in str(caught.value)


def test_layers_of_gpt_neo_alternate():
    config = config_class("gpt_neo")(num_layers=4, attention_types=[[["global", "local"], 2]], window_size=13)
    positions = read(config).positions
    assert [(positions.kinds[i].name, positions.kinds[i].window) for i in positions.layers] == [
        ("global", None),
        ("local", 13),
    ] * 2
    from transformers.models.gpt_neo.modeling_gpt_neo import GPTNeoSelfAttention

    mask = GPTNeoSelfAttention(config, "local", 1).bias[0, 0]
    assert int(mask[500].sum()) == 13  # the query itself included


def test_widths_of_longformer_belong_to_layers():
    positions = read({"model_type": "longformer", "num_hidden_layers": 3, "attention_window": [16, 64, 16]}).positions
    assert positions.layers == (0, 1, 0)
    assert [kind.window for kind in positions.kinds] == [9, 33]


def test_each_stack_of_led_has_rows_of_its_own():
    config = config_class("led")(d_model=38, max_encoder_position_embeddings=67, max_decoder_position_embeddings=23)
    reading = read(config)
    for name, rows in (("decoder", 23), ("encoder", 67)):
        assert part(reading, name).input == (Learned(38, shape=(rows,)),)
    assert [kind.window for kind in part(reading, "encoder").kinds] == [257]
