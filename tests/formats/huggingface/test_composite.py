"""Composite configs: every stack under its role, inner types, old flat files, what cannot be read."""

from __future__ import annotations

import pytest

from formats.huggingface import published_additive as published
from formats.huggingface.additive import config_class, part, read
from posenc.errors import FormatError, PosencError
from posenc.formats.huggingface import registry
from posenc.formats.huggingface.composite import COMPOSITES, DEPTH
from posenc.spec import Learned, Rotary, Split

ODD_DEFAULTS = {"glm4v", "glm4v_moe", "qwen3_omni_moe", "qwen3_omni_moe_thinker"}
"""Their classes' own defaults of the text stack do not fit each other (sections, an odd head)."""


@pytest.mark.parametrize("outer", sorted(COMPOSITES))
def test_inner_types_are_those_of_transformers(outer):
    row = COMPOSITES[outer]
    specs = config_class(outer).sub_configs_defaults
    for inner in row.inner:
        spec = specs[inner.key]
        theirs = getattr(spec, "model_type", None) or getattr(spec, "config_class", spec).model_type
        assert inner.model_type == theirs, inner.key
        assert inner.optional or not getattr(spec, "optional", False)


@pytest.mark.parametrize("outer", sorted(set(COMPOSITES) - ODD_DEFAULTS))
def test_a_config_as_transformers_writes_it(outer):
    config = config_class(outer)
    if outer in ("encoder-decoder", "vision-encoder-decoder", "speech-encoder-decoder", "vision-text-dual-encoder"):
        first, second = (i.model_type for i in reversed(COMPOSITES[outer].inner))
        if outer == "vision-text-dual-encoder":
            written = {
                "vision_config": config_class("vit")().to_dict(),
                "text_config": config_class("bert")().to_dict(),
            }
        else:
            written = {"encoder": config_class(first)().to_dict(), "decoder": config_class(second)().to_dict()}
        written["model_type"] = outer
    else:
        written = config().to_dict()
    reading = read(written)
    roles = [inner.role for inner in COMPOSITES[outer].inner]
    modelled = [i for i in COMPOSITES[outer].inner if i.model_type in registry.model_types()]
    found = [p.name for p in reading.parts]
    assert len(set(found)) == len(found)
    if roles[0] != "thinker":
        assert found[0] == roles[0]
        for inner in modelled:
            if isinstance(written.get(inner.key), dict):
                assert any(name.startswith(inner.role) for name in found)
    assert not [n for n in reading.notes if "could not be read" in n]


def test_qwen2_vl_in_its_old_flat_file():
    reading = read(published.QWEN2_VL_7B)
    assert [p.name for p in reading.parts] == ["text", "vision"]
    (text,) = part(reading, "text").encodings
    assert text == Rotary(128, base=1e6, axes=Split((16, 24, 24), own_schedule=False))
    assert part(reading, "text").served == 32768
    assert len(part(reading, "text").layers) == 28
    (vision,) = part(reading, "vision").encodings
    assert vision == Rotary(80, axes=Split((20, 20)))
    assert len(part(reading, "vision").layers) == 32
    assert reading.unread == ()
    assert any("top level" in note for note in reading.notes)


def test_the_flat_file_and_the_nested_one_read_alike():
    flat = published.QWEN2_VL_7B
    inner = {k: v for k, v in flat.items() if k not in ("vision_config", "model_type")}
    nested = {
        "model_type": "qwen2_vl",
        "text_config": {**inner, "model_type": "qwen2_vl_text"},
        "vision_config": {**flat["vision_config"], "model_type": "qwen2_vl_vision"},
    }
    assert read(nested).parts == read(flat).parts
    assert (
        read({**nested, "vision_config": {**nested["vision_config"], "model_type": "qwen2_vl"}}).parts
        == read(flat).parts
    )
    changed = {**nested, "text_config": {**nested["text_config"], "rope_theta": 1010000.0}}
    assert read(changed).parts[0] != read(flat).parts[0]
    assert read(changed).parts[1] == read(flat).parts[1]


def test_transformers_rewrites_the_flat_file_to_the_same_values():
    rewritten = config_class("qwen2_vl")(**{k: v for k, v in published.QWEN2_VL_7B.items() if k != "model_type"})
    assert read(rewritten.to_dict()).parts == read(published.QWEN2_VL_7B).parts


def test_qwen2_5_vl_names_its_vision_stack_like_itself():
    reading = read(published.QWEN2_5_VL_7B)
    vision = part(reading, "vision")
    assert vision.encodings == (Rotary(80, axes=Split((20, 20))),)
    assert [i for i, kind in enumerate(vision.layers) if vision.kinds[kind].name == "full"] == [7, 15, 23, 31]
    assert part(reading, "text").served == 128000
    # tokens per second make the time axis of video; nothing here turns them into positions
    assert [u.key for u in reading.unread] == []


def test_gemma3_whole():
    reading = read(published.GEMMA3_4B)
    text, vision = part(reading, "text"), part(reading, "vision")
    bases = {kind.name: kind.encodings[0].schedule.base for kind in text.kinds}
    assert bases == {"sliding_attention": 1e4, "full_attention": 1e6}
    scaled = {kind.name: len(kind.encodings[0].scaling) for kind in text.kinds}
    assert scaled == {"sliding_attention": 0, "full_attention": 1}
    assert len(text.layers) == 34
    assert vision.input == (Learned(1152, shape=(64, 64)),)
    assert vision.served == 4096
    assert reading.unread == ()


