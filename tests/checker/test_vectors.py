"""Golden vectors: right by loops of their own, the same bytes twice, readable without the package."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from posenc.checker.vectors import SCHEMA, golden, write_golden
from posenc.cli import main
from posenc.errors import FormatError
from posenc.formats import catalogue
from posenc.spec.json import from_json

ROOT = Path(__file__).parents[2]
FILES = ("FORMAT.md", "golden.json", "golden.safetensors")


def arrays(entry: dict[str, Any]) -> dict[str, Any]:
    """Nested lists by name, from the JSON alone."""

    def shaped(data: list[Any], shape: list[int]) -> Any:
        if len(shape) == 1:
            return data
        step = len(data) // shape[0]
        return [shaped(data[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]

    return {name: shaped(a["data"], a["shape"]) for name, a in entry["arrays"].items()}


def turned(q: list[float], pairs: list[list[int]], theta: list[float], p: float, gain: float) -> list[float]:
    out = list(q)
    for (a, b), rate in zip(pairs, theta, strict=True):
        c, s = math.cos(p * rate), math.sin(p * rate)
        out[a], out[b] = gain * (q[a] * c - q[b] * s), gain * (q[b] * c + q[a] * s)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("golden") / "deep" / "er"
    write_golden("rotary(14, rotary_dim=10, where='last', base=5e5) >> dynamic(3, original=64)", target)
    return target


@pytest.fixture(scope="module")
def document(folder):
    return json.loads((folder / "golden.json").read_text("utf-8"))


def test_files(folder, document):
    assert sorted(p.name for p in folder.iterdir()) == sorted(FILES), "no temporary file is left"
    assert document["format"] == "posenc-golden"
    assert document["schema"] == SCHEMA == 1
    raw = (folder / "golden.safetensors").read_bytes()
    assert document["tensors"]["sha256"] == hashlib.sha256(raw).hexdigest()
    assert (folder / "FORMAT.md").read_text("utf-8").startswith("# Golden vectors of position encodings, schema 1")


def test_a_value_comes_back(document):
    value = from_json(json.dumps(document["entries"][0]["value"]))
    assert str(value) == document["entries"][0]["notation"]


def test_lengths_around_the_threshold(document):
    assert [at["length"] for at in document["entries"][0]["lengths"]] == [1, 64, 65, 259]


def test_positions_before_and_beyond(document):
    positions = arrays(document["entries"][0])["positions"]
    assert {0, 1, 2, 3, 7, 127, 128, 4095, 4096, 8191, 63, 64, 65} == set(positions)
    assert positions == sorted(positions)


def test_rotated_queries_by_hand(document):
    entry = document["entries"][0]
    shared = arrays(entry)
    q = [((7 * c + 3) % 11 - 5) / 4 for c in range(14)]
    assert shared["q"] == q
    assert shared["pairs.half"] == [[4 + i, 9 + i] for i in range(5)]
    assert shared["pairs.adjacent"] == [[4 + 2 * i, 5 + 2 * i] for i in range(5)]
    for at in entry["lengths"]:
        stretch = max(3 * at["length"] / 64 - 2, 1.0)
        base = 5e5 * math.exp(10 / 8 * math.log(stretch))
        theta = [math.exp(-2 * i / 10 * math.log(base)) for i in range(5)]
        found = arrays(at)
        assert found["theta"][0] == pytest.approx(theta, rel=1e-12)
        assert found["gain"] == [1.0]
        for row, p in enumerate(shared["positions"]):
            assert found["cos"][row] == pytest.approx([math.cos(p * t) for t in theta], abs=1e-11)
            assert found["sin"][row] == pytest.approx([math.sin(p * t) for t in theta], abs=1e-11)
            for layout in ("half", "adjacent"):
                wanted = turned(q, shared[f"pairs.{layout}"], theta, p, 1.0)
                assert found[f"rotated.{layout}"][row] == pytest.approx(wanted, abs=1e-11)
                assert found[f"rotated.{layout}"][row][:4] == q[:4], "what is not rotated passes"


def test_the_gain_is_in_rotated_vectors_and_not_in_cos():
    entry = golden("rotary(6) >> yarn(4, original=64)").document["entries"][0]
    found, (at,) = arrays(entry), entry["lengths"]
    assert at["length"] is None
    numbers = arrays(at)
    gain = 0.1 * math.log(4) + 1
    assert numbers["gain"] == [pytest.approx(gain)]
    assert numbers["cos"][0] == [1.0, 1.0, 1.0]
    assert numbers["rotated.half"][0] == pytest.approx([gain * x for x in found["q"]])


def test_tensors_equal_the_json(folder, document):
    raw = (folder / "golden.safetensors").read_bytes()
    (size,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + size])
    described = [a for e in document["entries"] for s in (e, *e["lengths"]) for a in s["arrays"].values()]
    assert {a["tensor"] for a in described} == set(header)
    for a in described:
        start, end = (8 + size + o for o in header[a["tensor"]]["data_offsets"])
        assert header[a["tensor"]]["shape"] == a["shape"]
        assert header[a["tensor"]]["dtype"] == a["dtype"]
        letter = {"F64": "d", "I64": "q"}[a["dtype"]]
        assert list(struct.unpack(f"<{(end - start) // 8}{letter}", raw[start:end])) == a["data"], a["tensor"]


def test_the_same_bytes_twice(folder, tmp_path):
    code = (
        "import sys; from posenc.checker.vectors import write_golden; "
        "write_golden(\"rotary(14, rotary_dim=10, where='last', base=5e5) >> dynamic(3, original=64)\", sys.argv[1])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=environment)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_nothing_of_this_machine_is_written(tmp_path):
    (tmp_path / "model").mkdir()
    config = dict(catalogue.find("SmolLM2-135M").config or {})
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    write_golden(tmp_path / "model", tmp_path / "out")
    assert str(tmp_path) not in (tmp_path / "out" / "golden.json").read_text("utf-8")


def test_an_interrupted_write_leaves_the_old_set(tmp_path, monkeypatch):
    write_golden("rotary(6)", tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}

    def fails(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(KeyboardInterrupt):
        write_golden("rotary(8)", tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_sections_get_different_coordinates():
    entry = golden("rotary(12, axes=split((1, 2, 3), own_schedule=False))").document["entries"][0]
    positions = arrays(entry)["positions"]
    half = len(positions) // 2
    assert all(len(set(row)) == 1 for row in positions[:half])
    assert positions[half:] == [[p[0], p[0] + 5, p[0] + 10] for p in positions[:half]]
    at = arrays(entry["lengths"][0])
    theta = [math.exp(-2 * i / 12 * math.log(1e4)) for i in range(6)]
    row = half + 3
    axis = [0, 1, 1, 2, 2, 2]
    assert at["cos"][row] == pytest.approx([math.cos(positions[row][a] * t) for a, t in zip(axis, theta, strict=True)])


def test_alibi_and_t5_by_hand():
    alibi = arrays(golden("alibi(3)").document["entries"][0])
    assert alibi["slopes"] == [0.0625, 0.00390625, 0.25]
    i = alibi["key_minus_query"].index(-7)
    assert [row[i] for row in alibi["bias"]] == [-0.4375, -0.02734375, -1.75]
    t5 = arrays(golden("t5_bias(3)").document["entries"][0])
    bucket = dict(zip(t5["key_minus_query"], t5["buckets"], strict=True))
    assert [bucket[d] for d in (0, 1, 7, 8, 9, 16, -1, -8, -9, 128)] == [0, 17, 23, 24, 24, 26, 1, 8, 8, 31]


def test_tables_by_hand():
    entry = golden("sinusoidal(6, base=100)").document["entries"][0]
    found = arrays(entry)
    row = found["rows"][found["positions"].index(7)]
    wanted = [f(7 * 100 ** (-2 * i / 6)) for i in range(3) for f in (math.sin, math.cos)]
    assert row == pytest.approx(wanted, abs=1e-14)
    learned = arrays(golden("learned(16, shape=(512,), offset=2)").document["entries"][0])
    assert learned["positions"][-1] == 511
    assert learned["rows"] == [p + 2 for p in learned["positions"]]


def test_xpos_has_two_roles():
    entry = golden("rotary(6, xpos_scale_base=512)").document["entries"][0]
    found = arrays(entry["lengths"][0])
    assert "rotated.half" not in found
    q, k = found["rotated.half.query"][3], found["rotated.half.key"][3]
    zeta = [(2 * i + 0.4 * 6) / (1.4 * 6) for i in range(3)]
    ratio = [math.hypot(q[i], q[i + 3]) / math.hypot(k[i], k[i + 3]) for i in range(3)]
    assert ratio == pytest.approx([z ** (2 * 3 / 512) for z in zeta])


def test_layers_are_told_apart():
    document = golden("Gemma-3-4B").document
    places = [(e["notation"], w["kind"], len(w["layers"])) for e in document["entries"] for w in e["where"]]
    assert len(places) == 2
    assert sum(count for _, _, count in places) == len(
        catalogue.read_row(catalogue.find("Gemma-3-4B")).positions.layers
    )


def test_what_depends_on_weights_is_named():
    (entry,) = golden("shaw(16, limit=5)").document["entries"]
    assert "weights" in entry["not_computed"]


@pytest.mark.parametrize("row", [row.name for row in catalogue.rows()])
def test_every_published_model_has_golden_vectors(row):
    made = golden(row)
    assert all(("arrays" in e) != ("not_computed" in e) for e in made.document["entries"])
    json.dumps(made.document, allow_nan=False)


def test_too_large_is_named_and_costs_nothing(tmp_path):
    (entry,) = write_golden("rotary(1000000)", tmp_path).document["entries"]
    assert "at most" in entry["not_computed"]
    assert (tmp_path / "golden.json").stat().st_size < 4000


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FormatError, match="can be written"):
        write_golden("rotary(6)", tmp_path / "file")


def test_the_verb(tmp_path, capsys):
    assert main(["golden", "llama-3.1-8b", "-o", str(tmp_path / "out")]) == 0
    assert "1 of 1 encodings" in capsys.readouterr().out
    assert main(["golden", "no such model", "-o", str(tmp_path / "none")]) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert not (tmp_path / "none").exists()


def test_the_example_reads_it_without_the_package(folder):
    command = [sys.executable, "-S", "-I", str(ROOT / "examples/read_golden.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "largest error" in done.stdout


def test_the_example_sees_a_wrong_number(folder, tmp_path):
    for name in FILES:
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    raw = bytearray((tmp_path / "golden.safetensors").read_bytes())
    (size,) = struct.unpack_from("<Q", raw)
    tensor = json.loads(raw[8 : 8 + size])["0.65.theta"]
    raw[8 + size + tensor["data_offsets"][0] + 4] ^= 1
    (tmp_path / "golden.safetensors").write_bytes(raw)
    command = [sys.executable, str(ROOT / "examples/read_golden.py"), str(tmp_path)]
    assert "do not belong together" in subprocess.run(command, capture_output=True, text=True).stderr
    document = json.loads((tmp_path / "golden.json").read_text())
    document["tensors"]["sha256"] = hashlib.sha256(raw).hexdigest()
    (tmp_path / "golden.json").write_text(json.dumps(document))
    assert "off by" in subprocess.run(command, capture_output=True, text=True).stderr


def test_the_page_holds_the_format():
    assert (
        (ROOT / "docs/golden.md")
        .read_text("utf-8")
        .endswith((ROOT / "src/posenc/checker/golden_format.md").read_text("utf-8"))
    )


def test_neither_torch_nor_transformers_is_needed():
    code = (
        "import sys; from posenc.checker.vectors import golden; from posenc.checker.lint import lint; "
        "golden('rotary(6)'); "
        "lint('llama-3.1-8b'); import posenc.checker.testing; "
        "print([m for m in ('torch', 'transformers', 'pytest', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
