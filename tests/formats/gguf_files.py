"""Tiny GGUF files for tests: written by the gguf package, and by hand where it refuses to write what is wrong."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np

SHAPES = {"block_count": 5, "context_length": 4096, "embedding_length": 96, "head_count": 3}


def write(path: Path, arch: str, keys: dict | None = None, tensors: dict | None = None, **sizes: int) -> Path:
    """Write a GGUF file of five layers, width 96 and 3 heads of 32 channels, unless ``sizes`` say otherwise."""
    sizes = {**SHAPES, **sizes}
    writer = gguf.GGUFWriter(str(path), arch)
    writer.add_block_count(sizes["block_count"])
    writer.add_context_length(sizes["context_length"])
    writer.add_embedding_length(sizes["embedding_length"])
    writer.add_head_count(sizes["head_count"])
    writer.add_token_list([b"a", b"bc", b""])
    for key, value in (keys or {}).items():
        name = f"{arch}.{key}"
        match value:
            case bool():
                writer.add_bool(name, value)
            case str():
                writer.add_string(name, value)
            case int():
                writer.add_uint32(name, value)
            case float():
                writer.add_float32(name, value)
            case list():
                writer.add_array(name, value)
    for name, value in (tensors or {"token_embd.weight": np.zeros((7, 2))}).items():
        writer.add_tensor(name, np.asarray(value, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def text(value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(key: bytes | str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def header(pairs: list[bytes], *, version: int = 3, tensors: int = 0, count: int | None = None) -> bytes:
    """The bytes of a file without tensor infos; ``count`` claims another number of pairs."""
    claimed = len(pairs) if count is None else count
    return b"GGUF" + struct.pack("<IQQ", version, tensors, claimed) + b"".join(pairs)
