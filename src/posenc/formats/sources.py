"""Whatever names a model's positions, to a :class:`posenc.records.Reading`.

A path that exists wins, then a line of notation, then the catalogue, then the hub.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from posenc.errors import FormatError, shown
from posenc.records import Part, Reading
from posenc.spec import ENCODINGS, ModelPositions, parse
from posenc.spec.value import Value

CALL = re.compile(r"\s*[A-Za-z_]\w*\(")
MAX_NAME = 4096
LIKE_A_PATH = (".json", ".gguf", ".safetensors", os.sep)


def read(subject: Any) -> Reading:
    """Read the positions of a model.

    Args:
        subject: a model folder, a ``config.json``, a ``.gguf`` file, a line of notation, a name of the catalogue, a hub
            id (local cache first, then the config alone); or a config as a dict; or an encoding, a tuple of encodings,
            a ``ModelPositions`` or a ``Reading``.

    Raises:
        FormatError: nothing of the kind is found, or it cannot be read as what it claims to be.
        SpecError: its numbers make an encoding that cannot exist.

    >>> str(read("rotary(64, base=5e5)").positions.encodings[0])
    'rotary(64, base=500000)'
    >>> read("llama-3.1-8b").positions.trained
    131072
    """
    if isinstance(subject, Reading):
        return subject
    if isinstance(subject, Mapping):
        return _config(subject, name=str(subject.get("_name_or_path") or "config"), source="a dict")
    if isinstance(subject, ModelPositions | Value | tuple):
        return _value(subject)
    if isinstance(subject, os.PathLike):
        return _existing(Path(subject), Path(subject).expanduser())
    if not isinstance(subject, str):
        raise FormatError("a model is named by text, a path, a config or a value", type(subject).__name__)
    return _text(subject)


def _text(text: str) -> Reading:
    if not text.strip() or "\0" in text:
        raise FormatError("a model is named by text that is not empty", text)
    path = _path(text)
    if path is not None:
        return _existing(Path(text), path)
    if CALL.match(text) or text.strip() == "none":
        return _value(parse(text), name=text.strip())
    if len(text) > MAX_NAME:
        raise FormatError(f"a name has at most {MAX_NAME} characters", len(text))

    from posenc.formats import catalogue, hub

    row = catalogue.lookup(text)
    if row is not None:
        return catalogue.read_row(row)
    if text.startswith(("~", ".")) or text.endswith(LIKE_A_PATH) or text.startswith(os.sep):
        raise FormatError("the file or folder exists", text)
    if hub.is_hub_id(text):
        from posenc.formats.json_config import load_object

        file = hub.config_file(text)
        return _config(load_object(file), name=text, source=str(file), format="hub")
    raise FormatError(
        "a model is a path, a hub id, a name of the catalogue or a line of notation", text, catalogue.hint(text)
    )


def _path(text: str) -> Path | None:
    """The path, if it exists; a text that cannot be a path does not."""
    try:
        path = Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _existing(given: Path, path: Path) -> Reading:
    """Read a file or a folder.

    Raises:
        FormatError: it is neither, or of no kind that is known.
    """
    if path.is_dir():
        from posenc.formats.folder import read_folder

        return read_folder(path, name=given.name or str(given))
    if not path.is_file():
        rule = "a path leads to a file or a folder, no device or pipe" if path.exists() else "the file or folder exists"
        raise FormatError(rule, str(given))
    if path.suffix == ".safetensors":
        from posenc.formats.folder import read_folder

        return read_folder(path.parent, name=given.name)
    if path.suffix == ".gguf" or _starts_like_gguf(path):
        from posenc.formats.gguf_reader import read_gguf

        return read_gguf(path)
    from posenc.formats.json_config import load_object

    config = load_object(path)
    name = given.parent.name if path.name == "config.json" and given.parent.name else given.stem
    return _config(config, name=name, source=str(given))


def _starts_like_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def _config(config: Mapping[str, Any], *, name: str, source: str, format: Any = "config") -> Reading:
    from posenc.formats.huggingface import read_config

    return read_config(config, name=shown(name, 200) or "config", source=source, format=format)


def _value(value: Any, name: str | None = None) -> Reading:
    """A spec value as a reading.

    Raises:
        FormatError: a tuple holds something else than encodings, or the value is no encoding.
    """
    if isinstance(value, ModelPositions):
        positions = value
    else:
        encodings = value if isinstance(value, tuple) else (value,)
        for each in encodings:
            if getattr(each, "kind", None) not in ENCODINGS:
                raise FormatError("positions are made of encodings", type(each).__name__)
        positions = ModelPositions.uniform(*encodings)
    if name is None:
        name = "positions" if isinstance(value, ModelPositions) else " + ".join(map(str, encodings)) or "none"
    faults = dict.fromkeys(fault for encoding in positions.encodings for fault in encoding.faults)
    return Reading(
        name=name,
        format="notation",
        source="notation",
        parts=(Part(name="model", positions=positions),),
        faults=tuple(faults),
    )
