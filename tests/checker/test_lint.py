"""Every lint rule: caught on a minimal config with the right numbers, and silent on every config that is right."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.formats.gguf_files import write

from posenc.checker.lint import RULES, is_settings, lint
from posenc.checker.lint.page import markdown
from posenc.checker.lint.register import links, settings_of
from posenc.errors import PosencError
from posenc.formats import catalogue
from posenc.records import finding as finding_records

ROOT = Path(__file__).parents[2]
FIXTURES = sorted((ROOT / "tests/formats/huggingface/fixtures").glob("*.json"))
RIGHT = [row.name for row in catalogue.rows() if row.config is not None]


def llama(block: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A llama with heads of 14 channels, seven pairs."""
    config: dict[str, Any] = {
        "model_type": "llama",
        "num_hidden_layers": 3,
        "num_attention_heads": 5,
        "hidden_size": 70,
        "rope_theta": 10000.0,
        "max_position_embeddings": 4096,
    }
    if block is not None:
        config["rope_scaling"] = block
    return {k: v for k, v in {**config, **changes}.items() if v is not ...}


def yarn(**changes: Any) -> dict[str, Any]:
    block = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
    return {k: v for k, v in {**block, **changes}.items() if v is not ...}


LISTS = {"short_factor": [1.0] * 7, "long_factor": [1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 11.0]}
GEMMA = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "hidden_size": 70,
    "head_dim": 14,
    "sliding_window": 512,
    "max_position_embeddings": 8192,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}
NESTED = {
    "full_attention": {**yarn(truncate=False), "rope_theta": 1e6},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}

CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("conflicting-bases", llama({"rope_type": "default", "rope_theta": 5e5}), "rope_scaling.rope_theta", "defect"),
    ("conflicting-bases", llama(rotary_emb_base=5e5), "rope_theta", "defect"),
    ("conflicting-types", llama({"rope_type": "linear", "type": "yarn", "factor": 4.0}), "rope_type", "defect"),
    (
        "conflicting-fractions",
        llama(partial_rotary_factor=0.5, rotary_pct=1.0, head_dim=12),
        "partial_rotary_factor",
        "defect",
    ),
    ("conflicting-fractions", llama(rotary_dim=6), "rotary_dim", "defect"),
    (
        "conflicting-blocks",
        llama(yarn(), rope_parameters={"rope_type": "linear", "factor": 4.0}),
        "rope_scaling",
        "defect",
    ),
    ("conflicting-originals", llama(yarn(), original_max_position_embeddings=2048), "original_max", "defect"),
    ("attn-factor", llama(yarn(attn_factor=0.5)), "attn_factor", "defect"),
    ("attn-factor", llama(yarn(attn_factor=1.0)), "attn_factor", "harmless"),
    ("number-as-text", llama(rope_theta="10000.0"), "rope_theta", "defect"),
    ("number-as-text", llama(yarn(factor=True)), "rope_scaling.factor", "defect"),
    ("unknown-type", llama({"rope_type": "yarm", "factor": 4.0}), "rope_type", "defect"),
    (
        "misspelt-key",
        llama(yarn(original_max_position_embeddings=..., orginal_max_position_embeddings=1024)),
        "orginal",
        "defect",
    ),
    ("misspelt-key", llama(rope_theta=..., rope_thetta=5e5), "rope_thetta", "defect"),
    ("finetuned", llama(yarn(finetuned=True)), "finetuned", "harmless"),
    ("unread-key", llama(yarn(colour=3)), "colour", "harmless"),
    (
        "unread-key",
        {"model_type": "gpt2", "n_layer": 3, "n_head": 5, "n_embd": 70, "rope_scaling": yarn()},
        "rope_scaling",
        "defect",
    ),
    ("original-missing", llama(yarn(original_max_position_embeddings=...)), "original_max", "defect"),
    ("original-is-served", llama(yarn(original_max_position_embeddings=4096)), "original_max", "convention"),
    ("factor-against-lengths", llama(yarn(factor=2.0)), "factor", "defect"),
    ("factor-against-lengths", llama(yarn(factor=8.0)), "factor", "convention"),
    (
        "dynamic-with-original",
        llama({"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 1024}),
        "original_max",
        "defect",
    ),
    ("longrope-without-lengths", llama({"rope_type": "longrope", **LISTS}), "factor", "defect"),
    ("wrong-mathematics", llama({"rope_type": "linear", "factor": 0.5}), "linear", "defect"),
    ("wrong-mathematics", llama(yarn(beta_fast=1, beta_slow=32)), "yarn", "defect"),
    ("mscale-zero", llama(yarn(mscale=0.707, mscale_all_dim=0)), "mscale_all_dim", "defect"),
    ("mscale-alone", llama(yarn(mscale=0.5)), "mscale", "convention"),
    ("attention-factor-zero", llama(yarn(attention_factor=0)), "attention_factor", "defect"),
    ("factor-zero", llama(yarn(factor=0)), "factor", "defect"),
    ("factor-one", llama({"rope_type": "linear", "factor": 1.0}), "factor", "harmless"),
    ("beta-zero", llama(yarn(beta_slow=0)), "beta_slow", "defect"),
    ("nested-truncate", {**GEMMA, "rope_parameters": NESTED}, "truncate", "defect"),
    ("odd-width", llama(partial_rotary_factor=0.5), "partial_rotary_factor", "defect"),
    (
        "sections",
        {
            "model_type": "qwen2_vl_text",
            "num_hidden_layers": 3,
            "num_attention_heads": 5,
            "hidden_size": 70,
            "rope_theta": 1e6,
            "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
        },
        "mrope_section",
        "defect",
    ),
    (
        "longrope-lists",
        llama({**yarn(rope_type="longrope"), "short_factor": [1.0] * 7, "long_factor": [2.0] * 6}),
        "long_factor",
        "defect",
    ),
    (
        "layer-without-base",
        {**GEMMA, "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e6}}},
        "sliding_attention",
        "defect",
    ),
]


def of(rule: str, config: dict[str, Any]) -> list[Any]:
    """The findings of one rule alone."""
    return list(RULES[rule].check(settings_of(copy.deepcopy(config), "test")))


def evidence(found: Any, name: str) -> Any:
    return next(e for e in found.evidence if e.name.startswith(name))


@pytest.mark.parametrize(("rule", "config", "where", "verdict"), CASES, ids=[f"{c[0]}-{c[3]}" for c in CASES])
def test_each_rule_is_caught(rule, config, where, verdict):
    (found,) = of(rule, config)
    assert where in found.where
    assert found.verdict == verdict
    assert verdict in RULES[rule].verdicts
    assert found.remedy
    assert found.evidence or rule == "finetuned"
    assert set(found.links) <= set(links(*RULES[rule].cases))
    report = lint(config, engines=False)
    assert found in report.findings, "the rule runs in the whole lint"
    assert report.acquitted == (verdict != "defect")
    assert report.could_not_run is None


def test_every_rule_has_a_case_and_every_verdict_of_it():
    assert {c[0] for c in CASES} == set(RULES)
    assert {(c[0], c[3]) for c in CASES} == {(r.id, v) for r in RULES.values() for v in r.verdicts}


@pytest.mark.parametrize("name", RIGHT)
def test_silent_on_published_configs(name):
    report = lint(dict(catalogue.find(name).config or {}), engines=False)
    assert report.could_not_run is None
    assert report.acquitted
    # the published recipe of Qwen2.5 states the trained length as both; engines multiply it or not
    allowed = {"convention"} if name == "Qwen2.5-72B-Instruct with YaRN edit" else set()
    assert {f.verdict for f in report.findings} == allowed


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.stem)
def test_silent_on_fixtures(path):
    report = lint(path, engines=False)
    assert [f.title for f in report.findings if path.stem != "qwen2_5_72b_yarn"] == []
    assert report.acquitted
    assert report.measured


@pytest.mark.parametrize(
    "config",
    [
        llama(yarn(mscale=1.0, mscale_all_dim=0)),  # the quotient is the same number
        llama(yarn(beta_fast=32, beta_slow=1)),  # whole numbers are numbers
        llama({"rope_type": "longrope", "type": "su", "original_max_position_embeddings": 1024, **LISTS}),
        llama({"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}),
        llama(yarn(), rope_parameters={**yarn(), "rope_theta": 10000.0}),
        llama(yarn(attention_factor=1.0)),
        llama({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 1024}),
        llama({"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 4096}),
        {**GEMMA, "rope_parameters": {**NESTED, "full_attention": {"rope_type": "linear", "factor": 8.0,
                                                                   "rope_theta": 1e6}}},
    ],
)  # fmt: skip
def test_near_misses_are_silent(config):
    grave = [f for f in lint(config, engines=False).findings if f.verdict != "harmless"]
    assert grave == []


# numbers, from loops that share no line with the package


def yarn_theta(i: int, width: int, base: float, factor: float, original: float, whole: bool = True) -> float:
    """One frequency by the published recipe, written out."""
    ends = [width * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32.0, 1.0)]
    low, high = (math.floor(ends[0]), math.ceil(ends[1])) if whole else ends
    low, high = max(low, 0), min(high, width - 1)
    ramp = min(max((i - low) / ((high - low) or 0.001), 0.0), 1.0)
    plain = math.exp(-2 * i / width * math.log(base))
    return plain / factor * ramp + plain * (1 - ramp)


def test_both_readings_of_a_base_are_numbers():
    (found,) = of("conflicting-bases", llama({"rope_type": "default", "rope_theta": 5e5}))
    pair = evidence(found, "frequency of pair")
    assert pair.expected == pytest.approx(math.exp(-12 / 14 * math.log(5e5)), rel=1e-12)
    assert pair.seen == pytest.approx(math.exp(-12 / 14 * math.log(1e4)), rel=1e-12)
    assert evidence(found, "largest").seen == pytest.approx(1 - (1e4 / 5e5) ** (12 / 14), rel=1e-9)


def test_explicit_factor_against_the_quotient():
    """The numbers of the public case: factor 4 with 40960 over 32768, gain 1.1386 against 1.0223."""
    config = llama(yarn(original_max_position_embeddings=32768), max_position_embeddings=40960, head_dim=128)
    (found,) = of("factor-against-lengths", config)
    assert found.verdict == "convention"
    gain = evidence(found, "gain")
    assert gain.expected == pytest.approx(1.13862943611)
    assert gain.seen == pytest.approx(1.02231435513)
    assert "https://github.com/huggingface/transformers/issues/38224" in found.links
    pair = evidence(found, "frequency of pair")
    i = int(pair.name.rpartition(" ")[2])
    assert pair.expected == pytest.approx(yarn_theta(i, 128, 1e4, 4.0, 32768), rel=1e-12)
    assert pair.seen == pytest.approx(yarn_theta(i, 128, 1e4, 1.25, 32768), rel=1e-12)


def test_nested_truncate_gives_the_rounded_and_the_stated_ramp():
    block = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False,
             "rope_theta": 150000.0}  # fmt: skip
    config = {**GEMMA, "head_dim": 64, "rope_parameters": {**NESTED, "full_attention": block}}
    (found,) = of("nested-truncate", config)
    pair = evidence(found, "frequency of pair")
    i = int(pair.name.rpartition(" ")[2])
    assert pair.expected == pytest.approx(yarn_theta(i, 64, 150000.0, 32.0, 4096, whole=False), rel=1e-12)
    assert pair.seen == pytest.approx(yarn_theta(i, 64, 150000.0, 32.0, 4096), rel=1e-12)
    assert 1 / (1 - evidence(found, "largest").seen) == pytest.approx(1.76, abs=0.01), "up to 76 %"


def test_attn_factor_squares_the_gain():
    """The public case: factor 128 with attn_factor copied from attention_factor gives 2.2058 for 1.4852."""
    config = llama(yarn(factor=128.0, attn_factor=1.4852030263919618), max_position_embeddings=131072)
    (found,) = of("attn-factor", config)
    gain = evidence(found, "gain")
    assert (round(gain.expected, 4), round(gain.seen, 4)) == (1.4852, 2.2058)


def test_mscale_zero_counts_as_absent():
    (found,) = of("mscale-zero", llama(yarn(factor=40.0, mscale=0.707, mscale_all_dim=0)))
    gain = evidence(found, "gain")
    assert gain.expected == pytest.approx(1.26080377741)
    assert gain.seen == pytest.approx(1.3688879454)


def test_mscale_alone_has_two_gains():
    (found,) = of("mscale-alone", llama(yarn(factor=40.0, mscale=0.707)))
    gain = evidence(found, "gain")
    assert gain.expected == pytest.approx(1.3688879454), "transformers ignores it"
    assert gain.seen == pytest.approx(1.26080377741), "mlx-lm takes it"


def test_exchanged_betas_are_named():
    (found,) = of("wrong-mathematics", llama(yarn(beta_fast=1, beta_slow=32), head_dim=64))
    assert "beta_fast 32 and beta_slow 1" in found.remedy
    pair = evidence(found, "frequency of pair")
    i = int(pair.name.rpartition(" ")[2])
    assert pair.expected == pytest.approx(yarn_theta(i, 64, 1e4, 4.0, 1024), rel=1e-12)


def test_factor_below_one_is_the_reciprocal():
    (found,) = of("wrong-mathematics", llama({"rope_type": "linear", "factor": 0.25}))
    pair = evidence(found, "frequency of pair")
    assert pair.seen / pair.expected == pytest.approx(16.0)


def test_dynamic_starts_elsewhere_than_stated():
    block = {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 2048}
    (found,) = of("dynamic-with-original", llama(block, max_position_embeddings=8192, head_dim=64))
    pair = evidence(found, "frequency of pair")
    length = int(pair.where.split()[2])
    i = int(pair.name.rpartition(" ")[2])
    for seen, start in ((pair.expected, 8192), (pair.seen, 2048)):
        stretch = 2.0 * max(length, start) / start - 1.0
        base = 1e4 * math.exp(64 / 62 * math.log(stretch))
        assert seen == pytest.approx(math.exp(-2 * i / 64 * math.log(base)), rel=1e-12)


def test_unreadable_configs_become_findings():
    report = lint(llama(hidden_size=71, num_attention_heads=71), engines=False)
    assert not report.acquitted
    assert any("cannot be read" in f.title or "odd" in f.title for f in report.findings)


def test_a_file_that_is_no_config_could_not_run(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{")
    report = lint(path)
    assert report.could_not_run is not None
    assert not report.acquitted
    assert lint(tmp_path / "missing.gguf").could_not_run is not None


def test_against_a_wanted_encoding():
    config = dict(catalogue.find("llama-3.1-8b").config or {})
    assert lint(config, expect="llama-3.1-8b", engines=False).acquitted
    config["rope_theta"] = 1e4
    report = lint({**config}, expect="llama-3.1-8b", engines=False)
    assert [f.verdict for f in report.findings] == ["defect"]
    assert report.expected is not None
    assert report.expected.startswith("rotary(128, base=500000)")


def test_notes_and_assumptions_are_told():
    report = lint(llama(rope_theta=..., rope_scaling={"rope_type": "linear", "factor": 4.0}), engines=False)
    assert any("rope_theta = 10000.0" in text for text in report.assumed)
    report = lint(llama(original_max_position_embeddings=1024), engines=False)
    assert "not read: original_max_position_embeddings = 1024" in report.notes
    assert report.findings == ()


def test_a_gguf_file_is_linted(tmp_path):
    path = write(tmp_path / "model.gguf", "llama", {"rope.scaling.type": "linear", "rope.scaling.factor": 0.5})
    report = lint(path)
    assert [f.verdict for f in report.findings] == ["defect"]
    assert report.not_probed


@pytest.mark.parametrize(
    ("subject", "wanted"),
    [
        ({}, True),
        ("a/config.json", True),
        ("model.gguf", True),
        ("llama-3.1-8b", True),
        ("module:attr", False),
        ("table.npy", False),
        ("file.py", False),
        ("transformers:llama", False),
        (print, False),
        ("x" * 9999, False),
        ("\0", False),
    ],
)
def test_what_is_settings(subject, wanted):
    assert is_settings(subject) is wanted


def test_folders(tmp_path):
    assert not is_settings(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(llama({"rope_type": "linear", "factor": 0.5})))
    assert is_settings(tmp_path)
    assert [f.where for f in lint(tmp_path).findings if f.verdict == "defect"] == ["linear"]


# hostile settings: a report, never another exception

ODD = st.sampled_from(
    [None, 0, -1, 1, 0.5, 1e308, -1e308, 2**63, True, False, "", "1e6", "yarn", "x" * 300, [], [1.0], [[]], {},
     {"a": 1}, {"full_attention": None}, {"type": []}, {"rope_type": {}}]
)  # fmt: skip
KEYS = st.sampled_from(
    ["rope_type", "type", "factor", "original_max_position_embeddings", "attention_factor", "attn_factor", "beta_fast",
     "beta_slow", "mscale", "mscale_all_dim", "truncate", "short_factor", "long_factor", "rope_theta", "alpha",
     "partial_rotary_factor", "mrope_section", "low_freq_factor", "high_freq_factor", "finetuned", "rope_scaling",
     "rope_parameters", "head_dim", "max_position_embeddings", "model_type", "hidden_size", "layer_types",
     "text_config"]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(
    base=st.sampled_from(["yarn", "longrope", "llama3", "dynamic", "linear"]),
    inside=st.dictionaries(KEYS, ODD, max_size=4),
    beside=st.dictionaries(KEYS, ODD, max_size=3),
)
def test_hostile_settings_are_reported(base, inside, beside):
    block = {"rope_type": base, "factor": 4.0, "original_max_position_embeddings": 1024, **inside}
    config = {**llama(block), **beside}
    try:
        report = lint(config)
    except PosencError:  # pragma: no cover - lint reports, it does not raise
        pytest.fail("lint raised")
    finding_records.CheckReport.model_validate_json(report.model_dump_json())


def test_the_page_is_up_to_date():
    assert (ROOT / "docs/lint.md").read_text("utf-8") == markdown()


def test_links_are_addresses():
    assert all(url.startswith("https://") for rule in RULES.values() for url in links(*rule.cases))
