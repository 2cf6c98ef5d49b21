"""``assert_conforms``: silent on what is right, an AssertionError in words on what is not, no pytest needed."""

from __future__ import annotations

import subprocess
import sys
import types
from typing import Any

import pytest

from posenc.checker.testing import assert_conforms, message
from posenc.errors import PosencError, SubjectError
from posenc.formats import catalogue
from posenc.records.finding import CheckReport, Evidence, Finding, FirstWrong

CONFIG = dict(catalogue.find("llama-3.1-8b").config or {})


def finding(verdict: Any = "defect", **changes: Any) -> Finding:
    fields: dict[str, Any] = {"verdict": verdict, "kinds": ("exponent",), "title": "the exponent is doubled"}
    return Finding(**{**fields, **changes})


@pytest.fixture
def checked(monkeypatch):
    """Puts a report in the place of a check, and keeps what the check was asked."""
    asked: list[Any] = []

    def install(report: CheckReport) -> list[Any]:
        def check(subject: Any, *args: Any, **options: Any) -> CheckReport:
            asked.append((subject, args, options))
            return report

        module = types.ModuleType("posenc.checker.checking")
        module.check = check  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "posenc.checker.checking", module)
        return asked

    return install


def test_a_right_config_conforms():
    report = assert_conforms(CONFIG, "llama-3.1-8b")
    assert report.acquitted


def test_a_wrong_config_does_not():
    with pytest.raises(AssertionError) as caught:
        assert_conforms({**CONFIG, "rope_theta": 1e4}, "llama-3.1-8b")
    text = str(caught.value)
    assert text.splitlines()[0].startswith("config does not conform to rotary(128, base=500000)")
    assert "frequency of pair" in text
    assert "remedy:" in text


def test_code_goes_to_the_check(checked):
    asked = checked(CheckReport(subject="f", expected="rotary(6)", acquitted=True))
    assert assert_conforms(abs, "rotary(6)", timeout=5).acquitted
    ((subject, args, options),) = asked
    assert (subject, options) == (abs, {"timeout": 5})
    assert args == ("rotary(6)",)


def test_the_message_says_everything(checked):
    bad = finding(
        evidence=(Evidence(name="frequency", expected=0.1, seen=0.01, where="pair 1", unit="radians per position"),),
        first_wrong=FirstWrong(position=1, pair=1, dtype="float32"),
        shape_against_length="grows with the position",
        cause="2i is doubled again",
        remedy="Halve the exponent.",
        links=("https://example.org/1", "https://example.org/2", "https://example.org/3"),
        where="forward",
    )
    milder = finding("harmless", title="another order of channels")
    report = CheckReport(
        subject="mine:rope", expected="rotary(6)", findings=(bad, milder), assumed=("channels come last",)
    )
    checked(report)
    with pytest.raises(AssertionError) as caught:
        assert_conforms(abs, "rotary(6)")
    text = str(caught.value)
    assert text == message(report, (bad,))
    for part in (
        "mine:rope does not conform to rotary(6)",
        "defect (exponent) at forward: the exponent is doubled",
        "frequency [pair 1]: expected 0.1, seen 0.01 radians per position",
        "first wrong: position 1, pair 1, dtype float32",
        "against length: grows with the position",
        "likely cause: 2i is doubled again",
        "remedy: Halve the exponent.",
        "see https://example.org/2",
        "also harmless: another order of channels",
        "assumed: channels come last",
    ):
        assert part in text, part
    assert "example.org/3" not in text


@pytest.mark.parametrize(
    ("verdict", "fail_on", "fails"),
    [
        ("defect", "defect", True),
        ("convention", "defect", False),
        ("convention", "convention", True),
        ("harmless", "convention", False),
        ("harmless", "any", True),
    ],
)
def test_what_fails(checked, verdict, fail_on, fails):
    checked(CheckReport(subject="f", expected="rotary(6)", findings=(finding(verdict),), acquitted=True))
    if fails:
        with pytest.raises(AssertionError, match=verdict):
            assert_conforms(abs, "rotary(6)", fail_on=fail_on)
    else:
        assert_conforms(abs, "rotary(6)", fail_on=fail_on)


def test_what_could_not_run_fails(checked):
    checked(CheckReport(subject="f", could_not_run="it raises ZeroDivisionError"))
    with pytest.raises(AssertionError, match="could not be checked: it raises ZeroDivisionError"):
        assert_conforms(abs, "rotary(6)")


def test_a_wrong_verdict_name():
    with pytest.raises(SubjectError, match="fail_on"):
        assert_conforms(CONFIG, "llama-3.1-8b", fail_on="everything")


def test_a_value_that_cannot_be_read():
    with pytest.raises(PosencError):
        assert_conforms(CONFIG, "no such model at all")


def test_it_imports_nothing_heavy():
    code = "import sys, posenc.checker.testing; print([m for m in ('pytest', 'torch', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
