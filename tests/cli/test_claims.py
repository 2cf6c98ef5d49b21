"""``posenc claims``: the ledger in the terminal, as JSON, and as a sheet."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from posenc.cli import app, main
from posenc.records.analysis import Ledger


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def test_every_claim_is_shown_with_its_verdict(runner):
    result = runner.invoke(app, ["claims", "llama-3.1-8b"])
    assert result.exit_code == 0
    assert "Claims about rotary(128, base=500000) >> llama3(8, original=8192)" in result.stdout
    assert "23 common claims: 8 exact" in result.stdout
    assert "rises from D = 11 to 12" in " ".join(result.stdout.split())
    assert "\x1b" not in result.stdout


def test_json_is_the_record(runner):
    record = Ledger.model_validate_json(runner.invoke(app, ["claims", "rotary(64)", "--json"]).stdout)
    assert [claim.number for claim in record.claims] == list(range(1, 24))
    counts = dict(record.claims[17].numbers)
    assert counts["rows"] > counts["rotate"] > counts["add"] > counts["bias"] > 0
    assert (
        f"{counts['add']:.0f} add, {counts['rotate']:.0f} rotate, {counts['bias']:.0f} bias"
        in record.claims[17].evidence
    )


def test_a_sheet_is_written(runner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert runner.invoke(app, ["claims", "rotary(64)", "--sheet"]).stdout == "claims.html\n"
    assert (tmp_path / "claims.html").read_text().count("<main") == 2
    told = runner.invoke(app, ["claims", "rotary(64)", "--sheet", "-o", "zh.html", "--language", "zh", "--json"])
    assert json.loads(told.stdout)["file"] == "zh.html"
    assert (tmp_path / "zh.html").read_text().count("<main") == 1
    assert "需要训练" in (tmp_path / "zh.html").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["claims", "alibi(6)"],
        ["claims", "none"],
        ["claims", "no-such-model"],
        ["claims", "table.npy"],
        ["claims", "rotary(64)", "-o", "a.html"],
        ["claims", "rotary(64)", "--language", "en"],
        ["claims", "rotary(64)", "--sheet", "--language", "fr"],
        ["claims", "rotary(64)", "--sheet", "-o", "/missing/a.html"],
    ],
    ids=" ".join,
)
def test_bad_use_is_one_line_and_exits_2(arguments, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("posenc: ")
    assert err.count("\n") == 1
