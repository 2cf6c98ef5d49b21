"""Somebody's own encoding, in every form it may come in."""

from __future__ import annotations

import numpy as np
import pytest

from posenc.analysis.account import account, claims_about
from posenc.analysis.arrays import is_own, own_table
from posenc.errors import FormatError, ShapeError, SubjectError

SOURCE = """
import math
import numpy as np

table = np.linspace(0, 1, 1024).reshape(512, 2) ** 2

def of_positions(positions):
    return np.stack([np.sin(positions / 7.0), np.cos(positions / 7.0), positions / 512], axis=1)

def of_their_number(n):
    return [[math.sin(p), 0.5] for p in range(n)]

def with_a_batch(positions):
    return np.ones((1, len(positions), 5)) * positions[None, :, None]

def short(positions):
    return np.zeros((len(positions) // 2, 3))

def raises(positions):
    raise RuntimeError("no")

number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_encoding.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "own_encoding.py")


@pytest.mark.parametrize(
    ("name", "width"), [("table", 2), ("of_positions", 3), ("of_their_number", 2), ("with_a_batch", 5)]
)
def test_functions_and_arrays_of_a_module(module, name, width):
    assert is_own(f"{module}:{name}")
    assert own_table(f"{module}:{name}")[1].shape == (512, width)
    assert own_table(f"own_encoding:{name}")[1].shape == (512, width)


@pytest.mark.parametrize(
    ("name", "words"),
    [("short", "(256, 3)"), ("raises", "RuntimeError: no"), ("number", "int"), ("missing", "has missing")],
)
def test_what_is_no_encoding_is_refused_with_what_was_seen(module, name, words):
    with pytest.raises(SubjectError, match=words.replace("(", r"\(").replace(")", r"\)")):
        own_table(f"{module}:{name}")


def test_a_module_that_cannot_be_imported_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SubjectError, match="ZeroDivisionError"):
        own_table("broken_module:x")
    with pytest.raises(SubjectError, match="no such file"):
        own_table("nowhere.py:x")


def test_files_of_arrays(tmp_path):
    table = np.arange(22.0).reshape(11, 2)
    np.save(tmp_path / "a.npy", table)
    np.savez(tmp_path / "one.npz", table=table)
    np.savez(tmp_path / "two.npz", a=table, b=table)
    np.save(tmp_path / "objects.npy", np.array([{}, {}]), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:90])
    np.testing.assert_array_equal(own_table(tmp_path / "a.npy")[1], table)
    np.testing.assert_array_equal(own_table(tmp_path / "one.npz")[1], table)
    for name in ("two.npz", "objects.npy", "cut.npy", "missing.npy"):
        with pytest.raises(FormatError):
            own_table(tmp_path / name)
    np.save(tmp_path / "nan.npy", np.full((5, 3), np.nan))
    with pytest.raises(ShapeError, match="finite"):
        own_table(tmp_path / "nan.npy")


def test_the_account_of_an_array_and_of_a_function():
    own = np.random.default_rng(5).standard_normal((37, 6))
    facts = account(own).array
    assert (facts.rows, facts.width, facts.rank.value) == (37, 6, 6)
    kernel = own @ own.T
    worst = max(np.ptp(np.diagonal(kernel, k)) for k in range(37))
    assert facts.toeplitz_defect.value == pytest.approx(worst)
    told = account(lambda p: np.stack([np.sin(p), np.cos(p)], 1))
    assert told.array.rows == 512
    assert told.array.toeplitz_defect.value < 1e-12
    assert account(np.eye(5)).permutation is None


def test_one_percent_more_base_changes_what_depends_on_it_and_nothing_else():
    plain, more = (account(f"rotary(128, base={base})") for base in (500000, 505000))
    a, b = plain.encodings[0], more.encodings[0]
    assert a.waves.wavelengths[1:] != b.waves.wavelengths[1:]
    assert a.waves.wavelengths[0] == b.waves.wavelengths[0]  # theta_0 is 1 whatever the base
    assert a.decay.curve.y != b.decay.curve.y
    assert a.decay.first_negative != b.decay.first_negative
    assert a.precision != b.precision
    assert a.table.kernel != b.table.kernel
    assert a.clocks[0] == b.clocks[0]
    assert a.clocks[2] != b.clocks[2]
    assert (a.part, a.layers, a.decay.reach) == (b.part, b.layers, b.decay.reach)
    assert plain.permutation == more.permutation
    assert plain.mechanisms == more.mechanisms
    untouched = {10, 14, 16, 18, 19}  # claims that no base enters; 10 draws on the table and is checked in its words
    same = {c.number for c, d in zip(plain.claims, more.claims, strict=True) if c == d}
    assert untouched - {10} <= same
    assert not {6, 8, 12} & same


def test_a_scaled_model_is_shown_before_and_after():
    found = account("rotary(128, base=5e5) >> llama3(8, original=8192)").encodings[0]
    assert found.before.y != found.decay.curve.y
    assert found.decay.limit is None
    assert account("rotary(128)").encodings[0].before is None


def test_a_very_wide_encoding_is_inspected_and_not_analysed():
    found = account("rotary(4098)")
    assert found.encodings == ()
    assert found.claims == ()
    assert "wider than 4096 channels" in found.notes[0]


@pytest.mark.parametrize("notation", ["rotary(2)", "rotary(4, schedule=explicit((0.0, 1.0)))"])
def test_claims_are_examined_on_the_narrowest_encodings(notation):
    assert len(claims_about(notation).claims) == 23


@pytest.mark.parametrize(
    "subject", ["alibi(6)", "none", "rotary(4, schedule=explicit((0.0, 0.0)))", "rotary(2050)", np.eye(3)], ids=str
)
def test_claims_need_something_that_turns(subject):
    with pytest.raises(SubjectError, match="claims are examined"):
        claims_about(subject)
