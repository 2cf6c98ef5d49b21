"""Safetensors weights from one layout of pairs to the other: streamed, tensor by tensor, and whole or not at all.

Nothing is computed, rows of bytes change places: any type of number, bit for bit, there and back.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from posenc.errors import FormatError
from posenc.formats.huggingface import read_config
from posenc.formats.json_config import load_object, parse_object
from posenc.formats.projections import Pairs, Rows, rotaries_of, stored_layout
from posenc.formats.safetensors_header import read_header

KEY = "posenc.rotary_layout"
"""Metadata of a file that says for which layout its rows are stored."""
BLOCK = 2**24
BYTES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I8": 1}
OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Conversion:
    """What was done.

    Args:
        files: safetensors files written.
        tensors: tensors in them.
        converted: those whose rows were reordered.
        before, after: layouts.
    """

    files: tuple[str, ...]
    tensors: int
    converted: int
    before: Pairs
    after: Pairs


def convert_weights(
    source: str | Path,
    target: str | Path,
    layout: Pairs,
    *,
    config: str | Path | None = None,
    progress: Progress | None = None,
) -> Conversion:
    """Write weights whose query and key rows are stored for ``layout``.

    Args:
        source: a safetensors file, or a folder with one or several and a config.
        target: a file or folder that does not exist yet; of a folder, small files beside the weights are copied.
        layout: ``adjacent``: pairs ``(2i, 2i + 1)``; ``half``: pairs ``(i, i + rotary_dim / 2)``.
        config: the model's ``config.json``; beside the weights unless given.
        progress: told bytes done and bytes in all.

    Raises:
        FormatError: there is no config, the target exists, the weights have the layout already, or a tensor about
            queries or keys is not understood. Nothing is left behind then.
    """
    start, end = Path(source), Path(target)
    files = sorted(start.glob("*.safetensors")) if start.is_dir() else [start]
    if not files or not all(f.is_file() for f in files):
        raise FormatError("weights are a safetensors file or a folder with some", str(source))
    if end.exists():
        raise FormatError("the target does not exist yet", str(target), "Choose another name.")
    settings = load_object(config or (start if start.is_dir() else start.parent) / "config.json")
    rotaries = rotaries_of(read_config(settings, name=start.name, source=str(start), format="folder"))
    headers = {f: _header(f) for f in files}
    before = _layout_before(headers, stored_layout(rotaries))
    if before == layout:
        raise FormatError(f"weights are stored for the other layout than {layout}", f"{layout} pairs already")
    rows = Rows(settings, rotaries, layout)
    orders = {f: {name: rows.order(name, tuple(t["shape"])) for name, t in h.tensors} for f, h in headers.items()}
    rows.check_complete()  # before anything is written
    total, done = sum(h.size for h in headers.values()), 0
    with _whole_or_nothing(end, folder=start.is_dir()) as made:
        for file, header in headers.items():
            path = made / file.name if start.is_dir() else made
            with file.open("rb") as old, path.open("wb") as new:
                for count in _write(old, new, header, orders[file], layout):
                    done += count
                    if progress is not None:
                        progress(done, total)
                new.flush()
                os.fsync(new.fileno())
        if start.is_dir():
            _copy_rest(start, made)
    converted = sum(order is not None for found in orders.values() for order in found.values())
    names = tuple(f.name for f in files) if start.is_dir() else (end.name,)
    return Conversion(names, sum(len(h.tensors) for h in headers.values()), converted, before, layout)


@dataclass(frozen=True)
class _Header:
    """A file's metadata, its tensors in the order of their bytes, where these begin and how many there are."""

    metadata: dict[str, str]
    tensors: tuple[tuple[str, dict[str, Any]], ...]
    begin: int
    size: int


def _header(path: Path) -> _Header:
    read_header(path)  # refuses what is no safetensors file
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        fields = parse_object(file.read(length), f"the header of {path.name}")
    metadata = fields.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FormatError("metadata of safetensors are texts", path.name)
    tensors = tuple(sorted(fields.items(), key=lambda item: item[1]["data_offsets"][0]))
    at = 0
    for name, tensor in tensors:
        first, last = tensor["data_offsets"]
        if first != at:
            raise FormatError(
                "the tensors of a safetensors file follow each other without gaps", f"{path.name}: {name}"
            )
        at = last
    return _Header(metadata, tensors, 8 + length, at)


def _layout_before(headers: dict[Path, _Header], usual: Pairs) -> Pairs:
    """What the files say of themselves, else what the architecture runs with."""
    told = {h.metadata.get(KEY) for h in headers.values()}
    if told == {None}:
        return usual
    if len(told) > 1 or not told <= {"adjacent", "half"}:
        raise FormatError(f"all files say {KEY} adjacent or half", sorted(map(str, told)))
    return "adjacent" if told == {"adjacent"} else "half"


def _write(old: IO[bytes], new: IO[bytes], header: _Header, orders: dict[str, Any], layout: Pairs) -> Iterator[int]:
    """Write one file; yields the bytes of each piece."""
    fields = {"__metadata__": {**header.metadata, KEY: layout}, **dict(header.tensors)}
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    new.write(len(text).to_bytes(8, "little") + text)
    for name, tensor in header.tensors:
        first, last = tensor["data_offsets"]
        old.seek(header.begin + first)
        if orders[name] is None:
            left = last - first
            while left:
                piece = old.read(min(left, BLOCK))
                if not piece:
                    raise FormatError("a file does not shrink while it is read", name)
                new.write(piece)
                left -= len(piece)
                yield len(piece)
        else:
            new.write(_reordered(old.read(last - first), name, tensor, orders[name]))
            yield last - first


def _reordered(raw: bytes, name: str, tensor: dict[str, Any], order: Any) -> bytes:
    if tensor["dtype"] not in BYTES or len(raw) != BYTES[tensor["dtype"]] * prod(tensor["shape"]):
        raise FormatError("queries and keys are stored as numbers of whole bytes", f"{name}: {tensor['dtype']}")
    return bytes(np.frombuffer(raw, np.uint8).reshape(len(order), -1)[order].tobytes())


@contextmanager
def _whole_or_nothing(target: Path, *, folder: bool) -> Iterator[Path]:
    """A temporary file or folder beside the target, which takes its name at the end, or is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        path = made if folder else made / target.name
        yield path
        if folder:
            made.chmod(0o755)
        path.rename(target)
    except OSError as error:
        raise FormatError("the converted weights can be written", f"{target}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _copy_rest(source: Path, made: Path) -> None:
    for path in sorted(source.iterdir()):
        if path.is_file() and path.suffix != ".safetensors" and path.suffix not in OTHER_WEIGHTS:
            shutil.copyfile(path, made / path.name)
