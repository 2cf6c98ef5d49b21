"""docs/checking.md: its code runs, and its tables say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from posenc.checker.calling.names import NAMES
from posenc.checker.examining.makers import TASKS
from posenc.records.finding import KINDS, VERDICTS

GUIDE = (Path(__file__).resolve().parents[2] / "docs/checking.md").read_text("utf-8")


def table(header: str) -> list[list[str]]:
    """The cells of the rows under a header."""
    lines = iter(GUIDE.split(f"| {header} |", 1)[1].splitlines()[2:])
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_its_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/checking.md", "exec"), names)


def test_roles():
    assert sorted(role for row in table("role") for role in quoted(row[0])) == sorted(NAMES)


def test_tasks():
    assert [(quoted(row[0])[0], row[1]) for row in table("task")] == [(name, t.takes) for name, t in TASKS.items()]


def test_verdicts_and_kinds():
    assert [quoted(row[0])[0] for row in table("verdict")] == list(VERDICTS)
    said = GUIDE.split("The kinds: ", 1)[1].split(". [", 1)[0]
    assert quoted(said) == list(KINDS)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([a-z]+\.md)\)", GUIDE))))
def test_links(link):
    assert (Path(__file__).resolve().parents[2] / "docs" / link).is_file()
