"""torchtune, LitGPT and timm, one file of each; every verdict beside a number that shares no code with the checker."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
import torch
from mpmath import mp

from checker import peers
from posenc.checker.checking import check


def defects(report):
    assert report.could_not_run is None, report.could_not_run
    return [f.kinds for f in report.findings if f.verdict == "defect"]


def cosine(position, base, pair, dim):
    """``cos(position * base^(-2 pair / dim))`` to 30 digits."""
    with mp.workdps(30):
        return float(mp.cos(position * mp.mpf(base) ** (-mp.mpf(2 * pair) / dim)))


@pytest.fixture(scope="module")
def torchtune():
    return peers.file("torchtune")


@pytest.fixture(scope="module")
def litgpt():
    return peers.file("litgpt")


@pytest.fixture(scope="module")
def timm():
    return peers.file("timm")


def test_torchtune_turns_neighbours(torchtune):
    module = torchtune.RotaryPositionalEmbeddings(64)
    assert check(module, "rotary(64, interleaved=True)").findings == ()
    assert [f.verdict for f in check(module, "rotary(64)", probes=False).findings] == ["convention"]
    x = torch.zeros(1, 4096, 1, 64)
    x[..., ::2] = 1.0
    cos = module(x)[0, :, 0, ::2]
    errors = [abs(float(cos[4095, i]) - cosine(4095, 10000, i, 64)) for i in range(32)]
    assert 1e-6 < max(errors) < 4095 * 2.0**-24 * 4  # float32 angles, and no worse


def test_torchtune_past_its_table(torchtune):
    report = check(torchtune.RotaryPositionalEmbeddings, "rotary(64, interleaved=True)", probes=True)
    assert report.acquitted
    assert {m.name: m.value for m in report.measured}["rows of the table"] == 4096
    assert any("position 4096 is refused" in note for note in report.notes)
    small = torchtune.RotaryPositionalEmbeddings(8, max_seq_len=17)
    with pytest.raises(RuntimeError, match="shape"):  # its docstring promises that the table grows
        small(torch.ones(1, 18, 2, 8))
    with pytest.raises(IndexError):
        small(torch.ones(1, 1, 2, 8), input_pos=torch.tensor([[17]]))
    wanted = check(torchtune.RotaryPositionalEmbeddings(128, base=500000), "llama-3.1-8b", probes=True)
    ends = next(f for f in wanted.findings if f.kinds == ("table-length",))
    assert ends.verdict == "defect"
    assert (ends.recovered[0].value, ends.recovered[0].expected) == (4096, 131072)


def test_torchtune_scales_llama_3_1_rightly():
    module = peers.file("torchtune", "models/llama3_1/_position_embeddings.py")
    made = module.Llama3ScaledRoPE(128, max_seq_len=131072, base=500000)
    report = check(made, "llama-3.1-8b", probes=False)
    assert defects(report) == []
    # the frequency of pair 50 by hand: its wave is longer than the original context, so it is divided by 8
    theta = 500000 ** (-100 / 128)
    assert 2 * math.pi / theta > 8192
    assert float(made.theta[50]) == pytest.approx(theta / 8, rel=1e-6)


def test_litgpt_rotates_by_halves(litgpt):
    assert check(litgpt.apply_rope, "rotary(26)").findings == ()
    assert check(litgpt.build_rope_cache, "rotary(64)").findings == ()
    cos, sin = litgpt.build_rope_cache(4098, 64)
    assert max(abs(float(cos[4097, i]) - cosine(4097, 10000, i, 64)) for i in range(32)) < 2.0**-12
    x = torch.zeros(1, 1, 4098, 64)
    x[..., 0] = 1.0
    turned = litgpt.apply_rope(x, cos[None], sin[None])[0, 0, 4097]
    assert float(turned[0]) == pytest.approx(cosine(4097, 10000, 0, 64), abs=1e-6)
    assert float(turned[32]) == pytest.approx(math.sin(4097), abs=1e-6)


def test_litgpt_reorders_channels_which_no_score_sees(litgpt):
    def both(q, k, cos, sin):
        return litgpt.apply_rope_interleave(q, cos, sin), litgpt.apply_rope_interleave(k, cos, sin)

    report = check(both, "rotary(26, interleaved=True)")
    assert [f.verdict for f in report.findings] == ["harmless"]
    alone = check(litgpt.apply_rope_interleave, "rotary(26, interleaved=True)")
    assert defects(alone) == [("layout",)]  # beside keys that were turned by another function
    cos, sin = litgpt.build_rope_cache(7, 26)
    q, k = np.random.default_rng(3).normal(size=(2, 7, 26))
    theta = 10000.0 ** (-np.arange(0, 26, 2) / 26)
    a, b = (np.ascontiguousarray(v).view(complex) * np.exp(1j * np.outer(np.arange(7), theta)) for v in (q, k))
    right = (a @ b.conj().T).real
    turned = both(*(torch.tensor(v)[None, None] for v in (q, k)), cos[None], sin[None])
    np.testing.assert_allclose((turned[0] @ turned[1].mT)[0, 0].numpy(), right, atol=1e-5)


def yarn_theta(pairs, factor, original, base=10000.0, fast=32.0, slow=1.0):
    """Peng et al. 2023, equations 23 to 25 as DeepSeek and Transformers compute them, one pair at a time."""
    found = []
    low, high = (
        2 * pairs * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (fast, slow)
    )
    low, high = max(math.floor(low), 0), min(math.ceil(high), 2 * pairs - 1)
    for i in range(pairs):
        theta = base ** (-i / pairs)
        ramp = min(max((i - low) / (high - low), 0.0), 1.0)
        found.append(theta * (1 - ramp) + theta / factor * ramp)
    return np.array(found)


def test_litgpt_s_yarn_has_its_ramp_upside_down(litgpt):
    config = {"factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_max_seq_len": 4096}
    cos, sin = (part.double().numpy() for part in litgpt.build_rope_cache(4097, 64, extra_config=config))
    report = check((cos, sin), "rotary(64) >> yarn(4, original=4096)")
    ramp, gain = (f for f in report.findings if f.verdict == "defect")
    assert "upside down" in ramp.cause
    assert ramp.kinds == ("scaling-parameters",)
    assert gain.kinds == ("attention-factor",)

    seen = np.arctan2(sin[1, :32], cos[1, :32])
    right, plain = yarn_theta(32, 4.0, 4096), 10000.0 ** (-np.arange(32) / 32)
    np.testing.assert_allclose(seen, plain + plain / 4 - right, rtol=1e-5)  # every pair has the other one's share
    assert (right[0] / seen[0], seen[31] / right[31]) == (pytest.approx(4, rel=1e-5), pytest.approx(4, rel=1e-3))
    factor = 0.1 * math.log(4) + 1
    assert (cos[1:, :32] ** 2 + sin[1:, :32] ** 2).max() == pytest.approx(1.0, abs=1e-6)
    assert {r.name: r.expected for r in gain.recovered}["attention factor"] == pytest.approx(factor)


@pytest.mark.parametrize("mscale", [{"mscale": 1.0}, {"mscale_all_dim": 1.0}])
def test_litgpt_s_yarn_has_the_right_factor_where_it_is_given_a_magnitude(litgpt, mscale):
    config = {"factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_max_seq_len": 4096, **mscale}
    made = litgpt.build_rope_cache(257, 64, extra_config=config)
    assert defects(check(made, "rotary(64) >> yarn(4, original=4096)")) == [("scaling-parameters",)]
    assert float(made[0][0, 0]) == pytest.approx(0.1 * math.log(4) + 1, rel=1e-6)


def test_litgpt_is_right_about_llama_3_and_linear(litgpt):
    config = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_seq_len": 8192}
    assert check(litgpt.build_rope_cache(515, 128, base=500000, extra_config=config), "llama-3.1-8b").findings == ()
    made = litgpt.build_rope_cache(515, 64, extra_config={"factor": 3.0})
    assert check(made, "rotary(64) >> linear(3)").findings == ()
    assert float(made[0][514, 0]) == pytest.approx(math.cos(514 / 3), abs=1e-4)


def test_timm_keeps_angles_out_of_bfloat16(timm):
    def rotate(x):
        sin, cos = timm.build_rotary_pos_embed([x.shape[-2]], dim=2 * x.shape[-1], in_pixels=False, dtype=x.dtype)
        return timm.apply_rot_embed(x, sin, cos)

    report = check(rotate, "rotary(32, interleaved=True)")
    assert report.findings == ()
    assert "half-precision inputs" in report.probes
    _, cos = timm.build_rotary_pos_embed([4098], dim=64, in_pixels=False, dtype=torch.bfloat16)
    exact = np.array([cosine(4097, 10000, i, 32) for i in range(16)])
    error = np.abs(cos[4097, ::2].double().numpy() - exact).max()
    rounded = float(np.float32(4097).astype(ml_dtypes.bfloat16))
    lost = max(abs(cosine(rounded, 10000, i, 32) - exact[i]) for i in range(16))
    assert error < 2.0**-8  # the cosine itself was rounded, and nothing before it
    assert (rounded, lost > 0.4) == (4096.0, True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_timm_s_grid_of_sines_has_its_own_order_of_channels(timm, dtype):
    def tabulate(feat_shape):
        return timm.build_sincos2d_pos_embed(list(feat_shape), dim=32, dtype=dtype)

    report = check(tabulate, "sinusoidal(32, axes=split((8, 8)))")
    assert [(f.verdict, f.kinds) for f in report.findings] == [("convention", ("layout",))]
    table = tabulate((3, 5)).double().numpy().reshape(3, 5, 4, 8)  # sin h, sin w, cos h, cos w
    bands = 10000.0 ** (-np.arange(8) / 8)
    for h in range(3):
        for w in range(5):
            right = [np.sin(h * bands), np.sin(w * bands), np.cos(h * bands), np.cos(w * bands)]
            np.testing.assert_allclose(table[h, w], right, atol=1e-6 if dtype == torch.float32 else 2.0**-8)


def test_timm_rebuilds_its_bands_after_a_cast(timm):
    module = timm.RotaryEmbedding(64, in_pixels=False)
    before = module.get_embed([4098])[1]
    after = module.bfloat16().get_embed([4098])[1]
    assert torch.equal(before, after)
    assert float(torch.tensor(10000.0 ** (-1 / 16)).bfloat16()) != float(module.bands[1])
    assert float(module.bands[1]) == pytest.approx(10000.0 ** (-1 / 16), rel=1e-6)
