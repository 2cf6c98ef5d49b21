"""Golden vectors: a model's positions as numbers for test suites in any language.

``golden.json`` holds everything as text, ``golden.safetensors`` the same arrays as bytes, ``FORMAT.md`` what they are.
The same model gives the same bytes; files appear whole or not at all, the JSON last.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from posenc.checker.golden_arrays import (
    Arrays,
    lengths_of,
    other_arrays,
    positions_of,
    rotary_arrays,
    rotary_arrays_at,
)
from posenc.errors import FormatError, PosencError
from posenc.formats.sources import read
from posenc.records import Reading
from posenc.spec import Rotary, notation
from posenc.spec.json import to_json

SCHEMA = 1
JSON, TENSORS, FORMAT = "golden.json", "golden.safetensors", "FORMAT.md"
LARGEST = 2**23
"""Numbers for one encoding, counted generously; a head of 128 channels takes about 10,000."""
TOLERANCE = {
    "float64": 1e-12,
    "float32": 1e-6,
    "bfloat16": 8e-3,
    "angle_float64_per_position": 1.2e-16,
    "angle_float32_per_position": 6.4e-8,
}
"""Absolute, for cos, sin and rows; the last two are added for each position, half an ulp of the angle at most."""


@dataclass(frozen=True)
class Golden:
    """Golden vectors in memory.

    Args:
        document: what becomes ``golden.json``.
        arrays: what becomes ``golden.safetensors``, by name.
    """

    document: dict[str, Any]
    arrays: Arrays

    @property
    def computed(self) -> int:
        """Entries that carry numbers."""
        return sum("not_computed" not in entry for entry in self.document["entries"])


def golden(model: Any) -> Golden:
    """Compute the golden vectors of a model's position encodings.

    Args:
        model: anything :func:`posenc.read` takes.

    Raises:
        PosencError: it cannot be read.

    >>> made = golden("rotary(6)")
    >>> made.document["entries"][0]["lengths"][0]["arrays"]["theta"]["shape"], made.arrays["0.positions"].tolist()[:5]
    ([1, 3], [0, 1, 2, 3, 7])
    """
    reading = read(model)
    arrays: Arrays = {}
    entries = [_entry(i, encoding, where, reading, arrays) for i, (encoding, where) in enumerate(_placed(reading))]
    body = _safetensors(arrays)
    main = reading.positions
    document = {
        "format": "posenc-golden",
        "schema": SCHEMA,
        "model": {
            "name": reading.name,
            "model_type": reading.model_type,
            "original": main.original,
            "trained": main.trained,
            "served": main.served,
        },
        "tensors": {"file": TENSORS, "sha256": hashlib.sha256(body).hexdigest()},
        "tolerance": TOLERANCE,
        "entries": entries,
    }
    return Golden(document, arrays)


def write_golden(model: Any, folder: str | Path) -> Golden:
    """Compute the golden vectors of a model and write them into a folder, which is made if need be.

    Raises:
        FormatError: the folder cannot be written.
        PosencError: as :func:`golden`.
    """
    made = golden(model)
    target = Path(folder)
    text = json.dumps(made.document, indent=1, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
    description = files("posenc.checker").joinpath("golden_format.md").read_bytes()
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, content in ((FORMAT, description), (TENSORS, _safetensors(made.arrays)), (JSON, text.encode())):
            _replace(target / name, content)
    except OSError as error:
        raise FormatError("the folder can be written", f"{target}: {error.strerror or error}") from None
    return made


def _replace(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there whole."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _safetensors(arrays: Arrays) -> bytes:
    from safetensors.numpy import save

    return bytes(save({name: np.ascontiguousarray(a) for name, a in arrays.items()}))


def _placed(reading: Reading) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Every encoding once, with the stacks and layers that have it."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for part in reading.parts:
        at = part.positions
        for encoding in at.input:
            found.setdefault(encoding, []).append({"part": part.name, "kind": "input", "served": at.served})
        for i, kind in enumerate(at.kinds):
            place = {"part": part.name, "kind": kind.name, "layers": list(at.layers_of(i)), "served": at.served}
            for encoding in kind.encodings:
                found.setdefault(encoding, []).append({**place, "window": kind.window})
    yield from found.items()


def _entry(i: int, encoding: Any, where: list[dict[str, Any]], reading: Reading, arrays: Arrays) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": str(i),
        "kind": encoding.kind,
        "notation": notation(encoding),
        "value": json.loads(to_json(encoding)),
        "where": where,
    }
    positions = positions_of(encoding, max((p["served"] or 0 for p in where), default=0) or None)
    try:
        _check_size(encoding, len(positions))
        if isinstance(encoding, Rotary):
            _add_rotary(entry, i, encoding, positions, arrays)
            return entry
        found = other_arrays(encoding, positions)
    except PosencError as error:
        entry["not_computed"] = str(error)
        return entry
    if found is None:
        modelled = "they depend on weights or contents" if encoding.kind != "unmodelled" else "it is not modelled"
        entry["not_computed"] = f"no numbers are recorded for {encoding.kind}: {modelled}"
    else:
        entry["arrays"] = _stored(found, f"{i}", arrays)
    return entry


def _check_size(encoding: Any, positions: int) -> None:
    """Refuse arrays that would be too large, before any is made."""
    width = max(getattr(encoding, name, 1) for name in ("head_dim", "dim", "num_heads"))
    heads = getattr(getattr(encoding, "axes", None), "heads", 1)
    if 6 * 2 * positions * width * heads * len(lengths_of(encoding)) > LARGEST:
        raise FormatError(f"golden vectors have at most {LARGEST} numbers for an encoding", f"width {width}")


def _add_rotary(entry: dict[str, Any], i: int, encoding: Rotary, positions: tuple[int, ...], arrays: Arrays) -> None:
    """Arrays of a rotary: those that hold for every length, then a set for each declared length."""
    entry["pairing"] = "adjacent" if encoding.interleaved else "half"
    common = rotary_arrays(encoding, positions)
    sets = [(length, rotary_arrays_at(encoding, positions, length)) for length in lengths_of(encoding)]
    entry["arrays"] = _stored(common, f"{i}", arrays)
    entry["lengths"] = [
        {"length": length, "arrays": _stored(found, f"{i}.{'any' if length is None else length}", arrays)}
        for length, found in sets
    ]


def _stored(found: Arrays, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Put arrays among the tensors and return them as JSON, row by row."""
    described = {}
    for name, array in found.items():
        plain = np.ascontiguousarray(array, dtype=np.int64 if array.dtype.kind in "iu" else np.float64)
        arrays[f"{prefix}.{name}"] = plain
        described[name] = {
            "tensor": f"{prefix}.{name}",
            "dtype": "I64" if plain.dtype == np.int64 else "F64",
            "shape": list(plain.shape),
            "data": plain.reshape(-1).tolist(),
        }
    return described
