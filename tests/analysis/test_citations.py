"""Every key that a value cites is a reference, and the right papers stand behind a configuration."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import posenc.spec
from posenc.analysis.citations import cite
from posenc.spec import parse
from posenc.spec.references import cited, references
from readings import LLAMA31, reading


def test_papers_behind_llama31():
    assert [r.key for r in cite(reading(LLAMA31))] == ["su2021", "llama3"]


@pytest.mark.parametrize(
    ("notation", "key"),
    [
        ("rotary(16, keep=0.5)", "barbero2024"),
        ("rotary(16, xpos_scale_base=512)", "sun2022"),
        ("rotary(16, axes=mixed(2))", "heo2024"),
        ("rotary(16, axes=split((2, 3, 3), own_schedule=False))", "wang2024qwen2vl"),
        ("rotary(16, axes=interleave((4, 2, 2)))", "bai2025qwen3vl"),
        ("rotary(16) >> resonance()", "wang2024resonance"),
        ("rotary(16) >> as_executed('linear', settings=(('factor', 0.5),), faults=('x',))", "chen2023"),
    ],
)
def test_settings_have_their_own_papers(notation, key):
    assert key in [r.key for r in cited(parse(notation))]
    assert key not in [r.key for r in cited(parse("rotary(16)"))]


def cited_keys() -> set[str]:
    """Every key that stands in a ``cites`` of the values' source, also behind a condition."""
    keys = set()
    for path in Path(posenc.spec.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.AnnAssign(target=ast.Name(id="cites"), value=found) if found:
                    keys |= strings(found)
                case ast.FunctionDef(name="cites", body=body):
                    keys |= set().union(*(strings(s.value) for s in body if isinstance(s, ast.Return) and s.value))
    return keys


def strings(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def test_cited_keys_and_references_are_the_same_set():
    assert len(cited_keys()) > 15
    assert cited_keys() == set(references())


def test_references_are_complete():
    for key, reference in references().items():
        assert reference.authors, key
        assert 1980 < reference.year < 2100, key
        assert reference.link or reference.publisher, key
        if reference.arxiv:
            assert re.fullmatch(r"\d{4}\.\d{4,5}", reference.arxiv), key
            assert 2000 + int(reference.arxiv[:2]) == reference.year, key


def test_bibtex_keeps_braces_balanced():
    for reference in references().values():
        assert reference.bibtex.count("{") == reference.bibtex.count("}")
        assert reference.bibtex.startswith(("@article{", "@misc{", "@book{"))
    assert "{{bloc97}}" in references()["bloc97ntk"].bibtex
