"""One function for everything that names a model: what wins, and what an unknown name is told."""

from __future__ import annotations

import json
import os
import struct

import pytest
from tests.formats.gguf_files import write

from posenc.errors import FormatError, PosencError
from posenc.formats import hub
from posenc.formats.sources import read
from posenc.spec import Alibi, ModelPositions, Rotary

CONFIG = {
    "model_type": "llama",
    "hidden_size": 96,
    "num_attention_heads": 3,
    "num_hidden_layers": 5,
    "max_position_embeddings": 4096,
    "rope_theta": 3e4,
}


def folder_of(tmp_path, config=None, name="model"):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config or CONFIG))
    return folder


def safetensors(path, tensors):
    """A safetensors file of float32 zeros, written by hand."""
    entries, at = {}, 0
    for name, shape in tensors.items():
        size = 4
        for n in shape:
            size *= n
        entries[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(at))


def test_a_config_as_a_dict():
    assert str(read(CONFIG).encodings()[0]) == "rotary(32, base=30000)"


@pytest.mark.parametrize("as_text", [True, False])
def test_a_folder_and_its_config(tmp_path, as_text):
    folder = folder_of(tmp_path)
    of_folder = read(str(folder) if as_text else folder)
    of_file = read(str(folder / "config.json") if as_text else folder / "config.json")
    assert (of_folder.format, of_file.format) == ("folder", "config")
    assert of_folder.name == of_file.name == "model"
    assert of_folder.positions == of_file.positions


def test_an_existing_path_wins_over_the_catalogue(tmp_path, monkeypatch):
    folder_of(tmp_path, name="llama-3.1-8b")
    monkeypatch.chdir(tmp_path)
    assert read("llama-3.1-8b").encodings()[0].schedule.base == 3e4
    monkeypatch.chdir("/")
    assert read("llama-3.1-8b").encodings()[0].schedule.base == 5e5


def test_a_gguf_file_whatever_it_is_called(tmp_path):
    path = write(tmp_path / "m.gguf", "llama", {"rope.freq_base": 7e4})
    path.rename(tmp_path / "blob")
    assert read(tmp_path / "blob").format == "gguf"


def test_a_folder_with_one_gguf_file(tmp_path):
    write(tmp_path / "m.gguf", "llama", {"rope.freq_base": 7e4})
    (tmp_path / "mmproj-m.gguf").write_bytes(b"not looked at")
    assert read(tmp_path).encodings()[0].schedule.base == 7e4


def test_a_folder_with_two_gguf_files_asks_which(tmp_path):
    write(tmp_path / "a.gguf", "llama", {})
    write(tmp_path / "b.gguf", "llama", {})
    with pytest.raises(FormatError, match="Name the file"):
        read(tmp_path)


def test_pipes_and_devices_are_not_waited_for(tmp_path):
    """Opening a named pipe that nobody writes to would never return."""
    folder = folder_of(tmp_path)
    for name in ("a.gguf", "b.safetensors"):
        os.mkfifo(folder / name)
    assert read(str(folder)).notes == ()
    (folder / "config.json").unlink()
    for path, rule in ((folder, "a model folder holds"), (folder / "a.gguf", "no device or pipe"),
                       ("/dev/zero", "no device or pipe")):  # fmt: skip
        with pytest.raises(FormatError, match=rule):
            read(str(path))


def test_nothing_is_shown_as_nothing():
    with pytest.raises(FormatError, match=r"not empty; got ''$"):
        read("")


def test_metas_own_release(tmp_path):
    params = {"dim": 96, "n_heads": 3, "n_layers": 5, "rope_theta": 5e5, "use_scaled_rope": True}
    (tmp_path / "params.json").write_text(json.dumps(params))
    reading = read(tmp_path)
    assert str(reading.encodings()[0]) == "rotary(32, interleaved=True, base=500000) >> llama3(8, original=8192)"
    assert reading.row_order == "adjacent"
    assert any(a.key == "rope_scale_factor" for a in reading.assumed)


