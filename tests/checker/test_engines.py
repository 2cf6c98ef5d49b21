"""Engines' rows: each changes what it says it changes, to numbers computed here by hand, and nothing else."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from posenc.checker.apart import apart
from posenc.checker.lint import lint
from posenc.errors import FormatError
from posenc.formats import catalogue
from posenc.formats.engine_rewrites import REWRITES
from posenc.formats.engines import NEWEST, AsRead, as_read_by, engine, engines
from posenc.formats.huggingface import read_config
from posenc.formulas.scalings import frequencies

ROWS = [(e.name, row.id) for e in engines() for row in e.rows]
WIDTH, BASE = 14, 5e5


def config(block: dict[str, Any] | None = None, *, new: bool = False, **changes: Any) -> dict[str, Any]:
    """A llama with seven pairs and base 500000, in the older or the newer spelling."""
    made: dict[str, Any] = {
        "model_type": "llama",
        "num_hidden_layers": 3,
        "num_attention_heads": 5,
        "hidden_size": 70,
        "max_position_embeddings": 4096,
    }
    if new:
        made["rope_parameters"] = {"rope_type": "default", **(block or {}), "rope_theta": BASE}
    else:
        made["rope_theta"] = BASE
        if block is not None:
            made["rope_scaling"] = block
    return {**made, **changes}


def yarn(**changes: Any) -> dict[str, Any]:
    return {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024, **changes}


LONG = {
    "rope_type": "longrope",
    "original_max_position_embeddings": 1024,
    "short_factor": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.25],
    "long_factor": [1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 11.0],
}
DYNAMIC = {"rope_type": "dynamic", "factor": 3.0}
NESTED = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "hidden_size": 70,
    "head_dim": 14,
    "sliding_window": 512,
    "max_position_embeddings": 8192,
    "layer_types": ["sliding_attention", "full_attention"],
    "rope_parameters": {
        "full_attention": {**yarn(truncate=False), "rope_theta": BASE},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}

# oracles


def plain(i: int, base: float = BASE) -> float:
    return math.exp(-2 * i / WIDTH * math.log(base))


def yarn_theta(i: int, factor: float, original: float, *, whole: bool = True) -> float:
    ends = [WIDTH * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(BASE)) for turns in (32.0, 1.0)]
    low, high = (math.floor(ends[0]), math.ceil(ends[1])) if whole else ends
    low, high = max(low, 0), min(high, WIDTH - 1)
    ramp = min(max((i - low) / ((high - low) or 0.001), 0.0), 1.0)
    return plain(i) / factor * ramp + plain(i) * (1 - ramp)


def m(factor: float, scale: float = 1.0) -> float:
    return 0.1 * scale * math.log(factor) + 1.0


def rotary(read: AsRead) -> Any:
    assert read.reading is not None, read.refused or read.unclaimed
    return read.reading.positions.encodings[0]


def expect(read: AsRead, theta: Callable[[int], float], gain: float, length: int | None = None) -> None:
    found = frequencies(rotary(read), length)
    assert found.theta[0].tolist() == pytest.approx([theta(i) for i in range(WIDTH // 2)], rel=1e-12)
    assert found.gain == pytest.approx(gain, rel=1e-12)


def unread(read: AsRead) -> None:
    """Base 10000 and no scaling, whatever the block says."""
    expect(read, lambda i: plain(i, 1e4), 1.0)


def rounded(read: AsRead) -> None:
    expect(read, lambda i: yarn_theta(i, 4.0, 1024), m(4.0))


def long_always(read: AsRead) -> None:
    for length in (1, 1024, 1025):
        expect(read, lambda i: plain(i) / LONG["long_factor"][i], math.sqrt(1 + math.log(4) / math.log(1024)), length)


def gain_of_lengths(read: AsRead) -> None:
    found = frequencies(rotary(read), 1)
    assert found.gain == pytest.approx(math.sqrt(1 + math.log(4) / math.log(1024)), rel=1e-12)


def squared(read: AsRead) -> None:
    """``3^2 - 3 + 1 = 7`` for rows of every length."""
    base = BASE * math.exp(WIDTH / (WIDTH - 2) * math.log(7.0))
    for length in (1, 4096, 99999):
        expect(read, lambda i: plain(i, base), 1.0, length)


def gain(value: float) -> Callable[[AsRead], None]:
    return lambda read: expect(read, lambda i: yarn_theta(i, 4.0, 1024), value)


def refused(text: str) -> Callable[[AsRead], None]:
    def check(read: AsRead) -> None:
        assert read.reading is None
        assert text in (read.refused or "")

    return check


def original(value: float) -> Callable[[AsRead], None]:
    return lambda read: expect(read, lambda i: yarn_theta(i, 4.0, value), m(4.0))


def by_linear(read: AsRead) -> None:
    expect(read, lambda i: plain(i) / 3.0, 1.0)


def llama3_from(value: float) -> Callable[[AsRead], None]:
    def theta(i: int) -> float:
        turns = value * plain(i) / (2 * math.pi)
        if turns < 1.0:
            return plain(i) / 8.0
        if turns > 4.0:
            return plain(i)
        s = (turns - 1.0) / 3.0
        return (1 - s) * plain(i) / 8.0 + s * plain(i)

    return lambda read: expect(read, theta, 1.0)


def not_claimed(read: AsRead) -> None:
    assert read.reading is None
    assert read.refused is None
    assert "not verified" in (read.unclaimed or "")


def whole_head(read: AsRead) -> None:
    assert rotary(read).rotary_dim == WIDTH


BOTH = config({"rope_type": "linear", "factor": 2.0}, rope_parameters={"rope_type": "linear", "factor": 3.0})
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
OLD_TYPE = {"rope_type": "default", "type": "linear", "factor": 3.0}
PARTIAL = config(partial_rotary_factor=6 / 7)
CASES: dict[tuple[str, str], tuple[dict[str, Any], Callable[[AsRead], None]]] = {
    ("transformers_4", "rope-parameters-unread"): (config(yarn(), new=True), unread),
    ("transformers_4", "factor-from-lengths"): (
        config(yarn(original_max_position_embeddings=2048)),
        lambda read: expect(read, lambda i: yarn_theta(i, 2.0, 2048), m(2.0)),
    ),
    ("transformers_5", "nested-truncate-unread"): (
        NESTED,
        lambda read: rounded(AsRead(read.engine, read.day, _only_full(read), read.rows)),
    ),
    ("vllm", "rope-parameters-unread"): (config(yarn(), new=True), unread),
    ("vllm", "conflicting-types-refused"): (config(OLD_TYPE), refused("disagree")),
    ("vllm", "attn-factor-multiplies"): (config(yarn(attn_factor=0.5)), gain(0.5 * m(4.0))),
    ("vllm", "gain-keys-unread"): (config(yarn(attention_factor=3.0, mscale=1.0, mscale_all_dim=1.0)), gain(m(4.0))),
    ("vllm", "truncate-unread"): (config(yarn(truncate=False)), rounded),
    ("vllm", "longrope-by-served-length"): (config(LONG), long_always),
    ("vllm", "longrope-gain-from-lengths"): (config({**LONG, "attention_factor": 3.0}), gain_of_lengths),
    ("vllm", "dynamic-constant"): (config(DYNAMIC), squared),
    ("vllm", "dynamic-unverified"): (config(DYNAMIC), not_claimed),
    ("sglang", "rope-parameters-unread"): (config(yarn(), new=True), unread),
    ("sglang", "untyped-block-refused"): (config({"factor": 3.0}), refused("names no type")),
    ("sglang", "attention-factor-unread"): (config(yarn(attention_factor=3.0)), gain(m(4.0))),
    ("sglang", "mscale-unread"): (config(yarn(mscale=1.0, mscale_all_dim=1.0)), gain(m(4.0))),
    ("sglang", "mscale-zero-counts"): (config(yarn(mscale=0.5, mscale_all_dim=0)), gain(m(4.0, 0.5))),
    ("sglang", "attn-factor-multiplies"): (
        config(yarn(attn_factor=0.5, mscale=1.0, mscale_all_dim=0.5)),
        gain(0.5 * m(4.0) / m(4.0, 0.5)),
    ),
    ("sglang", "truncate-unread"): (config(yarn(truncate=False)), rounded),
    ("sglang", "longrope-gain-from-lengths"): (config({**LONG, "factor": 9.0}), gain_of_lengths),
    ("sglang", "dynamic-constant"): (config(DYNAMIC), squared),
    ("llama_cpp", "rope-parameters-unread"): (config(yarn(), new=True), unread),
    ("llama_cpp", "new-block-first"): (BOTH, by_linear),
    ("llama_cpp", "truncate-unread"): (config(yarn(truncate=False)), rounded),
    ("llama_cpp", "attention-factor-unread"): (config(yarn(attention_factor=3.0)), gain(m(4.0))),
    ("llama_cpp", "mscale-not-converted"): (config(yarn(mscale=1.0, mscale_all_dim=1.0)), gain(m(4.0))),
    ("llama_cpp", "longrope-by-allocated-length"): (config(LONG), long_always),
    ("llama_cpp", "dynamic-unscaled"): (config(DYNAMIC), lambda read: expect(read, plain, 1.0, 99999)),
    ("mlx_lm", "rope-parameters-unread"): (config(yarn(), new=True), unread),
    ("mlx_lm", "old-type-first"): (config(OLD_TYPE), by_linear),
    ("mlx_lm", "yarn-original-4096"): (
        config({"rope_type": "yarn", "factor": 4.0}, max_position_embeddings=32768),
        original(4096),
    ),
    ("mlx_lm", "llama3-original-8192"): (config(LLAMA3, max_position_embeddings=131072), llama3_from(8192)),
    ("mlx_lm", "attention-factor-unread"): (config(yarn(attention_factor=3.0)), gain(m(4.0))),
    ("mlx_lm", "mscale-by-default"): (config(yarn(mscale_all_dim=0.5)), gain(m(4.0) / m(4.0, 0.5))),
    ("mlx_lm", "truncate-unread"): (config(yarn(truncate=False)), rounded),
    ("mlx_lm", "longrope-long-only"): (config(LONG, max_position_embeddings=4096), long_always),
    ("mlx_lm", "longrope-gain-from-lengths"): (config({**LONG, "attention_factor": 3.0}), gain_of_lengths),
    ("mlx_lm", "partial-unread"): (PARTIAL, whole_head),
}


def _only_full(read: AsRead) -> Any:
    """The reading of the layers of full attention alone."""
    assert read.reading is not None
    part = read.reading.parts[0]
    kinds = tuple(k for k in part.positions.kinds if k.name == "full_attention")
    positions = part.positions.replace(kinds=kinds, layers=(0,))
    return read.reading.model_copy(update={"parts": (part.model_copy(update={"positions": positions}),)})


def day_of(name: str, row_id: str) -> str:
    """A day on which a row holds: the newest such state."""
    found = engine(name)
    row = next(r for r in found.rows if r.id == row_id)
    return next(day for day in found.states() if row.holds(day))


def test_every_row_has_a_case():
    assert set(CASES) == set(ROWS)


@pytest.mark.parametrize(("name", "row"), ROWS, ids=["-".join(r) for r in ROWS])
def test_a_row_changes_what_it_says(name, row):
    settings, check = CASES[name, row]
    before = copy.deepcopy(settings)
    day = day_of(name, row)
    read = as_read_by(settings, name, day)
    assert row in [r.id for r in read.rows], "the row applied"
    assert settings == before, "the config is left alone"
    check(read)


@pytest.mark.parametrize(("name", "row"), ROWS, ids=["-".join(r) for r in ROWS])
def test_a_row_is_dated_and_sourced(name, row):
    found = next(r for r in engine(name).rows if r.id == row)
    assert found.source.startswith("https://github.com/")
    assert date.fromisoformat(found.date) <= date.fromisoformat(engine(name).checked)
    for day in (found.since, found.until):
        assert day in ("", NEWEST) or date.fromisoformat(day) < date.fromisoformat(engine(name).checked)
    assert found.since < found.until
    assert found.does in REWRITES
    assert found.seen
    assert not re.search("unverified\\]|mem\\]", found.says + found.seen)


def test_ids_are_unique_and_every_rewrite_is_used():
    assert len(set(ROWS)) == len(ROWS)
    assert {r.does for e in engines() for r in e.rows} == set(REWRITES)
    assert {e.name for e in engines()} >= {"transformers_4", "transformers_5", "vllm", "sglang", "llama_cpp", "mlx_lm"}


def test_an_unknown_engine_is_an_error():
    with pytest.raises(FormatError, match="Known"):
        engine("ollama")


# public cases with their numbers


def test_a_block_of_the_newer_spelling_falls_back_to_10000():
    """Last pair of 128 channels: 3.0689e-07 wanted, 1.1548e-04 in transformers 4."""
    block = {**LLAMA3, "original_max_position_embeddings": 8192}
    settings = config(block, new=True, hidden_size=640, max_position_embeddings=131072)
    wanted = frequencies(read_config(settings, name="a", source="a").positions.encodings[0])
    seen = frequencies(rotary(as_read_by(settings, "transformers_4")))
    assert wanted.theta[0, 63] == pytest.approx(3.06892598891e-07)
    assert seen.theta[0, 63] == pytest.approx(0.000115478198469)


def test_yarn_rounded_where_truncate_is_false():
    """Pair 12 of 64 channels, base 150000, factor 32: 0.0067950 wanted, 0.0070157 rounded."""
    row = dict(catalogue.find("gpt-oss-20b").config or {})
    wanted = read_config(row, name="a", source="a").positions.encodings[0]
    assert frequencies(wanted).theta[0, 12] == pytest.approx(0.00679495948973)
    for name, day in (("llama_cpp", None), ("mlx_lm", None), ("vllm", "2025-11-05"), ("sglang", "2025-12-01")):
        assert frequencies(rotary(as_read_by(row, name, day))).theta[0, 12] == pytest.approx(0.0070157139105), name
    for name in ("vllm", "sglang", "transformers_4", "transformers_5"):
        assert rotary(as_read_by(row, name)) == wanted, name


def test_generic_yarn_ignores_both_mscale():
    settings = config(yarn(factor=16.0, mscale=1, mscale_all_dim=1), max_position_embeddings=16384)
    assert frequencies(rotary(as_read_by(settings, "vllm", "2026-09-10"))).gain == pytest.approx(1.27725887222)
    assert frequencies(rotary(as_read_by(settings, "vllm"))).gain == 1.0


def test_latent_attention_keeps_both_mscale():
    row = dict(catalogue.find("DeepSeek-V3").config or {})
    for name, day in (("vllm", "2026-09-10"), ("vllm", None), ("sglang", None), ("mlx_lm", None)):
        found = frequencies(rotary(as_read_by(row, name, day)))
        assert found.gain == 1.0, name
        assert found.logit_scale == pytest.approx(1.8738542071), name


def test_dynamic_as_a_constant():
    """Base 10000, 64 channels, factor 2: 31082 for every row."""
    settings = {**config({"rope_type": "dynamic", "factor": 2.0}), "rope_theta": 1e4, "head_dim": 64}
    theta = frequencies(rotary(as_read_by(settings, "vllm", "2026-04-28")), 8192).theta[0]
    assert theta[31] == pytest.approx(math.exp(-62 / 64 * math.log(31082.2366672)))


def test_long_factors_by_allocation():
    """The public case: 100 tokens in a context of 131072 over 4096 turn by 0.0025 where 0.01 is meant."""
    block = {"rope_type": "longrope", "original_max_position_embeddings": 4096, "short_factor": [1.0, 1.0],
             "long_factor": [1.0, 4.0]}  # fmt: skip
    settings = {**config(block, head_dim=4, max_position_embeddings=131072), "rope_theta": 1e4}
    wanted = frequencies(read_config(settings, name="a", source="a").positions.encodings[0], 100)
    assert wanted.theta[0].tolist() == pytest.approx([1.0, 0.01])
    assert wanted.gain == pytest.approx(1.19023807142)
    for name in ("llama_cpp", "vllm", "mlx_lm"):
        assert frequencies(rotary(as_read_by(settings, name)), 100).theta[0].tolist() == pytest.approx([1.0, 0.0025])
    # served within the original length, the short set holds for both that go by the admitted length
    settings["max_position_embeddings"] = 4096
    for name, second in (("llama_cpp", 0.01), ("vllm", 0.01), ("mlx_lm", 0.0025)):
        assert frequencies(rotary(as_read_by(settings, name)), 100).theta[0, 1] == pytest.approx(second), name


DIFFERENT = {
    "Gemma-3-12B": {"mlx_lm", "transformers_4"},
    "Gemma-3-27B": {"mlx_lm", "transformers_4"},
    "Gemma-3-4B": {"mlx_lm", "transformers_4"},
    "InternLM2.5-7B": {"llama_cpp", "sglang", "vllm"},
    "MiniCPM-2B-128k": {"llama_cpp", "sglang", "vllm"},
    "Olmo-3-7B": set(),
    "Phi-3.5-mini": {"llama_cpp", "mlx_lm", "vllm"},
    "Phi-4-mini": {"llama_cpp", "mlx_lm", "vllm"},
    "Qwen3-VL-32B (fine-tune)": {"transformers_4"},
    "Qwen3.5 MoE text": {"transformers_4"},
    "gpt-oss-120b": {"llama_cpp", "mlx_lm"},
    "gpt-oss-20b": {"llama_cpp", "mlx_lm"},
}
"""Published models whose newest reading differs somewhere, each looked at by hand."""


@pytest.mark.parametrize("name", [row.name for row in catalogue.rows() if row.config is not None])
def test_published_models_differ_only_where_known(name):
    row = catalogue.find(name)
    wanted = read_config(dict(row.config or {}), name=name, source="catalogue")
    different = set()
    for each in engines():
        read = as_read_by(row.config or {}, each)
        assert read.refused is None, (each.name, read.refused)
        if read.reading is not None and apart(wanted, read.reading) is not None:
            different.add(each.name)
    known = DIFFERENT.get(name, set())
    unclaimed = {"vllm"} if "vllm" in known and name.startswith(("InternLM", "MiniCPM")) else set()
    assert different == known - unclaimed


def test_findings_name_engine_source_and_numbers():
    report = lint(dict(catalogue.find("gpt-oss-20b").config or {}))
    found = {f.where: f for f in report.findings}
    assert report.acquitted, "an engine's reading is no defect of the config"
    assert set(found) >= {"llama_cpp", "mlx_lm", "vllm"}
    assert "scaling-parameters" in found["llama_cpp"].kinds
    assert "until 2025-11-05" in found["vllm"].title
    pair = next(e for e in found["llama_cpp"].evidence if e.name.startswith("frequency of pair"))
    assert pair.expected != pair.seen
    assert found["llama_cpp"].links


def test_what_is_not_verified_is_a_note():
    report = lint(dict(catalogue.find("InternLM2.5-7B").config or {}))
    assert any(note.startswith("vLLM: pull request 41277") for note in report.notes)
