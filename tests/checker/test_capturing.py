"""Compiling and exporting: right modules are acquitted, and the report says which of the two ran or why not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from posenc.checker.checking import check
from posenc.nn import build
from posenc.spec import parse

COMPILED, EXPORTED = "compiled (torch.compile, graphs alone)", "exported (torch.export), run at another length"
OWN = (
    "rotary(22)",
    "rotary(64) >> yarn(4, original=512)",
    "sinusoidal(34)",
    "seasonal((24.0, 168.0))",
    "learned(14, shape=(60,))",
)


@pytest.mark.parametrize("line", OWN)
def test_own_modules_are_compiled_and_exported(line):
    value = parse(line)[0]
    report = check(build(value), value)
    assert report.findings == ()
    assert {COMPILED, EXPORTED} <= set(report.probes)
    assert {m.name: m.value for m in report.measured}["graphs compiled for five lengths"] == 2


ROPES = {
    "default": ({}, "rotary(64)"),
    "llama3": (
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 128,
        },
        "rotary(64) >> llama3(8, original=128)",
    ),
}


@pytest.mark.parametrize("name", ROPES)
def test_the_rotary_of_transformers_is_acquitted(name):
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    block, line = ROPES[name]
    config = transformers.LlamaConfig(
        hidden_size=256,
        num_attention_heads=4,
        max_position_embeddings=512,
        rope_parameters={"rope_type": "default", **block, "rope_theta": 1e4},
    )
    report = check(LlamaRotaryEmbedding(config), line)
    assert report.acquitted
    assert not [f.title for f in report.findings if f.verdict == "defect" or "export-compile" in f.kinds]
    assert {COMPILED, EXPORTED} <= set(report.probes)


def test_a_branch_on_the_positions_cannot_be_exported_and_the_report_says_so():
    class Branches(torch.nn.Module):
        def forward(self, x, position_ids):
            scale = 1.0 if position_ids.max() >= 0 else 2.0
            angle = scale * position_ids[..., None].double() * 1e4 ** (-torch.arange(0, 26, 2).double() / 26)
            a, b = x.double().chunk(2, dim=-1)
            return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1).float()

    report = check(Branches(), "rotary(26)")
    assert report.acquitted
    assert any(text.startswith(f"{EXPORTED}: torch.export refuses it: ") for text in report.not_probed)


def test_what_is_not_of_torch_is_left_out_with_the_reason():
    def both(positions):
        angle = np.outer(np.asarray(positions), [1e4 ** (-2 * i / 8) for i in range(4)])
        return np.cos(angle), np.sin(angle)

    report = check(both, "rotary(8)", library="numpy")
    assert report.acquitted
    left = [text for text in report.not_probed if text.startswith((COMPILED, EXPORTED))]
    assert left == [f"{EXPORTED}: the subject is not of torch", f"{COMPILED}: the subject is not of torch"]


def channel_by_channel(positions, library):
    out = library.zeros((len(positions), 514))
    for i in range(0, 514, 2):
        out[:, i] = library.sin(positions / 10000 ** (i / 514))
        out[:, i + 1] = library.cos(positions / 10000 ** (i / 514))
    return out


@pytest.mark.parametrize(
    ("library", "why"),
    [
        (np, "it answers with arrays of NumPy"),
        (torch, "one call makes 2057 operations, more than the 400 that are captured in a moment"),
    ],
)
def test_long_loops_of_python_are_left_out_with_the_reason(library, why):
    report = check(lambda positions: channel_by_channel(positions, library), "sinusoidal(514)")
    assert not [f for f in report.findings if f.verdict == "defect"]
    left = [text for text in report.not_probed if text.startswith((COMPILED, EXPORTED))]
    assert left == [f"{EXPORTED}: {why}", f"{COMPILED}: {why}"]


def test_nothing_is_logged_or_printed(capfd):
    class Fails(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = 8

        @torch.compiler.assume_constant_result
        def table(self):
            return torch.zeros(self.rows, 34)

        def forward(self, x):
            self.rows = max(self.rows, x.shape[1])
            return x + self.table()[: x.shape[1]]

    check(Fails(), "sinusoidal(34)")
    assert capfd.readouterr() == ("", "")


class ForgetsWhenCompiled(torch.nn.Module):
    """Only torch.compile sees the wrong branch: torch.export does not."""

    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, dim, 2).double() / dim))

    def forward(self, x, positions):
        if torch.compiler.is_compiling() and not torch.compiler.is_exporting():
            positions = positions - positions[..., :1]
        angles = (positions[..., None].double() * self.inv_freq).repeat(*(1,) * positions.ndim, 2).float()
        a, b = x.chunk(2, -1)
        return x * angles.cos() + torch.cat((-b, a), -1) * angles.sin()


def test_another_result_when_compiled_is_named():
    report = check(ForgetsWhenCompiled(26), "rotary(26)", call="x, positions")
    (found,) = [f for f in report.findings if f.verdict == "defect"]
    assert found.title == "the compiled subject gives another result than the plain one"
    assert found.evidence[0].seen > 1e-3
