"""Configs with published values, read to what their papers and code say; every spelling; one number changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posenc.formats.huggingface import read_config
from posenc.formulas.scalings import frequencies
from posenc.records import Reading
from posenc.spec import LayerKind, Rotary

HERE = Path(__file__).parent / "fixtures"
NAMES = sorted(path.stem for path in HERE.glob("*.json"))


def config(name: str) -> dict[str, Any]:
    return json.loads((HERE / f"{name}.json").read_text())


def read(data: dict[str, Any]) -> Reading:
    return read_config(data, name="fixture", source="test")


def summary(kind: LayerKind, layers: int) -> tuple[Any, ...]:
    text = " + ".join(str(e) for e in kind.encodings)
    return (
        layers,
        kind.window or kind.chunk,
        text[: text.index(", short_factor")] if "short_factor" in text else text,
    )


LATENT = (
    "rotary(192, rotary_dim=64, where='last', interleaved=True)"
    " >> yarn(40, original=4096, mscale={0}, mscale_all_dim={0}, softmax_mscale={0})"
)
OSS = "rotary(64, base=150000) >> yarn(32, original=4096, truncate=False)"
EXPECTED: dict[str, list[tuple[int, int | None, str]]] = {
    "command_r7b": [(24, 4096, "rotary(128, interleaved=True, base=50000)"), (8, None, "")],
    "command_r_v01": [(40, None, "rotary(128, interleaved=True, base=8000000)")],
    "deepseek_v2_lite": [(27, None, LATENT.format("0.707"))],
    "deepseek_v3": [(61, None, LATENT.format("1"))],
    "esm2_650m": [(33, None, "rotary(64)")],
    "falcon_7b": [(32, None, "rotary(64)")],
    "gemma_2_9b": [(21, 4096, "rotary(256)"), (21, None, "rotary(256)")],
    "gemma_2b": [(18, None, "rotary(256)")],
    "gemma_3_1b": [(22, 512, "rotary(256)"), (4, None, "rotary(256, base=1000000)")],
    "gemma_3_4b_text": [(29, 1024, "rotary(256)"), (5, None, "rotary(256, base=1000000) >> linear(8)")],
    "gemma_4_e2b_text": [(28, 512, "rotary(256)"), (7, None, "rotary(512, base=1000000, keep=0.25)")],
    "glm_4_9b_0414": [(40, None, "rotary(128, rotary_dim=64, interleaved=True)")],
    "glm_4_9b_chat": [(40, None, "rotary(128, rotary_dim=64, interleaved=True, base=5000000)")],
    "gpt_j_6b": [(28, None, "rotary(256, rotary_dim=64, interleaved=True)")],
    "gpt_neox_20b": [(44, None, "rotary(96, rotary_dim=24)")],
    "gpt_oss_20b": [(12, 128, OSS), (12, None, OSS)],
    "internlm2_5_7b": [(32, None, "rotary(128, base=1000000) >> dynamic(2, original=32768)")],
    "llama_2_7b": [(32, None, "rotary(128)")],
    "llama_3_1_8b": [(32, None, "rotary(128, base=500000) >> llama3(8, original=8192)")],
    "llama_3_2_1b": [(16, None, "rotary(64, base=500000) >> llama3(32, original=8192)")],
    "llama_3_8b": [(32, None, "rotary(128, base=500000)")],
    "llama_4_scout_text": [
        (36, 8192, "rotary(128, interleaved=True, base=500000) >> llama3(16, original=8192, high_freq_factor=1)"),
        (12, None, "query_scale(0.1, original=8192, offset=1)"),
    ],
    "ministral_3_3b_text": [
        (
            26,
            None,
            "rotary(128, base=1000000) >> yarn(16, original=16384, mscale=1, mscale_all_dim=1)"
            " + query_scale(0.1, original=16384)",
        )
    ],
    "mistral_7b_v0_1": [(32, 4096, "rotary(128)")],
    "mistral_7b_v0_3": [(32, None, "rotary(128, base=1000000)")],
    "mixtral_8x7b": [(32, None, "rotary(128, base=1000000)")],
    "modernbert_base": [(8, None, "rotary(64, base=160000)"), (14, 64, "rotary(64)")],
    "olmo_2_7b": [(32, None, "rotary(128, base=500000)")],
    "olmo_3_7b": [
        (24, 4096, "rotary(128, base=500000)"),
        (8, None, "rotary(128, base=500000) >> yarn(8, original=8192, attention_factor=1.2079441541679836)"),
    ],
    "phi_2": [(32, None, "rotary(80, rotary_dim=32)")],
    "phi_3_5_mini": [(32, 262144, "rotary(96) >> longrope(32, original=4096")],
    "phi_3_mini_4k": [(32, 2047, "rotary(96)")],
    "phi_4_mini": [(32, 262144, "rotary(128, rotary_dim=96) >> longrope(32, original=4096")],
    "qwen2_5_72b_yarn": [(80, None, "rotary(128, base=1000000) >> yarn(4, original=32768)")],
    "qwen2_5_7b_instruct": [(28, None, "rotary(128, base=1000000)")],
    "qwen3_5_moe_text": [
        (30, None, ""),
        (10, None, "rotary(256, rotary_dim=64, base=10000000, axes=interleave((11, 11, 10)))"),
    ],
    "qwen3_8b": [(36, None, "rotary(128, base=1000000)")],
    "smollm2_135m": [(30, None, "rotary(64, base=100000)")],
    "smollm3_3b": [(27, None, "rotary(128, base=5000000)"), (9, None, "")],
    "stablelm_3b_4e1t": [(32, None, "rotary(80, rotary_dim=20)")],
}


@pytest.mark.parametrize("name", NAMES)
def test_published_configs_read_to_what_the_model_has(name: str) -> None:
    at = read(config(name)).positions
    assert [summary(k, len(at.layers_of(i))) for i, k in enumerate(at.kinds)] == EXPECTED[name]
    assert at.trained is None  # no config states it


def test_there_are_twenty_families_and_more() -> None:
    assert len({config(name)["model_type"] for name in NAMES}) >= 20
    assert set(NAMES) == set(EXPECTED)


@pytest.mark.parametrize(
    ("name", "served", "original"),
    [("llama_3_1_8b", 131072, 8192), ("qwen3_8b", 40960, None), ("qwen2_5_72b_yarn", 32768, 32768),
     ("gpt_oss_20b", 131072, 4096), ("phi_3_5_mini", 131072, 4096), ("internlm2_5_7b", 32768, 32768)],
)  # fmt: skip
def test_lengths(name: str, served: int, original: int | None) -> None:
    at = read(config(name)).positions
    assert (at.served, at.original) == (served, original)


def new_spelling(old: dict[str, Any]) -> dict[str, Any]:
    """``rope_theta`` and ``rope_scaling`` moved into one flat ``rope_parameters``."""
    new = copy.deepcopy(old)
    block = {**(new.pop("rope_scaling", None) or {}), "rope_theta": new.pop("rope_theta", 10000.0)}
    block["rope_type"] = block.pop("type", block.get("rope_type", "default"))
    for key in ("partial_rotary_factor", "rotary_pct"):
        if key in new:
            block["partial_rotary_factor"] = new.pop(key)
    return {**new, "rope_parameters": block}


PLAIN = [n for n in NAMES if {"rope_theta", "rope_scaling"} & set(config(n)) and n not in ("olmo_3_7b",)]
FLAT = [n for n in PLAIN if not n.startswith("gemma_3")]


@pytest.mark.parametrize("name", FLAT)
def test_old_and_new_spelling_read_to_equal_values(name: str) -> None:
    old, new = config(name), new_spelling(config(name))
    assert old != new
    assert read(new).parts == read(old).parts


NESTED = {
    "gemma_3_4b_text": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
    "gemma_3_1b": {
        "full_attention": {"rope_type": "default", "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
    "olmo_3_7b": {
        "full_attention": {**config("olmo_3_7b")["rope_scaling"], "rope_theta": 5e5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 5e5},
    },
    "gpt_oss_20b": {
        k: {**config("gpt_oss_20b")["rope_scaling"], "rope_theta": 150000.0}
        for k in ("full_attention", "sliding_attention")
    },
    "modernbert_base": {
        "full_attention": {"rope_type": "default", "rope_theta": 160000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    },
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_spelling_reads_to_equal_values(name: str) -> None:
    old = config(name)
    moved = ("rope_theta", "rope_scaling", "rope_local_base_freq", "global_rope_theta", "local_rope_theta")
    new = {k: v for k, v in old.items() if k not in moved}
    assert read({**new, "rope_parameters": NESTED[name]}).parts == read(old).parts


def test_a_nested_truncate_is_read_and_transformers_said_to_ignore_it() -> None:
    new = {**config("gpt_oss_20b"), "rope_scaling": None, "rope_parameters": NESTED["gpt_oss_20b"]}
    reading = read(new)
    assert all(e.scaling[0].truncate is False for e in reading.encodings())
    assert any("truncate" in note and "transformers 5.24" in note for note in reading.notes)
    assert not read(config("gpt_oss_20b")).notes


def theta(data: dict[str, Any], length: int | None = None) -> dict[str, np.ndarray]:
    at = read(data).positions
    return {k.name: frequencies(e, length).fused for k in at.kinds for e in k.encodings if isinstance(e, Rotary)}


def changed(name: str, *path: Any, to: Any) -> dict[str, Any]:
    data = config(name)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    assert inner[path[-1]] != to
    inner[path[-1]] = to
    return data


def test_one_percent_more_base_changes_every_pair_but_the_first() -> None:
    before, after = theta(config("llama_3_8b")), theta(changed("llama_3_8b", "rope_theta", to=505000.0))
    same = before["full_attention"] == after["full_attention"]
    assert same.tolist() == [True] + [False] * 63


def test_one_percent_more_global_base_leaves_the_local_layers() -> None:
    before, after = theta(config("gemma_3_1b")), theta(changed("gemma_3_1b", "rope_theta", to=1.01e6))
    assert np.array_equal(before["sliding_attention"], after["sliding_attention"])
    assert (before["full_attention"] != after["full_attention"]).sum() == 127


def test_one_long_factor_changes_one_pair_of_long_rows() -> None:
    values = config("phi_3_5_mini")["rope_scaling"]["long_factor"]
    values[17] *= 1.03
    data = changed("phi_3_5_mini", "rope_scaling", "long_factor", to=values)
    (short, other_short), (long, other_long) = (
        (theta(config("phi_3_5_mini"), n)["sliding_attention"], theta(data, n)["sliding_attention"])
        for n in (4096, 4097)
    )
    assert np.array_equal(short, other_short)
    assert np.flatnonzero(long != other_long).tolist() == [17]


def test_truncate_changes_the_ramp_and_nothing_else() -> None:
    before, after = theta(config("gpt_oss_20b")), theta(changed("gpt_oss_20b", "rope_scaling", "truncate", to=True))
    moved = np.flatnonzero(before["full_attention"] != after["full_attention"])
    assert moved.tolist() == list(range(9, 18))  # exact ramp 8.09..17.4, rounded 8..18


def test_deepseek_multiplies_its_softmax_scale() -> None:
    """(0.1 * 0.707 ln 40 + 1)^2 for V2, (0.1 ln 40 + 1)^2 for V3; the gain on cos and sin is 1."""
    for name, expected in (("deepseek_v2_lite", 1.5896261652), ("deepseek_v3", 1.8738542071)):
        (encoding,) = read(config(name)).encodings()
        assert frequencies(encoding).logit_scale == pytest.approx(expected, rel=1e-9)
        assert frequencies(encoding).gain == 1.0
