"""Right implementations are acquitted: this package's own, both pairings, permuted and shifted ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from posenc.checker.checking import check
from posenc.nn import build
from posenc.spec import parse


def defects(report):
    assert report.could_not_run is None, report.could_not_run
    return [f.title for f in report.findings if f.verdict == "defect"]


OWN = (
    "rotary(22)",
    ("rotary(26, rotary_dim=14, where='last', interleaved=True)"),
    "rotary(32, keep=0.5)",
    "rotary(64) >> linear(3)",
    "rotary(64) >> ntk(3)",
    "rotary(64) >> yarn(4, original=512)",
    "rotary(64, base=500000) >> llama3(8, original=512)",
    "rotary(64) >> dynamic(4, original=512)",
    "rotary(64, xpos_scale_base=512.0)",
    "sinusoidal(34)",
    "sinusoidal(35)",
    "sinusoidal(34, order='cos|sin', shift=1)",
    "sinusoidal(34, offset=2, padding_row=1)",
    "alibi(12)",
    "alibi(6, symmetric=True)",
    "t5_bias(8)",
    "seasonal((24.0, 168.0), harmonics=(2, 3))",
    "learned(14, shape=(60,))",
)


@pytest.mark.parametrize("line", OWN)
def test_own_modules_are_acquitted(line):
    value = parse(line)[0]
    report = check(build(value), value)
    assert defects(report) == []
    assert report.acquitted
    assert report.at_least("convention") == ()


def independent(x, positions, interleaved, permutation=None):
    """One pair and one token at a time."""
    d = x.shape[-1]
    order = np.arange(d) if permutation is None else permutation
    out = np.array(x, dtype=np.float64)
    for t, p in enumerate(positions):
        for i in range(d // 2):
            a, b = (order[2 * i], order[2 * i + 1]) if interleaved else (order[i], order[i + d // 2])
            angle = float(p) * math.exp(-2 * i / d * math.log(10000.0))
            u, v = x[..., t, a].astype(float), x[..., t, b].astype(float)
            out[..., t, a] = u * math.cos(angle) - v * math.sin(angle)
            out[..., t, b] = v * math.cos(angle) + u * math.sin(angle)
    return out


@pytest.mark.parametrize("interleaved", [False, True])
def test_an_independent_loop_in_its_own_pairing_has_no_finding(interleaved):
    report = check(
        lambda x, positions: independent(x, positions, interleaved),
        f"rotary(14, interleaved={interleaved})",
        probes=False,
    )
    assert report.acquitted
    assert report.findings == ()


def test_the_other_pairing_is_a_convention_and_no_defect():
    report = check(lambda x, positions: independent(x, positions, True), "rotary(14)", probes=False)
    assert [f.verdict for f in report.findings] == ["convention"]
    assert report.acquitted


def test_permuted_but_consistent_channels_are_a_convention():
    order = np.random.default_rng(3).permutation(14)
    report = check(lambda x, positions: independent(x, positions, True, order), "rotary(14)", probes=False)
    assert [(f.verdict, f.kinds) for f in report.findings] == [("convention", ("layout",))]
    assert report.findings[0].recovered[0].value.startswith(str([order[:2].tolist()])[:-1])


def test_a_shift_of_all_positions_is_harmless_under_rotary():
    report = check(lambda x, positions: independent(x, np.asarray(positions) + 3, False), "rotary(14)", probes=False)
    assert [f.verdict for f in report.findings] == ["harmless"]
    assert report.findings[0].recovered[0].value == pytest.approx(3.0)


def test_a_permutation_of_the_output_that_queries_and_keys_share_is_harmless():
    def halves(q, k, positions):
        turned = [independent(v, positions, True) for v in (q, k)]
        return tuple(np.concatenate([v[..., ::2], v[..., 1::2]], axis=-1) for v in turned)

    report = check(halves, "rotary(14, interleaved=True)", probes=False)
    assert [f.verdict for f in report.findings] == ["harmless"]


def test_bloom_s_form_of_alibi_differs_by_a_constant_for_each_row():
    slopes = np.array([2.0 ** -(h + 1) for h in range(8)])
    report = check(lambda n_q, n_k: np.broadcast_to(slopes[:, None, None] * np.arange(n_k), (8, n_q, n_k)), "alibi(8)")
    assert [f.verdict for f in report.findings] == ["harmless"]


def test_a_published_vector_of_frequencies_is_right():
    stored = np.array([10000.0 ** (-2 * i / 128) for i in range(64)], dtype=np.float32)
    report = check({"rope.freqs": stored}, "rotary(128)")
    assert report.acquitted
    assert report.findings == ()


def test_float32_arithmetic_is_not_called_imprecise():
    inv = 1.0 / (10000.0 ** (torch.arange(0, 64, 2).float() / 64))

    def both(positions):
        angle = positions.float()[:, None] * inv
        return angle.cos(), angle.sin()

    report = check(both, "rotary(64)")
    assert report.acquitted
    assert report.findings == ()


def test_a_bfloat16_result_of_exact_angles_is_right():
    def both(positions):
        angle = positions.double()[:, None] * 10000.0 ** (-torch.arange(0, 64, 2).double() / 64)
        return angle.cos().bfloat16(), angle.sin().bfloat16()

    assert check(both, "rotary(64)").findings == ()


def test_a_table_that_refuses_beyond_its_end_is_no_defect():
    angle = np.outer(np.arange(512), [10000.0 ** (-2 * i / 16) for i in range(8)])

    def both(positions):
        if max(positions) >= 512:
            raise IndexError("past the table")
        return np.cos(angle[positions]), np.sin(angle[positions])

    report = check(both, "rotary(16)")
    assert report.findings == ()
    assert any("512 is refused" in note for note in report.notes)
