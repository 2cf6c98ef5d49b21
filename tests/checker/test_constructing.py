"""Classes are constructed from the wanted encoding's numbers, also where these come as one object of settings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from posenc.checker.checking import check

LINE = "rotary(26, base=5000)"


def inverse(head_dim, base):
    return base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)


class Turns(nn.Module):
    """What the classes below share: they differ in where their numbers come from."""

    def fill(self, head_dim, base):
        self.register_buffer("inv_freq", inverse(head_dim, base).float(), persistent=False)

    def forward(self, x, positions):
        angle = positions[..., None].double() * self.inv_freq.double()
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


@dataclass
class Arguments:
    n_embd: int
    n_heads: int
    rope_theta: float = 1e4
    n_layers: int = 3
    name: str = "tiny"


class FromADataclass(Turns):
    def __init__(self, args: Arguments, layer_idx: int, *, name: str, dtype: torch.dtype, device: str | None):
        super().__init__()
        self.fill(args.n_embd // args.n_heads, args.rope_theta)


class FromAConfig(Turns):
    def __init__(self, config):
        super().__init__()
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        assert config.rope_scaling is None
        self.fill(head_dim, config.rope_theta)


class FromNewerConfig(Turns):
    def __init__(self, config):
        super().__init__()
        rope = config.rope_parameters
        assert rope.get("rope_type", "default") == "default"
        self.fill(config.hidden_size // config.num_attention_heads, rope["rope_theta"])


class FromADict(Turns):
    def __init__(self, cfg):
        super().__init__()
        self.fill(cfg["emb_dim"] // cfg["n_heads"], cfg.get("rope_base", 1.0))


class FromTheModelsWidth(Turns):
    def __init__(self, hidden_size, num_heads, base=1e4):
        super().__init__()
        self.fill(hidden_size // num_heads, base)


@pytest.mark.parametrize("cls", [FromADataclass, FromAConfig, FromNewerConfig, FromADict, FromTheModelsWidth])
def test_settings_come_from_the_wanted_encoding(cls):
    report = check(cls, LINE)
    assert report.could_not_run is None
    assert [f.title for f in report.findings if f.verdict == "defect"] == []
    assert "5000" in " ".join(report.assumed)


@pytest.mark.parametrize("cls", [FromADataclass, FromAConfig, FromNewerConfig, FromADict, FromTheModelsWidth])
def test_a_number_that_is_not_used_is_named(cls):
    class Deaf(cls):
        def fill(self, head_dim, base):
            super().fill(head_dim, 1e4)

    found = check(Deaf, LINE).at_least("defect")[0]
    assert {r.name: r.value for r in found.recovered}["base"] == pytest.approx(1e4, rel=1e-6)


def test_a_setting_nobody_knows_is_named():
    class Odd(Turns):
        def __init__(self, config):
            super().__init__()
            self.fill(config.frobnication, 1e4)

    assert "no value is known for the setting frobnication" in str(check(Odd, LINE).could_not_run)


@pytest.mark.parametrize("only", [torch.float16, torch.bfloat16, torch.float64])
def test_a_subject_of_one_type_is_asked_in_it(only):
    def rope(x, positions):
        if x.dtype != only:
            raise TypeError(f"expected {only}")
        angle = positions[..., None].double() * inverse(26, 5e3)
        a, b = x.double().chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1).to(only)

    report = check(rope, LINE)
    assert report.acquitted
    assert str(only).removeprefix("torch.") in " ".join(report.assumed)


def test_numpy_that_follows_half_inputs_is_right_in_float32():
    def rows(x):
        at = np.arange(x.shape[-2], dtype=x.dtype)
        rates = (1e4 ** (-np.arange(0, 26, 2) / 26)).astype(x.dtype)
        angle = at[:, None] * rates
        return x + np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(len(at), 26).astype(x.dtype)

    report = check(rows, "sinusoidal(26)", library="numpy")
    assert report.acquitted
    (found,) = [f for f in report.findings if f.title.startswith("with float16 inputs")]
    assert found.verdict == "convention"
    assert "float32" in str(found.cause)


def test_a_file_that_reads_arguments_says_what_to_do(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("import sys\nsys.exit(2)\n")
    said = str(check(str(file), LINE).could_not_run)
    assert "ends the program" in said
    assert "__main__" in said


def test_an_assertion_without_words_is_said_to_be_one():
    def refuses(x, positions):
        raise AssertionError

    assert "AssertionError without a message" in str(check(refuses, LINE).could_not_run)


def test_dataclasses_beside_a_class_are_no_candidates(tmp_path):
    file = tmp_path / "model.py"
    file.write_text(
        "from dataclasses import dataclass\nimport enum\nimport numpy as np\n\n"
        "@dataclass\nclass Arguments:\n    dim: int = 8\n\n"
        "class Kind(enum.Enum):\n    A = 1\n\n"
        "def rope(x, positions):\n"
        "    angle = np.outer(positions, 5e3 ** (-np.arange(0, 26, 2) / 26))\n"
        "    a, b = np.split(x, 2, axis=-1)\n"
        "    c, s = np.cos(angle), np.sin(angle)\n"
        "    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)\n"
    )
    report = check(str(file), LINE)
    assert report.acquitted
    assert "the only public class or function" in " ".join(report.assumed)
