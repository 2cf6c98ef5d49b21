"""M-RoPE positions against transformers, and by hand where transformers 5 departs from the paper."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from posenc.errors import ShapeError, SpecError
from posenc.nn.mixed_media import multimodal
from posenc.nn.rotary import RotaryEmbedding
from posenc.spec import Interleave, Split

IMAGES, VIDEOS = torch.tensor([[1, 4, 6], [1, 8, 2]]), torch.tensor([[3, 4, 4]])
TOGETHER = [0] * 3 + [1] * 6 + [0] * 2 + [2] * 12 + [0] * 4
APART = [0] * 3 + [1] * 6 + [0] * 2 + [2] * 4 + [0] + [2] * 4 + [0] * 2 + [2] * 4 + [0] * 4
SHORT = [0] * 5 + [1] * 4 + [0] * 2


def batch(row):
    padding = len(row) - len(SHORT)
    mask = torch.ones(2, len(row), dtype=torch.int64)
    mask[1, :padding] = 0
    return torch.tensor([row, [0] * padding + SHORT]), mask


def theirs(model, types, mask, tokens_per_second=None, **settings):
    """transformers' get_rope_index without the model around it."""
    vision = SimpleNamespace(spatial_merge_size=2, tokens_per_second=tokens_per_second)
    stub = SimpleNamespace(config=SimpleNamespace(vision_config=vision))
    stub.get_vision_position_ids = model.get_vision_position_ids.__get__(stub)
    return model.get_rope_index(stub, torch.zeros_like(types), types, IMAGES, VIDEOS, attention_mask=mask, **settings)


def test_qwen2_vl():
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLModel

    types, mask = batch(TOGETHER)
    ids, delta = theirs(Qwen2VLModel, types, mask)
    mine = multimodal(types, IMAGES, VIDEOS, merge=2, attention_mask=mask, text_after="grid")
    assert torch.equal(mine.at.ids[:, :, 0], ids)
    assert torch.equal(mine.delta, delta[:, 0])


@pytest.mark.parametrize("seconds", [1.0, 0.75, 2.5])
def test_qwen2_5_vl(seconds):
    from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel

    types, mask = batch(TOGETHER)
    ids, _ = theirs(Qwen2_5_VLModel, types, mask, 2, second_per_grid_ts=torch.tensor([seconds]))
    settings = {"merge": 2, "attention_mask": mask, "tokens_per_second": 2, "seconds_per_patch": [seconds]}
    mine = multimodal(types, IMAGES, VIDEOS, text_after="grid", **settings)
    assert torch.equal(mine.at.ids[:, :, 0], ids)
    assert not torch.equal(
        mine.at.ids, multimodal(types, IMAGES, VIDEOS, merge=2, attention_mask=mask, text_after="grid").at.ids
    )


def test_qwen3_vl():
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLModel

    types, mask = batch(APART)
    ids, _ = theirs(Qwen3VLModel, types, mask)
    for text_after in ("grid", "largest"):  # one frame at a time: both rules agree
        mine = multimodal(
            types, IMAGES, VIDEOS, merge=2, attention_mask=mask, separate_frames=True, text_after=text_after
        )
        assert torch.equal(mine.at.ids[:, :, 0], ids)


def test_text_goes_on_after_the_largest_position():
    """The example of the Qwen2.5-VL pull request: 3 patches in time, 50 positions apart; text begins at 101."""
    types = torch.tensor([[2] * 12 + [0] * 5])
    at = multimodal(types, videos=[(3, 2, 2)], tokens_per_second=25, seconds_per_patch=2.0).at.ids[:, 0, 0]
    assert at[0].tolist() == [0] * 4 + [50] * 4 + [100] * 4 + [101, 102, 103, 104, 105]
    assert at[1].tolist() == [0, 0, 1, 1] * 3 + [101, 102, 103, 104, 105]
    assert at[2].tolist() == [0, 1, 0, 1] * 3 + [101, 102, 103, 104, 105]
    grid = multimodal(types, videos=[(3, 2, 2)], tokens_per_second=25, seconds_per_patch=2.0, text_after="grid")
    assert grid.at.ids[0, 0, 0, 12:].tolist() == [2, 3, 4, 5, 6]  # transformers 5: text stands inside the video's time


def test_neighbouring_grids_need_no_text_between():
    types = torch.tensor([[1, 1, 1, 1, 1, 1, 0]])
    found = multimodal(types, images=[(1, 2, 2), (1, 1, 2)])
    assert found.at.ids[:, 0, 0].tolist() == [[0, 0, 0, 0, 2, 2, 4], [0, 0, 1, 1, 2, 2, 4], [0, 1, 0, 1, 2, 3, 4]]
    assert found.next.tolist() == [5]
    assert found.delta.tolist() == [-2]


@pytest.mark.parametrize(
    "axes", [Split((2, 3, 3), own_schedule=False), Interleave((4, 2, 2))], ids=["split", "interleave"]
)
def test_text_alone_is_plain_rotary(axes):
    several, plain = RotaryEmbedding(16, axes=axes), RotaryEmbedding(16)
    x = torch.randn(1, 3, 7, 16)
    at = multimodal(torch.zeros(1, 7, dtype=torch.int64)).at
    assert torch.equal(several.rotate(x, several.prepare(at)), plain.rotate(x, plain.prepare(torch.arange(7))))


TYPES = torch.tensor([[0, 1, 1, 1, 1, 0]])


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: multimodal(TYPES), ShapeError, "every run of patches has its grid; got too few images"),
        (lambda: multimodal(TYPES, [(1, 2, 2), (1, 2, 2)]), ShapeError, "an image without any"),
        (
            lambda: multimodal(TYPES, [(1, 2, 3)]),
            ShapeError,
            "a grid of 6 tokens has its tokens together; got 4 at token 1",
        ),
        (lambda: multimodal(TYPES, [(2**30, 2**30, 2**30)]), ShapeError, "has its tokens together"),
        (lambda: multimodal(TYPES, [(1, 3, 2)], merge=2), ShapeError, "divide by merge=2"),
        (lambda: multimodal(TYPES, [(1, 2)]), ShapeError, "images are .time, height, width."),
        (lambda: multimodal(TYPES * 3, [(1, 2, 2)]), ShapeError, "token types are 0"),
        (lambda: multimodal(TYPES[0]), ShapeError, "token_types is .batch, tokens."),
        (lambda: multimodal(TYPES, attention_mask=TYPES[:, 1:]), ShapeError, "the attention mask is .1, 6."),
        (lambda: multimodal(TYPES, videos=[(1, 2, 2)], seconds_per_patch=[1.0, 2.0]), ShapeError, "each of 1 videos"),
        (lambda: multimodal(TYPES, text_after="later"), SpecError, "after the largest"),
    ],
)
def test_bad_input_names_the_rule(act, error, words):
    with pytest.raises(error, match=words):
        act()
