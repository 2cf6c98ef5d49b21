"""``posenc min-base``: text at 80 columns, JSON, exit codes, a bar only on a terminal, and interruption."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cli.processes import started
from posenc.cli import app, main
from posenc.records.base_search import BaseSearch

COMMAND = [sys.executable, "-m", "posenc", "min-base", "--context"]


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def test_text(runner):
    result = runner.invoke(app, ["min-base", "--context", "4096", "--head-dim", "128"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    lines = result.stdout.split("\n")
    assert max(map(len, lines)) <= 80
    text = " ".join(result.stdout.split())
    for said in (
        "smallest 26952.33923",
        "no base from 1 to 26952.339227",
        "58789.5041507 and every larger base serve (certified)",
        "no base below the last run was left undecided",
        "26973.0833515",
        "28628.685354",
        "Llama-2-7B 10000 4096 1707",
        "Men et al. 2024 (2405.14591) 27000 4079",
    ):
        assert said in text
    assert "Llama-3.1-8B" not in text  # trained for 131072


def test_a_feasible_base_is_not_rounded_down(runner):
    """The base that the text names must itself serve; the record has all its digits."""
    record = BaseSearch.model_validate_json(runner.invoke(app, ["min-base", "--context", "700", "--json"]).stdout)
    text = runner.invoke(app, ["min-base", "--context", "700"]).stdout
    named = next(line.split()[-1] for line in text.split("\n") if line.split()[:1] == ["smallest"] and "at" not in line)
    assert record.infimum.high <= float(named) <= record.infimum.high * (1 + 1e-10)


def test_json_is_the_whole_record(runner):
    result = runner.invoke(app, ["min-base", "--context", "97", "--head-dim", "64", "--json"])
    assert result.exit_code == 0
    record = BaseSearch.model_validate_json(result.stdout)
    assert (record.context, record.head_dim) == (97, 64)
    assert record.infimum.high == pytest.approx(261.21704, rel=1e-7)


def test_every_base(runner):
    result = runner.invoke(app, ["min-base", "--context", "1"])
    assert (result.exit_code, "every base above 1 serves" in result.stdout) == (0, True)


def test_what_the_grid_does_not_certify_is_said(runner, monkeypatch):
    monkeypatch.setattr("posenc.analysis.base_search.settling.WALKED", 10)
    monkeypatch.setattr("posenc.analysis.base_search.settling.MOST", 100)
    text = " ".join(runner.invoke(app, ["min-base", "--context", "1024"]).stdout.split())
    assert "between grid points nothing is certified" in text
    assert "the largest base found that does not serve is" in text
    sure = " ".join(runner.invoke(app, ["min-base", "--context", "1024", "--thorough"]).stdout.split())
    assert "6018.28085728 and every larger base serve (certified)" in sure


@pytest.mark.parametrize(
    "arguments",
    [[], ["--context", "0"], ["--context", "x"], ["--context", "99999999"], ["--context", "9", "--head-dim", "7"],
     ["--context", "9", "--head-dim", "4"], ["--context", "9", "more"]],
    ids=" ".join,
)  # fmt: skip
def test_bad_use_is_one_line(arguments, capsys):
    assert main(["min-base", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("posenc: ")
    assert err.count("\n") == 1


def test_no_bar_where_stderr_is_no_terminal():
    result = subprocess.run([*COMMAND, "300"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_bar_on_a_terminal_and_an_interrupt():
    """The bar goes to stderr alone; ctrl-C in the middle is exit code 130 and no traceback."""
    ours, theirs = pty.openpty()
    process = started(
        [*COMMAND, str(2**24)], stdout=subprocess.PIPE, stderr=theirs, text=True, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    while b"excluding small bases" not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        shown += more
    os.close(ours)
    assert (process.returncode, out) == (130, "")
    assert b"Traceback" not in shown
