"""Grids of patches and the tables of ViT, MAE and SimpleViT."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import ViTConfig, ViTMAEConfig
from transformers.models.vit.modeling_vit import ViTEmbeddings
from transformers.models.vit_mae.modeling_vit_mae import ViTMAEDecoder, ViTMAEEmbeddings

from posenc.errors import ShapeError, SpecError
from posenc.nn.images import (
    mae_sinusoid,
    pad_to_patches,
    patch_grid,
    row_major_sinusoid,
    simple_vit_sinusoid,
    vit_table,
)
from posenc.nn.positions import grid


def test_sides_that_the_patch_does_not_divide():
    assert patch_grid(224, 160, 16) == (14, 10, 0, 0)
    assert patch_grid(30, 77, (15, 7)) == (2, 11, 0, 0)
    with pytest.raises(ShapeError, match=r"an image of 30 x 78, 0 and 1 pixels over\. Resize it, or pad it on purpose"):
        patch_grid(30, 78, (15, 7))
    assert patch_grid(31, 78, (15, 7), on_remainder="pad") == (3, 12, 14, 6)
    with pytest.raises(SpecError, match="error or pad; got cut"):
        patch_grid(31, 78, 7, on_remainder="cut")
    for sides in ((0, 5, 1), (5, 5, 0)):
        with pytest.raises(ShapeError, match="at least one pixel"):
            patch_grid(*sides)


def test_padding_keeps_every_pixel():
    images = torch.rand(2, 3, 31, 78)
    with pytest.raises(ShapeError, match="divide"):
        pad_to_patches(images, (15, 7))
    padded, found = pad_to_patches(images, (15, 7), on_remainder="pad", fill=-1.0)
    assert padded.shape == (2, 3, 3 * 15, 12 * 7)
    assert torch.equal(padded[..., :31, :78], images)
    assert (padded[..., 31:, :] == -1).all()
    assert (padded[..., 78:] == -1).all()
    assert (found.rows, found.columns) == (3, 12)


def test_mae_numbers():
    found = mae_sinusoid(16, prefix=0).vectors(grid((2, 3), columns_first=True), torch.float64)[0]
    row = found[1 * 3 + 2]  # h = 1, w = 2
    assert row[:5].tolist() == pytest.approx(
        [0.909297426826, 0.198669330795, 0.019998666693, 0.001999998667, -0.416146836547]
    )
    assert row[8:10].tolist() == pytest.approx([0.841470984808, 0.099833416647])


def test_mae_encoder_and_decoder_of_transformers():
    config = ViTMAEConfig(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=35, patch_size=7,
        decoder_hidden_size=32, decoder_num_hidden_layers=1, decoder_num_attention_heads=2, decoder_intermediate_size=8,
    )  # fmt: skip
    encoder, decoder = ViTMAEEmbeddings(config), ViTMAEDecoder(config, 25)
    encoder.initialize_weights()  # a whole ViTMAE made from a config leaves both tables at zero
    decoder.initialize_weights(25)
    at = grid((5, 5), columns_first=True)
    for theirs, dim in ((encoder.position_embeddings, 24), (decoder.decoder_pos_embed, 32)):
        found = mae_sinusoid(dim)(torch.zeros(1, 26, dim), at)
        assert (found - theirs).abs().max() < 1e-6
        rows_first = mae_sinusoid(dim)(torch.zeros(1, 26, dim), grid((5, 5)))
        assert (rows_first - theirs).abs().max() > 0.1


def test_simple_vit():
    """Loops over ``[sin x, cos x, sin y, cos y]`` with frequencies ``10000^(-i / (dim / 4 - 1))``."""
    rows, columns, dim = 3, 5, 12
    found = simple_vit_sinusoid(dim)(torch.zeros(2, 15, dim), grid((rows, columns), columns_first=True))[1]
    for y in range(rows):
        for x in range(columns):
            for c in range(dim):
                part, i = divmod(c, dim // 4)
                angle = (x if part < 2 else y) * 10000.0 ** (-i / (dim // 4 - 1))
                wave = math.cos if part % 2 else math.sin
                assert found[y * columns + x, c].item() == pytest.approx(wave(angle), abs=1e-7)
    mae = mae_sinusoid(dim, prefix=0)(torch.zeros(1, 15, dim), grid((rows, columns), columns_first=True))
    assert (mae[0] - found).abs().max() > 0.01  # not the same table
    with pytest.raises(SpecError, match="divisible by 4"):
        simple_vit_sinusoid(14)


def test_prefix_tokens_have_no_position():
    x = torch.randn(2, 2 + 15, 12)
    at = grid((3, 5), columns_first=True)
    encoding = mae_sinusoid(12, prefix=2)
    found = encoding(x, at)
    assert torch.equal(found[:, :2], x[:, :2])
    with_prefix = encoding(x, grid((3, 5), prefix=2, columns_first=True))
    assert torch.equal(with_prefix, found)
    permuted = torch.randperm(15)
    again = encoding(x, at._replace(ids=at.ids[..., permuted]))
    assert torch.equal((again - x)[:, 2:], (found - x)[:, 2 + permuted]) or torch.allclose(
        (again - x)[:, 2:], (found - x)[:, 2 + permuted], atol=1e-6
    )


def test_the_row_wrap_makes_false_neighbours():
    """The end of one row and the start of the next look as close as true neighbours; below lies ``columns`` away."""
    p = row_major_sinusoid(16, prefix=0).vectors(torch.arange(3 * 5), torch.float64)[0]
    kernel = (p @ p.T).reshape(3, 5, 3, 5)
    assert kernel[0, 4, 1, 0].item() == pytest.approx(kernel[0, 0, 0, 1].item(), abs=1e-12)
    assert kernel[0, 4, 1, 0] > kernel[0, 4, 1, 4]
    q = mae_sinusoid(16, prefix=0).vectors(grid((3, 5), columns_first=True), torch.float64)[0]
    kernel = (q @ q.T).reshape(3, 5, 3, 5)
    assert kernel[0, 4, 1, 0] < kernel[0, 4, 1, 4]
    assert kernel[0, 4, 1, 4].item() == pytest.approx(kernel[0, 0, 0, 1].item(), abs=1e-12)


@pytest.mark.parametrize(("height", "width"), [(70, 70), (35, 49), (14, 28)])
def test_vit_and_its_interpolation(height, width):
    config = ViTConfig(hidden_size=12, num_attention_heads=2, image_size=35, patch_size=7, hidden_dropout_prob=0.0)
    theirs = ViTEmbeddings(config)
    torch.nn.init.normal_(theirs.position_embeddings)
    table = vit_table(12, 5, 5)
    with torch.no_grad():
        table.weight.copy_(theirs.position_embeddings[0])
    x = torch.randn(2, 26, 12)
    assert torch.equal(table(x), x + theirs.position_embeddings)
    rows, columns, *_ = patch_grid(height, width, 7)
    tokens = torch.zeros(1, 1 + rows * columns, 12)
    found = table.resample((rows, columns))(tokens)
    wanted = theirs.interpolate_pos_encoding(tokens, height, width)
    assert (found - wanted).abs().max() < 1e-5
    assert torch.equal(found[:, 0], table.weight[None, 0])


def test_resampling_to_the_same_grid_changes_nothing():
    table = vit_table(12, 3, 5, prefix=2)
    assert torch.equal(table.resample((3, 5)).weight, table.weight)
    assert np.prod(table.resample((4, 7)).weight.shape) == (2 + 28) * 12
    with pytest.raises(ShapeError, match="as many axes"):
        table.resample(28)
