"""Peers as installed; each verdict is verified by an independent number."""

from __future__ import annotations

import math
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch
from mpmath import mp

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


def test_rotary_embedding_torch_is_wrong_by_two_fifths_at_4097():
    library = pytest.importorskip("rotary_embedding_torch")
    x = torch.zeros(1, 1, 4098, 64).bfloat16()
    x[..., ::2] = 1.0
    cos = library.RotaryEmbedding(64).rotate_queries_or_keys(x)[0, 0, 4097, ::2].double().numpy()
    with mp.workdps(30):
        theta = [mp.mpf(10000) ** (-mp.mpf(i) / 32) for i in range(32)]
        exact = np.array([float(mp.cos(4097 * t)) for t in theta])
        rounded = np.array([float(mp.cos(4096 * t)) for t in theta])  # bfloat16 holds 4096 and 4128, nothing between
    assert float(np.float32(4097).astype(ml_dtypes.bfloat16)) == 4096.0
    assert np.abs(rounded - exact).max() == pytest.approx(0.41466, abs=1e-5)
    assert np.abs(cos - rounded).max() < 2.0**-7
    assert np.abs(cos - exact).max() == pytest.approx(0.41466, abs=2.0**-8)


def test_rotary_embedding_torch_answers_in_float32_from_its_bfloat16_cache():
    module = pytest.importorskip("rotary_embedding_torch").RotaryEmbedding(64)
    module.rotate_queries_or_keys(torch.zeros(1, 1, 300, 64).bfloat16())
    x = torch.zeros(1, 1, 258, 64)
    x[..., 0] = 1.0
    stale = float(module.rotate_queries_or_keys(x)[0, 0, 257, 0])
    assert stale == pytest.approx(math.cos(256), abs=1e-4)
    assert abs(stale - math.cos(257)) > 0.8


def test_rotary_embedding_torch_decodes_xpos_from_another_centre():
    library = pytest.importorskip("rotary_embedding_torch")
    module = library.RotaryEmbedding(64, use_xpos=True)
    report = check(module, "rotary(64, interleaved=True, xpos_scale_base=512.0)")
    assert [f.kinds for f in report.findings if f.verdict == "defect"] == [("offset-cache",)]
    assert "cached keys" in report.findings[0].title
    assert "centre" in report.findings[0].cause
    # 41 keys and the last query, in one pair: the centre is 20 with all queries and 0 with one of them
    q = torch.zeros(1, 1, 41, 64)
    q[..., 0] = 1.0
    whole = [part[0, 0].double() for part in module.rotate_queries_with_cached_keys(q, q)]
    alone = [part[0, 0].double() for part in module.rotate_queries_with_cached_keys(q[:, :, -1:], q)]
    ratio = float((alone[0][-1] @ alone[1][3]) / (whole[0][-1] @ whole[1][3]))
    assert ratio == pytest.approx((0.4 / 1.4) ** (20 / 512), rel=1e-5)
    assert ratio < 0.96


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
    cast = module.RotaryEmbedding(64).bfloat16()
    angles = cast.forward_from_seq_len(4098)[0].double().numpy()[0, 4097, ::2]
    low = (10000.0 ** (-np.arange(32) / 32)).astype(np.float32).astype(ml_dtypes.bfloat16)
    simulated = (np.float32(4096) * low.astype(np.float32)).astype(ml_dtypes.bfloat16).astype(float)
    assert np.array_equal(angles, simulated)
    exact = np.cos(4097 * 10000.0 ** (-np.arange(32) / 32))
    assert np.abs(np.cos(angles) - exact).max() == pytest.approx(0.75085, abs=1e-5)
    x = torch.zeros(1, 1, 4098, 64).bfloat16()
    x[..., ::2] = 1.0
    whole = module.apply_rotary_pos_emb(x, module.RotaryEmbedding(64).forward_from_seq_len(4098)[0])
    assert np.abs(whole[0, 0, 4097, ::2].double().numpy() - exact).max() < 2.0**-8  # right while it is not cast


