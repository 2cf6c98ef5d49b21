"""Every mutant is caught, with the right kind and the recovered parameter; the public cases are all accounted for."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from mutants import capturing, makers, page, scores, tables, turning, vectors
from mutants.register import MUTANTS, Mutant
from posenc.checker.checking import check

assert all((capturing, makers, scores, tables, turning, vectors))


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


TUTORIALS = (
    "exponent-double-step",
    "exponent-base-squared",
    "seasonal-sum-of-periods",
    "relative-zero-beyond-limit",
    "table-plain-attribute",
    "table-as-parameter",
    "table-frozen-parameter",
    "table-fewer-rows",
    "table-broadcasts",
    "projection-anew",
    "weight-unregistered",
)
"""What tutorials print wrongly, each a mutant."""


def test_every_tutorial_s_fault_has_a_mutant_with_a_parameter():
    by_name = {m.name: m for m in MUTANTS}
    assert set(TUTORIALS) <= set(by_name)
    assert [n for n in TUTORIALS if not by_name[n].recovered] == ["projection-anew"]  # random anew: no parameter


def test_a_doubled_exponent_and_a_squared_base_are_told_as_one_array():
    (m,) = (m for m in MUTANTS if m.name == "exponent-base-squared")
    cause = next(f.cause for f in report_of(m).findings if "exponent" in f.kinds)
    for words in ("counts the index twice", "the base is 1e+08", "made with another base"):
        assert words in cause


def test_every_public_case_is_expressed_or_the_reason_is_given():
    mutants, public = {m.name for m in MUTANTS}, set(page.public_cases())
    assert public - mutants - set(page.rules_by_case()) == set(page.NOT_EXPRESSED)
    assert all(page.NOT_EXPRESSED.values())


def test_the_page_is_up_to_date():
    written = Path(__file__).resolve().parents[2] / "docs" / "cases.md"
    assert written.read_text("utf-8") == page.markdown(), "run `make docs`"
