"""Input that is truncated, hostile or simply wrong: one PosencError of one line, soon, in bounded memory."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.formats.gguf_files import header, pair, text, write

from posenc.errors import FormatError, PosencError, SpecError
from posenc.formats.gguf_header import read_header
from posenc.formats.gguf_reader import read_gguf
from posenc.formats.json_config import parse_object
from posenc.formats.safetensors_header import read_header as read_safetensors
from posenc.formats.sources import read

U32, U64, STRING, ARRAY = 4, 10, 8, 9
HUGE = 2**63

LLAMA = {"model_type": "llama", "hidden_size": 96, "num_attention_heads": 3, "num_hidden_layers": 5}


def array(kind: int, count: int, body: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + body


def nested(depth: int) -> bytes:
    return array(ARRAY, 1) * depth + array(U32, 0)


GGUFS = {
    "empty": b"",
    "only the magic": b"GGUF",
    "another magic": b"PK\x03\x04" + bytes(100),
    "an older format": b"tjgg" + bytes(100),
    "version 1": header([], version=1) + bytes(8),
    "version 99": header([], version=99) + bytes(8),
    "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + bytes(8),
    "more pairs than bytes": header([], count=HUGE) + bytes(64),
    "more tensors than bytes": header([], tensors=HUGE) + bytes(64),
    "a key beyond the file": header([struct.pack("<Q", HUGE)], count=1) + bytes(64),
    "a long key": header([struct.pack("<Q", 2**20) + bytes(2**20)], count=1) + bytes(64),
    "a value beyond the file": header([pair("a", STRING, struct.pack("<Q", HUGE))]) + bytes(64),
    "an unknown type": header([pair("a", 77, b"")]) + bytes(64),
    "an array of an unknown type": header([pair("a", ARRAY, array(77, 1))]) + bytes(64),
    "an array beyond the file": header([pair("a", ARRAY, array(U64, HUGE))]) + bytes(64),
    "texts beyond the file": header([pair("a", ARRAY, array(STRING, HUGE))]) + bytes(64),
    "a text in an array beyond the file": header([pair("a", ARRAY, array(STRING, 1, struct.pack("<Q", HUGE)))])
    + bytes(64),
    "deep nesting": header([pair("a", ARRAY, nested(5000))]) + bytes(64),
    "many empty arrays": header([pair("a", ARRAY, array(ARRAY, 2**18, array(U32, 0) * 2**18))]) + bytes(64),
    "a key that is not UTF-8": header([pair(b"\xff\xfe", U32, bytes(4))]) + bytes(64),
    "a text that is not UTF-8": header([pair("a", STRING, text(b"\xc3\x28"))]) + bytes(64),
    "a key twice": header([pair("a", U32, bytes(4))] * 2) + bytes(64),
    "a tensor name that is not UTF-8": header([], tensors=1) + text(b"\xff") + bytes(64),
    "many dimensions": header([], tensors=1) + text("t") + struct.pack("<I", 2**31) + bytes(64),
    "a tensor beyond the file": header([], tensors=1) + text("t") + struct.pack("<IQIQ", 1, 3, 0, HUGE) + bytes(64),
    "a tensor larger than the file": header([], tensors=1)
    + text("t")
    + struct.pack("<IQIQ", 1, HUGE, 0, 0)
    + bytes(64),
    "an alignment of 0": header([pair("general.alignment", U32, bytes(4))]) + bytes(64),
    "a key that would paint the terminal": header([pair("\x1b[31m\n" * 9000, 77, b"")]) + bytes(64),
    "an architecture that would": header([pair("general.architecture", STRING, text("\x1b[31m\n"))]) + bytes(64),
    "no architecture": header([pair("a", U32, bytes(4))]) + bytes(64),
    "an architecture that is a number": header([pair("general.architecture", U32, bytes(4))]) + bytes(64),
}


def one_line(error: PosencError) -> None:
    message = str(error)
    assert message
    assert message.isprintable()
    assert len(message) < 1000


@pytest.mark.parametrize("raw", GGUFS.values(), ids=GGUFS.keys())
def test_hostile_gguf(tmp_path, raw):
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    with pytest.raises(FormatError) as caught:
        read(path)
    one_line(caught.value)


def test_every_truncation_of_a_gguf_file_is_an_error(tmp_path):
    whole = write(
        tmp_path / "m.gguf", "llama", {"rope.freq_base": 3e4}, {"rope_freqs.weight": np.ones(16)}
    ).read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(FormatError) as caught:
            read_gguf(cut)
        one_line(caught.value)


def test_flipped_bytes_never_escape_as_another_error(tmp_path):
    whole = write(
        tmp_path / "m.gguf", "llama", {"rope.freq_base": 3e4}, {"rope_freqs.weight": np.ones(16)}
    ).read_bytes()
    cut, rng, refused = tmp_path / "cut.gguf", np.random.default_rng(7), 0
    for _ in range(300):
        raw = bytearray(whole)
        for at in rng.integers(0, len(raw), 3):
            raw[at] = rng.integers(256)
        cut.write_bytes(raw)
        try:
            read_gguf(cut)
        except PosencError as error:
            refused += 1
            one_line(error)
    assert refused > 50


@pytest.mark.parametrize(
    "keys",
    [
        {"attention.key_length": 2**31},
        {"attention.key_length": 0},
        {"rope.dimension_count": 33},
        {"rope.dimension_count": 64},
        {"rope.freq_base": -1.0},
        {"rope.freq_base": float("nan")},
        {"rope.freq_base": float("inf")},
        {"rope.freq_base": "10000"},
        {"rope.scaling.factor": float("nan")},
        {"rope.scaling.factor": -2.0},
        {"rope.scaling.type": "bogus"},
        {"rope.scaling.type": "longrope"},
    ],
    ids=str,
)
def test_wrong_numbers_in_gguf(tmp_path, keys):
    with pytest.raises(PosencError) as caught:
        read_gguf(write(tmp_path / "m.gguf", "llama", keys))
    one_line(caught.value)


@pytest.mark.parametrize(
    "sizes", [{"block_count": 2**31}, {"block_count": 0}, {"head_count": 0}, {"head_count": 7}], ids=str
)
def test_wrong_sizes_in_gguf(tmp_path, sizes):
    with pytest.raises(PosencError) as caught:
        read_gguf(write(tmp_path / "m.gguf", "llama", {}, **sizes))
    one_line(caught.value)


@pytest.mark.parametrize("sections", [[3, 5, 9, 0], [16, 0, 0, 1], [-1, 9, 8, 0], [0, 0, 0, 0]], ids=str)
def test_gguf_sections_that_do_not_add_up(tmp_path, sections):
    with pytest.raises(FormatError, match="dimension_sections"):
        read_gguf(write(tmp_path / "m.gguf", "qwen2vl", {"rope.dimension_sections": sections}))


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_wrong_factors_in_gguf(tmp_path, value):
    values = np.ones(16)
    values[5] = value
    with pytest.raises(FormatError, match=r"rope_freqs\.weight"):
        read_gguf(write(tmp_path / "m.gguf", "llama", {}, {"rope_freqs.weight": values}))


def test_too_few_factors_in_gguf(tmp_path):
    with pytest.raises(FormatError, match="16 pairs"):
        read_gguf(write(tmp_path / "m.gguf", "llama", {}, {"rope_freqs.weight": np.ones(15)}))


def test_a_large_vocabulary_is_stepped_over(tmp_path):
    vocabulary = array(STRING, 50_000, (text("token") + text("")) * 25_000)
    path = tmp_path / "m.gguf"
    path.write_bytes(header([pair("a", ARRAY, vocabulary), pair("b", U32, struct.pack("<I", 41))]) + bytes(64))
    metadata = read_header(path).metadata
    assert metadata["b"] == 41
    assert metadata["a"].count == 50_000


SAFETENSORS = {
    "empty": b"",
    "a length beyond the file": struct.pack("<Q", HUGE) + b"{}",
    "a header that is no JSON": struct.pack("<Q", 4) + b"{{{{",
    "a header that is a list": struct.pack("<Q", 2) + b"[]",
    "a header that is not UTF-8": struct.pack("<Q", 2) + b"\xff\xfe",
    "deep nesting": struct.pack("<Q", 200_000) + b"[" * 200_000,
    "a tensor that is a number": struct.pack("<Q", 7) + b'{"a":1}',
}


@pytest.mark.parametrize("raw", SAFETENSORS.values(), ids=SAFETENSORS.keys())
def test_hostile_safetensors(tmp_path, raw):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "model.safetensors").write_bytes(raw)
    for subject in (tmp_path, tmp_path / "model.safetensors"):
        with pytest.raises(FormatError) as caught:
            read(subject)
        one_line(caught.value)


def test_a_length_beyond_the_file_is_named(tmp_path):
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", 3) + b"{}")
    with pytest.raises(FormatError, match="lies inside it; got 3 bytes of 10"):
        read_safetensors(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    "entry", [{"shape": [2], "data_offsets": [0, HUGE]}, {"shape": [-2], "data_offsets": [0, 0]}, {}]
)
def test_hostile_tensors_in_safetensors(tmp_path, entry):
    raw = json.dumps({"position_embeddings.weight": {"dtype": "F32", **entry}}).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw)
    with pytest.raises(FormatError):
        read_safetensors(tmp_path / "m.safetensors")


JSONS = {
    "empty": b"",
    "a list": b"[1, 2]",
    "a text": b'"llama"',
    "a number": b"5",
    "an empty object": b"{}",
    "no JSON": b"{'model_type': 'llama'}",
    "not UTF-8": b'{"model_type": "\xff"}',
    "UTF-16": '{"model_type": "llama"}'.encode("utf-16"),
    "NaN": b'{"model_type": "llama", "rope_theta": NaN}',
    "infinity": b'{"model_type": "llama", "rope_theta": -Infinity}',
    "a key twice": b'{"model_type": "llama", "model_type": "qwen2"}',
    "deep nesting": b'{"a":' * 100_000,
    "deep lists": b'{"a":' + b"[" * 100_000,
    "an endless number": b'{"a": ' + b"9" * 10_000 + b"}",
    "a lone surrogate as the type": b'{"model_type": "\\ud800"}',
    "too long": b'{"a": "' + b"x" * 2**22 + b'"}',
}


@pytest.mark.parametrize("raw", JSONS.values(), ids=JSONS.keys())
def test_json_that_is_no_config(tmp_path, raw):
    (tmp_path / "config.json").write_bytes(raw)
    for subject in (tmp_path, tmp_path / "config.json"):
        with pytest.raises(FormatError) as caught:
            read(subject)
        one_line(caught.value)
        str(caught.value).encode("utf-8")


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_json_has_finite_numbers_only(number):
    with pytest.raises(FormatError, match="finite numbers only"):
        parse_object(b'{"anything": ' + number + b"}")


def test_numbers_that_overflow_to_infinity_are_refused():
    assert parse_object(b'{"rope_theta": 1e308}')["rope_theta"] == 1e308
    with pytest.raises(PosencError):
        read({**LLAMA, "rope_theta": parse_object(b'{"x": 1e999}')["x"]})


WRONG = {
    "negative theta": {"rope_theta": -1e4},
    "theta 0": {"rope_theta": 0},
    "a theta that is text": {"rope_theta": "10000"},
    "a theta that is a flag": {"rope_theta": True},
    "NaN theta": {"rope_theta": float("nan")},
    "negative heads": {"num_attention_heads": -3},
    "no heads": {"num_attention_heads": 0},
    "a width of 10^12": {"hidden_size": 10**12, "num_attention_heads": 1},
    "10^12 layers": {"num_hidden_layers": 10**12},
    "an odd head": {"head_dim": 33},
    "an unknown rope_type": {"rope_scaling": {"rope_type": "bogus", "factor": 2.0}},
    "a rope block that is a list": {"rope_scaling": [1, 2]},
    "sections that do not add up": {
        "model_type": "qwen2_vl_text",
        "rope_scaling": {"type": "mrope", "mrope_section": [1, 2, 3]},
    },
    "factors of another number": {
        "rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]},
        "max_position_embeddings": 512,
        "original_max_position_embeddings": 256,
    },
    "an unknown type": {"model_type": "nobody-knows-it", "num_attention_heads": None, "hidden_size": None},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG.keys())
def test_wrong_configs(changes):
    with pytest.raises(PosencError) as caught:
        read({**LLAMA, **changes})
    one_line(caught.value)


def test_a_list_of_a_million_factors_is_not_looked_through():
    """Checking each of them took five seconds."""
    block = {"type": "longrope", "factor": 2.0, "short_factor": [1.0] * 10**6, "long_factor": [1.0]}
    with pytest.raises(PosencError, match=r"short_factor has at most 65536 numbers; got 1000000"):
        read({**LLAMA, "rope_scaling": block})


def test_an_unknown_rope_type_is_told_the_known_ones():
    with pytest.raises(PosencError, match="bogus") as caught:
        read({**LLAMA, "rope_scaling": {"rope_type": "bogus", "factor": 2.0}})
    assert "yarn" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "a\0b", "a\nb", "\x1b[31mred", "x" * 10_000_000, "(" * 100_000]
)
def test_hostile_names(text):
    with pytest.raises(PosencError) as caught:
        read(text)
    one_line(caught.value)
    assert "\x1b" not in str(caught.value)


def test_html_in_names_is_text(tmp_path):
    script = "<script>alert(1)</script>"
    reading = read({**LLAMA, "_name_or_path": script})
    assert reading.name == script
    assert script not in reading._repr_html_()


def test_hostile_notation():
    for line in (
        "rotary(" + "(" * 50_000,
        "rotary(10**10**10)",
        "rotary(64, base=" + "9" * 5000 + ")",
        "rotary(" * 2000,
    ):
        with pytest.raises(SpecError) as caught:
            read(line)
        one_line(caught.value)


LIMITED = """
import resource, sys, time
from posenc.errors import PosencError
from posenc.formats.sources import read
import posenc.formats.gguf_reader, posenc.formats.folder, posenc.formats.catalogue
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 400 * 2**20,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (4, 4))
try:
    read(sys.argv[1])
