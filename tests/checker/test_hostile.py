"""Hostile subjects are reported, never a traceback; pickles are refused with the way to convert them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from posenc.checker.checking import check
from posenc.checker.identifying import identify

FILE = str(Path(__file__).with_name("hostile_subjects.py"))
COULD_NOT = {
    "raises": "RuntimeError: boom",
    "hangs": "no answer within",
    "exits": "SystemExit: 3",
    "ends_the_process": "exit code 7",
    "nothing": "got ()",
    "text": "arrays of numbers",
    "far_too_wide": "at most",
    "nested_in_itself": "returns arrays",
    "NeedsMore": "no value for alpha, beta",
    "bad_repr": "KeyError",
    "number": "got int",
    "missing": "has missing",
}


@pytest.mark.parametrize("name", COULD_NOT)
def test_what_cannot_be_run_is_said_in_one_line(name):
    report = check(f"{FILE}:{name}", "rotary(16)", timeout=3 if name == "hangs" else 60)
    assert report.could_not_run is not None
    assert COULD_NOT[name] in report.could_not_run
    assert "\n" not in report.could_not_run
    assert not report.acquitted
    assert report.findings == ()


def test_nan_is_a_finding():
    report = check(f"{FILE}:nan", "rotary(16)", timeout=60)
    assert report.findings[0].kinds == ("precision", "meta-init")


def test_what_a_subject_prints_is_discarded_and_counted(capsys):
    report = check(f"{FILE}:prints", "rotary(16)", timeout=60)
    assert report.acquitted
    assert any("characters to its output" in note for note in report.notes)
    assert capsys.readouterr().out == ""


def test_a_changed_input_is_reported():
    report = check(f"{FILE}:changes_its_input", "rotary(16)", timeout=60)
    assert report.acquitted
    assert [f.title for f in report.findings] == ["the subject changes its input in place (x)"]


def test_odd_argument_names_are_tried_in_the_usual_order_and_said():
    report = check(f"{FILE}:odd_names", "rotary(16)", timeout=60)
    assert report.acquitted
    assert "banana: x, cherry: positions" in report.assumed[0]


def test_a_told_call_is_taken():
    report = check(f"{FILE}:odd_names", "rotary(16)", timeout=60, call="x, positions", layout="bhtd", library="numpy")
    assert report.acquitted


@pytest.mark.parametrize("call", ["x, nonsense", ","])
def test_a_call_of_unknown_roles_is_refused(call):
    from posenc.errors import SubjectError

    with pytest.raises(SubjectError, match="roles in order"):
        check(f"{FILE}:odd_names", "rotary(16)", call=call)


def test_pickles_are_refused_with_the_way_to_convert_them(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "exploded",))

    for name in ("model.pt", "weights.bin", "table.pkl"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        report = identify(str(tmp_path / name))
        assert "can run code" in report.could_not_run
        assert "safetensors" in report.could_not_run
    np.save(tmp_path / "objects.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    assert "numpy.save" in identify(str(tmp_path / "objects.npy")).could_not_run
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", ["nosuch.npy", "nosuch.safetensors", "nosuch.gguf", "nosuch:thing", "not a subject"])
def test_what_does_not_exist_is_said(name):
    assert identify(name).could_not_run


def test_garbage_files_are_refused(tmp_path):
    for name in ("a.npy", "a.npz", "a.safetensors", "a.gguf"):
        (tmp_path / name).write_bytes(b"\x00\xff" * 40)
        assert identify(str(tmp_path / name)).could_not_run


@pytest.mark.parametrize(
    "value", [np.zeros(0), np.zeros((0, 4)), np.array(3.0), np.full(8, np.nan), np.full((5, 4), np.inf)]
)
def test_arrays_without_content_do_not_break_it(value):
    report = identify(value)
    assert report.could_not_run or report.notes or report.identified
    against = check(value, "rotary(16)")
    assert against.could_not_run or against.findings
