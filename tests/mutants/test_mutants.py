"""Every mutant is caught, with the right kind and the recovered parameter; the public cases are all accounted for."""

from __future__ import annotations

import tomllib
import warnings
from importlib.resources import files

import pytest

from mutants import makers, scores, tables, turning, vectors
from mutants.register import MUTANTS, Mutant
from posenc.checker.checking import check

assert all((makers, scores, tables, turning, vectors))

ELSEWHERE = {
    "buffer-unexpected-key": "a right vector under an unexpected key: acquitted in test_acquittals",
}
"""Public cases that are no broken encoding, and where they are tested."""


def report_of(m: Mutant):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check(m.subject, m.expect, **m.options)


@pytest.mark.parametrize("m", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_is_caught_with_its_kind_and_parameter(m):
    report = report_of(m)
    assert report.could_not_run is None, report.could_not_run
    caught = [f for f in report.findings if m.kind in f.kinds and f.verdict == m.verdict]
    assert caught, [(f.verdict, f.kinds, f.title) for f in report.findings]
    found = {r.name: r.value for f in report.findings for r in f.recovered} | {
        r.name: r.value for r in report.recovered
    }
    for name, value in m.recovered.items():
        assert name in found, found
        if isinstance(value, str):
            assert found[name] == value
        else:
            assert found[name] == pytest.approx(value, rel=0.01, abs=1e-9)
    assert all(f.remedy and f.evidence for f in caught if f.verdict == "defect")
    if m.verdict == "defect":
        assert not report.acquitted
        assert report.at_least("defect")


def test_every_public_case_has_a_mutant():
    cases = {row["id"] for row in tomllib.loads((files("posenc.checker") / "cases.toml").read_text())["case"]}
    assert cases - {m.name for m in MUTANTS} - set(ELSEWHERE) == set()
