"""A model on disk to the arrays of its first attention layer for one sentence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.formats.weights import names as layouts
from posenc.formats.weights.layers import AdditiveLayer, Projections, RotaryLayer
from posenc.formats.weights.names import Names
from posenc.formats.weights.tensors import Array, GgufFile, SafetensorsFiles, Tensors, rows, tensor
from posenc.formats.weights.tokens import Tokens, tokenized
from posenc.records import Reading
from posenc.spec import Learned, Rotary

CONFIG_BYTES = 2**24
WIDEST = 2**16
MOST_POSITIONS = 2**16
SMALLEST_EPS = 1e-20


@dataclass(frozen=True, eq=False)
class FirstLayer:
    """A first attention layer, the tokens it was filled with, and where both come from."""

    name: str
    source: str
    tokens: Tokens
    layer: AdditiveLayer | RotaryLayer


def first_layer(path: str | Path, sentence: str | Sequence[int]) -> FirstLayer:
    """Read what the first attention layer of a model computes its scores from.

    Only the rows of the sentence are read from the embedding table. GGUF tensors are dequantised; their query and key
    rows keep the order in which the file stores them, and the encoding says which channels form a pair.

    Args:
        path: a model folder, a safetensors file beside its ``config.json``, or a GGUF file.
        sentence: text, or token ids.

    Raises:
        FormatError: no such model; a kind of model not known here; a tensor missing, hostile or of a wrong shape.
        ShapeError: too many tokens, or an id that is no row of the embedding table.
        SpecError: text was given and the ``tokenizers`` package is not installed.
    """
    path = Path(path)
    if not path.exists():
        raise FormatError(
            "weights are read from a model folder, a safetensors file or a GGUF file",
            str(path),
            "No such path on this machine.",
        )
    gguf = path.is_file() and path.suffix == ".gguf"
    keys, names, reading, tensors = _gguf(path) if gguf else _huggingface(path)
    tokens = tokenized(Path(tensors.source), sentence)
    prefix = next((p for p in names.prefixes if p + names.words in tensors), names.prefixes[-1])
    build = _additive if names.additive else _rotary
    return FirstLayer(reading.name, reading.source, tokens, build(keys, names, reading, tensors, prefix, tokens.ids))


def _huggingface(path: Path) -> tuple[Keys, Names, Reading, Tensors]:
    from posenc.formats.huggingface import read_config

    folder = path if path.is_dir() else path.parent
    try:
        with (folder / "config.json").open("rb") as file:
            raw = file.read(CONFIG_BYTES + 1)
        if len(raw) > CONFIG_BYTES:
            raise FormatError(f"a config.json has at most {CONFIG_BYTES} bytes", "more")
        config = json.loads(raw)
    except OSError as error:
        raise FormatError(f"a config.json lies with the weights ({folder})", error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{folder / 'config.json'} is JSON", str(error)) from None
    reading = read_config(config, name=folder.name, source=str(path), format="folder")
    names = _known(layouts.HUGGINGFACE, reading.model_type, "model type")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise FormatError("position_embedding_type is absolute", config["position_embedding_type"])
    return Keys(config), names, reading, SafetensorsFiles(path)


def _gguf(path: Path) -> tuple[Keys, Names, Reading, Tensors]:
    from posenc.formats.gguf_reader import read_gguf

    reading = read_gguf(path)
    tensors = GgufFile(Path(reading.source))
    arch = str(reading.model_type)
    names = _known(layouts.GGUF, arch, "architecture")
    said = tensors.header.metadata.items()
    return (
        Keys({k.removeprefix(f"{arch}."): v for k, v in said if k.startswith(f"{arch}.")}, arch),
        names,
        reading,
        tensors,
    )


def _known(table: dict[str, Names], kind: str | None, what: str) -> Names:
    if kind not in table:
        raise FormatError(f"attention is decomposed for the {what}s {', '.join(sorted(table))}", kind)
    return table[kind]


def _additive(
    keys: Keys, names: Names, reading: Reading, tensors: Tensors, prefix: str, ids: Sequence[int]
) -> AdditiveLayer:
    width = _size(keys, names.width)
    first = next((e.offset for e in reading.positions.input if isinstance(e, Learned)), 0)
    table = prefix + str(names.positions)
    shape = tensors.shape(table)
    if len(shape) != 2 or shape[0] > MOST_POSITIONS:
        raise FormatError(f"{table} is a table of at most {MOST_POSITIONS} rows", shape)
    if first >= shape[0]:
        raise FormatError(f"position 0 reads row {first} of {table}", shape)
    positions = tensor(tensors, table, shape[0], width)[first:]
    types = np.zeros(width)
    if names.types and prefix + names.types in tensors:
        types = rows(tensors, prefix + names.types, [0], width)[0]
    norm = prefix + names.norm
    return AdditiveLayer(
        words=rows(tensors, prefix + names.words, ids, width),
        positions=positions,
        types=types,
        norm_weight=tensor(tensors, f"{norm}.weight", width),
        norm_bias=tensor(tensors, f"{norm}.bias", width),
        eps=_eps(keys, names),
        projections=_projections(keys, names, tensors, prefix, width),
    )


def _rotary(
    keys: Keys, names: Names, reading: Reading, tensors: Tensors, prefix: str, ids: Sequence[int]
) -> RotaryLayer:
    width, at = _size(keys, names.width), reading.positions
    inside = at.kinds[at.layers[0] if at.layers else 0].encodings
    if len(inside) != 1 or not isinstance(inside[0], Rotary):
        raise FormatError("the first layer has one rotary encoding", " + ".join(map(str, inside)) or "none")
    return RotaryLayer(
        words=rows(tensors, prefix + names.words, ids, width),
        norm_weight=tensor(tensors, f"{prefix}{names.norm}.weight", width),
        eps=_eps(keys, names),
        encoding=inside[0],
        projections=_projections(keys, names, tensors, prefix, width),
    )


def _projections(keys: Keys, names: Names, tensors: Tensors, prefix: str, width: int) -> Projections:
    heads = _size(keys, names.heads)
    key_heads = heads if names.key_heads is None else _size(keys, names.key_heads, heads)
    head_dim = width // heads if names.head_dim is None else _size(keys, names.head_dim, width // heads)
    if heads % key_heads or (names.head_dim is None and width % heads):
        raise FormatError("heads divide the width, and key heads the heads", (width, heads, key_heads))
    sizes = (heads * head_dim, key_heads * head_dim)
    if names.fused:
        both, bias = _fused(tensors, prefix + names.query, width, sizes[0])
    else:
        named = [(f"{prefix}{name}", size) for name, size in zip((names.query, names.key), sizes, strict=True)]
        both = [tensor(tensors, f"{name}.weight", size, width) for name, size in named]
        bias = [tensor(tensors, f"{n}.bias", s) if f"{n}.bias" in tensors else np.zeros(s) for n, s in named]
    norms = [tensor(tensors, prefix + n, head_dim) if n else None for n in (names.query_norm, names.key_norm)]
    return Projections(
        query=both[0].reshape(heads, head_dim, width),
        key=both[1].reshape(key_heads, head_dim, width),
        query_bias=bias[0].reshape(heads, head_dim),
        key_bias=bias[1].reshape(key_heads, head_dim),
        query_norm=norms[0],
        key_norm=norms[1],
        norm_eps=_eps(keys, names),
        causal=names.causal,
    )


def _fused(tensors: Tensors, name: str, width: int, size: int) -> tuple[list[Array], list[Array]]:
    """GPT-2's ``c_attn``: (in, out) with queries, keys and values side by side."""
    matrix = tensor(tensors, f"{name}.weight", width, 3 * size).T
    bias = tensor(tensors, f"{name}.bias", 3 * size)
    return [matrix[:size], matrix[size : 2 * size]], [bias[:size], bias[size : 2 * size]]


def _size(keys: Keys, name: str, default: Any = None) -> int:
    value = keys.integer(name, default=default) if default is not None else keys.integer(name)
    if not 1 <= value <= WIDEST:
        raise FormatError(f"{keys.at(name)} is between 1 and {WIDEST}", value)
    return int(value)


def _eps(keys: Keys, names: Names) -> float:
    if names.eps is None:
        return float(names.eps_default or 0.0)
    value = keys.number(names.eps) if names.eps_default is None else keys.number(names.eps, default=names.eps_default)
    if not SMALLEST_EPS <= value <= 1:
        raise FormatError(f"{keys.at(names.eps)} is between {SMALLEST_EPS:g} and 1", value)
    return float(value)
