"""What a reading reports, refuses and never does silently."""

from __future__ import annotations

import math
from typing import Any

import pytest

from posenc.analysis.comparison import diff
from posenc.errors import FormatError, PosencError
from posenc.formats.huggingface import model_types, read_config
from posenc.formulas.scalings import frequencies
from posenc.records import Reading
from posenc.spec import Alibi, QueryScale

BASE = {"model_type": "llama", "hidden_size": 96, "num_attention_heads": 4, "num_hidden_layers": 5,
        "max_position_embeddings": 4096, "rope_theta": 7e5}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 3.0, "original_max_position_embeddings": 1024}


def read(**changes: Any) -> Reading:
    return read_config({**BASE, **changes}, name="n", source="s")


def test_an_unknown_type_without_rope_keys_is_named_with_near_misses() -> None:
    with pytest.raises(FormatError, match=r"got lama\. Near: .*llama"):
        read_config({"model_type": "lama", "hidden_size": 8}, name="n", source="s")
    with pytest.raises(FormatError, match="names its model_type"):
        read_config({"hidden_size": 8, "num_attention_heads": 2}, name="n", source="s")


def test_an_unknown_type_with_rope_keys_says_that_its_pairs_are_assumed() -> None:
    reading = read(model_type="lama")
    assert str(reading.encodings()[0]) == "rotary(24, base=700000)"
    assert any("pairs (i, i + d/2) assumed: model type 'lama' is not known" in a.why for a in reading.assumed)
    assert any("generic" in note for note in reading.notes)


def test_an_unknown_type_with_latent_attention_is_not_taken_for_a_plain_head() -> None:
    with pytest.raises(FormatError, match="got lama"):
        read(model_type="lama", qk_rope_head_dim=64)


def test_a_type_whose_rotary_is_its_own_is_named_and_not_taken_for_plain_rotary() -> None:
    reading = read(model_type="deepseek_v4", head_dim=512)
    assert [e.kind for e in reading.encodings()] == ["unmodelled"]
    assert any("not modelled" in note for note in reading.notes)


def test_a_missing_base_is_assumed_aloud_and_for_unknown_types_refused() -> None:
    reading = read_config({k: v for k, v in BASE.items() if k != "rope_theta"}, name="n", source="s")
    assert [(a.key, a.value) for a in reading.assumed] == [("rope_theta", "10000.0")]
    with pytest.raises(FormatError, match="rope_theta is missing"):
        read(model_type="lama", rope_theta=None, rope_scaling={"type": "linear", "factor": 2.0})


def test_unread_position_keys_are_reported_also_inside_the_block() -> None:
    reading = read(
        rope_scaling={**YARN, "attn_factor": 1.5, "finetuned": True}, use_alibi=True, routed_scaling_factor=2
    )
    assert {u.key for u in reading.unread} == {"rope_scaling.attn_factor", "rope_scaling.finetuned", "use_alibi"}


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"rope_type": "yarm", "factor": 2.0}, r"rope_scaling.rope_type is a known one; got yarm\. Known: .*yarn"),
        ({"type": "<b>"}, "known one; got <b>"),
        ({"type": 3}, "is a string"),
        ({"type": "linear"}, "factor is missing"),
        ({"type": "linear", "factor": "2"}, "finite number"),
        ({"type": "linear", "factor": float("nan")}, "finite number"),
        ({"type": "linear", "factor": -2.0}, "greater than or equal to 1"),
        ({"type": "linear", "factor": True}, "finite number"),
        ({**YARN, "original_max_position_embeddings": 0}, "at least 1"),
        ({**YARN, "original_max_position_embeddings": 10.5}, "whole number"),
        ({**YARN, "truncate": "no"}, "true or false"),
        ({"type": "longrope", "short_factor": [1.0] * 12, "long_factor": [1.0] * 11}, "12 pairs|each pair"),
        ({"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}, "12 pairs"),
        ({"type": "longrope", "short_factor": "x", "long_factor": [1.0]}, "list of numbers"),
        ({"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}, "high_freq_factor is missing"),
        ([1, 2], "is an object"),
        ({"full_attention": {"rope_type": "default"}}, "no layer types"),
    ],
)
def test_impossible_blocks_are_one_clear_line(block: Any, message: str) -> None:
    with pytest.raises(PosencError, match=message) as caught:
        read(rope_scaling=block)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 0}, "at least 1"),
        ({"hidden_size": -96}, "at least 1"),
        ({"hidden_size": 10**12}, "less than or equal"),
        ({"num_hidden_layers": 10**12}, r"lies in 1\.\.4096"),
        ({"rope_theta": 1.0}, "exceeds 1"),
        ({"rope_theta": -5.0}, "exceeds 1"),
        ({"head_dim": 23}, "must be even"),
        ({"partial_rotary_factor": 1.5}, r"lies in 0\.\.1"),
        ({"max_position_embeddings": 0}, "at least 1"),
        ({"model_type": "gemma2", "layer_types": ["full_attention"]}, "one type for each of the 5 layers"),
        ({"model_type": "smollm3", "no_rope_layers": [1, 0]}, "one entry for each"),
        ({"model_type": "smollm3", "no_rope_layers": [2] * 5}, "list of 0 and 1"),
        (
            {"model_type": "qwen2_vl_text", "rope_scaling": {"type": "mrope", "mrope_section": [1, 2, 3]}},
            "add up to 12",
        ),
        ({"model_type": ["llama"]}, "is a string"),
    ],
)
def test_impossible_numbers_are_one_clear_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PosencError, match=message):
        read(**changes)


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ({"type": "linear", "factor": 0.5}, "greater than or equal to 1"),
        ({**YARN, "beta_fast": 1.0, "beta_slow": 32.0}, "beta_fast must not be below beta_slow"),
        ({"type": "llama3", "factor": 8.0, "original_max_position_embeddings": 512, "low_freq_factor": 4.0,
          "high_freq_factor": 1.0}, "low_freq_factor must not exceed"),
    ],
)  # fmt: skip
def test_wrong_mathematics_that_engines_run_is_read_as_executed(block: dict[str, Any], fault: str) -> None:
    reading = read(rope_scaling=block)
    assert len(reading.faults) == 1
    assert fault in reading.faults[0]
    assert frequencies(reading.encodings()[0]).pairs == 12


