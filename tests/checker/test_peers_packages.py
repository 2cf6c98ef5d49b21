"""Keras Hub (on torch), Equinox and MLX; every verdict beside a number that shares no code with the checker."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from checker import peers
from posenc.checker.checking import check


def defects(report):
    assert report.could_not_run is None, report.could_not_run
    return [f.kinds for f in report.findings if f.verdict == "defect"]


@pytest.fixture(scope="module")
def layers():
    return peers.keras_layers()


@pytest.fixture(scope="module")
def equinox():
    return peers.package("jax", "equinox")


@pytest.fixture(scope="module")
def mlx():
    peers.package("mlx", "mlx.core")
    return peers.package("mlx", "mlx.nn")


def test_keras_hub_s_rotary_is_right_in_both_precisions(layers):
    assert check(layers.RotaryEmbedding(), "rotary(26)").acquitted
    assert check(layers.RotaryEmbedding(dtype="bfloat16"), "rotary(26)", dtype="bfloat16", probes=False).acquitted
    x = np.zeros((1, 1, 26), np.float32)
    x[..., 0] = 1.0
    out = layers.RotaryEmbedding(dtype="bfloat16")(x, start_index=4097).float().numpy()[0, 0]
    assert out[0] == pytest.approx(math.cos(4097), abs=2.0**-8)
    assert abs(math.cos(4096) - math.cos(4097)) > 0.1  # what a rounded position would have cost


def test_keras_hub_scales_by_yarn_and_linear_rightly(layers):
    made = layers.RotaryEmbedding(rope_type="yarn", scaling_factor=4.0)
    report = check(made, "rotary(64) >> yarn(4, original=4096)", probes=False)
    assert report.findings == ()
    assert check(layers.RotaryEmbedding(scaling_factor=3.0), "rotary(26) >> linear(3)", probes=False).findings == ()
    x = np.zeros((1, 1, 64), np.float32)
    x[..., 0] = 1.0
    assert made(x).numpy()[0, 0, 0] == pytest.approx(0.1 * math.log(4) + 1, rel=1e-6)


def test_keras_hub_s_dynamic_divides_every_frequency(layers):
    made = layers.RotaryEmbedding(rope_type="dynamic", scaling_factor=4.0)
    report = check(made, "rotary(26) >> ntk(4)", probes=False)
    (found,) = report.findings
    assert (found.verdict, found.kinds) == ("defect", ("scaling-parameters",))
    times = 4.0 ** (26 / 24)
    assert {r.name: r.value for r in found.recovered}["every frequency divided by"] == pytest.approx(times)
    x = np.zeros((1, 2, 26), np.float32)
    x[..., 0] = 1.0
    assert made(x).numpy()[0, 1, 0] == pytest.approx(math.cos(1 / times), abs=1e-6)  # NTK keeps it at cos(1)
    assert abs(math.cos(1 / times) - math.cos(1)) > 0.4


def test_keras_hub_s_sines_are_computed_in_bfloat16(layers):
    assert check(layers.SinePositionEncoding(), "sinusoidal(34)", probes=False).findings == ()
    low = layers.SinePositionEncoding(dtype="bfloat16")
    report = check(low, "sinusoidal(34)", dtype="bfloat16", probes=False)
    assert ("precision",) in defects(report)
    rows = low(np.zeros((1, 301, 34), np.float32)).float().numpy()[0]
    at = np.arange(301).astype(np.float32).astype(ml_dtypes.bfloat16).astype(float)
    assert at[257] == 256
    assert np.array_equal(rows[257], rows[256])  # a whole position is lost
    assert abs(rows[257, 0] - math.sin(257)) > 0.4
    assert rows[257, 0] == pytest.approx(math.sin(256), abs=2.0**-8)


def test_keras_hub_s_alibi_counts_from_the_key(layers):
    report = check(layers.AlibiBias(), "alibi(8)")
    assert [(f.verdict, f.kinds) for f in report.findings] == [("harmless", ("bias-function",))]
    seen = layers.AlibiBias()(np.zeros((1, 8, 5, 5), np.float32)).numpy()[0]
    for h in range(8):
        for i in range(5):
            right = np.exp([-(2.0 ** -(h + 1)) * (i - j) for j in range(i + 1)])
            row = np.exp(seen[h, i, : i + 1])
            np.testing.assert_allclose(row / row.sum(), right / right.sum(), rtol=1e-5)


def test_keras_hub_s_learned_tables(layers):
    assert check(layers.PositionEmbedding, "learned(34, shape=(37,))").findings == ()
    made = layers.PositionEmbedding(sequence_length=37)
    made.build((None, 11, 34))
    table = made.position_embeddings.value.detach().numpy()
    np.testing.assert_array_equal(
        made(np.zeros((1, 7, 34), np.float32), start_index=30).detach().numpy()[0], table[30:37]
    )
    with pytest.raises(RuntimeError):
        made(np.zeros((1, 7, 34), np.float32), start_index=31)
    tied = layers.ReversibleEmbedding(37, 34)
    tied.build()
    report = check(tied, "learned(34, shape=(37,))", probes=False)
    assert report.findings == ()
    assert any("position 37 is refused" in note for note in check(tied, "learned(34, shape=(37,))").notes)
    assert defects(check(tied, "sinusoidal(34)", probes=False)) == [("exponent", "layout")]
    np.testing.assert_array_equal(
        tied(np.array([36, 0])).detach().numpy(), tied.embeddings.value.detach().numpy()[[36, 0]]
    )


def test_equinox_gives_a_second_base_the_first_one_s_table(equinox):
    rotary = equinox.nn.RotaryPositionalEmbedding
    report = check(rotary, "rotary(46, base=500000)")
    assert defects(report) == [("state-leak", "config-parsing")]
    assert "different bases" in report.findings[0].title
    second = check(rotary, "rotary(46)", probes=False)  # same width, in the same process
    assert {r.name: r.value for f in second.findings for r in f.recovered}["base"] == pytest.approx(5e5, rel=1e-4)

    x = np.zeros((1001, 46), np.float32)
    x[:, 22] = 1.0
    out = np.asarray(rotary(46, theta=10000.0)(x))[1000, 22]
    assert out == pytest.approx(math.cos(1000 * 500000 ** (-44 / 46)), abs=1e-6)
    assert out != pytest.approx(math.cos(1000 * 10000 ** (-44 / 46)), abs=1e-3)


def test_equinox_is_right_for_the_first_base_of_a_width(equinox):
    made = equinox.nn.RotaryPositionalEmbedding(58)
    assert check(made, "rotary(58)", probes=False).findings == ()
    x = np.zeros((4098, 58), np.float32)
    x[:, 3] = 1.0
    assert float(made(x)[4097, 3]) == pytest.approx(math.cos(4097 * 10000 ** (-6 / 58)), abs=4097 * 2.0**-23)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_mlx_is_right_with_its_own_convention(mlx, dtype):
    assert check(mlx.RoPE(64), "rotary(64)", dtype=dtype).findings == ()
    assert check(mlx.RoPE(64, traditional=True), "rotary(64, interleaved=True)", dtype=dtype).findings == ()
    core = peers.package("mlx", "mlx.core")
    x = core.zeros((1, 1, 1, 64), dtype=getattr(core, dtype))
    x[..., 0] = 1.0
    out = np.array(mlx.RoPE(64)(x, offset=4097).astype(core.float32))[0, 0, 0]
    exact = (math.cos(4097), math.sin(4097))
    assert (out[0], out[32]) == pytest.approx(exact, abs={"float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}[dtype])


def test_mlx_s_alibi_is_symmetric(mlx):
    assert [f.verdict for f in check(mlx.ALiBi(), "alibi(8)").findings] == ["convention"]
    core = peers.package("mlx", "mlx.core")
    seen = np.array(mlx.ALiBi()(core.zeros((1, 8, 5, 5))))[0]
    right = [[[-(2.0 ** -(h + 1)) * abs(i - j) for j in range(5)] for i in range(5)] for h in range(8)]
    np.testing.assert_allclose(seen, right, rtol=1e-6)
