"""Every row reads, says where it comes from, and is found by the names people type."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from posenc.errors import FormatError
from posenc.formats import catalogue

ROWS = catalogue.rows()


def test_cutting_the_files_by_hand_loses_nothing():
    whole = []
    for file in sorted(files("posenc.formats").joinpath("catalogue").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            whole += tomllib.loads(file.read_text("utf-8"))["models"]
    assert [(m["name"], tuple(m.get("aliases", ()))) for m in whole] == [(r.name, r.aliases) for r in ROWS]
    assert len(whole) == 96


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_reads(row):
    reading = catalogue.read_row(row)
    assert reading.format == "catalogue"
    assert reading.name == row.name
    assert reading.source == row.source
    assert reading.source
    assert any(row.verification in note for note in reading.notes)
    positions = reading.positions
    assert (positions.trained is None) == (positions.trained_source is None)
    assert positions.trained == row.trained
    assert positions.original in (row.original, None)
    if row.original is not None and not any(e.kind == "unmodelled" for e in reading.encodings()):
        assert positions.original == row.original
    assert reading.faults == ()
    assert reading.encodings()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_name_and_alias_finds_its_row(row):
    assert {catalogue.find(name).name for name in (row.name, row.name.upper(), *row.aliases)} == {row.name}


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("llama-3.1-8b", "Llama-3.1-8B"),
        ("Llama 3.1 8B", "Llama-3.1-8B"),
        ("meta-llama/Llama-3.1-8B", "Llama-3.1-8B"),
        ("qwen3-8b", "Qwen3-8B"),
        ("gemma-3-4b", "Gemma-3-4B"),
        ("phi-3.5-mini", "Phi-3.5-mini"),
        ("phi-4", "Phi-4 (14B)"),
        ("smollm2-135m", "SmolLM2-135M"),
        ("smollm2-135m-instruct", "SmolLM2-135M"),
        ("bert-base-unc", "BERT-base"),
        ("vit b 16", "ViT-B/16"),
    ],
)
def test_names_people_type(typed, name):
    assert catalogue.find(typed).name == name


def test_an_ambiguous_start_lists_its_rows():
    with pytest.raises(FormatError, match=r"Llama-3-8B, Llama-3\.1-8B"):
        catalogue.find("llama-3")


@pytest.mark.parametrize(("typed", "name"), [("lama-3.1-8b", "Llama-3.1-8B"), ("qwen33-8b", "Qwen3-8B")])
def test_near_misses_are_suggested(typed, name):
    with pytest.raises(FormatError, match="Did you mean") as caught:
        catalogue.find(typed)
    assert name in str(caught.value)


def test_a_hopeless_name_is_one_line():
    with pytest.raises(FormatError, match="posenc models") as caught:
        catalogue.find("zzzzzzzzzzzz")
    assert "\n" not in str(caught.value)


def test_search_needs_every_word():
    assert [r.name for r in catalogue.search("gemma 27b")] == ["Gemma-3-27B"]
    assert len(catalogue.search("")) == len(ROWS)
    assert catalogue.search("gemma nonsense") == ()


@pytest.mark.parametrize(
    ("name", "original", "trained", "served"),
    [("llama-3.1-8b", 8192, 131072, 131072), ("qwen3-8b", None, 32768, 40960), ("smollm2-135m", None, 8192, 8192)],
)
def test_the_three_lengths_are_not_mixed(name, original, trained, served):
    positions = catalogue.read_row(catalogue.find(name)).positions
    assert (positions.original, positions.trained, positions.served) == (original, trained, served)
    assert positions.trained_source


def test_what_no_source_states_is_unknown():
    assert catalogue.find("command-r v01").trained is None


def test_both_revisions_of_yi_are_rows():
    bases = {r.config["rope_theta"] for r in catalogue.search("yi-34b")}
    assert bases == {5e6, 1e7}


def test_a_null_stays_a_null():
    assert catalogue.find("mistral-7b-v0.3").config["sliding_window"] is None
    assert [k.window for k in catalogue.read_row(catalogue.find("mistral-7b-v0.3")).positions.kinds] == [None]
    assert [k.window for k in catalogue.read_row(catalogue.find("mistral-7b-v0.1")).positions.kinds] == [4096]


def test_an_incomplete_row_is_not_plain_rotary():
    (encoding,) = catalogue.read_row(catalogue.find("phi-3-mini-128k")).encodings()
    assert encoding.kind == "unmodelled"


def test_no_two_rows_share_a_name():
    keys = [key for text in catalogue._texts() for key in text.keys]
    assert len(keys) == len(set(keys))