def test_llava_whole():
    reading = read(published.LLAVA_1_5_7B)
    assert part(reading, "text").encodings == (Rotary(128),)
    assert part(reading, "text").served == 4096
    assert part(reading, "vision").input == (Learned(1024, shape=(24, 24), prefix=1),)
    assert part(reading, "vision").served == 577
    assert "text_config.hidden_size" in [a.key for a in reading.assumed]  # LLaVA's file relies on LlamaConfig


def test_other_published_composites():
    pali = read(published.PALIGEMMA_3B)
    assert part(pali, "vision").input == (Learned(1152, shape=(16, 16)),)  # image_size is the class's 224
    assert part(pali, "text").encodings == (Rotary(256),)
    pixtral = read(published.PIXTRAL_12B)
    assert part(pixtral, "vision").encodings[0].schedule.kind == "explicit"
    assert part(pixtral, "text").encodings == (Rotary(128, base=1e9),)
    audio = read(published.QWEN2_AUDIO_7B)
    assert part(audio, "audio").input == (Learned(1280, shape=(1500,)),)
    siglip = read(published.SIGLIP_B16)
    assert part(siglip, "text").input == (Learned(768, shape=(64,)),)
    assert part(siglip, "vision").input == (Learned(768, shape=(14, 14)),)


def test_an_inner_config_of_an_encoder_decoder_is_read_by_its_own_type():
    config = {
        "model_type": "vision-encoder-decoder",
        "encoder": {"model_type": "deit", "image_size": 384},
        "decoder": {"model_type": "trocr", "d_model": 1024},
    }
    reading = read(config)
    assert part(reading, "decoder").input == (Learned(1024, shape=(512,), offset=2),)
    assert part(reading, "encoder").input == (Learned(768, shape=(24, 24), prefix=2),)


def test_several_stacks_of_an_inner_config_keep_their_names():
    config = {
        "model_type": "vision-encoder-decoder",
        "encoder": {"model_type": "vit"},
        "decoder": {"model_type": "bart"},
    }
    assert [p.name for p in read(config).parts] == ["decoder decoder", "decoder encoder", "encoder"]


def test_a_stack_that_is_not_modelled_becomes_a_note():
    config = {
        **published.LLAVA_1_5_7B,
        "vision_config": {"model_type": "eva<02>", "image_size": 448, "rope_theta": 1e4},
    }
    reading = read(config)
    assert [p.name for p in reading.parts] == ["text"]
    assert "vision part of type 'eva<02>' is not modelled" in reading.notes
    hostile = read({**config, "vision_config": {"model_type": "x\ny" * 10**5}})
    assert all(len(note) < 200 and "\n" not in note for note in hostile.notes)
    assert "vision_config.rope_theta" in [u.key for u in reading.unread]  # never taken for a generic rotary decoder


def test_a_stack_that_cannot_be_read_becomes_a_note():
    broken = {**published.LLAVA_1_5_7B["vision_config"], "patch_size": 0}
    reading = read({**published.LLAVA_1_5_7B, "vision_config": broken})
    assert [p.name for p in reading.parts] == ["text"]
    assert any("could not be read" in note and "patch_size" in note for note in reading.notes)
    without = read({k: v for k, v in published.LLAVA_1_5_7B.items() if k != "vision_config"})
    assert any("no vision_config" in note for note in without.notes)


def test_optional_stacks_may_be_absent():
    reading = read({"model_type": "gemma4", "text_config": {"model_type": "gemma4_text"}, "vision_config": None})
    assert [p.name for p in reading.parts] == ["text"]
    assert reading.notes == ()


def test_the_type_of_a_main_stack_may_be_missing():
    config = {"model_type": "llava", "text_config": {"hidden_size": 4096}, "vision_config": {"patch_size": 14}}
    reading = read(config)
    assert [p.name for p in reading.parts] == ["text", "vision"]
    assumed = {a.key: a.value for a in reading.assumed}
    assert assumed["text_config.model_type"] == "llama"
    assert assumed["vision_config.model_type"] == "clip_vision_model"


def nested(levels: int) -> dict:
    config: dict = {"model_type": "llama"}
    for level in range(levels):
        config = {"model_type": ("llava", "llava_next")[level % 2], "text_config": config}
    return config


BAD = [
    {"model_type": "llava"},
    {"model_type": "llava", "text_config": []},
    {"model_type": "llava", "text_config": {"model_type": "no such model"}},
    {"model_type": "llava", "text_config": {"model_type": 7}},
    {"model_type": "llava", "text_config": {"model_type": "llava"}},
    {"model_type": "clip", "text_config": {"model_type": "clip_text_model", "hidden_size": -1}},
    {"model_type": "encoder-decoder", "encoder": {"model_type": "bert"}},
    nested(DEPTH + 2),
    nested(300),
]


@pytest.mark.parametrize("config", BAD, ids=lambda c: str(c)[:80])
def test_a_main_stack_that_cannot_be_read_is_one_clear_error(config):
    with pytest.raises(PosencError) as caught:
        read(config)
    assert "\n" not in str(caught.value)


def test_a_few_levels_are_read():
    assert [p.name for p in read(nested(3)).parts] == ["text"]


def test_a_missing_main_stack_says_where_it_should_be():
    with pytest.raises(FormatError, match="text_config is missing"):
        read({"model_type": "llava", "vision_config": {"model_type": "clip_vision_model"}})