except PosencError as error:
    print("refused:", type(error).__name__, "for memory" * ("allocate" in str(error)))
"""


def limited(path: Path) -> str:
    """Read in a process that may take 400 MiB more than it started with."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, env=environment)
    return done.stdout + done.stderr


def sparse(path: Path, raw: bytes, size: int) -> Path:
    """A file that begins with ``raw`` and claims ``size`` bytes without occupying them."""
    with path.open("wb") as file:
        file.write(raw)
        file.truncate(size)
    return path


@pytest.mark.parametrize(
    "raw",
    [array(STRING, 2**22 + 1, bytes(8 * (2**22 + 1))), array(ARRAY, 2**18 + 1, array(U32, 0) * (2**18 + 1))],
    ids=["texts", "arrays"],
)
def test_elements_to_step_over_are_counted(tmp_path, raw):
    (tmp_path / "m.gguf").write_bytes(header([pair("a", ARRAY, raw)]) + bytes(64))
    with pytest.raises(FormatError, match="at most 4194304 elements long"):
        read_header(tmp_path / "m.gguf")


def many_arrays(path: Path, count: int, length: int) -> Path:
    """Arrays of bytes under keys of their own; as tuples of numbers they would take eight times the file."""
    body = array(0, length, bytes(length))
    path.write_bytes(header([pair(f"{i}", ARRAY, body) for i in range(count)]) + bytes(64))
    return path


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a process as Linux has them")


