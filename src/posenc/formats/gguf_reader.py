"""GGUF files: metadata, tensor infos and the small tensors of frequency factors, as llama.cpp executes them.

A GGUF file stores the rows of q and k for the pairs that llama.cpp turns: an architecture of the "normal" kind pairs
channels ``(2i, 2i + 1)``, and weights whose published config pairs ``(i, i + d/2)`` were permuted when converted. Rows
and rotation belong together, so this is a convention, reported as ``Reading.row_order``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from posenc.errors import FormatError, shown
from posenc.formats import gguf_architectures as architectures
from posenc.formats.gguf_architectures import Architecture
from posenc.formats.gguf_header import Header, read_header
from posenc.formats.gguf_layers import count, rotary_layers
from posenc.formats.huggingface.keys import Keys
from posenc.records import Part, Reading
from posenc.spec import Alibi, Learned, ModelPositions, T5Bias, Unmodelled

ARCHITECTURE = re.compile(r"[A-Za-z0-9_.+-]{1,64}")
SHARD = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")


def read_gguf(path: str | Path, *, name: str | None = None) -> Reading:
    """Read the positions of the model in a GGUF file; of a split file the first shard is read.

    Raises:
        FormatError: it is no GGUF file, truncated or hostile, of an architecture that is not known and that has no rope
            keys, or a key breaks a rule.
        SpecError: its numbers make an encoding that cannot exist.
    """
    path = first_shard(Path(path))
    header = read_header(path)
    arch = header.metadata.get("general.architecture")
    if not isinstance(arch, str) or not ARCHITECTURE.fullmatch(arch):
        raise FormatError(
            f"{path.name} names its general.architecture", arch, "Shards after the first do not; read the first."
        )
    keys = Keys({k.removeprefix(f"{arch}."): v for k, v in header.metadata.items() if k.startswith(f"{arch}.")}, arch)
    facts = architectures.architecture(arch, count(keys, "block_count"))
    if not facts.known:
        facts = _unknown(keys, facts)
    parts = _parts(header, keys, facts)
    if facts.mechanism == "rotary":
        keys.notes.append(_row_note(facts))
    split = header.metadata.get("split.count", 0)
    if isinstance(split, int) and split > 1:
        keys.notes.append(f"one of {split} shards was read; tensors of the others were not seen")
    title = header.metadata.get("general.name")
    return Reading(
        name=name or (shown(title, 200) if isinstance(title, str) and title else path.stem),
        format="gguf",
        source=str(path),
        model_type=arch,
        parts=parts,
        assumed=tuple(keys.assumed.values()),
        unread=keys.unread(),
        faults=tuple(dict.fromkeys(f for p in parts for e in p.positions.encodings for f in e.faults)),
        notes=tuple(dict.fromkeys(keys.notes)),
        row_order=facts.pairs if facts.mechanism == "rotary" and facts.known else None,
    )


def first_shard(path: Path) -> Path:
    """The first shard of a split file, where it lies beside this one."""
    match = SHARD.match(path.name)
    if match is None or int(match["number"]) == 1:
        return path
    first = path.with_name(f"{match['stem']}-00001-of-{match['count']}.gguf")
    return first if first.is_file() else path


def _unknown(keys: Keys, facts: Architecture) -> Architecture:
    if not any(k.startswith("rope.") for k in keys.data):
        raise FormatError(
            "the architecture of a GGUF file is known or has rope keys",
            facts.name,
            f"Known: {', '.join(architectures.names()[:12])}, … ({len(architectures.names())}).",
        )
    keys.assume("rope pairs", "(i, i + d/2)", f"{facts.name} is not in the table of {architectures.source()}")
    keys.notes.append(f"{facts.name} is not a known architecture: its pairs, row order and kinds of layers are assumed")
    return Architecture(facts.name, pairs="half", known=False)


def _row_note(facts: Architecture) -> str:
    if not facts.known:
        return "row order: not known"
    if facts.pairs == "adjacent":
        return (
            "row order: q and k rows are stored for pairs (2i, 2i + 1), as llama.cpp turns them for this architecture; "
            f"weights of a config that pairs (i, i + d/2) were permuted when converted ({architectures.source()})"
        )
    return f"row order: q and k rows are stored for pairs (i, i + d/2) ({architectures.source()})"


def _parts(header: Header, keys: Keys, facts: Architecture) -> tuple[Part, ...]:
    served = count(keys, "context_length", limit=2**48)
    match facts.mechanism:
        case "rotary":
            return (Part(name="model", positions=rotary_layers(header, keys, facts, served)),)
        case "t5":
            return _t5(keys, served)
        case "alibi":
            bias = keys.number("attention.max_alibi_bias", default=facts.alibi.get("max_bias"), why="llama.cpp")
            if bias is None:
                raise FormatError(
                    f"{keys.at('attention.max_alibi_bias')} is missing", remedy="Nothing is assumed in its place."
                )
            encoding: Any = Alibi(_heads(keys), max_bias=bias, symmetric=facts.alibi.get("symmetric", False))
        case "learned":
            encoding = _learned(header, keys, served)
        case "none":
            keys.notes.append("recurrent layers: the architecture has no position encoding")
            return (Part(name="model", positions=_uniform(keys, (), served)),)
        case _:
            encoding = Unmodelled(name=facts.name, note=facts.note)
    return (Part(name="model", positions=_uniform(keys, (encoding,), served)),)


def _uniform(keys: Keys, encodings: tuple[Any, ...], served: int | None) -> ModelPositions:
    return ModelPositions.uniform(*encodings, layers=count(keys, "block_count") or 0, served=served)


def _learned(header: Header, keys: Keys, served: int | None) -> Learned:
    table = header.tensors.get("position_embd.weight")
    if table is not None and len(table.shape) == 2:
        return Learned(table.shape[0], shape=(table.shape[1],))
    if served is None:
        raise FormatError(
            "a table of learned positions is stored as position_embd.weight", "no such tensor, no context_length"
        )
    keys.assume("position_embd.weight", f"{served} rows", "context_length; the tensor is not in this file")
    return Learned(keys.integer("embedding_length"), shape=(served,))


def _t5(keys: Keys, served: int | None) -> tuple[Part, ...]:
    heads, buckets = _heads(keys), keys.integer("attention.relative_buckets_count")
    keys.assume("max_distance", 128, "llama.cpp (llama_relative_position_bucket); not stored in GGUF")
    parts = []
    for name, key, both in (("decoder", "decoder_block_count", False), ("encoder", "block_count", True)):
        if name == "decoder" and keys.path == "t5encoder":
            continue
        layers = count(keys, key) or count(keys, "block_count") or 0
        bias = T5Bias(heads, num_buckets=buckets, max_distance=128, bidirectional=both)
        parts.append(Part(name=name, positions=ModelPositions.uniform(bias, layers=layers, served=served)))
    return tuple(parts)


def _heads(keys: Keys) -> int:
    value = keys.data.get("attention.head_count")
    if isinstance(value, tuple):
        heads = set(keys.numbers("attention.head_count", integer=True)) - {0}
        if len(heads) != 1:
            raise FormatError(f"{keys.at('attention.head_count')} is one number of heads", value)
        return int(heads.pop())
    return int(keys.integer("attention.head_count"))
