"""The header of a GGUF file: metadata and tensor infos, read in bounded time and memory.

The ``gguf`` package's own reader builds every element of every array (2 s and 190 MB for a 98 MB file with a vocabulary
of 49,152) and trusts the counts it meets. Here arrays that nobody needs are stepped over, every length is held against
the size of the file, and nothing is built that is larger than a limit below.

Layout (ggml docs/gguf.md, version 3): magic ``GGUF``, u32 version, u64 tensors, u64 pairs, then the pairs (key, u32
type, value), then the tensor infos (name, u32 dimensions, u64 each, u32 type, u64 offset), then padding and the data.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posenc.errors import FormatError, shown

MAGIC = b"GGUF"
OLDER = {b"lmgg": "GGML", b"fmgg": "GGMF", b"tjgg": "GGJT", b"algg": "GGLA"}
VERSIONS = (2, 3)
PAIRS, TENSORS = 2**16, 2**16
KEY_BYTES, NAME_BYTES, TEXT_BYTES = 2**16 - 1, 1024, 2**16
KEPT = 2**16
"""Arrays of numbers up to this many elements are kept, longer ones only counted."""
KEPT_BYTES = 2**24
"""Text and numbers kept from the whole file; what comes after is only counted."""
WALKED = 2**22
"""Strings that are stepped over in the whole file; the largest vocabularies and their merges stay below 2**20."""
NESTING = 4
DIMENSIONS = 8

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY, FLOAT32 = 8, 9, 6
F32, F16 = 0, 1
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 24: (1, 1), 25: (1, 2),
    26: (1, 4), 27: (1, 8), 28: (1, 8), 30: (1, 2),
}  # fmt: skip
"""Elements and bytes of a block by tensor type (ggml.h, enum ggml_type); of others only the offset is checked."""


@dataclass(frozen=True)
class Skipped:
    """An array or text that was stepped over: what it holds and how many."""

    what: str
    count: int

    def __repr__(self) -> str:
        return f"<{self.count} {self.what}>"


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies: dimensions (fastest first), type, and the offset inside the data section."""

    shape: tuple[int, ...]
    kind: int
    offset: int

    @property
    def elements(self) -> int:
        product = 1
        for n in self.shape:
            product *= n
        return product


@dataclass
class Header:
    """What the header says; ``metadata`` values are numbers, booleans, text, tuples or :class:`Skipped`."""

    path: Path
    version: int
    metadata: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, TensorInfo] = field(default_factory=dict)
    data: int = 0
    size: int = 0

    def numbers(self, name: str, limit: int = 2**20) -> tuple[float, ...] | None:
        """The elements of a small float32 or float16 tensor; None if there is no such tensor.

        Raises:
            FormatError: another type, or more than ``limit`` elements.
        """
        tensor = self.tensors.get(name)
        if tensor is None:
            return None
        if tensor.kind not in (F32, F16) or tensor.elements > limit:
            raise FormatError(
                f"{name} is a small float32 or float16 tensor", f"type {tensor.kind}, {tensor.elements} numbers"
            )
        width, code = BLOCKS[tensor.kind][1], "fe"[tensor.kind]
        with self.path.open("rb") as file:
            file.seek(self.data + tensor.offset)
            raw = file.read(width * tensor.elements)
        if len(raw) != width * tensor.elements:
            raise FormatError(f"{name} lies inside the file", f"{len(raw)} of {width * tensor.elements} bytes")
        return struct.unpack(f"<{tensor.elements}{code}", raw)