@linux
@pytest.mark.parametrize(
    "raw",
    [
        header([], count=2**16),
        header([], tensors=2**16),
        header([pair("a", ARRAY, array(STRING, 2**22))]),
        header([pair("a", ARRAY, array(STRING, 2**24))]),
        header([pair("a", ARRAY, array(U64, 2**24))]),
    ],
    ids=["pairs", "tensors", "texts", "many texts", "numbers"],
)
def test_work_on_a_large_gguf_file_is_bounded(tmp_path, raw):
    assert limited(sparse(tmp_path / "m.gguf", raw, 2**28)) == "refused: FormatError \n"


@linux
@pytest.mark.parametrize(("count", "length"), [(2**10, 2**16), (2**6, 2**20)], ids=["many", "long"])
def test_memory_on_arrays_in_gguf_is_bounded(tmp_path, count, length):
    assert limited(many_arrays(tmp_path / "m.gguf", count, length)) == "refused: FormatError \n"


@linux
@pytest.mark.parametrize("piece", [b"[],", b'{"a":', b"1,"])
def test_memory_on_json_is_bounded(tmp_path, piece):
    (tmp_path / "config.json").write_bytes(b'{"a":[' + piece * (2**25 // len(piece)))
    assert limited(tmp_path) == "refused: FormatError \n"


@linux
def test_memory_on_files_of_a_gigabyte_is_bounded(tmp_path):
    sparse(tmp_path / "config.json", b"{", 2**30)
    assert limited(tmp_path) == "refused: FormatError \n"
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    sparse(tmp_path / "model.safetensors", struct.pack("<Q", 2**30 - 8), 2**30)
    assert limited(tmp_path) == "refused: FormatError \n"