def test_notes_of_what_the_weights_store(tmp_path):
    config = {"model_type": "bert", "hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 2}
    folder = folder_of(tmp_path, {**config, "max_position_embeddings": 31})
    tensors = {"embeddings.position_embeddings.weight": (29, 48), "embeddings.word_embeddings.weight": (7, 48)}
    tensors |= {f"layer.{i}.attention.rotary_emb.inv_freq": (8,) for i in range(3)}
    safetensors(folder / "model.safetensors", tensors)
    notes = [n for n in read(folder).notes if n.startswith("stored")]
    assert len(notes) == 2
    assert "the config's table has 31 rows" in notes[0]
    assert "(3 times)" in notes[1]


def test_values():
    both = (Rotary(64), Alibi(12))
    assert read(both).positions.kinds[0].encodings == both
    assert read(Rotary(64)).format == "notation"
    positions = ModelPositions.uniform(Alibi(12), layers=3)
    assert read(positions).positions is positions
    reading = read(positions)
    assert read(reading) is reading


def test_notation():
    assert str(read("rotary(64, base=5e5) >> yarn(4, original=32768)").encodings()[0]).startswith("rotary(64")
    assert read("none").encodings() == ()
    with pytest.raises(PosencError, match="unknown name in notation"):
        read("rotaryy(64)")


def test_a_hub_id_of_the_local_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    root = tmp_path / "hub" / "models--some--model"
    for revision, base in (("abc123", 3e4), ("def456", 6e4)):
        snapshot = root / "snapshots" / revision
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text(json.dumps({**CONFIG, "rope_theta": base}))
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("abc123")
    reading = read("some/model")
    assert (reading.format, reading.name) == ("hub", "some/model")
    assert reading.encodings()[0].schedule.base == 3e4


@pytest.mark.parametrize("main", ["../../elsewhere", "", "\0", "g" * 10_000])
def test_a_strange_ref_falls_back_to_a_snapshot(tmp_path, monkeypatch, main):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    root = tmp_path / "models--some--model"
    (root / "snapshots" / "abc").mkdir(parents=True)
    (root / "snapshots" / "abc" / "config.json").write_text(json.dumps(CONFIG))
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(main)
    folder_of(tmp_path, {**CONFIG, "rope_theta": 9e9}, name="elsewhere")
    assert read("some/model").encodings()[0].schedule.base == 3e4


def test_offline_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FormatError, match="HF_HUB_OFFLINE") as caught:
        read("nobody/nothing")
    assert "\n" not in str(caught.value)


def test_a_hub_that_cannot_be_reached_is_one_line(tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(FormatError, match="cannot be reached") as caught:
        read("nobody/nothing")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a/b", "Meta-llama/Llama-3.1-8B_x"])
def test_hub_ids(text):
    assert hub.is_hub_id(text)


@pytest.mark.parametrize("text", ["a", "a/b/c", "../b", "a/..b", "a/b c", "a/" + "b" * 200, "/b"])
def test_no_hub_ids(text):
    assert not hub.is_hub_id(text)


@pytest.mark.parametrize("text", ["/nonexistent/config.json", "./nothing", "nothing.gguf", "~/nothing-at-all"])
def test_a_missing_path_is_said_to_be_missing(text):
    with pytest.raises(FormatError, match="the file or folder exists"):
        read(text)


def test_an_unknown_name_is_told_what_is_near():
    with pytest.raises(FormatError, match="Did you mean"):
        read("lama-3.1-8b")


@pytest.mark.parametrize("subject", [5, None, 1.5, b"llama", ["llama"], {"a", "b"}])
def test_what_is_no_subject(subject):
    with pytest.raises(FormatError, match="named by text"):
        read(subject)


def test_a_tuple_of_something_else():
    with pytest.raises(FormatError, match="made of encodings"):
        read((1, 2))
    with pytest.raises(FormatError, match="made of encodings"):
        read(Rotary(64).schedule)


def test_a_header_that_is_too_long_is_a_note(tmp_path):
    folder = folder_of(tmp_path)
    raw = b'{"__metadata__": {"a": "' + b"x" * 2**23 + b'"}}'
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw)
    assert any("was not looked into" in note for note in read(folder).notes)
