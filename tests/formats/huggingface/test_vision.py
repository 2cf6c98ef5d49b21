"""Tables over patches: rows and widths of tiny towers of transformers, MAE's table entry by entry, relative biases."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from formats.huggingface.additive import config_class, model, part, read, weights
from oracles.sinusoids import mae
from posenc.errors import PosencError
from posenc.formats.huggingface import vision
from posenc.formulas.tables import grid_positions, sinusoidal_table
from posenc.spec import Learned

NAMES = ("position_embeddings", "position_embedding", "position_embedding.weight", "pos_embed")
WIDTH, LAYERS = 38, 3


def tiny(model_type: str, image: int, patch: int, **more):
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 2, "intermediate_size": 11}
    return config_class(model_type)(**{**sizes, "image_size": image, "patch_size": patch, **more})


@pytest.mark.parametrize("model_type", sorted(vision.PATCHES))
def test_a_tiny_tower_stores_the_rows_that_were_read(model_type):
    image, patch = (35, 35) if model_type == "internvl_vision" else 35, 5
    config = tiny(model_type, image, (5, 5) if model_type == "internvl_vision" else patch)
    positions = read(config).positions
    (table,) = positions.input
    stored = {w.shape[-2:] for w in weights(model(config), *NAMES).values()}
    assert stored == {(table.rows, table.dim)}
    assert table.shape == (7, 7)
    assert positions.served == table.rows
    assert len(positions.layers) == LAYERS


def test_a_picture_may_have_two_sides_and_patches_that_do_not_fill_it():
    config = tiny("vit", [40, 33], [5, 7])
    (table,) = read(config).positions.input
    assert table == Learned(WIDTH, shape=(8, 4), prefix=1)  # 33 // 7 = 4: the rest of the picture is cut off
    (weight,) = weights(model(config), "position_embeddings").values()
    assert tuple(weight.shape) == (1, table.rows, table.dim)


def test_registers_take_no_position():
    reading = read({"model_type": "dinov2_with_registers", "num_register_tokens": 4})
    assert reading.positions.input[0].prefix == 1
    assert "4 register tokens take no position" in reading.notes[0]


def test_a_switch_turns_the_table_off():
    assert read({"model_type": "internvl_vision", "use_absolute_position_embeddings": False}).positions.encodings == ()


def test_siglip2_has_a_square_table():
    config = config_class("siglip2_vision_model")(hidden_size=WIDTH, num_attention_heads=2, num_patches=49)
    (table,) = read(config).positions.input
    assert table == Learned(WIDTH, shape=(7, 7))
    (weight,) = weights(model(config), "position_embedding.weight").values()
    assert tuple(weight.shape) == (49, WIDTH)


def test_every_entry_of_maes_tables():
    config = config_class("vit_mae")(
        hidden_size=28,
        num_attention_heads=2,
        num_hidden_layers=2,
        intermediate_size=11,
        decoder_hidden_size=44,
        decoder_num_attention_heads=2,
        decoder_num_hidden_layers=3,
        decoder_intermediate_size=13,
        image_size=35,
        patch_size=5,
    )
    from transformers import ViTMAEForPreTraining

    net = ViTMAEForPreTraining(config)
    # transformers 5.24 leaves both tables of a new model at zero (one is skipped, one overwritten): run its code again
    assert not any(w.any() for w in weights(net, "position_embeddings", "decoder_pos_embed").values())
    for owner in (*net.modules(), *net.parameters()):
        owner._is_hf_initialized = False
    net.vit.embeddings.initialize_weights()
    net.decoder.initialize_weights(49)
    reading = read(config)
    for name, stored in (("encoder", "vit.embeddings.position_embeddings"), ("decoder", "decoder.decoder_pos_embed")):
        positions = part(reading, name)
        (encoding,) = positions.input
        theirs = net.get_parameter(stored)[0].detach().double().numpy()
        ours = sinusoidal_table(encoding, grid_positions((7, 7), columns_first=True))
        assert ours.shape == theirs.shape
        assert np.abs(ours - theirs).max() < 1e-7
        assert not ours[0].any()
        by_hand = np.array([[float(x) for x in mae(r, c, encoding.dim)] for r in range(7) for c in range(7)])
        assert np.abs(ours[1:] - by_hand).max() < 1e-14
        assert positions.served == 50
    assert len(part(reading, "decoder").layers) == 3


def test_llama_vision_has_two_tables_one_of_them_named():
    config = config_class("mllama_vision_model")(
        hidden_size=WIDTH, attention_heads=2, num_hidden_layers=3, num_global_layers=2, image_size=35, patch_size=5
    )
    positions = read(config).positions
    table, tiles = positions.input
    assert tiles.name == "gated tile positions"
    assert len(positions.layers) == 5
    embedding = weights(model(config), "gated_positional_embedding.embedding")
    assert [tuple(w.shape) for w in embedding.values()] == [(table.rows, table.dim)]
    assert positions.served == 4 * table.rows


def test_the_relative_bias_of_beit():
    config = tiny("beit", 35, 5, use_relative_position_bias=True, use_absolute_position_embeddings=True)
    positions = read(config).positions
    (bias,) = positions.kinds[0].encodings
    tables = weights(model(config), "relative_position_bias_table")
    assert len(tables) == LAYERS
    (shape,) = {tuple(t.shape) for t in tables.values()}
    assert f"{shape[0]} learned numbers" in bias.note
    assert "each layer its own" in bias.note
    (table,) = positions.input
    (weight,) = weights(model(config), "embeddings.position_embeddings").values()
    assert tuple(weight.shape) == (1, table.rows, table.dim)
    shared = read(tiny("beit", 35, 5, use_shared_relative_position_bias=True)).positions
    assert "shared by all layers" in shared.kinds[0].encodings[0].note
    assert read(tiny("beit", 35, 5)).positions.encodings == ()


def test_the_relative_bias_of_swin():
    config = config_class("swin")(
        image_size=40,
        patch_size=2,
        embed_dim=10,
        depths=[1, 2],
        num_heads=[2, 5],
        window_size=5,
        use_absolute_embeddings=True,
    )
    positions = read(config).positions
    (bias,) = positions.kinds[0].encodings
    net = model(config)
    tables = weights(net, "relative_position_bias_table")
    assert {t.shape[0] for t in tables.values()} == {81}
    assert bias.note.startswith("81 learned numbers")
    assert len(positions.layers) == len(tables) == 3
    (weight,) = weights(net, "embeddings.position_embeddings").values()
    assert tuple(weight.shape) == (1, positions.input[0].rows, positions.input[0].dim)
    second = read({"model_type": "swinv2", "window_size": 8, "pretrained_window_sizes": [4, 4, 4, 2]}).positions
    assert "8 x 8" in second.kinds[0].encodings[0].note
    assert "[4, 4, 4, 2]" in second.kinds[0].encodings[0].note


def test_sam_has_a_table_and_vectors_by_row_and_column():
    config = config_class("sam_vision_model")(
        hidden_size=26,
        num_attention_heads=2,
        num_hidden_layers=3,
        image_size=35,
        patch_size=5,
        window_size=3,
        global_attn_indexes=[1],
        mlp_dim=11,
        output_channels=7,
    )
    positions = read(config).positions
    net = model(config)
    (weight,) = weights(net, "pos_embed").values()
    assert tuple(weight.shape) == (1, *positions.input[0].shape, positions.input[0].dim)
    assert positions.layers == (1, 0, 1)
    for i, kind in enumerate(positions.layers):
        note = positions.kinds[kind].encodings[0].note
        rows = [w.shape[0] for w in weights(net.vision_encoder.layers[i], "rel_pos_h", "rel_pos_w").values()]
        assert f"{rows[0]} and {rows[1]} of each" in note
    plain = read({"model_type": "sam_vision_model", "use_rel_pos": False, "use_abs_pos": False}).positions
    assert plain.encodings == ()


BAD = [
    {"model_type": "vit", "patch_size": 0},
    {"model_type": "vit", "patch_size": 225},
    {"model_type": "vit", "image_size": [224, 224, 224]},
    {"model_type": "vit", "image_size": "224"},
    {"model_type": "vit", "image_size": 10**15},
    {"model_type": "vit", "hidden_size": 0},
    {"model_type": "clip_vision_model", "image_size": [224, -1]},
    {"model_type": "vit_mae", "hidden_size": 30},
    {"model_type": "siglip2_vision_model", "num_patches": 255},
    {"model_type": "siglip2_vision_model", "num_patches": 10**16},
    {"model_type": "swin", "depths": [10**9]},
    {"model_type": "swin", "depths": []},
    {"model_type": "swin", "depths": [4, -2]},
    {"model_type": "sam_vision_model", "global_attn_indexes": "all"},
    {"model_type": "beit", "use_relative_position_bias": 1},
]


@pytest.mark.parametrize("config", BAD, ids=str)
def test_bad_numbers_are_one_clear_error(config):
    with pytest.raises(PosencError) as caught:
        read(config)
    assert "\n" not in str(caught.value)


def test_clip_runs_with_the_rows_that_were_read():
    config = tiny("clip_vision_model", 35, 5)
    net = model(config, "cpu").eval()
    net(torch.randn(1, 3, 35, 35)).last_hidden_state.pow(2).sum().backward()
    (table,) = read(config).positions.input
    (weight,) = weights(net, "position_embedding.weight").values()
    assert weight.grad.abs().sum(dim=1).nonzero().numel() == table.rows
