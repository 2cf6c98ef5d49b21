"""Towers that rotate by row and column: the angles that tiny towers of transformers apply to every patch."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from formats.huggingface.additive import config_class, model, part, read, weights
from posenc.errors import PosencError
from posenc.formats.huggingface import vision_rotary
from posenc.formulas import frequencies
from posenc.formulas.tables import grid_positions
from posenc.spec import Learned

ROWS, COLUMNS, HEAD = 3, 5, 20
GRID = grid_positions((ROWS, COLUMNS))  # row, column


def angles(encoding, positions):
    return frequencies(encoding).angles(positions)


def halves(theirs):
    """``(patches, pairs)`` of cos or sin laid out for pairs (i, i + d/2), after checking that both halves agree."""
    array = theirs.detach().double().numpy().reshape(-1, theirs.shape[-1])
    half = array.shape[1] // 2
    assert (array[:, :half] == array[:, half:]).all()
    return array[:, :half]


def close(theirs, ours):
    assert theirs.shape == ours.shape
    assert np.abs(theirs - ours).max() < 2e-6


QWEN = sorted(t for t in vision_rotary.QWEN if "omni" not in t)


@pytest.mark.parametrize("model_type", QWEN)
def test_qwen_towers(model_type):
    width = {"embed_dim" if model_type == "qwen2_vl_vision" else "hidden_size": 3 * HEAD}
    config = config_class(model_type)(
        num_heads=3, depth=4, rope_parameters={"rope_type": "axial", "rope_theta": 777.0}, **width
    )
    positions = read(config).positions
    encoding = positions.kinds[0].encodings[0]
    assert (encoding.head_dim, encoding.interleaved, encoding.schedule.base) == (HEAD, False, 777.0)
    net = model(config, "cpu")
    cos, sin = net.rotary_pos_emb(torch.zeros(1), torch.tensor(GRID))
    close(halves(cos), np.cos(angles(encoding, GRID)))
    close(halves(sin), np.sin(angles(encoding, GRID)))
    tables = weights(net, "pos_embed.weight")
    assert [tuple(w.shape) for w in tables.values()] == [(e.rows, e.dim) for e in positions.input]
    assert len(positions.input) == (0 if model_type.startswith(("qwen2_vl", "qwen2_5")) else 1)
    assert len(positions.layers) == 4


def test_windows_of_qwen2_5():
    config = {"model_type": "qwen2_5_vl_vision", "depth": 5, "fullatt_block_indexes": [1, 4], "window_size": 56}
    positions = read(config).positions
    assert positions.layers == (0, 1, 0, 0, 1)
    assert [kind.name for kind in positions.kinds] == ["windows of 56 pixels", "full"]


def test_dinov3():
    config = config_class("dinov3_vit")(
        hidden_size=3 * HEAD, num_attention_heads=3, num_hidden_layers=2, image_size=56, patch_size=7, rope_theta=77.0
    )
    reading = read(config)
    encoding = reading.positions.kinds[0].encodings[0]
    net = model(config, "cpu").eval()
    rope = next(m for m in net.modules() if type(m).__name__ == "DINOv3ViTRopePositionEmbedding")
    cos, sin = rope(torch.zeros(1, 3, 7 * ROWS, 7 * COLUMNS))
    at = grid_positions((ROWS, COLUMNS), coordinates=encoding.axes.coordinates)
    assert encoding.axes.coordinates == "unit"
    close(halves(cos), np.cos(angles(encoding, at)))
    close(halves(sin), np.sin(angles(encoding, at)))
    by_hand = 2 * math.pi * (2 * 4.5 / COLUMNS - 1) * 77.0 ** (-4 * 2 / HEAD)  # last column, its third pair
    assert angles(encoding, at)[-1, HEAD // 4 + 2] == pytest.approx(by_hand, rel=1e-14)
    assert "rescale 2" in reading.notes[0]


def test_llama4():
    config = config_class("llama4_vision_model")(
        hidden_size=3 * HEAD,
        num_attention_heads=3,
        num_hidden_layers=2,
        image_size=35,
        patch_size=5,
        intermediate_size=11,
        vision_output_dim=13,
        projector_input_dim=13,
        projector_output_dim=13,
    )
    positions = read(config).positions
    encoding = positions.kinds[0].encodings[0]
    assert encoding.interleaved
    from transformers.models.llama4.modeling_llama4 import Llama4VisionRotaryEmbedding

    theirs = Llama4VisionRotaryEmbedding(config).freqs_ci[:, 0].numpy()  # (patches + class, pairs), complex
    at = grid_positions((7, 7), columns_first=True) + 1
    close(theirs[:-1].real, np.cos(angles(encoding, at)))
    close(theirs[:-1].imag, np.sin(angles(encoding, at)))
    assert (theirs[-1] == 1).all()  # the class token
    (table,) = positions.input
    (weight,) = weights(model(config), "positional_embedding_vlm").values()
    assert tuple(weight.shape) == (table.rows, table.dim)
    assert table == Learned(3 * HEAD, shape=(7, 7), prefix=1)


def test_pixtral_deals_one_schedule_out_to_two_axes():
    config = config_class("pixtral")(
        hidden_size=3 * HEAD,
        num_attention_heads=3,
        num_hidden_layers=2,
        image_size=35,
        patch_size=5,
        intermediate_size=11,
    )
    encoding = read(config).positions.kinds[0].encodings[0]
    net = model(config, "cpu")
    rope = next(m for m in net.modules() if type(m).__name__ == "PixtralVisionRotaryEmbedding")
    cos, sin = rope(torch.zeros(1), torch.tensor(GRID))
    close(halves(cos), np.cos(angles(encoding, GRID)))
    close(halves(sin), np.sin(angles(encoding, GRID)))
    theta = frequencies(encoding).theta
    for i in range(HEAD // 4):  # rows take 0, 2, 4, …; columns 1, 3, 5, …
        assert theta[0, i] == pytest.approx(10000.0 ** (-2 * (2 * i) / HEAD), rel=1e-14)
        assert theta[1, HEAD // 4 + i] == pytest.approx(10000.0 ** (-2 * (2 * i + 1) / HEAD), rel=1e-14)


def test_gemma4_is_named_and_its_two_tables_are_read():
    config = config_class("gemma4_vision")(
        hidden_size=26,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=12,
        num_hidden_layers=2,
        intermediate_size=11,
        position_embedding_size=17,
    )
    positions = read(config).positions
    (weight,) = weights(model(config), "position_embedding_table").values()
    assert tuple(weight.shape) == (len(positions.input), positions.input[0].rows, positions.input[0].dim)
    note = positions.kinds[0].encodings[0].note
    assert "base 100" in note
    assert "channel i pairs with i + 3" in note


def test_the_base_may_stand_in_both_places():
    old = {"model_type": "pixtral", "head_dim": 64, "rope_theta": 5000.0}
    new = {"model_type": "pixtral", "head_dim": 64, "rope_parameters": {"rope_theta": 5000.0, "rope_type": "axial"}}
    assert read(old).parts == read(new).parts
    assert read(old).unread == read(new).unread == ()


BAD = [
    {"model_type": "dinov3_vit", "num_attention_heads": 5},
    {"model_type": "dinov3_vit", "num_attention_heads": 64},  # a head of 6 channels has no two axes
    {"model_type": "dinov3_vit", "rope_theta": 1.0},
    {"model_type": "dinov3_vit", "rope_theta": float("nan")},
    {"model_type": "dinov3_vit", "rope_theta": -100},
    {"model_type": "qwen2_vl_vision", "depth": 10**12},
    {"model_type": "qwen2_vl_vision", "num_heads": 0},
    {"model_type": "qwen3_vl_vision", "num_position_embeddings": 2303},
    {"model_type": "pixtral", "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}},
    {"model_type": "pixtral", "rope_parameters": [1]},
    {"model_type": "pixtral", "hidden_size": 2**20, "num_attention_heads": 1, "head_dim": 2**40},
]


@pytest.mark.parametrize("config", BAD, ids=str)
def test_bad_numbers_are_one_clear_error(config):
    with pytest.raises(PosencError) as caught:
        read(config)
    assert "\n" not in str(caught.value)


def test_the_notes_name_the_axes():
    cases = SimpleNamespace(
        row_first=("qwen2_vl_vision", "dinov3_vit", "pixtral"), column_first=("llama4_vision_model",)
    )
    for model_type in cases.row_first:
        assert any("axes: row, column" in note for note in read({"model_type": model_type}).notes)
    for model_type in cases.column_first:
        assert any("axes: column, row" in note for note in read({"model_type": model_type}).notes)
    assert part(read({"model_type": "vit_mae"}), "encoder").input[0].axes is not None