def test_x_transformers_behind_padding_on_the_left():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("x_transformers.x_transformers")
    learned = module.AbsolutePositionalEmbedding(34, 101)
    report = check(learned, "learned(34, shape=(101,))")
    assert report.findings == ()
    assert "left padding" in report.probes
    starts, x = torch.tensor([0, 3]), torch.zeros(2, 11, 34)
    table = learned.emb.weight.detach() * 34**-0.5
    assert torch.equal(learned(x, seq_start_pos=starts)[1, 3:].detach(), table[:8])

    sines = module.ScaledSinusoidalEmbedding(34)
    report = check(sines, "sinusoidal(34, order='sin|cos')")
    assert [f.kinds for f in report.findings if f.verdict == "defect"] == [("mask-padding",)]
    assert "seq_start_pos" in report.findings[0].title
    with pytest.raises(RuntimeError, match="einsum"):
        sines(x, seq_start_pos=starts)
    counted = sines(x).detach().numpy()[3] * 34**0.5  # without it, the first real token stands at 3
    assert counted[0] == pytest.approx(math.sin(3), abs=1e-6)


def test_x_transformers_xpos_scales_by_the_length_of_the_call():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("x_transformers.x_transformers")
    xpos = module.RotaryEmbedding(64, use_xpos=True)
    report = check(xpos, "rotary(64, interleaved=True, xpos_scale_base=512.0)")
    assert report.acquitted
    assert any(f.kinds == ("offset-cache",) and f.verdict == "convention" for f in report.findings)
    whole, single = xpos(torch.arange(41))[1][0, 40, 0], xpos(torch.tensor([40]))[1][0, 0, 0]
    assert float(whole) == pytest.approx((0.4 / 1.4) ** (20 / 512), rel=1e-5)
    assert float(single) == pytest.approx((0.4 / 1.4) ** (20 / 512), rel=1e-5)
    early = xpos(torch.tensor([3]))[1][0, 0, 0], xpos(torch.arange(41))[1][0, 3, 0]
    assert float(early[0] / early[1]) == pytest.approx((0.4 / 1.4) ** ((20 - 2) / 512), rel=1e-5)


def axial(sizes, channels):
    """Sines and cosines by turns, as many channels for every axis, each over its own width."""
    each = 2 * math.ceil(channels / (2 * len(sizes)))
    table = np.zeros((*sizes, len(sizes) * each))
    for cell in np.ndindex(*sizes):
        for axis, at in enumerate(cell):
            for i in range(each // 2):
                angle = at * 10000.0 ** (-2 * i / each)
                table[cell][axis * each + 2 * i : axis * each + 2 * i + 2] = math.sin(angle), math.cos(angle)
    return table[..., :channels]


def test_positional_encodings_is_right_where_the_axes_share_the_channels():
    module = pytest.importorskip("positional_encodings.torch_encodings")
    report = check(module.PositionalEncoding1D(34), "sinusoidal(34)")
    assert [f for f in report.findings if f.verdict == "defect"] == []
    for made, line, sizes in (
        (module.PositionalEncoding2D(32), "sinusoidal(32, axes=split((8, 8)))", (3, 5)),
        (module.PositionalEncodingPermute2D(32), "sinusoidal(32, axes=split((8, 8)))", (3, 5)),
        (module.PositionalEncoding3D(36), "sinusoidal(36, axes=split((6, 6, 6)))", (2, 3, 5)),
    ):
        assert check(made, line, probes=False).findings == ()
        if "Permute" not in type(made).__name__:
            channels = made.org_channels
            seen = made(torch.zeros(1, *sizes, channels))[0].numpy()
            np.testing.assert_allclose(seen, axial(sizes, channels), atol=1e-6)


def test_positional_encodings_drops_the_last_axis_of_few_channels():
    module = pytest.importorskip("positional_encodings.torch_encodings")
    report = check(module.PositionalEncoding3D(8), "sinusoidal(8, axes=split((2, 1, 1)))", probes=False)
    (found,) = report.findings
    assert (found.verdict, found.kinds) == ("defect", ("axis-order",))
    assert [r.value for r in found.recovered] == ["axis 2"]
    seen = module.PositionalEncoding3D(8)(torch.zeros(1, 2, 3, 5, 8))[0].numpy()
    assert [float(np.ptp(seen, axis=a).max()) for a in range(3)] == [
        pytest.approx(math.sin(1), abs=1e-6),
        pytest.approx(1 - math.cos(2), abs=1e-6),
        0.0,  # five cells along the third axis, one encoding
    ]