def test_original_length_beside_the_block_wins_in_the_flat_form() -> None:
    reading = read(rope_scaling=YARN, original_max_position_embeddings=2048)
    assert reading.positions.original == 2048
    assert any("1024" in n and "2048" in n for n in reading.notes)
    dropped = {k: v for k, v in YARN.items() if not k.startswith("original")}
    assert read(rope_scaling=dropped).positions.original == 4096


def test_two_blocks_that_differ_are_noted_and_the_old_one_wins() -> None:
    reading = read(rope_scaling={"type": "linear", "factor": 2.0}, rope_parameters={"rope_type": "default"})
    assert "linear(2)" in str(reading.encodings()[0])
    assert any("differ" in n for n in reading.notes)


def test_a_null_block_of_a_layer_type_is_no_position() -> None:
    blocks = {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}, "full_attention": None}
    at = read(model_type="gemma2", rope_parameters=blocks).positions
    assert {k.name: len(k.encodings) for k in at.kinds} == {"sliding_attention": 1, "full_attention": 0}


def test_su_is_longrope_and_mrope_is_default() -> None:
    factors = {"short_factor": [1.0] * 12, "long_factor": [2.0] * 12}
    old, new = (read(model_type="phi3", rope_scaling={"type": t, **factors}) for t in ("su", "longrope"))
    assert old.parts == new.parts
    sections = {"mrope_section": [3, 4, 5]}
    old, new = (read(model_type="qwen2_vl_text", rope_scaling={"type": t, **sections}) for t in ("mrope", "default"))
    assert old.parts == new.parts


def test_falcon_is_alibi_if_its_config_says_so() -> None:
    assert isinstance(read(model_type="falcon", alibi=True).encodings()[0], Alibi)


def test_baichuan_is_told_apart_by_its_size_and_says_so() -> None:
    large = read(model_type="baichuan", hidden_size=5120, num_attention_heads=40, num_hidden_layers=40)
    small = read(model_type="baichuan", hidden_size=4096, num_attention_heads=32, num_hidden_layers=32)
    assert isinstance(large.encodings()[0], Alibi)
    assert str(small.encodings()[0]) == "rotary(128, base=700000)"
    assert all(any(a.key == "position_embedding" for a in r.assumed) for r in (large, small))


def test_dual_chunk_attention_is_named() -> None:
    reading = read(model_type="qwen2", dual_chunk_attention_config={"chunk_size": 262144, "local_size": 8192})
    assert [e.kind for e in reading.encodings()] == ["rotary", "unmodelled"]
    assert not reading.unread


