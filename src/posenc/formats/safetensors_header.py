"""The header of a safetensors file: names, types and shapes of the tensors, without reading any.

Layout: 8 bytes with the length of the header, little-endian, then that many bytes of JSON, then the data.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posenc.errors import FormatError, shown
from posenc.formats.json_config import parse_object
from posenc.records import Reading

FORMAT_LIMIT = 100_000_000
"""The format's own limit on a header."""
MAX_BYTES = 2**23
"""8 MiB, some 60,000 tensors: longer headers are not read."""
MAX_TENSORS = 2**17
MAX_FILES = 64
MAX_NOTES = 8

POSITION = re.compile(
    r"(^|\.)(wpe|w?pe|pos_?emb(ed(dings?)?)?|pos_embed|position_embd|position_embeddings?|embed_positions|inv_freq|rope_freqs|"
    r"rotary_emb|relative_attention_bias|rel_pos_[hw]|position_ids)(\.|$)",
    re.IGNORECASE,
)
LAYER = re.compile(r"\.\d+\.")


class TooLongError(FormatError):
    """A header that may be right and is longer than posenc reads."""


@dataclass(frozen=True)
class Stored:
    """A tensor as the header describes it."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def read_header(path: str | Path) -> tuple[Stored, ...]:
    """The tensors of one safetensors file.

    Raises:
        FormatError: no such file, truncated, a header longer than the file or than allowed, not JSON, or a tensor that
            lies outside the file.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > size - 8 or length > FORMAT_LIMIT:
                raise FormatError("the header of a safetensors file lies inside it", f"{length} bytes of {size}")
            if length > MAX_BYTES:
                raise TooLongError(f"posenc reads safetensors headers of at most {MAX_BYTES} bytes", length)
            raw = file.read(length)
    except OSError as error:
        raise FormatError("a safetensors file can be read", f"{path}: {error.strerror or error}") from None
    fields = parse_object(raw, f"the header of {path.name}", MAX_BYTES)
    fields.pop("__metadata__", None)
    if len(fields) > MAX_TENSORS:
        raise FormatError(f"a safetensors file has at most {MAX_TENSORS} tensors", len(fields))
    return tuple(_stored(name, entry, size - 8 - length) for name, entry in fields.items())


def _stored(name: str, entry: Any, data: int) -> Stored:
    shape: Any = entry.get("shape") if isinstance(entry, dict) else None
    ends: Any = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not _counts(shape) or not _counts(ends) or len(ends) != 2 or len(shape) > 32:
        raise FormatError(f"the tensor {name} has a shape and two offsets", entry)
    if not ends[0] <= ends[1] <= data:
        raise FormatError(f"the tensor {name} lies inside the file", f"bytes {ends[0]} to {ends[1]} of {data}")
    return Stored(name, str(entry.get("dtype")), tuple(shape))


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in value)


def position_notes(folder: Path, reading: Reading) -> tuple[str, ...]:
    """What the safetensors files of a model folder store about positions, beside what the config says.

    Tensors that repeat over layers are counted once. A learned table whose rows are not the config's is named.

    Raises:
        FormatError: a file is no safetensors file.
    """
    found: Counter[tuple[str, tuple[int, ...]]] = Counter()
    notes: list[str] = []
    for path in sorted(p for p in folder.glob("*.safetensors") if p.is_file())[:MAX_FILES]:
        try:
            tensors = read_header(path)
        except TooLongError as error:
            notes.append(f"{path.name} was not looked into: {error}")
            continue
        for tensor in tensors:
            if POSITION.search(tensor.name):
                found[LAYER.sub(".*.", tensor.name), tensor.shape] += 1
    for (name, shape), count in list(found.items())[:MAX_NOTES]:
        times = f" ({count} times)" if count > 1 else ""
        notes.append(f"stored: {shown(name, 120)}, shape {list(shape)}{times}{_against(shape, reading)}")
    if len(found) > MAX_NOTES:
        notes.append(f"stored: {len(found) - MAX_NOTES} more tensors about positions")
    return tuple(notes)


def _against(shape: tuple[int, ...], reading: Reading) -> str:
    """What the config's table of the same width says, if it says something else."""
    for encoding in reading.encodings():
        if encoding.kind == "learned" and len(shape) >= 2 and shape[-1] == encoding.dim:
            rows = shape[-2]
            return "" if rows == encoding.rows else f"; the config's table has {encoding.rows} rows"
    return ""
