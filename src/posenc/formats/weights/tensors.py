"""Single tensors out of safetensors files and GGUF files, as float64, checked before anything large is built."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from posenc.errors import FormatError, ShapeError
from posenc.formats.gguf_header import Header, TensorInfo, read_header

Array = NDArray[np.float64]

MOST_NUMBERS = 2**28
"""Largest tensor that is read: 2 GiB in float64; the query weights of the widest models stay below."""
MOST_ROWS = 2**24
LARGEST = 1e20
INDEX_BYTES = 2**25
REAL = ("F64", "F32", "F16", "BF16")


class Tensors(Protocol):
    """Named tensors of a model."""

    source: str

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Rows first.

        Raises:
            FormatError: there is no such tensor.
        """

    def rows(self, name: str, ids: Sequence[int] | None = None) -> Array:
        """These rows of a matrix (or the whole tensor) as float64.

        Raises:
            FormatError: no such tensor, no real numbers, too large, or outside the file.
            ShapeError: an id is no row.
        """


def tensor(tensors: Tensors, name: str, *shape: int) -> Array:
    """A whole tensor of a known shape.

    Raises:
        FormatError: missing, of another shape, not finite, or not readable.
    """
    seen = tensors.shape(name)
    if seen != shape:
        raise FormatError(f"{name} has the shape {shape}", seen)
    return finite(name, tensors.rows(name))


def rows(tensors: Tensors, name: str, ids: Sequence[int], width: int) -> Array:
    """``(len(ids), width)``: rows of a table.

    Raises:
        FormatError: missing, of another width, not finite, or not readable.
        ShapeError: an id is no row.
    """
    seen = tensors.shape(name)
    if len(seen) != 2 or seen[1] != width or seen[0] > MOST_ROWS:
        raise FormatError(f"{name} is a table with rows of {width} numbers", seen)
    wrong = [i for i in ids if not 0 <= i < seen[0]]
    if wrong:
        raise ShapeError(f"rows of {name} run from 0 to {seen[0] - 1}", wrong[:4])
    return finite(name, tensors.rows(name, ids))


def finite(name: str, values: Array) -> Array:
    """The same values, refused where they are not finite or so large that scores would overflow."""
    wrong = ~(np.abs(values) <= LARGEST)
    if wrong.any():
        raise FormatError(f"{name} holds finite numbers up to {LARGEST:g}", f"{int(wrong.sum())} that are not")
    return values


def missing(name: str, names: Sequence[str]) -> FormatError:
    """The error for a tensor that is not there."""
    return FormatError(f"the weights hold {name}", sorted(names)[:6], "Is this the model that its config says?")


class SafetensorsFiles:
    """The tensors of one safetensors file, or of a folder with one file or an index of several."""

    def __init__(self, path: Path) -> None:
        self.source = str(path)
        self._file: dict[str, Path] = {}
        for file in self._files(path):
            with _opened(file) as f:
                self._file |= dict.fromkeys(f.keys(), file)

    @staticmethod
    def _files(path: Path) -> list[Path]:
        if path.is_file():
            return [path]
        if (path / "model.safetensors").is_file():
            return [path / "model.safetensors"]
        index = path / "model.safetensors.index.json"
        if not index.is_file():
            pickles = sorted(p.name for p in path.glob("*.bin"))[:2]
            raise FormatError(
                f"a model folder with weights holds model.safetensors or its index ({path})",
                pickles or "no such file",
                "Pickled weights are not opened: save them as safetensors." if pickles else None,
            )
        try:
            if index.stat().st_size > INDEX_BYTES:
                raise FormatError(f"an index of weights has at most {INDEX_BYTES} bytes", index.stat().st_size)
            listed = json.loads(index.read_bytes())["weight_map"].values()
            names = sorted({str(name) for name in listed})
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"{index.name} maps tensors to files under weight_map", str(error)) from None
        if any(Path(name).name != name or not name.endswith(".safetensors") for name in names):
            raise FormatError("an index names safetensors files of its own folder", names[:4])
        return [path / name for name in names if (path / name).is_file()]

    def __contains__(self, name: str) -> bool:
        return name in self._file

    def shape(self, name: str) -> tuple[int, ...]:
        with _opened(self._at(name)) as f:
            return tuple(f.get_slice(name).get_shape())

    def rows(self, name: str, ids: Sequence[int] | None = None) -> Array:
        with _opened(self._at(name)) as f:
            view = f.get_slice(name)
            if view.get_dtype() == "BF16":
                import ml_dtypes  # noqa: F401 - names bfloat16 for NumPy, which safetensors asks it for
            if view.get_dtype() not in REAL:
                raise FormatError(f"{name} is one of {', '.join(REAL)}", view.get_dtype())
            if ids is None:
                _bounded(name, view.get_shape())
                return np.asarray(view[:]).astype(np.float64)
            return np.concatenate([np.asarray(view[i : i + 1]).astype(np.float64) for i in ids])

    def _at(self, name: str) -> Path:
        if name not in self._file:
            raise missing(name, list(self._file))
        return self._file[name]


def _opened(file: Path) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        return safe_open(str(file), framework="np")
    except (SafetensorError, OSError) as error:
        raise FormatError(f"a safetensors file can be read at {file}", str(error)) from None


def _bounded(name: str, shape: Sequence[int]) -> None:
    if math.prod(shape) > MOST_NUMBERS:
        raise FormatError(f"{name} has at most 2^28 numbers", tuple(shape))


class GgufFile:
    """The tensors of a GGUF file, dequantised; names are GGUF's own, rows as they are stored."""

    def __init__(self, path: Path, header: Header | None = None) -> None:
        self.source = str(path)
        self.header = header or read_header(path)

    def __contains__(self, name: str) -> bool:
        return name in self.header.tensors

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(reversed(self._info(name).shape))

    def rows(self, name: str, ids: Sequence[int] | None = None) -> Array:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
        from gguf.quants import dequantize

        info, shape = self._info(name), self.shape(name)
        try:
            kind = GGMLQuantizationType(info.kind)
            per_block, block_bytes = GGML_QUANT_SIZES[kind]
        except (ValueError, KeyError):
            raise FormatError(f"the tensor type of {name} is a known one", info.kind) from None
        if not shape or 0 in shape or shape[-1] % per_block:
            raise FormatError(f"the rows of {name} are whole blocks of {per_block}", shape)
        _bounded(name, shape if ids is None else (len(ids), shape[-1]))
        row_bytes = shape[-1] // per_block * block_bytes
        count = math.prod(shape[:-1])
        start = self.header.data + info.offset
        if start + count * row_bytes > self.header.size:
            raise FormatError(f"{name} lies inside the file", f"{count} rows of {row_bytes} bytes from byte {start}")
        stored = np.memmap(self.source, dtype=np.uint8, mode="r", offset=start, shape=(count, row_bytes))
        taken = np.array(stored if ids is None else stored[np.asarray(ids, dtype=np.int64)])
        try:
            with np.errstate(all="ignore"):  # a hostile scale may overflow; the caller refuses what is not finite
                values = np.asarray(dequantize(taken, kind), dtype=np.float64)
        except NotImplementedError:
            raise FormatError(f"{name} is of a type that can be dequantised", kind.name) from None
        return values.reshape(shape if ids is None else (len(ids), shape[-1]))

    def _info(self, name: str) -> TensorInfo:
        if name not in self.header.tensors:
            raise missing(name, list(self.header.tensors))
        return self.header.tensors[name]