def test_what_the_first_qwen_does_beyond_its_length_is_named() -> None:
    qwen = {"model_type": "qwen", "seq_length": 8192, "max_position_embeddings": 8192, "use_logn_attn": False}
    plain, stretched, both = (read(**{**qwen, **more}) for more in (
        {}, {"use_dynamic_ntk": True}, {"use_dynamic_ntk": True, "use_logn_attn": True}))  # fmt: skip
    assert [e.kind for e in plain.encodings()] == ["rotary"]
    assert [e.kind for e in both.encodings()] == ["rotary", "unmodelled", "unmodelled"]
    assert "beyond 8192 positions" in stretched.encodings()[1].note
    assert not diff(plain, stretched).same


def test_an_alias_that_says_something_else_is_reported_and_one_that_agrees_is_not() -> None:
    assert not read(n_positions=4096, hidden_size=96, n_embd=96).unread
    reading = read(n_positions=2048)
    assert reading.positions.served == 4096
    assert [(u.key, u.value) for u in reading.unread] == [("n_positions", "2048")]


def test_messages_name_the_key_that_was_written() -> None:
    with pytest.raises(FormatError, match="n_embd is a finite number"):
        read_config({"model_type": "gpt2", "n_embd": "many", "n_layer": 2, "n_head": 2}, name="n", source="s")
    with pytest.raises(FormatError, match=r"^rope_theta exceeds 1; got 0\.5"):
        read(rope_theta=0.5)
    with pytest.raises(FormatError, match=r"^rope_scaling\.rope_theta exceeds 1; got 0\.5"):
        read(rope_scaling={**YARN, "rope_theta": 0.5})


def test_an_unknown_type_turns_the_channels_that_it_states() -> None:
    assert str(read(model_type="lama", rotary_dim=12).encodings()[0]) == "rotary(24, rotary_dim=12, base=700000)"
    with pytest.raises(FormatError, match="alibi is false where positions are rotary"):
        read(model_type="lama", alibi=True)


def test_kinds_of_layers_and_lengths_of_an_unknown_type_are_reported_as_unread() -> None:
    written = {"attn_type_list": [0, 1, 0, 1, 0], "hybrid_override_pattern": "M*M*M", "initial_context_length": 4096}
    assert {u.key for u in read(model_type="lama", **written).unread} == set(written)


def test_a_width_that_the_heads_do_not_divide_is_noted() -> None:
    assert not read().notes
    assert any("96 channels are no multiple of 9 heads" in n for n in read(num_attention_heads=9).notes)


def test_equal_betas_are_a_step_and_no_fault() -> None:
    """Kimi K2 publishes beta_fast = beta_slow = 1; the step is worked out here from the paper's pair index."""
    k2 = {"type": "yarn", "factor": 32.0, "beta_fast": 1.0, "beta_slow": 1.0, "original_max_position_embeddings": 4096}
    reading = read(rope_theta=5e4, head_dim=64, rope_scaling=k2)
    turns_once = 64 * math.log(4096 / (2 * math.pi)) / (2 * math.log(5e4))
    assert 19 < turns_once < 20
    assert not reading.faults
    got, plain = (frequencies(e).fused for e in (reading.encodings()[0], reading.encodings()[0].replace(scaling=())))
    assert (plain / got).round(9).tolist() == [1.0] * 20 + [32.0] * 12


def test_granite_hybrids_without_rope_say_that_the_base_has_no_effect() -> None:
    reading = read(model_type="granitemoehybrid", layer_types=["linear_attention"] * 4 + ["attention"])
    assert reading.encodings() == ()
    assert any("no effect" in n for n in reading.notes)


def test_llama4_without_temperature_tuning_scales_nothing() -> None:
    for tuning, scaled in ((True, True), (False, False), (4, True), (0, False)):  # the first files wrote 4
        reading = read(model_type="llama4_text", attn_temperature_tuning=tuning)
        assert any(isinstance(e, QueryScale) for e in reading.encodings()) is scaled
    with pytest.raises(FormatError, match="attn_temperature_tuning is true or false"):
        read(model_type="llama4_text", attn_temperature_tuning="yes")


def test_every_registered_type_reads_or_refuses_an_ordinary_config_in_one_line() -> None:
    assert len(model_types()) > 150
    for model_type in model_types():
        try:
            reading = read(model_type=model_type)
        except PosencError as error:
            assert "\n" not in str(error), model_type  # noqa: PT017
        else:
            assert reading.parts
