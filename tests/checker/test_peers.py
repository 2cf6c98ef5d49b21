"""Peers as installed; each verdict is verified by an independent number."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

from posenc.checker.checking import check


def angle_at(turned, x, pair, pairs, adjacent):
    """The angle by which one pair was turned."""
    i, j = (2 * pair, 2 * pair + 1) if adjacent else (pair, pair + pairs)
    before, after = complex(x[i], x[j]), complex(turned[i], turned[j])
    return np.angle(after / before)


def test_rotary_embedding_torch_rounds_positions_and_keeps_a_stale_cache():
    library = pytest.importorskip("rotary_embedding_torch")
    report = check(library.RotaryEmbedding(64), "rotary(64, interleaved=True)")
    causes = {r.name: r.value for f in report.findings for r in f.recovered}
    assert causes["dtype of the positions"] in ("bfloat16", "float16")
    assert any("offset-cache" in f.kinds and f.verdict == "defect" for f in report.findings)
    x = torch.ones(1, 1, 300, 64).bfloat16()
    out = library.RotaryEmbedding(64).rotate_queries_or_keys(x)[0, 0].float().numpy()
    seen = angle_at(out[257], np.ones(64), 0, 32, True)
    exact = math.remainder(257.0, 2 * math.pi)
    assert abs(math.remainder(seen - exact, 2 * math.pi)) > 0.9  # a whole position is lost
    assert abs(math.remainder(seen - 256.0, 2 * math.pi)) < 0.05


def test_a_cast_llama_has_rounded_frequencies():
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = transformers.LlamaConfig(
        hidden_size=256, num_attention_heads=4, rope_parameters={"rope_type": "default", "rope_theta": 5e5}
    )
    right = check(LlamaRotaryEmbedding(config), "rotary(64, base=500000)")
    assert right.acquitted
    assert [f.title for f in right.findings if f.verdict == "defect"] == []
    cast = LlamaRotaryEmbedding(config).bfloat16()
    report = check(cast, "rotary(64, base=500000)")
    found = next(f for f in report.findings if f.verdict == "defect")
    assert found.kinds == ("precision", "buffer-state-dict")
    assert float(cast.inv_freq[1]) == float(torch.tensor(5e5 ** (-2 / 64)).bfloat16())
    wrong = check(LlamaRotaryEmbedding(config), "rotary(64)")
    assert {r.name: r.value for f in wrong.findings for r in f.recovered}["base"] == pytest.approx(5e5, rel=1e-4)


def test_functions_of_transformers_are_read_with_their_pairing():
    pytest.importorskip("transformers")
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama
    from transformers.models.t5.modeling_t5 import T5Attention
    from transformers.models.whisper.modeling_whisper import sinusoids

    assert check(llama, "rotary(26)").findings == ()
    assert [f.verdict for f in check(gptj, "rotary(26)").findings] == ["convention"]
    assert check(gptj, "rotary(26, interleaved=True)").findings == ()
    assert check(T5Attention._relative_position_bucket, "t5_bias(8)").findings == ()
    assert check(sinusoids, "sinusoidal(34, order='sin|cos', shift=1)").findings == ()


def test_x_transformers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("x_transformers.x_transformers")
    report = check(module.RotaryEmbedding(64), "rotary(64)")
    assert {f.verdict for f in report.findings} <= {"convention"}
    half = [f for f in report.findings if "after .bfloat16()" in f.title]
    assert half
    assert "dtype of the angles" in {r.name for r in half[0].recovered}
    assert check(module.AlibiPositionalBias(8, 8), "alibi(8, symmetric=True)").findings == ()


def test_positional_encodings_drops_nothing_in_one_dimension():
    module = pytest.importorskip("positional_encodings.torch_encodings")
    report = check(module.PositionalEncoding1D(34), "sinusoidal(34)")
    assert [f for f in report.findings if f.verdict == "defect"] == []


def test_mlx_is_right_with_its_own_convention():
    nn = pytest.importorskip("mlx.nn")
    assert check(nn.RoPE(64), "rotary(64)").findings == ()
    assert check(nn.RoPE(64, traditional=True), "rotary(64, interleaved=True)").findings == ()
    assert [f.verdict for f in check(nn.ALiBi(), "alibi(8)").findings] == ["convention"]
