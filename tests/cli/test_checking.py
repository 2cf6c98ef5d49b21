"""``posenc check`` and ``posenc identify``: exit codes, JSON, JUnit, HTML."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from posenc.cli import main
from posenc.records.finding import CheckReport


@pytest.fixture
def vector(tmp_path):
    path = tmp_path / "f.npy"
    np.save(path, np.array([5e5 ** (-2 * i / 26) for i in range(13)]))
    return str(path)


def test_identify(vector, capsys):
    assert main(["identify", vector]) == 0
    assert "rotary(26, base=500000)" in capsys.readouterr().out


def test_exit_codes(vector, tmp_path, capsys):
    assert main(["check", vector, "--expect", "rotary(26, base=500000)"]) == 0
    assert main(["check", vector, "--expect", "rotary(26)"]) == 1
    assert main(["check", str(tmp_path / "missing.npy"), "--expect", "rotary(26)"]) == 2
    assert main(["check", vector, "--expect", "rotary(25)"]) == 2
    capsys.readouterr()


def test_fail_on(tmp_path, capsys):
    path = tmp_path / "t.npy"
    angle = np.outer(np.arange(64), [1e4 ** (-2 * i / 12) for i in range(6)])
    np.save(path, np.concatenate([np.sin(angle), np.cos(angle)], axis=1))
    line = ["check", str(path), "--expect", "sinusoidal(12)"]
    assert main(line) == 0
    assert main([*line, "--fail-on", "convention"]) == 1
    assert main([*line, "--fail-on", "any"]) == 1
    capsys.readouterr()


def test_json_is_the_whole_record(vector, capsys):
    assert main(["check", vector, "--expect", "rotary(26)", "--json"]) == 1
    text = capsys.readouterr().out
    report = CheckReport.model_validate_json(text)
    assert json.loads(text)["findings"][0]["verdict"] == "defect"
    assert {r.name: r.value for r in report.recovered}["base"] == pytest.approx(5e5, rel=1e-6)
    assert report.findings[0].links


def test_junit_and_html(vector, tmp_path, capsys):
    junit, html = tmp_path / "r.xml", tmp_path / "r.html"
    assert main(["check", vector, "--expect", "rotary(26)", "--junit", str(junit), "--html", str(html)]) == 1
    root = ElementTree.parse(junit).getroot()
    assert root[0].attrib["failures"] == "1"
    assert root.find(".//failure").attrib["type"] == "exponent"
    page = html.read_text()
    assert "<svg" in page
    assert "https://github.com/" in page
    assert "<script" not in page
    assert main(["check", vector, "--expect", "rotary(26)", "--junit", str(tmp_path / "no" / "r.xml")]) == 2
    capsys.readouterr()


def test_text_from_outside_is_inert_everywhere(tmp_path, capsys):
    path = tmp_path / "m.py"
    path.write_text("def subject(x, positions):\n    raise ValueError('\\x1b[31m<script>&\"]]>')\n")
    junit, html = tmp_path / "r.xml", tmp_path / "r.html"
    assert main(["check", str(path), "--expect", "rotary(16)", "--junit", str(junit), "--html", str(html)]) == 2
    ElementTree.parse(junit)
    assert "<script>" not in html.read_text()
    assert "\x1b[31m" not in capsys.readouterr().out


def test_code_runs_apart_and_is_ended(tmp_path, capsys):
    path = tmp_path / "m.py"
    path.write_text("def subject(x, positions):\n    while True: pass\n")
    assert main(["check", str(path), "--expect", "rotary(16)", "--timeout", "2"]) == 2
    assert "no answer within 2 s" in capsys.readouterr().out
