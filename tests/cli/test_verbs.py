"""Every verb through typer's own runner, and exit codes and streams of real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import posenc
from cli.processes import started
from posenc.cli import app, main
from posenc.records import Difference, Inspection

EVIL = "\x1b[2J[red]evil[/red]"


def config(folder: Path, **changes: object) -> Path:
    """A llama's config.json in a folder of its own."""
    fields = {
        "model_type": "llama",
        "num_hidden_layers": 5,
        "num_attention_heads": 8,
        "hidden_size": 256,
        "rope_theta": 10000.0,
        "max_position_embeddings": 4096,
        "rope_scaling": {"type": "linear", "factor": 4.0},
    }
    folder.mkdir(exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps({**fields, **changes}))
    return path


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "posenc", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**os.environ, "HF_HUB_OFFLINE": "1", **environment}
    )


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def test_inspect(runner):
    result = runner.invoke(app, ["inspect", "llama-3.1-8b"])
    assert result.exit_code == 0
    assert "35-63" in result.stdout
    assert "\x1b" not in result.stdout, "no colour when not a terminal"


def test_inspect_json_is_the_whole_record(runner):
    result = runner.invoke(app, ["inspect", "llama-3.1-8b", "--json"])
    assert result.exit_code == 0
    record = Inspection.model_validate_json(result.stdout)
    (state,) = record.parts[0].encodings[0].spectrum.states
    assert len(state.theta) == 64
    assert state.similarity is not None


def test_models(runner):
    every = runner.invoke(app, ["models", "--json"])
    names = [entry["name"] for entry in json.loads(every.stdout)]
    assert len(names) == len(set(names)) > 80
    some = runner.invoke(app, ["models", "llama"])
    assert "Llama-3.1-8B" in some.stdout
    assert "GPT-2" not in some.stdout


def test_cite(runner):
    assert "2104.09864" in runner.invoke(app, ["cite", "llama-3.1-8b"]).stdout
    assert runner.invoke(app, ["cite", "llama-3.1-8b", "--bibtex"]).stdout.count("@article{") == 2
    keys = [r["key"] for r in json.loads(runner.invoke(app, ["cite", "llama-3.1-8b", "--json"]).stdout)]
    assert keys == ["su2021", "llama3"]
    assert "reference" in runner.invoke(app, ["cite", "none"]).stdout


def test_report(runner, tmp_path):
    path = tmp_path / "page.html"
    result = runner.invoke(app, ["report", "llama-3.1-8b", "rotary(6)", "-o", str(path)])
    assert (result.exit_code, result.stdout.strip()) == (0, str(path))
    page = path.read_text()
    assert page.count("<h1") == 1
    assert all(f">{name}</h2>" in page for name in ("Llama-3.1-8B", "rotary(6)"))
    told = json.loads(runner.invoke(app, ["report", "rotary(6)", "-o", str(path), "--json"]).stdout)
    assert (told["file"], len(told["models"])) == (str(path), 1)


