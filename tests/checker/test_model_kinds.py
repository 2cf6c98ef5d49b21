"""Kinds of false alarms that runs over every model type have shown, and the faults beside them that are still seen."""

from __future__ import annotations

import logging
import warnings

import pytest

pytest.importorskip("transformers")

import torch

from posenc.checker.checking import check
from posenc.checker.models.building import model_class, tiny_model
from posenc.checker.models.tiny import tiny_config, tiny_configs
from posenc.errors import SubjectError


def report_of(subject):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check(subject)


def grave(report):
    return [f.title for f in report.findings if f.verdict in ("defect", "convention")]


@pytest.mark.parametrize(
    "name",
    [
        "aimv2",  # a table whose own config is not the one that describes the model
        "deit",  # tables that start at zero
        "mra",  # positions that start at 2 for the first token
        "deepseek_v32",  # an indexer that pairs channels otherwise than attention
        "youtu",  # widths of queries and keys that must fit each other
        "dinov3_vit",  # a pair that turns by whole turns from one whole position to the next
        "pe_audio_encoder",  # pairs that no reader knows: the config does not say them
        "glm4",  # columns (a, b, a, b) that the applying function spreads over adjacent channels
    ],
)
def test_what_was_a_false_alarm_is_none(name):
    report = report_of(f"transformers:{name}")
    assert report.could_not_run is None
    assert grave(report) == []
    assert report.measured


def test_a_rotation_that_runs_backwards_in_the_model_s_own_code_is_its_convention():
    (found,) = report_of("transformers:nanochat").findings
    assert found.verdict == "convention"
    assert found.evidence[0].expected == pytest.approx(-found.evidence[0].seen)


def test_the_base_that_the_config_states_is_compared_with_the_one_that_turns():
    model = tiny_model("dbrx")
    stated = model.config.attn_config.rope_theta
    turned = float(1 / model.rotary_emb.inv_freq[1]) ** 12  # 12 pairs: theta_1 = base^(-1/12)
    report = report_of("transformers:dbrx")
    assert any("frequency" in title for title in grave(report)) == (abs(turned / stated - 1) > 1e-3)


def mixed(model, causal):
    """Mix into every embedding the mean over all tokens, masked or not; over those before it if causal."""

    def mix(module, args, out):
        counted = torch.arange(1, out.shape[1] + 1)[None, :, None]
        return out + (out.cumsum(1) / counted if causal else out.mean(1, keepdim=True))

    model.embed_tokens.register_forward_hook(mix)
    return model


def test_padding_that_is_attended_to_is_told_from_padding_that_is_counted():
    (leak,) = [f for f in report_of(mixed(tiny_model("llama"), causal=True)).findings if "padding" in f.title]
    assert leak.verdict == "defect"
    assert leak.cause == "what is masked takes part in the result all the same"
    (both,) = [f for f in report_of(mixed(tiny_model("llama"), causal=False)).findings if "padding" in f.title]
    assert both.verdict == "convention"
    assert "no matter of positions" in both.cause
    (counted,) = [f for f in report_of("transformers:bart").findings if "padding" in f.title]
    assert counted.cause == "padding is counted as positions"


@pytest.mark.parametrize(("speaks", "verdict"), [(False, "defect"), (True, "convention")])
def test_positions_that_are_ignored_are_milder_if_the_model_says_so(speaks, verdict):
    model = tiny_model("llama")

    def ignore(module, args, kwargs):
        if kwargs.pop("position_ids", None) is not None and speaks:
            logging.getLogger("transformers.models.llama").warning("position_ids are ignored")
        return args, kwargs

    model.register_forward_pre_hook(ignore, with_kwargs=True)
    (found,) = [f for f in report_of(model).findings if "ignored" in f.title]
    assert found.verdict == verdict


def test_a_model_that_draws_numbers_in_a_pass_has_no_memory_of_the_pass_before():
    model = tiny_model("llama")
    model.embed_tokens.register_forward_hook(lambda module, args, out: out + torch.randn(out.shape[-1]))
    assert not any("after a long one" in f.title for f in report_of(model).findings)


def test_an_encoder_and_decoder_inside_a_model_is_asked_for_its_innermost_decoder():
    assert not any("token by token" in title for title in grave(report_of("transformers:florence2")))


def test_a_part_of_another_type_is_compared_with_its_own_config():
    report = report_of("transformers:evolla")
    compared = {m.name: m.value for m in report.measured if m.name.endswith("compared with")}
    assert compared["rotary_emb: compared with"] == "rotary(24, base=500000)"
    assert not any("protein" in (f.where or "") for f in report.findings)


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("llama", "LlamaModel"),
        ("blip_text_model", "BlipTextModel"),  # AutoModel does not know it
        ("sarvam_mla", "DeepseekV3Model"),  # the class of another type
        ("musicgen", "MusicgenForConditionalGeneration"),  # AutoModel's class takes another config
    ],
)
def test_the_class_of_a_type(name, ends):
    assert model_class(next(tiny_configs(name)), name).__name__ == ends


def test_types_without_a_class_and_without_defaults_are_said():
    with pytest.raises(SubjectError, match="a type has a model class"):
        tiny_model("sam_prompt_encoder")
    with pytest.raises(SubjectError, match="can be configured"):
        tiny_config("nougat")


def test_sizes_grow_until_a_config_takes_them():
    refused = [c for c in tiny_configs("esmc") if isinstance(c, SubjectError)]
    assert refused, "the smallest sizes are taken: this type shows nothing"
    config = tiny_config("esmc")
    assert config.num_attention_heads == 4
    assert config.hidden_size == 96


@pytest.mark.parametrize("model_type", ["gemma3n_text", "glm5_next_text", "molmo2", "zamba2", "zaya"])
def test_settings_of_single_layers_follow_a_smaller_number_of_layers(model_type):
    assert sum(p.numel() for p in tiny_model(model_type).parameters()) < 3e7