def read_header(path: str | Path) -> Header:
    """Read the header of a GGUF file of version 2 or 3, little-endian.

    Raises:
        FormatError: no such file, not GGUF, an unknown version or byte order, truncated, or a count that cannot be
            true.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < 24:
                raise FormatError("a GGUF file starts with a header of at least 24 bytes", f"{size} bytes")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                return _Walk(path, view, size).header()
    except OSError as error:
        raise FormatError(f"a GGUF file can be read at {path}", error.strerror or str(error)) from None


class _Walk:
    """One pass over the header; ``at`` is the next byte."""

    def __init__(self, path: Path, view: mmap.mmap, size: int) -> None:
        self.path, self.view, self.size = path, view, size
        self.at, self.walked, self.kept = 0, 0, 0

    def header(self) -> Header:
        version = self._version()
        tensors, pairs = self._scalar("Q"), self._scalar("Q")
        for what, count, limit, least in (("metadata pairs", pairs, PAIRS, 13), ("tensors", tensors, TENSORS, 24)):
            if count > limit or count * least > self.size:
                raise FormatError(f"the number of {what} fits the file and is at most {limit}", count)
        header = Header(self.path, version, size=self.size)
        for _ in range(pairs):
            key = self._text(KEY_BYTES, "a metadata key")
            if key in header.metadata:
                raise FormatError("a metadata key occurs once", key)
            header.metadata[key] = self._value(self._scalar("I"), key)
        for _ in range(tensors):
            name = self._text(NAME_BYTES, "a tensor name")
            if name in header.tensors:
                raise FormatError("a tensor name occurs once", name)
            header.tensors[name] = self._tensor(shown(name, 80))
        self._place(header)
        return header

    def _version(self) -> int:
        magic = self._take(4, "the magic")
        if magic != MAGIC:
            older = OLDER.get(magic)
            seen = f"the older format {older}" if older else magic
            raise FormatError("a GGUF file starts with the bytes GGUF", seen)
        version = int(self._scalar("I"))
        if version & 0xFFFF == 0 and version:
            raise FormatError("a GGUF file is little-endian", f"version {version:#010x}, which is big-endian")
        if version not in VERSIONS:
            raise FormatError("the version of a GGUF file is 2 or 3", version)
        return version

    def _take(self, count: int, what: str) -> bytes:
        if count > self.size - self.at:
            raise FormatError(
                f"{what} lies inside the file",
                f"{count} bytes at byte {self.at} of {self.size}",
                "Is the file complete?",
            )
        self.at += count
        return self.view[self.at - count : self.at]

    def _scalar(self, code: str) -> Any:
        width = struct.calcsize(f"<{code}")
        return struct.unpack(f"<{code}", self._take(width, "a number"))[0]

    def _text(self, limit: int, what: str) -> str:
        count = self._scalar("Q")
        self.kept += count
        if count > limit or self.kept > KEPT_BYTES:
            raise FormatError(f"{what} has at most {limit} bytes, all text {KEPT_BYTES}", count)
        try:
            return self._take(count, what).decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(f"{what} is UTF-8", f"byte {error.object[error.start]:#04x} at {error.start}") from None

    def _value(self, kind: int, key: str) -> Any:
        key = shown(key, 80)
        if kind in SCALARS:
            value = self._scalar(SCALARS[kind])
            return shortest(value) if kind == FLOAT32 else value
        if kind == STRING:
            count = self._scalar("Q")
            if count > min(TEXT_BYTES, KEPT_BYTES - self.kept):
                self._skip(count, key)
                return Skipped("bytes of text", count)
            self.at -= 8
            return self._text(TEXT_BYTES, key)
        if kind == ARRAY:
            return self._array(key, 1)
        raise FormatError(f"the type of {key} is one of GGUF's thirteen", kind)

    def _array(self, key: str, depth: int) -> Any:
        kind, count = self._scalar("I"), self._scalar("Q")
        if kind in SCALARS:
            width = struct.calcsize(f"<{SCALARS[kind]}")
            if count * width > self.size - self.at:
                raise FormatError(
                    f"the array {key} lies inside the file", f"{count} elements at byte {self.at} of {self.size}"
                )
            if count > KEPT or self.kept + 8 * count > KEPT_BYTES:
                self._skip(count * width, key)
                return Skipped("numbers", count)
            self.kept += 8 * count
            return struct.unpack(f"<{count}{SCALARS[kind]}", self._take(count * width, key))
        if kind not in (STRING, ARRAY):
            raise FormatError(f"the element type of {key} is one of GGUF's thirteen", kind)
        self.walked += count if kind == STRING else 16 * count  # an inner array costs a call
        if count * 8 > self.size - self.at or self.walked > WALKED:
            raise FormatError(
                f"the array {key} fits the file and is at most {WALKED} elements long", f"{count} elements"
            )
        if kind == STRING:
            self._skip_texts(count, key)
            return Skipped("texts", count)
        if depth >= NESTING:
            raise FormatError(f"arrays are nested at most {NESTING} deep", key)
        for _ in range(count):
            self._array(key, depth + 1)
        return Skipped("arrays", count)

    def _skip(self, count: int, key: str) -> None:
        if count > self.size - self.at:
            raise FormatError(f"{key} lies inside the file", f"{count} bytes at byte {self.at} of {self.size}")
        self.at += count

    def _skip_texts(self, count: int, key: str) -> None:
        """The only long loop: step from length to length."""
        view, at, size, length = self.view, self.at, self.size, struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > size:
                at = size + 1
                break
            at += 8 + length(view, at)[0]
        if at > size:
            raise FormatError(f"the array {key} lies inside the file", f"{count} texts from byte {self.at} of {size}")
        self.at = at

    def _tensor(self, name: str) -> TensorInfo:
        dimensions = self._scalar("I")
        if dimensions > DIMENSIONS:
            raise FormatError(f"the tensor {name} has at most {DIMENSIONS} dimensions", dimensions)
        shape = tuple(self._scalar("Q") for _ in range(dimensions))
        return TensorInfo(shape, self._scalar("I"), self._scalar("Q"))

    def _place(self, header: Header) -> None:
        """Find the data section and hold every tensor against the end of the file."""
        alignment = header.metadata.get("general.alignment", 32)
        if isinstance(alignment, bool) or not isinstance(alignment, int) or not 0 < alignment <= 2**20 or alignment & 7:
            raise FormatError("general.alignment is a multiple of 8 up to 2^20", alignment)
        header.data = -(-self.at // alignment) * alignment
        for name, tensor in header.tensors.items():
            elements, width = BLOCKS.get(tensor.kind, (1, 0))
            end = header.data + tensor.offset + -(-tensor.elements // elements) * width
            if end > self.size:
                raise FormatError(
                    f"the tensor {shown(name, 80)} lies inside the file",
                    f"it would end at byte {end} of {self.size}",
                    "Is the file complete?",
                )


def shortest(value: float) -> float:
    """The shortest decimal that rounds to this float32: what the writer meant by ``0.707``.

    >>> shortest(struct.unpack("<f", struct.pack("<f", 0.707))[0])
    0.707
    """
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        try:
            if struct.unpack("<f", struct.pack("<f", float(text)))[0] == value:
                return float(text)
        except (OverflowError, struct.error):
            break
    return value