def test_report_goes_to_report_html(runner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert runner.invoke(app, ["report", "rotary(6)"]).stdout.strip() == "report.html"
    assert (tmp_path / "report.html").exists()


def test_diff_of_a_config_and_its_copies(runner, tmp_path):
    original = str(config(tmp_path / "a"))
    copy = str(config(tmp_path / "b"))
    dropped = str(config(tmp_path / "c", rope_scaling=None))
    higher = str(config(tmp_path / "d", rope_theta=10100.0))
    assert runner.invoke(app, ["diff", original, copy]).exit_code == 0
    for other, number in ((dropped, "0.25"), (higher, f"{10100 ** (-1 / 16) / 4:.10g}")):
        result = runner.invoke(app, ["diff", original, other])
        assert result.exit_code == 1
        assert number in result.stdout
    record = Difference.model_validate_json(runner.invoke(app, ["diff", original, dropped, "--json"]).stdout)
    assert not record.same


def test_diff_of_old_and_new_spelling(runner, tmp_path):
    old = str(config(tmp_path / "a"))
    parameters = {"rope_theta": 10000.0, "rope_type": "linear", "factor": 4.0}
    new = str(config(tmp_path / "b", rope_theta=None, rope_scaling=None, rope_parameters=parameters))
    result = runner.invoke(app, ["diff", old, new])
    assert (result.exit_code, "same position encodings" in result.stdout) == (0, True)


def test_llama3_and_llama31_differ(runner):
    result = runner.invoke(app, ["diff", "llama-3-8b", "llama-3.1-8b"])
    assert result.exit_code == 1
    assert "0.002616099253" in result.stdout
    assert "0.002166570764" in result.stdout


def test_wrong_mathematics_exits_1(runner, tmp_path):
    path = str(config(tmp_path / "a", rope_scaling={"type": "linear", "factor": 0.5}))
    for verb in (["inspect"], ["inspect", "--json"], ["report", "-o", str(tmp_path / "r.html")]):
        assert runner.invoke(app, [*verb, path]).exit_code == 1
    result = run("inspect", path)
    assert (result.returncode, result.stderr) == (1, "")
    assert "execute it all the same" in result.stdout


BAD = [
    ["inspect"],
    ["inspect", "--jsn", "rotary(6)"],
    ["inspect", "no-such-model-anywhere"],
    ["inspect", "rotary("],
    ["inspect", "rotary(7)"],
    ["inspect", "rotary(1000000000000)"],
    ["inspect", "/dev/null/x.json"],
    ["inspect", ""],
    ["inspect", f"{EVIL}\nsecond line"],
    ["diff", "rotary(6)"],
    ["diff", "rotary(6)", "rotary(6)", "rotary(6)"],
    ["frob"],
    ["models", "no such model"],
    ["cite", "llama"],
    ["report"],
    ["report", "rotary(6)", "-o", "/missing/report.html"],
    ["report", "rotary(6)", "-o", "/"],
]


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_use_is_one_line_and_exits_2(arguments, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("posenc: ")
    assert err.count("\n") == 1
    assert err[:-1].isprintable()


def test_bad_input_in_a_process_of_its_own():
    result = run("inspect", "rotary(7)")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert "rotary_dim must be even; got 7" in result.stderr


def test_no_verb_shows_the_help(capsys):
    assert main([]) == 2
    assert "inspect" in capsys.readouterr().out


def test_main_returns_exit_codes(capsys):
    assert main(["diff", "rotary(6)", "rotary(6)"]) == 0
    assert main(["diff", "rotary(6)", "rotary(6, base=7)"]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verb", ["models", "inspect", "diff", "cite", "report", "claims"])
def test_every_verb_has_help(verb, capsys):
    assert main([verb, "--help"]) == 0
    assert f"Usage: posenc {verb}" in capsys.readouterr().out


def test_version():
    assert run("--version").stdout == f"posenc {posenc.__version__}\n"


def test_hostile_text_in_a_config_is_inert(tmp_path):
    path = config(tmp_path / "a", **{f"rope_{EVIL}": EVIL})
    result = run("inspect", path, FORCE_COLOR="1")
    assert result.returncode == 0
    assert "\x1b[2J" not in result.stdout
    assert "\\x1b[2J[red]evil[/red]" in result.stdout


def test_colour_is_only_where_it_is_wanted():
    assert "\x1b[1m" in run("inspect", "rotary(6)", FORCE_COLOR="1").stdout
    assert "\x1b[36m" not in run("inspect", "rotary(6)", FORCE_COLOR="1", NO_COLOR="1").stdout


@pytest.mark.parametrize("columns", [30, 80])
def test_the_terminal_width_is_kept(columns, runner):
    lines = runner.invoke(app, ["inspect", "llama-3.1-8b"], env={"COLUMNS": str(columns)}).stdout.split("\n")
    assert columns - 10 < max(map(len, lines)) <= columns


def test_a_terminal_without_greek_gets_question_marks():
    result = run("inspect", "rotary(6)", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "?_i = 10000" in result.stdout


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m posenc inspect llama-3.1-8b --json | head -c 20"
    result = subprocess.run(["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True)
    assert result.stderr == ""
    assert result.stdout.endswith("0\n")


@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
@pytest.mark.parametrize("form", ["", "--json"])
def test_an_output_that_cannot_be_written_is_one_line(where, form):
    command = f"{sys.executable} -m posenc inspect 'rotary(6)' {form} {where}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith("posenc: the output can be written; got ")
    assert result.stderr.count("\n") == 1


def test_without_stderr_the_exit_code_remains():
    result = subprocess.run(["bash", "-c", f"{sys.executable} -m posenc inspect 'rotary(7)' 2>&-"], capture_output=True)
    assert (result.returncode, result.stdout) == (2, b"")


def test_wavelengths_beyond_float64_are_no_numbers(runner):
    result = runner.invoke(app, ["inspect", "rotary(8, base=1e32) >> linear(1e300)", "--json"])
    (state,) = Inspection.model_validate_json(result.stdout).parts[0].encodings[0].spectrum.states
    assert state.theta[0] == 1e-300
    assert state.wavelength[0] == pytest.approx(2e300 * 3.141592653589793)
    assert state.wavelength[1:] == (None, None, None)


def test_an_interrupt_exits_130():
    script = "import posenc.analysis.inspection as i, time, sys; from posenc.cli import main\n"
    script += (
        "i.inspect = lambda *a, **k: (print('ready', flush=True), time.sleep(30))\nsys.exit(main(['inspect', 'x']))"
    )
    process = started([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in complaint
